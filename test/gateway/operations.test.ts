// Operations as clients see them: pages, streams that are left and taken up again, and the command line.

import assert from "node:assert/strict";
import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import type { JsonObject } from "../../src/engine/json.ts";
import { ended, eventsOf, operate, request, testCatalog } from "../support/blueprint-operations.ts";
import { startHere } from "../support/command-line.ts";
import { ask, assertProblem, call, frames, walk } from "../support/gateway-api.ts";
import { startGatewayHere } from "../support/in-process.ts";
import type { Program } from "../support/program.ts";

const catalog = await testCatalog();
const gate = join(catalog.folder, "gate");
const secondGate = join(catalog.folder, "second-gate");
const thirdGate = join(catalog.folder, "third-gate");
/** A resource that is made as soon as there is a file `at`. */
function held(at: string): JsonObject {
  const prepare = ["sh", "-c", `while [ ! -e ${at} ]; do sleep 0.05; done; echo made > index`];
  return { name: "index", title: "The index", prepare };
}
let program: Program;
before(async () => {
  await catalog.write("slow", { resources: [held(gate)] });
  await catalog.write("wanted-twice", { resources: [held(secondGate)] });
  await catalog.write("shown", { resources: [held(thirdGate)] });
  await catalog.write("quick", { resources: [{ name: "notes", from: "notes.txt" }] });
  await catalog.write("failing", {
    resources: [{ name: "none", prepare: ["sh", "-c", "echo no >&2; exit 3"] }],
  });
  program = await startGatewayHere({ env: { SVC_BLUEPRINT_CATALOG: catalog.folder } });
});
after(async () => {
  await program.stop();
  await catalog[Symbol.asyncDispose]();
});

test("an operation is followed from its first event, left, taken up behind the last one, and ends with its stream", async () => {
  const asked = await request(program, "slow", "additions");
  const operationId = String(asked.body.operation_id);
  const stream = `/operations/${operationId}/events/stream`;
  const seen: number[] = [];
  for await (const { id, data } of frames(program, stream)) {
    seen.push(id);
    assert.equal(data.id, id);
    assert.equal(data.operation_id, operationId);
    // It waits here for the gate, so there is no further event to miss.
    if ((data.payload as JsonObject).label === "Making The index") break;
  }
  const now = await call(program, "GET", `/operations/${operationId}`);
  assert.equal(now.status, "running");
  assert.equal(now.finished_at, null);
  assert.equal((now.progress as JsonObject).step, "resources");
  await writeFile(gate, "");
  const rest = await Array.fromAsync(frames(program, stream, { "last-event-id": String(seen.at(-1)) }));
  seen.push(...rest.map(({ id }) => id));
  assert.deepEqual(
    seen,
    seen.map((_, i) => i + 1),
  );
  const last = rest.at(-1);
  assert.ok(last !== undefined);
  assert.equal(last.event, "operation_completed");
  const operation = await call(program, "GET", `/operations/${operationId}`);
  assert.equal(operation.status, "completed");
  assert.deepEqual((last.data.payload as JsonObject).result, operation.result);

  const headers = { "last-event-id": String(seen.length) };
  assert.equal((await ask(program, "GET", stream, { headers })).status, 204);
  const beyond = { "last-event-id": String(seen.length + 1) };
  assertProblem(await ask(program, "GET", stream, { headers: beyond }), 400, "invalid_parameter");
});

test("operations are listed newest first, by target and by status, each once", async () => {
  for (let i = 0; i < 3; i++) await operate(program, "quick", "additions");
  await operate(program, "failing", "additions");
  const all = await walk(program, "/operations", 2);
  const ids = all.map((one) => String(one.operation_id));
  assert.deepEqual(ids, [...new Set(ids)].sort().reverse());
  const quick = await walk(program, "/operations?target=quick", 1);
  assert.equal(quick.length, 3);
  assert.ok(quick.every(({ target }) => target === "quick"));
  const failed = await walk(program, "/operations?status=failed");
  assert.deepEqual(
    failed.map(({ target }) => target),
    ["failing"],
  );
  assert.deepEqual(await walk(program, "/operations?status=failed&target=quick"), []);
  assertProblem(await ask(program, "GET", "/operations?status=done"), 400, "invalid_parameter");
  assertProblem(await ask(program, "GET", "/operations/op_nothing"), 404, "operation_not_found");
  assertProblem(
    await ask(program, "GET", "/operations/op_nothing/events/stream"),
    404,
    "operation_not_found",
  );
});

test("two additions that are asked for at once: one begins, and the other is told which", async () => {
  // The gate keeps the one that begins from ending before the other is asked for.
  const answers = await Promise.all([
    request(program, "wanted-twice", "additions"),
    request(program, "wanted-twice", "additions"),
  ]);
  assert.deepEqual(answers.map(({ status }) => status).sort(), [202, 409]);
  const begun = answers.find(({ status }) => status === 202);
  const refused = answers.find(({ status }) => status === 409);
  const operationId = String(begun?.body.operation_id);
  assert.match(JSON.stringify(refused?.body), new RegExp(operationId));
  await writeFile(secondGate, "");
  const operation = await ended(program, operationId);
  assert.equal(operation.status, "completed");
  assert.equal((await eventsOf(program, operationId)).at(-1)?.event, "operation_completed");
});

test("the command line adds, shows, previews, asks for --yes, removes, and lists what was done", async () => {
  const run = (...words: string[]) => startHere([...words, "--url", program.api], program.home).ended;
  await writeFile(thirdGate, "");
  await operate(program, "shown", "additions");
  await rm(thirdGate);
  // Made anew, and held: of what is made at once nothing need be told, because only the latest progress is.
  const adding = startHere(["blueprint", "add", "shown", "--force", "--url", program.api], program.home);
  await adding.shows("Making The index");
  await writeFile(thirdGate, "");
  const added = await adding.ended;
  assert.equal(added.code, 0, added.err);
  const listed = await run("blueprint", "list", "--text", "SHOWN");
  assert.match(listed.out, /shown +added/);
  assert.doesNotMatch(listed.out, /slow/);
  const shown = await run("blueprint", "show", "shown");
  assert.match(shown.out, /resource index, 5 B/);

  const preview = await run("blueprint", "remove", "shown", "--dry-run");
  assert.match(preview.out, /Would be removed:/);
  const unasked = await run("blueprint", "remove", "shown");
  assert.equal(unasked.code, 2);
  assert.match(unasked.err, /--yes/);
  const removed = await run("blueprint", "remove", "shown", "--yes");
  assert.equal(removed.code, 0, removed.err);
  assert.match(removed.out, /Removed:/);

  const failed = await run("blueprint", "add", "failing");
  assert.equal(failed.code, 1);
  assert.match(failed.err, /resource_failed: .*exit code 3/);
  const begun = await run("blueprint", "add", "failing", "--no-wait", "--json");
  const { operation_id: operationId } = JSON.parse(begun.out) as JsonObject;
  const followed = await run("operations", String(operationId), "--follow");
  assert.equal(followed.code, 1);
  const operations = await run("operations", "--blueprint", "failing");
  assert.match(operations.out, new RegExp(`${operationId} +failed`));
});
