// A run's evidence as artifacts, against the program a user starts: what is listed, what is served, and what is left
// when the program is killed, the disk is full or the run is deleted. Sentences in quotes are the specification's own,
// shortened.

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { readdir, rm, statfs, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import type { JsonObject } from "../../src/engine/json.ts";
import {
  ask,
  assertProblem,
  call,
  completed,
  createJob,
  ended,
  follow,
  happens,
  runtimeApiOf,
  startGateway,
  startRun,
  walk,
} from "../support/gateway-api.ts";
import { executor, graph, router, sensor } from "../support/graphs.ts";
import { startGatewayHere } from "../support/in-process.ts";
import { asSeenBy, onOwnDisk, whyNoMounts } from "../support/mounts.ts";
import { type Program, temporaryHome } from "../support/program.ts";
import { until } from "../support/until.ts";

const MiB = 1024 * 1024;
const VIEWS = ["events_jsonl", "logs_jsonl", "errors_jsonl", "timeline_jsonl", "timeline_json"];

interface Entry {
  readonly artifact_id: string;
  readonly name: string;
  readonly kind: string;
  readonly size: number;
  readonly sha256: string;
  readonly content_type: string;
  readonly url: string;
}

const listOf = async (program: Program, runId: string, pageSize = 200) =>
  (await walk(program, `/runs/${runId}/artifacts`, pageSize)) as unknown as readonly Entry[];
const evidenceOf = async (program: Program, runId: string) =>
  (await listOf(program, runId)).filter(({ kind }) => kind === "evidence");
const idsOf = (entries: readonly Entry[]) => entries.map(({ artifact_id }) => artifact_id);
const sha256Of = (bytes: Buffer) => createHash("sha256").update(bytes).digest("hex");

async function bytesOf(program: Program, url: string): Promise<Buffer> {
  const answer = await fetch(program.url + url);
  assert.equal(answer.status, 200, url);
  return Buffer.from(await answer.arrayBuffer());
}

/** Every entry's bytes are those that were listed. */
async function assertServed(program: Program, entries: readonly Entry[]): Promise<void> {
  for (const { artifact_id, url, size, sha256 } of entries) {
    const bytes = await bytesOf(program, url);
    assert.equal(bytes.length, size, artifact_id);
    assert.equal(sha256Of(bytes), sha256, artifact_id);
  }
}

const folderOf = (program: Program, runId: string) => join(program.home, "evidence", runId);

/** A worker that logs this many lines of so many characters. */
const talking = (lines: number, chars = 100) =>
  executor("talks", `seq 1 ${lines} | sed 's/$/ ${"x".repeat(chars - 10)}/'`, { timeout_seconds: 120 });

describe("what is listed", () => {
  let program: Program;
  before(async () => {
    program = await startGatewayHere();
  });
  after(() => program.stop());

  test('"Each entry has a stable id, size, SHA-256 hash, content type and URL", on both APIs the same', async () => {
    const work = executor("w", 'cd "$SVC_OUTPUT_DIR"; echo a > a.txt; echo b > final_artifact.md');
    const jobId = await createJob(program, graph("all", [work]));
    const runId = String((await completed(program, jobId, { inputs: { n: 1 } })).run.run_id);
    const entries = await listOf(program, runId, 4);
    const [a, b, ...rest] = entries.slice(-2);
    assert.deepEqual([a?.name, b?.name, rest.length], ["a.txt", "final_artifact.md", 0]);
    const documents = ["run", "config", "inputs", "result", "final_artifact", "observability_summary_json"];
    assert.deepEqual(idsOf(entries.slice(0, -2)), [...documents, ...VIEWS]);
    await assertServed(program, entries);

    const runtime = await runtimeApiOf(program);
    const { data } = await call(runtime, "GET", `/runs/${runId}/artifacts`);
    const sameFields = (data as readonly JsonObject[]).map(({ title, primary, ...entry }) => entry);
    assert.deepEqual(sameFields, entries);
    await assertServed(runtime, entries);
    for (const { url, sha256, size } of entries) {
      const head = await fetch(runtime.url + url, { method: "HEAD" });
      assert.equal(head.headers.get("content-length"), String(size));
      const known = await fetch(runtime.url + url, { headers: { "if-none-match": `"${sha256}"` } });
      assert.equal(known.status, 304);
    }
    const outside = await fetch(runtime.url + entries[0]!.url, { headers: { range: "bytes=999999999-" } });
    assert.equal(outside.status, 416);
    assert.equal(outside.headers.get("content-range"), `bytes */${entries[0]!.size}`);
    assert.deepEqual(Object.keys((await outside.json()) as object), ["error"]);
  });

  test("the documents say what the API says of the run", async () => {
    const configuration = { resolved_configuration: { api_key: "planted-secret-1", depth: 3 } };
    const jobId = await createJob(program, graph("told", [router("in")]), configuration);
    const { run, events } = await completed(program, jobId, { inputs: { topic: "bees" } });
    const runId = String(run.run_id);
    const entries = await listOf(program, runId);
    const json = async (id: string) =>
      JSON.parse(String(await bytesOf(program, `/api/v1/runs/${runId}/artifacts/${id}`))) as JsonObject;
    const told = await json("run");
    for (const [name, value] of Object.entries(told)) assert.deepEqual(value, run[name], name);
    assert.deepEqual(await json("inputs"), { topic: "bees" });
    assert.deepEqual(await json("config"), { api_key: "********", depth: 3 });
    assert.deepEqual(await json("result"), run.result);
    assert.deepEqual(
      await json("observability_summary_json"),
      await call(program, "GET", `/runs/${runId}/observability-summary`),
    );
    const { records } = await json("timeline_json");
    assert.deepEqual(records, await walk(program, `/runs/${runId}/timeline`));
    const lines = String(await bytesOf(program, `/api/v1/runs/${runId}/artifacts/events_jsonl`)).split("\n");
    assert.deepEqual(
      lines.slice(0, -1).map((line) => JSON.parse(line) as unknown),
      events,
    );
    for (const { url } of entries) assert.ok(!String(await bytesOf(program, url)).includes("planted-secret"));
  });

  test("ranges, ETags and names are served as for any file", async () => {
    const jobId = await createJob(program, graph("parts", [talking(50)]));
    const runId = String((await completed(program, jobId)).run.run_id);
    for (const { artifact_id, name, url, size, sha256 } of await evidenceOf(program, runId)) {
      if (size < 6) continue;
      const whole = await bytesOf(program, url);
      const part = await fetch(program.url + url, { headers: { range: `bytes=3-${size - 2}` } });
      assert.equal(part.status, 206, artifact_id);
      assert.equal(part.headers.get("content-range"), `bytes 3-${size - 2}/${size}`);
      assert.ok(Buffer.from(await part.arrayBuffer()).equals(whole.subarray(3, size - 1)), artifact_id);
      assert.equal(part.headers.get("etag"), `"${sha256}"`);
      assert.equal(part.headers.get("content-disposition"), `attachment; filename="${name}"`);
    }
  });

  test("the final artifact is final_artifact.*, else the first primary output, else the only one", async () => {
    const finalOf = async (script: string, outputs: readonly JsonObject[] = []) => {
      const work = executor("w", `cd "$SVC_OUTPUT_DIR"; ${script}`);
      const jobId = await createJob(program, graph("final", [work], [], { outputs }));
      const runId = String((await completed(program, jobId)).run.run_id);
      const entries = await listOf(program, runId);
      const found = entries.find(({ artifact_id }) => artifact_id === "final_artifact");
      const { items } = await call(program, "GET", `/runs/${runId}/outputs`);
      const ids = (items as unknown as readonly Entry[]).map(({ artifact_id }) => artifact_id);
      assert.ok(!ids.includes("final_artifact"), "it is no output of its own");
      if (found !== undefined) await assertServed(program, [found]);
      return found === undefined ? null : [found.name, found.kind];
    };
    const both = [{ path: "a.txt" }, { path: "b.txt", primary: true }];
    assert.deepEqual(await finalOf("echo 1 > a.txt; echo 2 > b.txt", both), ["b.txt", "evidence"]);
    const named = "mkdir deep; echo 1 > a.txt; echo 2 > b.txt; echo 3 > deep/final_artifact.json";
    assert.deepEqual(await finalOf(named, both), ["deep/final_artifact.json", "evidence"]);
    assert.deepEqual(await finalOf("echo 1 > a.txt", [{ path: "a.txt" }]), ["a.txt", "evidence"]);
    assert.equal(
      await finalOf("echo 1 > a.txt; echo 2 > b.txt", [{ path: "a.txt" }, { path: "b.txt" }]),
      null,
    );
    assert.equal(await finalOf("echo 1 > a.txt"), null);
  });

  test("a run that ended before its launch has evidence too", async () => {
    const home = await temporaryHome();
    try {
      const keyed = (digit: string) => startGatewayHere({ home, env: { SVC_SECRET_KEY: digit.repeat(64) } });
      await using first = await keyed("1");
      const configuration = { resolved_configuration: { api_key: "sealed with the first key" } };
      const jobId = await createJob(first, graph("closed", [router("in")]), configuration);
      await first.stop();
      await using program = await keyed("2");
      const { run } = await ended(program, await startRun(program, jobId));
      assert.equal((run.failure as JsonObject).code, "configuration.unreadable");
      const entries = await listOf(program, String(run.run_id));
      assert.deepEqual(idsOf(entries), ["run", "inputs", "observability_summary_json", ...VIEWS]);
      await assertServed(program, entries);
      const errors = entries.find(({ artifact_id }) => artifact_id === "errors_jsonl");
      assert.deepEqual(JSON.parse(String(await bytesOf(program, errors!.url))), run.failure);
    } finally {
      await rm(home, { recursive: true, force: true });
    }
  });

  test("a job of the runtime's own has the same artifacts at its run", async () => {
    const runtime = await runtimeApiOf(program);
    const manifest = graph("own", [router("in")], [], { initial_inputs: { in: [{ n: 1 }] } });
    const { id, run_id: runId } = await call(runtime, "POST", "/jobs", manifest);
    await until("the job has ended", async () => {
      const { job } = await call(runtime, "GET", `/jobs/${id}`);
      return (job as JsonObject).status === "completed";
    });
    const { data } = await call(runtime, "GET", `/runs/${runId}/artifacts`);
    const entries = data as unknown as readonly Entry[];
    const documents = ["run", "config", "inputs", "result", "observability_summary_json"];
    assert.deepEqual(idsOf(entries), [...documents, ...VIEWS]);
    await assertServed(runtime, entries);
    const inputs = entries.find(({ artifact_id }) => artifact_id === "inputs");
    assert.deepEqual(JSON.parse(String(await bytesOf(runtime, inputs!.url))), { in: [{ n: 1 }] });
    const none = await ask(program, "GET", `/runs/${runId}/artifacts`);
    assertProblem(none, 404, "run_not_found");
  });

  test("a walk through the pages of a run that goes on shows what was there all along once", async () => {
    const jobId = await createJob(program, graph("open", [sensor("wait"), talking(20)], [["wait", "talks"]]));
    const runId = await startRun(program, jobId);
    await happens(program, runId, "agent_started");
    const before = idsOf(await listOf(program, runId));
    const entries: Entry[] = [];
    let token = "";
    do {
      const query = `page_size=1${token && `&page_token=${encodeURIComponent(token)}`}`;
      const page = await call(program, "GET", `/runs/${runId}/artifacts?${query}`);
      entries.push(...(page.items as unknown as readonly Entry[]));
      token = (page.next_page_token as string | null) ?? "";
      if (entries.length === 2)
        await call(program, "PATCH", `/runs/${runId}`, { desired_state: "cancelled" });
      if (entries.length === 3) await ended(program, runId);
    } while (token !== "");
    assert.equal(new Set(idsOf(entries)).size, entries.length);
    for (const id of before) assert.ok(idsOf(entries).includes(id), id);
  });
});

describe("the disk", () => {
  test("a run that nobody looked at has no evidence on disk; one that is deleted leaves none", async () => {
    await using program = await startGatewayHere();
    const jobId = await createJob(program, graph("quiet", [router("in")]));
    const { run } = await completed(program, jobId);
    const runId = String(run.run_id);
    await walk(program, `/runs/${runId}/logs`);
    await walk(program, `/runs/${runId}/artifacts?evidence=false`);
    await bytesOf(program, `/api/v1/runs/${runId}/artifacts/result`);
    const paths = await readdir(program.home, { recursive: true });
    assert.deepEqual(
      paths.filter((path) => path.includes(runId) || path.startsWith("evidence")),
      [],
    );
    await listOf(program, runId);
    assert.ok(existsSync(folderOf(program, runId)));
    const { headers } = await ask(program, "GET", `/jobs/${jobId}`);
    const etag = headers.get("etag") ?? "*";
    await call(program, "DELETE", `/jobs/${jobId}`, undefined, { "if-match": etag });
    await until("its evidence is gone", () => !existsSync(folderOf(program, runId)));
    assertProblem(await ask(program, "GET", `/runs/${runId}/artifacts`), 404, "run_not_found");
    assert.ok(!existsSync(folderOf(program, runId)));
  });

  test("a full disk: 503 that says what to free, nothing half-made, and all else works", async (t) => {
    const why = whyNoMounts();
    if (why !== null) return t.skip(why);
    const home = await temporaryHome();
    try {
      const through = onOwnDisk(home, { sizeBytes: 128 * MiB });
      await using program = await startGateway({ home, through });
      const jobId = await createJob(program, graph("long", [talking(10_000, 1_000)]));
      const runId = String((await completed(program, jobId)).run.run_id);
      const seen = (path: string) => asSeenBy(program.pid, path);
      const { bavail, bsize } = await statfs(seen(home));
      await writeFile(seen(join(home, "ballast")), Buffer.alloc(Math.max(0, bavail * bsize - 4 * MiB)));
      const refused = await ask(program, "GET", `/runs/${runId}/artifacts`);
      const { detail } = assertProblem(refused, 503, "unavailable");
      assert.match(String(detail), /disk.*[Ff]ree some space/);
      assert.ok(!String(detail).includes(home));
      assert.ok(!existsSync(seen(folderOf(program, runId))));
      const runtime = await runtimeApiOf(program);
      assert.equal((await ask(runtime, "GET", `/runs/${runId}/artifacts`)).status, 503);
      assert.equal((await ask(program, "GET", `/runs/${runId}/logs`)).status, 200);
      assert.equal((await ask(program, "GET", `/runs/${runId}/artifacts/result`)).status, 200);
      await rm(seen(join(home, "ballast")));
      await assertServed(program, await listOf(program, runId));
    } finally {
      await rm(home, { recursive: true, force: true });
    }
  });
});

describe("kill -9", () => {
  const remade = async (program: Program, runId: string) => {
    const listed = await listOf(program, runId);
    await assertServed(program, listed);
    await rm(folderOf(program, runId), { recursive: true });
    assert.deepEqual(await listOf(program, runId), listed);
    await assertServed(program, listed);
    return listed;
  };

  test("in the middle of a projection: the next start goes on, and comes to the same bytes as from nothing", async () => {
    const home = await temporaryHome();
    let program = await startGateway({ home });
    try {
      const jobId = await createJob(program, graph("long", [talking(20_000, 1_100)]));
      const runId = String((await completed(program, jobId)).run.run_id);
      for (const [file, startAgain] of [
        ["events.001.jsonl", startGateway],
        ["events.002.jsonl", startGatewayHere],
      ] as const) {
        const list = ask(program, "GET", `/runs/${runId}/artifacts`).catch(() => null);
        await until(`${file} is being written`, () => existsSync(join(folderOf(program, runId), file)));
        await program.kill();
        await list;
        program = await startAgain({ home });
      }
      const listed = await remade(program, runId);
      assert.ok(idsOf(listed).includes("events_jsonl_001") && idsOf(listed).includes("logs_jsonl_001"));
      await program.stop();
      program = await startGatewayHere({ home });
      assert.deepEqual(await listOf(program, runId), listed);
      await assertServed(program, listed);
    } finally {
      await program.stop();
      await rm(home, { recursive: true, force: true });
    }
  });

  test("in the middle of a run that is looked at: its history and its evidence go on together", async () => {
    const home = await temporaryHome();
    let program = await startGateway({ home });
    try {
      const gate = join(home, "gate");
      const wait = `until [ -e '${gate}' ]; do sleep 0.02; done`;
      const script = `for i in $(seq 1 100); do echo line $i; if [ $i = 60 ]; then ${wait}; else sleep 0.01; fi; done`;
      const jobId = await createJob(program, graph("slow", [executor("talks", script, { max_attempts: 3 })]));
      const runId = await startRun(program, jobId);
      let lines = 0;
      for await (const { type } of follow(program, runId)) {
        if (type !== "log") continue;
        if (++lines % 10 === 0) await listOf(program, runId);
        if (lines === 40) break;
      }
      await program.kill();
      await writeFile(gate, "");
      program = await startGatewayHere({ home });
      assert.equal((await ended(program, runId)).of("job_recovered").length, 1);
      const listed = await remade(program, runId);
      const events = await walk(program, `/runs/${runId}/events`);
      const url = listed.find(({ artifact_id }) => artifact_id === "events_jsonl")!.url;
      const told = String(await bytesOf(program, url))
        .split("\n")
        .slice(0, -1);
      assert.deepEqual(
        told.map((line) => JSON.parse(line) as unknown),
        events,
      );
    } finally {
      await program.stop();
      await rm(home, { recursive: true, force: true });
    }
  });
});
