// What all routes do alike: problem bodies, request ids, unknown fields, limits, idempotency keys, pages. Sentences in
// quotes are the specification's own, shortened.

import assert from "node:assert/strict";
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
import { graph, router, sensor } from "../support/graphs.ts";
import { startGatewayHere } from "../support/in-process.ts";
import type { Program } from "../support/program.ts";
import { exchange, request } from "../support/raw-http.ts";

const BODY_BYTES_MAX = 20_000;

let program: Program;
let bundleId = "";
let jobId = "";
before(async () => {
  program = await startGatewayHere({ env: { SVC_BODY_MAX_BYTES: String(BODY_BYTES_MAX) } });
  const manifest = graph("conventions", [router("in")]);
  bundleId = await uploadBundle(program, manifest);
  jobId = await createJob(program, manifest);
});
after(() => program.stop());

/** A POST of a JSON body as text, whatever it is. */
async function postText(path: string, text: string, contentType = "application/json"): Promise<Answer> {
  const answer = await fetch(program.api + path, {
    method: "POST",
    body: text,
    headers: { "content-type": contentType },
  });
  const body = await answer.text();
  return { status: answer.status, headers: answer.headers, text: body, body: JSON.parse(body) as JsonObject };
}

describe("errors", () => {
  test('"application/problem+json: type, title, status, code, detail, request_id", and errors for validation', async () => {
    const plain = await ask(program, "GET", "/runs/run_none");
    const keys = ["type", "title", "status", "code", "detail", "request_id"];
    assert.deepEqual(Object.keys(assertProblem(plain, 404, "run_not_found")), keys);
    const invalid = await ask(program, "POST", "/jobs", { body: { bundle_id: 1 } });
    assert.deepEqual(Object.keys(assertProblem(invalid, 422, "validation_failed")), [...keys, "errors"]);
    for (const entry of invalid.body.errors as readonly JsonObject[]) {
      assert.deepEqual(Object.keys(entry), ["path", "code", "message"]);
    }
  });

  test('"request_id is also the response header X-Request-Id (a client\'s own, if it sends a sane one, is kept)"', async () => {
    const own = { "x-request-id": "my-request.1_A" };
    const kept = await ask(program, "GET", "/runs/run_none", { headers: own });
    assert.equal(assertProblem(kept, 404, "run_not_found").request_id, "my-request.1_A");
    const success = await ask(program, "GET", "/jobs", { headers: own });
    assert.equal(success.headers.get("x-request-id"), "my-request.1_A");
    for (const insane of ["", "with blank", "a/b", '"', "x".repeat(200)]) {
      const answer = await ask(program, "GET", "/jobs", { headers: { "x-request-id": insane } });
      assert.match(answer.headers.get("x-request-id") ?? "", /^req_\w+$/, insane);
    }
    const ids = await Promise.all(Array.from({ length: 20 }, () => ask(program, "GET", "/jobs")));
    assert.equal(new Set(ids.map(({ headers }) => headers.get("x-request-id"))).size, 20);
  });

  test('"malformed_json 400", with the place', async () => {
    for (const text of ["{", '{"a":1,}', "{'a':1}", "\u{feff}x", '{"inputs":{}} {}']) {
      assertProblem(await postText(`/jobs/${jobId}/runs`, text), 400, "malformed_json");
    }
  });

  test('"invalid_parameter 400": the path names the query parameter or header', async () => {
    const query = await ask(program, "GET", "/runs?page_size=0&colour=red");
    assertProblem(query, 400, "invalid_parameter");
    assert.deepEqual(pathsOf(query).toSorted(), ["colour", "page_size"]);
    const status = await ask(program, "GET", "/runs?status=none");
    assertProblem(status, 400, "invalid_parameter");
    assert.deepEqual(pathsOf(status), ["status"]);
    const headers = { "idempotency-key": "with blank" };
    const header = await ask(program, "POST", "/jobs", { body: { bundle_id: bundleId }, headers });
    assertProblem(header, 400, "invalid_parameter");
    assert.match(String(pathsOf(header)[0]), /^idempotency-key$/i);
  });

  test('"method_not_allowed 405 with Allow"', async () => {
    for (const [method, path, allow] of [
      ["PUT", "/jobs", ["GET", "POST"]],
      ["DELETE", "/runs", ["GET"]],
      ["POST", `/jobs/${jobId}`, ["GET", "PATCH", "DELETE"]],
      ["DELETE", "/health", ["GET"]],
    ] as const) {
      const answer = await ask(program, method, path);
      assertProblem(answer, 405, "method_not_allowed");
      const allowed = (answer.headers.get("allow") ?? "").split(", ");
      for (const one of allow) assert.ok(allowed.includes(one), `${path}: ${allowed}`);
    }
  });

  test('"payload_too_large 413": over SVC_BODY_MAX_BYTES', async () => {
    const large = JSON.stringify({ inputs: { text: "x".repeat(BODY_BYTES_MAX) } });
    assertProblem(await postText(`/jobs/${jobId}/runs`, large), 413, "payload_too_large");
  });

  test('"unsupported_media_type 415"', async () => {
    for (const type of ["text/plain", "application/xml", "multipart/form-data; boundary=x"]) {
      assertProblem(await postText("/jobs", "{}", type), 415, "unsupported_media_type");
    }
  });

  test("a head that is too large, and bytes that are no HTTP, are answered with a problem body too", async () => {
    const head = request("GET", "/api/v1/health", [`X-Large: ${"x".repeat(20_000)}`, "Connection: close"]);
    for (const [bytes, status] of [
      [head, 431],
      ["this is no http\r\n\r\n", 400],
    ] as const) {
      const [answer] = await exchange(program, bytes);
      assert.equal(answer?.status, status);
      assert.equal(answer?.headers.get("content-type"), "application/problem+json");
      assert.equal(
        (JSON.parse(answer?.body ?? "") as JsonObject).request_id,
        answer?.headers.get("x-request-id"),
      );
    }
  });

  test("no answer tells of the program's inside: no stack, no path of this machine", async () => {
    for (const path of ["/jobs/%00", "/runs/..%2f..%2fetc", "/jobs/%ff", "/runs/x/artifacts/%2e%2e"]) {
      const answer = await ask(program, "GET", path);
      assert.ok(answer.status >= 400 && answer.status < 500, `${path}: ${answer.text}`);
      assert.doesNotMatch(answer.text, /\n\s+at |\.ts\b|node_modules/);
      assert.ok(!answer.text.includes(program.home));
    }
  });
});

describe("bodies", () => {
  test('"Unknown request fields are rejected" ("each named"), on every route that takes a body', async () => {
    const { run } = await completed(program, jobId);
    for (const [method, path, body] of [
      ["POST", "/jobs", { bundle_id: bundleId }],
      ["POST", `/jobs/${jobId}/runs`, {}],
      ["PATCH", `/jobs/${jobId}`, { name: "x" }],
      ["PATCH", `/runs/${run.run_id}`, { desired_state: "paused" }],
    ] as const) {
      const headers = { "if-match": "*" };
      const answer = await ask(program, method, path, { body: { ...body, one: 1, "t~w/o": 2 }, headers });
      assertProblem(answer, 422, "validation_failed");
      assert.deepEqual(pathsOf(answer).toSorted(), ["/one", "/t~0w~1o"], "JSON Pointers");
    }
  });

  test("unknown query parameters are rejected, on every list", async () => {
    const { run } = await completed(program, jobId);
    const lists = ["/jobs", "/runs", "/bundles", "/nodes", `/jobs/${jobId}/runs`, `/jobs/${jobId}/events`];
    for (const part of ["events", "logs", "timeline", "artifacts", "outputs"])
      lists.push(`/runs/${run.run_id}/${part}`);
    for (const list of [
      ...lists,
      `/jobs/${jobId}/dead-letters`,
      `/jobs/${jobId}/grid`,
      `/jobs/${jobId}/workflow-progress`,
    ]) {
      const answer = await ask(program, "GET", `${list}?nobody=1`);
      assertProblem(answer, 400, "invalid_parameter");
      assert.deepEqual(pathsOf(answer), ["nobody"], list);
    }
  });
});

describe("Idempotency-Key", () => {
  const keyed = (key: string) => ({ "idempotency-key": key });

  test('"Same key and same body: the first response again, whole (status, body, Location, ETag), with Idempotency-Replayed: true"', async () => {
    const body = { bundle_id: bundleId, name: "once", resolved_configuration: { a: 1, b: 2 } };
    const first = await ask(program, "POST", "/jobs", { body, headers: keyed("job-1") });
    const reordered = { resolved_configuration: { b: 2, a: 1 }, name: "once", bundle_id: bundleId };
    const again = await ask(program, "POST", "/jobs", { body: reordered, headers: keyed("job-1") });
    assert.equal(first.headers.get("idempotency-replayed"), null);
    assert.equal(again.headers.get("idempotency-replayed"), "true");
    assert.deepEqual([again.status, again.text], [201, first.text]);
    for (const name of ["location", "etag", "content-type"]) {
      assert.equal(again.headers.get(name), first.headers.get(name), name);
    }
    await ask(program, "DELETE", `/jobs/${first.body.job_id}`, { headers: { "if-match": "*" } });
    const later = await ask(program, "POST", "/jobs", { body, headers: keyed("job-1") });
    assert.equal(later.text, first.text, "whatever has become of the job");
  });

  test('"409: an Idempotency-Key is reused with a different request"', async () => {
    await call(program, "POST", `/jobs/${jobId}/runs`, { inputs: { a: 1 } }, keyed("other-body"));
    const answer = await ask(program, "POST", `/jobs/${jobId}/runs`, {
      body: { inputs: { a: 2 } },
      headers: keyed("other-body"),
    });
    assertProblem(answer, 409, "idempotency_key_reused");
    const [one, two] = [graph("upload-1", [router("in")]), graph("upload-2", [router("in")])];
    const upload = async (manifest: JsonObject) =>
      sendBundle(program, await zipOf({ "manifest.json": manifest }), { headers: keyed("upload") });
    const first = await upload(one);
    const again = await upload(one);
    assert.deepEqual([again.status, again.text], [201, first.text]);
    assert.equal(again.headers.get("idempotency-replayed"), "true");
    assertProblem(await upload(two), 409, "idempotency_key_reused");
  });

  test('"Scope: principal + method + path": the same key on another path is another request', async () => {
    const other = await createJob(program, graph("scope", [router("in")]));
    const [one, two] = await Promise.all(
      [jobId, other].map((id) => call(program, "POST", `/jobs/${id}/runs`, {}, keyed("everywhere"))),
    );
    assert.notEqual(one?.run_id, two?.run_id);
  });

  test('"Only 2xx answers are kept: any other means that nothing happened", so a retry may succeed', async () => {
    const waiting = await createJob(program, graph("retry", [sensor("wait")]));
    const pause = () => ask(program, "POST", `/jobs/${waiting}/pause`, { headers: keyed("pause") });
    assertProblem(await pause(), 409, "invalid_transition");
    await call(program, "POST", `/jobs/${waiting}/runs`, {});
    assert.equal((await pause()).status, 200);
    assert.equal((await pause()).headers.get("idempotency-replayed"), "true");
    await call(program, "POST", `/jobs/${waiting}/cancel`);
  });

  test('"Optional on every POST; any 1 to 255 visible ASCII characters"', async () => {
    const runs = async () => (await walk(program, `/jobs/${jobId}/runs`)).length;
    const before = await runs();
    for (const key of ["!", "~".repeat(255), '"quoted"', "a,b;c=d"]) {
      const answer = await ask(program, "POST", `/jobs/${jobId}/runs`, { body: {}, headers: keyed(key) });
      assert.equal(answer.status, 202, key);
    }
    for (const key of ["", "x".repeat(256), "a b", "ü"]) {
      const answer = await ask(program, "POST", `/jobs/${jobId}/runs`, { body: {}, headers: keyed(key) });
      assertProblem(answer, 400, "invalid_parameter");
    }
    assert.equal(await runs(), before + 4);
  });
});

describe("collections", () => {
  test('"List endpoints return the collection envelope": items, and next_page_token, null on the last page', async () => {
    const { run } = await completed(program, jobId);
    const ofRun = ["events", "logs", "timeline", "artifacts", "outputs"].map(
      (part) => `/runs/${run.run_id}/${part}`,
    );
    const ofJob = ["runs", "events", "dead-letters"].map((part) => `/jobs/${jobId}/${part}`);
    for (const list of ["/jobs", "/runs", "/bundles", "/nodes", ...ofRun, ...ofJob]) {
      const page = await call(program, "GET", `${list}?page_size=200`);
      const more = list.endsWith("/logs") ? ["last_event_id"] : [];
      assert.deepEqual(Object.keys(page), ["items", "next_page_token", ...more], list);
      assert.ok(Array.isArray(page.items));
      assert.equal(page.next_page_token, null, list);
    }
  });

  test('"page_size default 50, maximum 200; outside 1..200: 400 invalid_parameter"', async () => {
    const many = await createJob(program, graph("many", [sensor("wait")]));
    await Promise.all(Array.from({ length: 51 }, () => call(program, "POST", `/jobs/${many}/runs`, {})));
    const list = `/jobs/${many}/runs`;
    const first = await call(program, "GET", list);
    assert.equal((first.items as readonly unknown[]).length, 50);
    const second = await call(program, "GET", `${list}?page_token=${first.next_page_token}`);
    assert.equal((second.items as readonly unknown[]).length, 1);
    assert.equal(second.next_page_token, null);
    const exact = await call(program, "GET", `${list}?page_size=51`);
    assert.equal((exact.items as readonly unknown[]).length, 51);
    assert.equal(exact.next_page_token, null, "a page that is full may be the last one");
    assert.equal((await ask(program, "GET", `${list}?page_size=200`)).status, 200);
    for (const size of ["0", "201", "-1", "1.5", "x", "", "1e2", "99999999999999999999"]) {
      const answer = await ask(program, "GET", `${list}?page_size=${size}`);
      assertProblem(answer, 400, "invalid_parameter");
      assert.deepEqual(pathsOf(answer), ["page_size"]);
    }
    await call(program, "POST", `/jobs/${many}/cancel`);
  });

  test('"Tokens are bound to the original query"; "page_size is not part of" it', async () => {
    const token = (await call(program, "GET", `/runs?job_id=${jobId}&page_size=1`)).next_page_token;
    assert.equal(typeof token, "string");
    const next = async (query: string) => ask(program, "GET", `${query}page_token=${token}`);
    assert.equal((await next(`/runs?job_id=${jobId}&page_size=3&`)).status, 200);
    for (const query of [
      "/runs?",
      `/runs?job_id=${jobId}&status=completed&`,
      "/runs?job_id=job_x&",
      "/bundles?",
    ]) {
      assertProblem(await next(query), 400, "invalid_page_token");
    }
    assertProblem(await next(`/jobs/${jobId}/runs?`), 400, "invalid_page_token");
  });
});
