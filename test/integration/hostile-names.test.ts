// Names that nobody means well with, wherever a name can stand: each gets a clear refusal or is an ordinary name,
// never a 5xx, and the server lives on. After every test it must still be healthy.

import assert from "node:assert/strict";
import { realpath } from "node:fs/promises";
import { join } from "node:path";
import { after, afterEach, before, describe, test } from "node:test";
import type { JsonObject } from "../../src/engine/json.ts";
import { aggregator, answer, executor, graph, router } from "../support/graphs.ts";
import { ended, path, run, submit } from "../support/job-watch.ts";
import { type Program, startProgram } from "../support/program.ts";
import { call, request } from "../support/runtime-api.ts";

let program: Program;
before(async () => {
  program = await startProgram({ env: { SVC_EXECUTOR_MAX_CONCURRENCY: "8" } });
});
after(() => program.stop());
afterEach(async () => {
  assert.equal((await call(program, "GET", "/health")).status, "ok");
  assert.ok(!program.output().includes('"level":50'), program.output());
});

const post = (where: string, body: JsonObject) => request(program, "POST", where, body);

/** Keys that mean something to JavaScript objects, and names that mean something to file systems and shells. */
const evilNames = [
  "__proto__",
  "constructor",
  "prototype",
  "toString",
  "hasOwnProperty",
  "..",
  "../../etc/hosts",
  "/etc/hosts",
  "a/b",
  "C:\\x",
  "$(reboot)",
  "`id`",
  "'; DROP TABLE jobs; --",
  '"',
  "a\nb\r\nX: y",
  "\u0000",
  " ",
  "\t",
  "🎭",
  "e\u0301",
  "\u202e\u200b",
  "\ud800",
  "null",
  "%2e%2e%2f",
  "-rf",
];

describe("names", () => {
  test("any text without control characters is a node_id: it routes, gets inputs, and comes back as it was sent", async () => {
    for (const name of evilNames) {
      const nodes = [router(name), router(`${name}!`), aggregator("all")];
      const edges = [
        [name, `${name}!`, `t${name}`.slice(0, 100)],
        [name, "all"],
      ] as const;
      const manifest = graph("names", nodes, edges, { initial_inputs: { [name]: [{ [name]: 1 }] } });
      const { status, body } = await post("/jobs", manifest);
      if (/\p{Cc}|\p{Cs}/u.test(name)) {
        assert.match(String(body.error), /^Invalid manifest: .*control characters/, JSON.stringify(name));
        continue;
      }
      assert.equal(status, 201, JSON.stringify(name));
      const { detail } = await ended(program, String(body.id));
      const [agent] = detail.agents as readonly JsonObject[];
      assert.equal(agent?.agent_id, name);
      assert.deepEqual((detail.job as JsonObject).result, {
        messages: [{ [name]: 1 }],
        count: 1,
        last_message: { [name]: 1 },
      });
    }
  });

  test("the names of JavaScript's own properties are ordinary node_ids", async () => {
    for (const name of ["__proto__", "constructor", "toString"]) {
      const manifest = graph("own", [executor(name, answer({ next_state: { [name]: { polluted: true } } }))]);
      const { status, detail, of } = await run(program, manifest);
      assert.equal(status, "completed");
      assert.equal(of("sandbox_job_completed", name).length, 1);
      const [agent] = detail.agents as readonly JsonObject[];
      assert.deepEqual(agent?.current_state, { [name]: { polluted: true } });
    }
    assert.equal((await call(program, "GET", "/system/summary")).polluted, undefined);
  });

  test("as node_ids of executors they stay inside the run's own folder", async () => {
    for (const name of ["..", "../../x", "a/b", "/etc", "-rf", " ", "🎭", "__proto__", "x".repeat(200)]) {
      const { status, of, detail } = await run(program, graph("folders", [executor(name, "pwd -P")]));
      assert.equal(status, "completed", name);
      const folder = join(
        await realpath(program.home),
        "runs",
        String((detail.job as JsonObject).run_id),
        "agents",
      );
      assert.ok(String(of("log")[0]?.payload.message).startsWith(`${folder}/`), name);
    }
  });

  test("as ids in any route they are looked for, and not found", async () => {
    const routes: readonly (readonly [method: string, route: (id: string) => string])[] = [
      ["GET", (id) => `/jobs/${id}`],
      ["GET", (id) => `/jobs/${id}/events`],
      ["GET", (id) => `/jobs/${id}/events/stream`],
      ["POST", (id) => `/jobs/${id}/cancel`],
      ["POST", (id) => `/jobs/${id}/pause`],
      ["GET", (id) => `/runs/${id}/artifacts`],
      ["GET", (id) => `/runs/run_x/artifacts/${id}`],
      ["POST", (id) => `/bundles/${id}/reload`],
    ];
    // With ".." a client asks for the folder above, which may be a route.
    const ids = evilNames.filter((one) => one !== ".." && one.isWellFormed());
    for (const name of [...ids, "x".repeat(10_000)]) {
      for (const [method, route] of routes) {
        const id = encodeURIComponent(name).replaceAll(".", "%2E");
        const { status, body } = await request(program, method, route(id));
        assert.equal(status, 404, `${method} ${route(JSON.stringify(name))}`);
        assert.deepEqual(Object.keys(body), ["error"]);
      }
    }
  });

  test("as graph_ids they are refused, unless they are plain words", async () => {
    for (const name of evilNames) {
      const { status, body } = await post("/jobs", graph(name, [router("r")]));
      if (/^[\w.-]+$/.test(name) && !/^\.+$/.test(name)) assert.equal(status, 201, name);
      else assert.match(String(body.error), /^Invalid manifest: graph_id/, JSON.stringify(name));
    }
  });

  test("as query keys and values they are refused or ignored", async () => {
    for (const name of evilNames.filter((one) => one.isWellFormed())) {
      const value = encodeURIComponent(name);
      assert.equal((await request(program, "GET", `/jobs?limit=${value}`)).status, 400, name);
      assert.equal((await request(program, "GET", `/jobs?limit=1&${value}=${value}`)).status, 200, name);
      assert.equal((await request(program, "POST", `/jobs/cleanup?all=${value}`)).status, 400, name);
    }
  });

  test("as message types, bodies and correlation ids they are data", async () => {
    const nodes = [router("in"), aggregator("all", { complete_after: evilNames.length })];
    const jobId = await submit(
      program,
      graph("data", nodes, [["in", "all"]], {
        type: "service",
        entrypoints: ["all"],
        initial_inputs: { all: [0] },
      }),
    );
    for (const name of evilNames.slice(1)) {
      const message = { agent_id: "in", type: name, correlation_id: name, body: { [name]: name } };
      assert.equal(
        (await request(program, "POST", path(jobId, "/messages"), message)).status,
        202,
        JSON.stringify(name),
      );
    }
    const { status, result } = await ended(program, jobId);
    assert.equal(status, "completed");
    const { messages } = result as { messages: JsonObject[] };
    assert.deepEqual(
      messages.slice(1),
      evilNames.slice(1).map((name) => ({ [name]: name })),
    );
  });
});
