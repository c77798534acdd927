// `troupe deploy` and `troupe deployments` against the real program.

import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import type { Deployment } from "../../sdk/src/index.ts";
import type { JsonObject } from "../../src/engine/json.ts";
import { startHere } from "../support/command-line.ts";
import { deploymentIs } from "../support/deployed-servers.ts";
import { uploadBundle } from "../support/gateway-api.ts";
import { executor, graph, router } from "../support/graphs.ts";
import { startGatewayHere } from "../support/in-process.ts";
import type { Program } from "../support/program.ts";

let program: Program;
let bundleId = "";
before(async () => {
  program = await startGatewayHere();
  bundleId = await uploadBundle(program, graph("web", [router("in")], [], { type: "service" }));
});
after(() => program.stop());

const troupe = (...args: string[]) => startHere([...args, "--url", program.api], program.home).ended;
const quick = ["--min-healthy", "0", "--drain", "0"];

/** Runs a command that must end with a code. */
async function done(
  wanted: number,
  ...args: string[]
): Promise<{ readonly out: string; readonly err: string }> {
  const { code, out, err } = await troupe(...args);
  assert.equal(code, wanted, `troupe ${args.join(" ")}:\n${out}${err}`);
  return { out: out.trim(), err };
}
const deployed = async (...args: string[]) =>
  (await done(0, "deploy", bundleId, ...quick, "--detach", ...args)).out;

test("deploy follows the rollout to its end, and shows the instances", async () => {
  const { out, err } = await done(0, "deploy", bundleId, "--name", "web", "--count", "2", ...quick);
  assert.match(err, /instance 1 \(version 1\): serving, passing/);
  assert.match(out, /^deployment_\w+ succeeded/);
  assert.match(out, /healthy +2 of 2/);
  assert.match(out, /2 version 1 serving passing run_/);
});

test("a new version is followed to where it waits, promoted, and rolled back", async () => {
  const id = await deployed("--strategy", "canary", "--count", "2");
  await deploymentIs(program, id, "succeeded", 1);
  const { out } = await done(0, "deploy", bundleId, "--update", id, "--set", "n=2");
  assert.match(out, /awaiting_promotion/);
  assert.match((await done(0, "deployments", "promote", id)).out, /running, version 2$/);
  await done(0, "deployments", "watch", id);
  await deploymentIs(program, id, "succeeded", 2);
  assert.match((await done(0, "deployments", "rollback", id, "--version", "1")).out, /running, version 1$/);
  await deploymentIs(program, id, "rolled_back", 1);
  const shown = JSON.parse((await done(0, "deployments", "show", id, "--json")).out) as JsonObject;
  assert.deepEqual([shown.status, shown.version], ["rolled_back", 1]);
  assert.match((await done(0, "deployments", "list", "--status", "rolled_back")).out, new RegExp(id));
});

test("a rollout is paused, resumed and failed, and a deployment deleted", async () => {
  const id = await deployed("--strategy", "canary");
  await deploymentIs(program, id, "succeeded", 1);
  await done(0, "deploy", bundleId, "--update", id, "--detach");
  await deploymentIs(program, id, "awaiting_promotion", 2);
  assert.match((await done(0, "deployments", "pause", id)).out, /paused/);
  assert.match((await done(0, "deployments", "resume", id)).out, /running/);
  assert.match((await done(0, "deployments", "fail", id, "--rollback")).out, /running, version 1$/);
  await deploymentIs(program, id, "rolled_back", 1);
  assert.match((await done(0, "deployments", "delete", id)).out, /deleted/);
  assert.match((await done(1, "deployments", "show", id)).err, /was not found/);
});

test("deploy uploads what is on this machine, and names the deployment after it", async () => {
  const manifest = join(program.home, "pages.json");
  writeFileSync(manifest, JSON.stringify(graph("pages", [router("in")], [], { type: "service" })));
  const shown = JSON.parse((await done(0, "deploy", manifest, ...quick, "--json")).out) as Deployment;
  assert.equal(shown.name, "pages");
  assert.match(String(shown.source.bundle_id), /^bundle_/);
  assert.match((await done(2, "deploy", "./nowhere")).err, /nowhere does not exist/);
  assert.match((await done(2, "deploy", "nowhere")).err, /no blueprint "nowhere"/);
});

test("deploy exits with 1 when the rollout fails", async () => {
  const bad = await uploadBundle(program, graph("bad", [executor("in", ["false"])], [], { type: "service" }));
  const { out } = await done(1, "deploy", bad, "--min-healthy", "2", "--name", "bad");
  assert.match(out, /^deployment_\w+ failed/);
  assert.match(out, /last failure +version 1, .* ended: .*exit code 1/);
});

test("what no source or number is, is refused before anything is sent", async () => {
  assert.match((await done(2, "deploy", "run_1")).err, /run_1/);
  assert.match((await done(2, "deploy", bundleId, "--count", "many")).err, /--count needs a whole number/);
  assert.match((await done(2, "deployments", "show", "job_1")).err, /takes that of a deployment/);
});
