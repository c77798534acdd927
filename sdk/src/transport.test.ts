// Requests, against servers that misbehave on purpose: what is tried again, what is thrown, who gets the token.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { freePorts } from "../../test/support/ports.ts";
import { type Answer, clientOf, hangUp, json, problem, serving } from "../test/server.ts";
import { TroupeClient } from "./client.ts";
import { TroupeProblem, TroupeUnreachable } from "./errors.ts";
import { realTiming, type Timing } from "./timing.ts";

const run = { run_id: "r", status: "running" };
const ok = json(200, run);
const html: Answer = (_request, response) =>
  void response.writeHead(502, { "content-type": "text/html" }).end("<html>Bad Gateway");
const halfJson: Answer = (_request, response) => {
  response.writeHead(200, { "content-type": "application/json", "content-length": "100" });
  response.write('{"run_id":"r', () => response.destroy());
};
const shortJson: Answer = (_request, response) => void response.end('{"run_id":"r');

describe("reading is tried again", () => {
  for (const [name, answer] of Object.entries({
    "a connection that is lost": hangUp,
    "an answer that is cut in the middle": halfJson,
    "an answer that ends too early": shortJson,
    "a proxy's error page": html,
    "503": problem(503, "unavailable"),
    "429": problem(429, "rate_limited"),
  })) {
    test(`after ${name}`, async (t) => {
      const { client, requests, pauses } = await serving(t, answer, answer, ok);
      assert.equal((await client.runs.get("r")).run_id, "r");
      assert.equal(requests.length, 3);
      assert.deepEqual(pauses, [250, 500]);
    });
  }

  test("a few times, then the last error is thrown", async (t) => {
    const { client, requests, pauses } = await serving(t, html);
    await assert.rejects(client.runs.get("r"), { name: "TroupeUnreachable", status: 502 });
    assert.equal(requests.length, 5);
    assert.deepEqual(pauses, [250, 500, 1_000, 2_000]);
  });

  test("not at all with retries: 0", async (t) => {
    const { url, requests } = await serving(t, html);
    const { client } = clientOf(url, { retries: 0 });
    await assert.rejects(client.runs.get("r"), TroupeUnreachable);
    assert.equal(requests.length, 1);
  });

  test("after as long as the server asks, in seconds or as a date, and the client's own pause", async (t) => {
    const inSeconds = problem(503, "unavailable", { "retry-after": "2" });
    const asDate = problem(429, "rate_limited", { "retry-after": "Sat, 21 Nov 2026 09:30:07 GMT" });
    const { client, pauses } = await serving(t, inSeconds, asDate, ok);
    await client.runs.get("r");
    assert.deepEqual(pauses, [2_250, 7_500]);
  });

  test("but not when the server asks for a longer pause than a call should take", async (t) => {
    const { client, requests } = await serving(t, problem(503, "unavailable", { "retry-after": "31" }));
    await assert.rejects(client.runs.get("r"), { code: "unavailable", retryAfterMs: 31_000 });
    assert.equal(requests.length, 1);
  });
});

describe("writing", () => {
  test("under a key is tried again with the same key", async (t) => {
    const { client, requests } = await serving(
      t,
      hangUp,
      problem(503, "unavailable"),
      halfJson,
      json(202, run),
    );
    await client.runs.start("j");
    const keys = requests.map(({ headers }) => headers["idempotency-key"]);
    assert.equal(new Set(keys).size, 1);
    assert.match(String(keys[0]), /^[0-9a-f]{32}$/);
  });

  test("has a fresh key for each call, or the caller's own", async (t) => {
    const { client, requests } = await serving(t, json(202, run));
    await client.runs.start("j");
    await client.runs.start("j");
    await client.runs.start("j", {}, { idempotencyKey: "mine" });
    const keys = requests.map(({ headers }) => headers["idempotency-key"]);
    assert.equal(new Set(keys).size, 3);
    assert.equal(keys[2], "mine");
  });

  for (const [name, call] of Object.entries({
    "updating a job": (client: TroupeClient) =>
      client.jobs.update({ job_id: "j", etag: '"1"' }, { name: "x" }),
    "deleting a job": (client: TroupeClient) => client.jobs.delete({ job_id: "j", etag: '"1"' }),
    "deleting a bundle": (client: TroupeClient) => client.bundles.delete("b"),
  })) {
    test(`without a key is not tried again: ${name}`, async (t) => {
      for (const answer of [hangUp, problem(503, "unavailable")]) {
        const { client, requests } = await serving(t, answer);
        await assert.rejects(call(client));
        assert.equal(requests.length, 1);
      }
    });
  }

  test("without a key is retried when the server did nothing", async (t) => {
    const { client, requests } = await serving(t, problem(429, "rate_limited"), json(200, { revision: 2 }));
    await client.jobs.update({ job_id: "j", etag: '"1"' }, { name: "x" });
    assert.equal(requests.length, 2);
  });

  test("a desired state is tried again: asking twice is asking once", async (t) => {
    const { client, requests } = await serving(t, hangUp, ok);
    await client.runs.pause("r");
    assert.deepEqual(
      requests.map(({ method }) => method),
      ["PATCH", "PATCH"],
    );
  });

  test("a stream is sent once: its bytes are gone", async (t) => {
    const { client, requests } = await serving(t, (request, response) => {
      request.resume().on("end", () => problem(503, "unavailable")(request, response));
    });
    const bytes = (async function* () {
      yield new Uint8Array([1, 2, 3]);
    })();
    await assert.rejects(client.bundles.upload(bytes), { code: "unavailable" });
    assert.equal(requests.length, 1);
  });
});

describe("errors", () => {
  test("an error has all fields of the problem", async (t) => {
    const errors = [{ path: "/name", code: "too_long", message: "must be shorter" }];
    const body = { title: "T", code: "validation_failed", detail: "what to do", request_id: "req_7", errors };
    const { client } = await serving(t, json(422, body, { etag: '"4"' }));
    const error = await client.jobs.create({ bundle_id: "b" }).catch((thrown: unknown) => thrown);
    assert.ok(error instanceof TroupeProblem);
    assert.deepEqual(
      [error.status, error.code, error.title, error.detail, error.message, error.requestId, error.etag],
      [422, "validation_failed", "T", "what to do", "what to do", "req_7", '"4"'],
    );
    assert.deepEqual(error.errors, errors);
    assert.deepEqual(error.body, body);
  });

  test("a code of a later version is unknown, and in the body", async (t) => {
    const { client } = await serving(t, problem(409, "moon_phase"));
    await assert.rejects(client.runs.get("r"), (error: TroupeProblem) => {
      assert.equal(error.code, "unknown");
      assert.equal(error.body.code, "moon_phase");
      return true;
    });
  });

  test("no server: the error has the address and the reason", async () => {
    const { client } = clientOf(`http://127.0.0.1:${await freePorts(1)}`, { retries: 0 });
    await assert.rejects(client.system.health(), {
      name: "TroupeUnreachable",
      status: null,
      message: /No Troupe gateway answers at http:\/\/127\.0\.0\.1:\d+\/api\/v1 \(connection refused\)/,
    });
  });

  test("a server of another kind is not tried again", async (t) => {
    const { client, requests } = await serving(
      t,
      (_request, response) => void response.writeHead(404).end("no"),
    );
    await assert.rejects(client.runs.get("r"), {
      name: "TroupeUnreachable",
      status: 404,
      message: /HTTP 404/,
    });
    assert.equal(requests.length, 1);
  });

  test("a health that is degraded is an answer, a gateway that is stopping is not", async (t) => {
    const { client, requests } = await serving(
      t,
      json(503, { status: "degraded" }),
      problem(503, "unavailable"),
    );
    assert.equal((await client.system.health()).status, "degraded");
    assert.equal(requests.length, 1);
    await assert.rejects(client.system.health(), { code: "unavailable" });
  });

  test("errors without a body, with a list or with nothing in it are no problems", async (t) => {
    for (const text of ["", "[]", "null", "{}", '"x"']) {
      const { client } = await serving(t, (_request, response) => void response.writeHead(400).end(text));
      await assert.rejects(client.runs.get("r"), { name: "TroupeUnreachable", status: 400 });
    }
  });
});

describe("aborting", () => {
  test("ends a request that is on its way, with the signal's reason", async (t) => {
    const controller = new AbortController();
    const { client } = await serving(t, () => controller.abort(new Error("enough")));
    await assert.rejects(client.runs.get("r", { signal: controller.signal }), { message: "enough" });
  });

  test("ends the pause before the next attempt", async (t) => {
    const controller = new AbortController();
    const { url, requests } = await serving(t, problem(503, "unavailable", { "retry-after": "20" }));
    const timing: Timing = {
      ...realTiming,
      pause(ms, signal) {
        setImmediate(() => controller.abort(new Error("enough")));
        return realTiming.pause(ms, signal);
      },
    };
    const client = new TroupeClient({ baseUrl: url, timing });
    await assert.rejects(client.runs.get("r", { signal: controller.signal }), { message: "enough" });
    assert.equal(requests.length, 1);
  });

  test("ends a write, which is then not reported as unreachable", async (t) => {
    const controller = new AbortController();
    const { client } = await serving(t, () => controller.abort(new Error("enough")));
    const options = { signal: controller.signal };
    await assert.rejects(client.jobs.update({ job_id: "j", etag: "*" }, {}, options), { message: "enough" });
  });

  test("the client's own signal ends every call, beside the call's", async (t) => {
    const own = new AbortController();
    const { url, requests } = await serving(t, ok);
    const { client } = clientOf(url, { signal: own.signal });
    await client.runs.get("r", { signal: new AbortController().signal });
    own.abort();
    await assert.rejects(client.runs.get("r", { signal: new AbortController().signal }), {
      name: "AbortError",
    });
    assert.equal(requests.length, 1);
  });

  test("ends the reading of a body", async (t) => {
    const controller = new AbortController();
    const { client } = await serving(t, (_request, response) => {
      response.writeHead(200, { "content-type": "application/json" });
      response.write('{"run_id":', () => controller.abort(new Error("enough")));
    });
    await assert.rejects(client.runs.get("r", { signal: controller.signal }), { message: "enough" });
  });
});

describe("addresses", () => {
  test("the URL may have the prefix, a path before it, and slashes after it", async () => {
    for (const [given, made] of [
      ["http://h:1", "http://h:1/api/v1"],
      ["http://h:1/", "http://h:1/api/v1"],
      ["http://h:1/api/v1", "http://h:1/api/v1"],
      ["https://h/team/api/v1//", "https://h/team/api/v1"],
      ["https://h/team", "https://h/team/api/v1"],
    ] as const) {
      assert.equal(new TroupeClient({ baseUrl: given }).baseUrl, made);
    }
    for (const bad of ["", "/api/v1", "ftp://h"])
      assert.throws(() => new TroupeClient({ baseUrl: bad }), TypeError);
  });

  test("ids are escaped, and one that would change the path is refused before it is sent", async (t) => {
    const { client, requests } = await serving(t, ok);
    await client.runs.get("a/../b?c#d é");
    assert.equal(requests[0]?.url, "/api/v1/runs/a%2F..%2Fb%3Fc%23d%20%C3%A9");
    for (const bad of ["", ".", ".."]) await assert.rejects(client.runs.get(bad), TypeError);
    assert.equal(requests.length, 1);
  });

  test("queries are built, and what is undefined is left out", async (t) => {
    const { client, requests } = await serving(t, json(200, { items: [], next_page_token: null }));
    await client.jobs.list({ limit: 3, include_terminal: false }).page();
    await client.runs.list({ status: undefined }).page();
    assert.deepEqual(
      requests.map(({ url }) => url),
      ["/api/v1/jobs?limit=3&include_terminal=false", "/api/v1/runs"],
    );
  });

  test("the token goes to the gateway and not to where a link leads", async (t) => {
    const elsewhere = await serving(t, json(200, {}));
    const { url, requests } = await serving(t, json(200, {}));
    const { client } = clientOf(`${url}/team`, { token: "secret" });
    await client.runs.download({ url: "/api/v1/runs/r/artifacts/a" });
    await client.runs.download({ url: `${elsewhere.url}/a` });
    assert.equal(requests[0]?.url, "/team/api/v1/runs/r/artifacts/a");
    assert.equal(requests[0]?.headers.authorization, "Bearer secret");
    assert.equal(elsewhere.requests[0]?.headers.authorization, undefined);
  });
});

describe("the version of a job", () => {
  test("is the ETag, or made of the revision where something took the header away", async (t) => {
    const { client } = await serving(
      t,
      json(200, { revision: 3 }, { etag: '"3-x"' }),
      json(200, { revision: 3 }),
    );
    assert.equal((await client.jobs.get("j")).etag, '"3-x"');
    assert.equal((await client.jobs.get("j")).etag, '"3"');
  });

  test("goes into If-Match", async (t) => {
    const { client, requests } = await serving(t, json(200, { revision: 4 }), (_request, response) => {
      response.writeHead(204).end();
    });
    const job = { job_id: "j", etag: '"3-x"' };
    await client.jobs.update(job, { name: "n" });
    assert.equal(await client.jobs.delete(job, { force: true }), undefined);
    assert.deepEqual(
      requests.map(({ headers }) => headers["if-match"]),
      ['"3-x"', '"3-x"'],
    );
    assert.equal(requests[1]?.url, "/api/v1/jobs/j?force=true");
  });
});

describe("pages", () => {
  const page = (items: readonly number[], token: string | null) =>
    json(200, { items, next_page_token: token });

  test("all items of all pages come, with the same query", async (t) => {
    const { client, requests } = await serving(t, page([1, 2], "t&1"), page([], "t2"), page([3], null));
    const items = await Array.fromAsync(client.runs.list({ status: "failed" }) as AsyncIterable<unknown>);
    assert.deepEqual(items, [1, 2, 3]);
    assert.deepEqual(
      requests.map(({ url }) => url.split("?")[1]),
      ["status=failed", "status=failed&page_token=t%261", "status=failed&page_token=t2"],
    );
  });

  test("one page is asked for when one page is wanted, and none before", async (t) => {
    const { client, requests } = await serving(t, page([1], "t"));
    const list = client.jobs.list();
    assert.equal(requests.length, 0);
    assert.equal((await list.page()).next_page_token, "t");
    for await (const _job of list) break;
    assert.equal(requests.length, 2);
  });

  test("pages that lead nowhere end with an error", async (t) => {
    const { client } = await serving(t, page([1], "t"));
    await assert.rejects(Array.fromAsync(client.jobs.list()), TroupeUnreachable);
  });
});
