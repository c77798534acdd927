// Bodies that nobody means well with: each gets a clear refusal or is served, never a 5xx, and the server lives
// on. After every test it must still be healthy.

import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { after, afterEach, before, describe, test } from "node:test";
import type { JsonObject } from "../../src/engine/json.ts";
import { aggregator, executor, graph, router } from "../support/graphs.ts";
import { path, run } from "../support/job-watch.ts";
import { type Program, startProgram } from "../support/program.ts";
import { call } from "../support/runtime-api.ts";

const MiB = 1024 * 1024;
let program: Program;
before(async () => {
  program = await startProgram({ env: { SVC_EXECUTOR_MAX_CONCURRENCY: "8" } });
});
after(() => program.stop());
afterEach(async () => {
  assert.equal((await call(program, "GET", "/health")).status, "ok");
  assert.ok(!program.output().includes('"level":50'), program.output());
});

type Body = string | Uint8Array<ArrayBuffer> | ReadableStream<Uint8Array<ArrayBuffer>>;
async function post(where: string, body: Body) {
  const headers = { "content-type": "application/json" };
  const response = await fetch(program.api + where, { method: "POST", headers, body, duplex: "half" });
  return { status: response.status, body: (await response.json()) as JsonObject };
}

async function refuses(
  where: string,
  body: Body,
  status: number,
  about = /^Invalid or missing JSON payload$/,
) {
  const given = await post(where, body);
  assert.equal(given.status, status);
  assert.deepEqual(Object.keys(given.body), ["error"]);
  assert.match(String(given.body.error), about);
}

describe("size", () => {
  /** Resident memory of the program, in bytes. */
  const residentBytes = async () =>
    Number(/VmRSS:\s+(\d+) kB/.exec(await readFile(`/proc/${program.pid}/status`, "utf8"))?.[1]) * 1024;
  const manifest = () => JSON.stringify(graph("huge", [{ ...router("r"), padding: "x".repeat(50 * MiB) }]));
  const chunked = (bytes: number) => {
    const chunk = new Uint8Array(MiB).fill(0x20);
    let left = bytes;
    return new ReadableStream<Uint8Array<ArrayBuffer>>({
      pull: (controller) => {
        controller.enqueue(chunk);
        left -= chunk.length;
        if (left <= 0) controller.close();
      },
    });
  };

  test("a manifest of 50 MB is answered with 413, every time, whether or not it says its length", async () => {
    const body = manifest();
    for (let i = 0; i < 3; i++) {
      await refuses("/jobs", body, 413, /SVC_BODY_MAX_BYTES/);
      await refuses("/jobs", chunked(50 * MiB), 413, /SVC_BODY_MAX_BYTES/);
    }
  });

  const skip = existsSync("/proc/self/status") ? false : "needs /proc";
  test("a quarter of a gigabyte of refused bodies leaves no memory behind", { skip }, async () => {
    const before = await residentBytes();
    const body = manifest();
    for (let i = 0; i < 5; i++) await refuses("/jobs", body, 413, /SVC_BODY_MAX_BYTES/);
    const grown = (await residentBytes()) - before;
    assert.ok(grown < 150 * MiB, `${Math.round(grown / MiB)} MiB more`);
  });

  test("a body too large for a message, or for a bundle's folder, is answered with 413 too", async () => {
    const large = JSON.stringify({ agent_id: "r", body: "x".repeat(6 * MiB) });
    await refuses("/jobs/none/messages", large, 413, /SVC_BODY_MAX_BYTES/);
  });

  test("10,000 nodes are accepted and completed", async () => {
    const leaves = Array.from({ length: 9_998 }, (_, i) => router(`n${i}`));
    const edges = leaves.flatMap(
      ({ node_id }) =>
        [
          ["in", String(node_id)],
          [String(node_id), "all"],
        ] as const,
    );
    const { status, result, detail } = await run(
      program,
      graph("wide", [router("in"), ...leaves, aggregator("all")], edges),
    );
    assert.equal(status, "completed");
    assert.equal(result.count, 9_998);
    assert.equal((detail.agents as readonly unknown[]).length, 10_000);
  });

  test("one node or one edge more than the limit is refused with the limit", async () => {
    const nodes = Array.from({ length: 20_001 }, (_, i) => router(`n${i}`));
    await refuses("/jobs", JSON.stringify(graph("x", nodes)), 400, /nodes has 20001 items: at most 20000/);
  });
});

describe("JSON", () => {
  const deep = (open: string, close: string, levels: number) => open.repeat(levels) + close.repeat(levels);
  const bodies: readonly [name: string, body: string | Uint8Array<ArrayBuffer>][] = [
    ["nested lists, 100,000 deep", deep("[", "]", 100_000)],
    ["nested objects, 100,000 deep", `${'{"a":'.repeat(100_000)}1${"}".repeat(100_000)}`],
    ["unclosed lists, 100,000 deep", "[".repeat(100_000)],
    [
      "depth inside a field of a manifest",
      JSON.stringify(graph("x", [router("r")])).replace("{", `{"m":${deep("[", "]", 50_000)},`),
    ],
    ["invalid UTF-8", Uint8Array.from([0x7b, 0x22, 0xc3, 0x28, 0x22, 0x3a, 0x31, 0x7d])],
    ["overlong UTF-8", Uint8Array.from([0x7b, 0x22, 0xc0, 0xaf, 0x22, 0x3a, 0x31, 0x7d])],
    ["a surrogate in UTF-8", Uint8Array.from([0x7b, 0x22, 0xed, 0xa0, 0x80, 0x22, 0x3a, 0x31, 0x7d])],
    ["a NUL byte", '{"a":"\u0000"}'],
    ["an empty body", ""],
    ["an array", "[1,2,3]"],
    ["NaN", '{"a":NaN}'],
    ["single quotes", "{'a':1}"],
    ["a comment", '{"a":1} // x'],
    ["a byte order mark alone", "\ufeff"],
  ];
  for (const where of ["/jobs", "/bundles", "/jobs/none/messages"]) {
    for (const [name, body] of bodies) {
      test(`${name} at POST ${where} is answered with 400 and the text of the spec`, async () => {
        await refuses(where, body, 400);
      });
    }
  }

  test("numbers beyond all bounds are refused or taken, and never break the answer", async () => {
    const manifest = JSON.stringify(graph("big", [aggregator("all")], [], { initial_inputs: { all: [0] } }));
    const { status, body } = await post(
      "/jobs",
      manifest.replace("[0]", `[1e999,-1e999,${"9".repeat(400)}]`),
    );
    assert.ok(status === 201 || status === 400, String(status));
    if (status === 201)
      assert.equal(((await call(program, "GET", path(String(body.id)))).job as JsonObject).graph_id, "big");
  });

  test("duplicate keys: the last one counts", async () => {
    const manifest = JSON.stringify(graph("last", [router("r")]));
    const { status, body } = await post("/jobs", manifest.replace("{", '{"graph_id":"first",'));
    assert.equal(status, 201);
    assert.match(String(body.id), /^last-/);
  });

  const wrongTypes = [null, 1, "text", true, [], {}, [null], [[]], JSON.parse('{"__proto__":1}')] as const;
  test("any JSON in the place of any field is a named problem or ignored, never a 5xx", async () => {
    const base = graph("types", [executor("e", ["true"])], [["e", "e"]], {
      policies: {},
      initial_inputs: { e: [1] },
      outputs: [],
      metadata: {},
      job_name: "n",
      type: "batch",
    });
    const wrongs: JsonObject[] = [];
    for (const value of wrongTypes) {
      for (const key of Object.keys(base))
        wrongs.push({ ...base, entrypoints: ["x"], [key]: value as never });
      for (const key of ["node_id", "agent_type", "role", "type", "config", "resources"]) {
        wrongs.push({ ...base, nodes: [{ ...executor("e", ["true"]), [key]: value as never }, 7] });
      }
      for (const key of [
        "command",
        "pool",
        "pool_slots",
        "environment",
        "pass_env",
        "upload_paths",
        "max_attempts",
        "timeout_seconds",
      ]) {
        wrongs.push({ ...base, nodes: [executor("e", ["true"], { [key]: value as never }), null] });
      }
    }
    for (const wrong of wrongs)
      await refuses("/jobs", JSON.stringify(wrong), 400, /^Invalid (manifest: |or missing)/);
  });
});
