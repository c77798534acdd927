// The routes that take a node out of work, on a program that is the only node.

import assert from "node:assert/strict";
import { test } from "node:test";
import { startHere } from "../support/command-line.ts";
import { ask, assertProblem } from "../support/gateway-api.ts";
import { startGatewayHere } from "../support/in-process.ts";

test("a program that shares its database with nobody says what makes a cluster", async () => {
  await using program = await startGatewayHere();
  const asked = [
    ["GET", "drain", undefined],
    ["POST", "drain", {}],
    ["POST", "drain", undefined],
    ["POST", "undrain", undefined],
    ["POST", "maintenance", { enabled: true }],
  ] as const;
  for (const [method, verb, body] of asked) {
    const answer = await ask(program, method, `/nodes/node_x/${verb}`, { body });
    assert.match(String(assertProblem(answer, 409, "not_clustered").detail), /SVC_DATABASE_URL/);
  }
});

test("what is asked of a node is checked", async () => {
  await using program = await startGatewayHere();
  const wrong = [
    ["drain", { deadline_seconds: -1 }],
    ["drain", { deadline: 5 }],
    ["maintenance", {}],
    ["maintenance", { enabled: "yes" }],
  ] as const;
  for (const [verb, body] of wrong) {
    const answer = await ask(program, "POST", `/nodes/node_x/${verb}`, { body });
    assertProblem(answer, 422, "validation_failed");
  }
});

test("the command says what makes a cluster, and refuses what it does not know before it asks", async () => {
  await using program = await startGatewayHere();
  const run = (...words: readonly string[]) =>
    startHere(["node", ...words, "--url", program.api], program.home).ended;
  const { code, err } = await run("drain", "node_x", "--deadline", "5", "--no-services-last");
  assert.equal(code, 1);
  assert.match(err, /SVC_DATABASE_URL.*HTTP 409/s);
  for (const wrong of [
    ["drain", "node_x", "--deadline", "soon"],
    ["maintenance", "node_x", "maybe"],
    ["maintenance", "node_x", "off", "--reason", "new disk"],
  ])
    assert.equal((await run(...wrong)).code, 2, wrong.join(" "));
});
