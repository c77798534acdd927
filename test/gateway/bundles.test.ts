// Bundles: upload, look up, list, delete. What each kind of hostile zip is refused with is tested in src/bundles; here
// it is the answer that counts. Sentences in quotes are the specification's own, shortened.

import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { after, before, describe, test } from "node:test";
import type { JsonObject } from "../../src/engine/json.ts";
import { zipOf } from "../support/bundle-files.ts";
import {
  type Answer,
  ask,
  assertProblem,
  call,
  completed,
  createJob,
  pathsOf,
  sendBundle,
  uploadBundle,
  walk,
} from "../support/gateway-api.ts";
import { executor, graph, router } from "../support/graphs.ts";
import { startGatewayHere } from "../support/in-process.ts";
import type { Program } from "../support/program.ts";

const BYTES_MAX = 200_000;

let program: Program;
before(async () => {
  program = await startGatewayHere({ env: { SVC_BUNDLE_MAX_BYTES: String(BYTES_MAX) } });
});
after(() => program.stop());

const manifest = (graphId: string) => graph(graphId, [router("in")]);
const zip = (graphId: string) => zipOf({ "manifest.json": manifest(graphId) });

/** A POST to /bundles with a body of the test's own making. */
async function post(
  body: string | FormData | Uint8Array<ArrayBuffer>,
  contentType?: string,
): Promise<Answer> {
  const headers = { ...(contentType !== undefined && { "content-type": contentType }) };
  const answer = await fetch(`${program.api}/bundles`, { method: "POST", body, headers });
  const text = await answer.text();
  return { status: answer.status, headers: answer.headers, text, body: JSON.parse(text) as JsonObject };
}

describe("upload", () => {
  test('"Uploaded as multipart form data. The form field is named bundle. The response carries bundle_id"', async () => {
    const answer = await sendBundle(program, await zip("first"));
    assert.equal(answer.status, 201);
    const { bundle_id, name, graph_id, fingerprint, size, created_at } = answer.body;
    assert.match(String(bundle_id), /^bundle_/);
    assert.deepEqual([typeof name, graph_id, typeof size], ["string", "first", "number"]);
    assert.match(String(fingerprint), /[0-9a-f]{64}/);
    assert.match(String(created_at), /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
  });

  test('"Every 201 names the resource to look at in Location"', async () => {
    const answer = await sendBundle(program, await zip("located"));
    const location = answer.headers.get("location") ?? "";
    assert.equal(location, `/api/v1/bundles/${answer.body.bundle_id}`);
    assert.deepEqual((await ask(program, "GET", location)).body, answer.body);
  });

  test('"Same content, same bundle_id": in a folder of its own or not, and uploaded again', async () => {
    const files = { "manifest.json": manifest("same"), "payloads/a.txt": "a" };
    const answers = [
      await sendBundle(program, await zipOf(files)),
      await sendBundle(program, await zipOf(files, "top")),
      await sendBundle(program, await zipOf(files)),
    ];
    assert.deepEqual(
      answers.map(({ status }) => status),
      [201, 201, 201],
    );
    for (const { body } of answers) assert.deepEqual(body, answers[0]?.body);
    const other = await uploadBundle(program, manifest("same"), { "payloads/a.txt": "b" });
    assert.notEqual(other, answers[0]?.body.bundle_id);
  });

  test("an Idempotency-Key stands for the bytes of its archive: another one under it is refused", async () => {
    const headers = { "idempotency-key": "one-archive" };
    const first = await sendBundle(program, await zip("keyed"), { headers });
    assert.equal(first.status, 201, first.text);
    const other = await sendBundle(program, await zip("keyed-other"), { headers });
    assertProblem(other, 409, "idempotency_key_reused");
    const again = await sendBundle(program, await zip("keyed"), { headers });
    assert.deepEqual([again.status, again.text], [201, first.text]);
    assert.equal(again.headers.get("idempotency-replayed"), "true");
  });

  test('"Uploading stages the package": it makes no job and runs nothing', async () => {
    const before = await walk(program, "/jobs");
    await uploadBundle(program, graph("staged", [executor("in", "true")]));
    assert.deepEqual(await walk(program, "/jobs"), before);
    assert.deepEqual(await walk(program, "/runs"), []);
  });

  test('"Refused with 422 and one error per problem": no manifest, and an invalid one', async () => {
    assertProblem(await sendBundle(program, await zipOf({ "readme.txt": "x" })), 422, "validation_failed");
    const wrong = {
      manifest_version: "9",
      graph_id: "",
      entrypoints: ["b"],
      nodes: [{ node_id: "a", agent_type: "x" }],
    };
    const invalid = await sendBundle(program, await zipOf({ "manifest.json": wrong }));
    const { errors } = assertProblem(invalid, 422, "validation_failed");
    const paths = ["/manifest_version", "/graph_id", "/nodes/0/agent_type", "/entrypoints/0"];
    assert.deepEqual(pathsOf(invalid), paths);
    for (const { message } of errors as readonly JsonObject[])
      assert.match(String(message), /^manifest\.json: /);
  });

  test("what the package declares is judged too, and what of it is ignored comes as warnings", async () => {
    const { nodes, ...rest } = graph("odd", [{ ...router("in"), config: { emitt_type: "t" } }]) as JsonObject;
    const odd = { ...rest, nodes: nodes!, workflow: {} };
    const answer = await sendBundle(program, await zipOf({ "manifest.json": odd }));
    assert.equal(answer.status, 201, answer.text);
    const { warnings } = answer.body as unknown as { warnings: readonly JsonObject[] };
    assert.deepEqual(warnings.map(({ path, code }) => `${path} ${code}`).sort(), [
      "/nodes/0/config/emitt_type unknown_field",
      "/workflow unknown_field",
    ]);
    assert.match(warnings.map(({ message }) => message).join(), /did you mean "emit_type"/);
    const location = answer.headers.get("location") ?? "";
    assert.deepEqual((await ask(program, "GET", location)).body, answer.body);
    const wrong = { ...manifest("declares"), requirements: { cpu_cores: "many" } };
    const refused = await sendBundle(program, await zipOf({ "manifest.json": wrong }));
    assertProblem(refused, 422, "validation_failed");
    assert.deepEqual(pathsOf(refused), ["/requirements/cpu_cores"]);
  });

  test('"Not a zip: 422 at /bundle"; a form without the field too', async () => {
    const noZip = await sendBundle(program, new TextEncoder().encode("this is no zip at all"));
    assertProblem(noZip, 422, "validation_failed");
    assert.deepEqual(pathsOf(noZip), ["/bundle"]);
    const otherField = await sendBundle(program, await zip("field"), { field: "file" });
    assertProblem(otherField, 422, "validation_failed");
    assert.deepEqual(pathsOf(otherField), ["/bundle"]);
    assertProblem(await post(new FormData()), 422, "validation_failed");
  });

  test('"unsupported_media_type 415", and 400 for a body that is no form', async () => {
    assertProblem(await post("{}", "application/json"), 415, "unsupported_media_type");
    assertProblem(await post(await zip("z"), "application/zip"), 415, "unsupported_media_type");
    const cut = await post("--b\r\ncontent-dis", "multipart/form-data; boundary=b");
    assertProblem(cut, 400, "malformed_request");
  });

  test('"SVC_BUNDLE_MAX_BYTES: over it 413"', async () => {
    const answer = await sendBundle(program, new Uint8Array(randomBytes(BYTES_MAX + 1)));
    assertProblem(answer, 413, "payload_too_large");
  });
});

describe("bundles that are there", () => {
  test('"GET /bundles": the collection envelope, newest first, paged', async () => {
    const made: string[] = [];
    for (const name of ["one", "two", "three"])
      made.push(await uploadBundle(program, manifest(`list-${name}`)));
    const all = await walk(program, "/bundles", 2);
    const ids = all.map(({ bundle_id }) => String(bundle_id));
    assert.equal(new Set(ids).size, ids.length, "each once");
    assert.deepEqual(
      made.filter((id) => !ids.includes(id)),
      [],
    );
    // By what they say: the clock may have stood still, or have been set back, between two of them.
    const places = all.map(({ created_at, bundle_id }) => `${created_at} ${bundle_id}`);
    assert.deepEqual(places, places.toSorted().toReversed());
  });

  test("GET of a bundle that is not there: 404 bundle_not_found", async () => {
    assertProblem(await ask(program, "GET", "/bundles/bundle_none"), 404, "bundle_not_found");
    assertProblem(await ask(program, "DELETE", "/bundles/bundle_none"), 404, "bundle_not_found");
  });

  test('"DELETE (409 while a job uses it)", and 204 when none does any more', async () => {
    const bundleId = await uploadBundle(program, manifest("used"));
    const job = await ask(program, "POST", "/jobs", { body: { bundle_id: bundleId } });
    assertProblem(await ask(program, "DELETE", `/bundles/${bundleId}`), 409, "bundle_in_use");
    assert.equal((await ask(program, "GET", `/bundles/${bundleId}`)).status, 200);
    const headers = { "if-match": "*" };
    assert.equal((await ask(program, "DELETE", `/jobs/${job.body.job_id}`, { headers })).status, 204);
    const gone = await ask(program, "DELETE", `/bundles/${bundleId}`);
    assert.deepEqual([gone.status, gone.text], [204, ""]);
    assertProblem(await ask(program, "GET", `/bundles/${bundleId}`), 404, "bundle_not_found");
    const again = await ask(program, "POST", "/jobs", { body: { bundle_id: bundleId } });
    assertProblem(again, 422, "validation_failed");
    assert.deepEqual(pathsOf(again), ["/bundle_id"]);
  });

  test("a deleted bundle that is uploaded again is there again, and runs", async () => {
    const bundleId = await uploadBundle(program, manifest("back"));
    assert.equal((await ask(program, "DELETE", `/bundles/${bundleId}`)).status, 204);
    assert.equal(await uploadBundle(program, manifest("back")), bundleId);
    const { job_id } = await call(program, "POST", "/jobs", { bundle_id: bundleId });
    await completed(program, String(job_id));
  });

  test('"Creating a job can prepare the resources that the package declares": its files reach the worker', async () => {
    const nodes = [executor("in", "cat hello.txt > $SVC_OUTPUT_DIR/copy.txt", { upload_path: "hello.txt" })];
    const jobId = await createJob(program, graph("packed", nodes), {}, { "payloads/hello.txt": "packed" });
    const { run } = await completed(program, jobId);
    const [copy] = await walk(program, `/runs/${run.run_id}/artifacts?evidence=false`);
    assert.equal((await ask(program, "GET", String(copy?.url))).text, "packed");
  });
});
