// Two real programs on one PostgreSQL that share no store of files: what one of them has in its home, the other one fetches.

import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import type { JsonObject } from "../../src/engine/json.ts";
import { type Gates, makeGates } from "../support/gates.ts";
import { ask, call, completed, createJob, ended, startRun, walk } from "../support/gateway-api.ts";
import { executor, graph, router } from "../support/graphs.ts";
import { freePorts } from "../support/ports.ts";
import type { Program } from "../support/program.ts";
import { Nodes } from "../support/several-nodes.ts";
import { until } from "../support/until.ts";

let gates: Gates;
let nodes: Nodes<"a" | "b">;
const a = () => nodes.of("a");
const b = () => nodes.of("b");

before(async () => {
  const firstPort = await freePorts(2);
  const env = (name: "a" | "b") => {
    const port = String(name === "a" ? firstPort : firstPort + 1);
    return {
      SVC_EXECUTOR_MAX_CONCURRENCY: "1",
      SVC_BLUEPRINT_WEB_UI_PORT_START: port,
      SVC_BLUEPRINT_WEB_UI_PORT_END: port,
    };
  };
  [gates, nodes] = await Promise.all([makeGates(), Nodes.start(["a", "b"], { filesAreShared: false, env })]);
});
after(() => Promise.all([nodes[Symbol.asyncDispose](), gates.remove()]));

const TEXT = "what the bundle holds";
const FILES = { "payloads/input/words.txt": TEXT };
const KEEP = 'cat input/words.txt > "$SVC_OUTPUT_DIR/kept-$SVC_AGENT_ID.txt"; echo left > left.txt';
const keeping = (name: string, before = "") =>
  executor(name, ["/bin/sh", "-c", `${before}${KEEP}`], { upload_path: "input" });

/** The hashes of the blobs in a home. */
async function blobsIn(home: string): Promise<readonly string[]> {
  const names = await readdir(join(home, "blobs"), { recursive: true }).catch(() => []);
  return names.map((name) => name.slice(name.lastIndexOf("/") + 1)).filter((name) => name.length === 64);
}

const keptBy = async (at: Program, runId: string) =>
  (await walk(at, `/runs/${runId}/artifacts`)).filter(({ name }) => String(name).startsWith("kept"));

const bytesOf = (at: Program, runId: string, { artifact_id: id }: JsonObject, headers = {}) =>
  ask(at, "GET", `/runs/${runId}/artifacts/${String(id)}`, { headers });

describe("two programs that share no store of files", () => {
  test("read an artifact wherever it was made, whole and in parts, and keep what they have fetched", async () => {
    const jobId = await createJob(a(), graph("one", [keeping("w")]), {}, FILES);
    const { run } = await completed(a(), jobId);
    const runId = String(run.run_id);
    const [made] = await keptBy(b(), runId);
    assert.ok((await blobsIn(nodes.homes.a)).includes(String(made?.sha256)));
    assert.ok(!(await blobsIn(nodes.homes.b)).includes(String(made?.sha256)));
    assert.equal((await bytesOf(b(), runId, made!, { range: "bytes=5-7" })).text, "the");
    assert.equal((await bytesOf(b(), runId, made!)).text, TEXT);
    assert.ok((await blobsIn(nodes.homes.b)).includes(String(made?.sha256)));
  });

  test("launch what was uploaded at the other one", async () => {
    const jobId = await createJob(a(), graph("two", [keeping("w")]), {}, FILES);
    const { run } = await completed(b(), jobId);
    const [made] = await keptBy(a(), String(run.run_id));
    assert.equal((await bytesOf(a(), String(run.run_id), made!)).text, TEXT);
  });

  test("say of a file that its node does not run, and show it when it runs again", async () => {
    const jobId = await createJob(
      a(),
      graph("three", [keeping("w")]),
      {},
      {
        "payloads/input/words.txt": "on one node alone",
      },
    );
    const { run } = await completed(a(), jobId);
    const runId = String(run.run_id);
    const [made] = await keptBy(b(), runId);
    await a().stop();
    const refused = await bytesOf(b(), runId, made!);
    assert.equal(refused.status, 503, refused.text);
    assert.match(String(refused.body.detail), /It may be on a: start that node again.*SVC_BLOB_URL/);
    await nodes.start("a");
    assert.equal((await bytesOf(b(), runId, made!)).text, "on one node alone");
  });

  test("give each other what was prepared for a run whose attempts run on both, and remove each its own", async () => {
    const [one, two] = [gates.pipe("one"), gates.pipe("two")];
    const both = [keeping("w-1", `cat ${one}; `), keeping("w-2", `cat ${two}; `)];
    const edges = [
      ["in", "w-1"],
      ["in", "w-2"],
    ] as const;
    const page = { web_ui: { enabled: true, output: { title: "Held" } } };
    const files = { ...FILES, "config/default.json": JSON.stringify(page) };
    const jobId = await createJob(a(), graph("both", [router("in"), ...both], edges), {}, files);
    const runId = await startRun(a(), jobId);
    const folders = Object.values(nodes.homes).map((home) => join(home, "runs", runId));
    // One slot on each node.
    await until("both nodes have it", () => folders.every((folder) => existsSync(join(folder, "prepared"))));
    for (const gate of [one, two]) await gates.open(gate);
    assert.equal((await ended(b(), runId)).run.status, "completed");
    for (const at of [a(), b()]) {
      const kept = await keptBy(at, runId);
      assert.equal(kept.length, 2);
      for (const one of kept) assert.equal((await bytesOf(at, runId, one)).text, TEXT);
    }
    for (const folder of folders) {
      await until("what was prepared is gone", () => !existsSync(join(folder, "prepared")));
      assert.ok(existsSync(folder), "its workspaces are there");
    }
    await call(a(), "DELETE", `/jobs/${jobId}`, undefined, { "if-match": "*" });
    await until("both homes are without the run", async () => {
      for (const at of [a(), b()]) await call(at, "POST", "/system/gc", { confirm: true });
      return !folders.some((folder) => existsSync(folder));
    });
  });
});
