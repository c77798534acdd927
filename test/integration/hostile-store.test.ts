// The store stops taking writes while the program works: the disk is full, or another program holds the database's
// lock. While it lasts the program reports it and accepts nothing; when the cause is gone it resumes automatically, and
// nothing that was acknowledged is lost.

import assert from "node:assert/strict";
import { mkdtemp, open, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { test } from "node:test";
import type { JsonObject } from "../../src/engine/json.ts";
import { startRuntimeHere } from "../support/in-process.ts";
import { executor, graph, oneCommand } from "../support/manifests.ts";
import { asSeenBy, onOwnDisk, whyNoMounts } from "../support/mounts.ts";
import { type Program, startProgram, temporaryHome } from "../support/program.ts";
import { call, follow, historyOf, jobDetail, request } from "../support/runtime-api.ts";
import { until } from "../support/until.ts";

const MiB = 1024 * 1024;

/** A job whose command waits for a file, and whose result goes through an aggregator. */
function gated(gate: string): JsonObject {
  const wait = 'while [ ! -e "$GATE" ]; do sleep 0.05; done; echo "attempt $SVC_ATTEMPT"';
  return graph(
    "gated",
    [
      executor("worker", wait, { environment: { GATE: gate } }),
      { node_id: "out", agent_type: "aggregator", config: { complete_after: 1 } },
    ],
    ["worker>out"],
  );
}

const sensing = graph("sensing", [{ node_id: "ear", agent_type: "sensor" }]);
const plain = graph("plain", [{ node_id: "in", agent_type: "router" }]);

interface Refused {
  readonly status: number;
  readonly retryAfter: string | null;
  readonly error: string;
}

async function post(program: Program, path: string, body: JsonObject): Promise<Refused> {
  const answer = await fetch(program.api + path, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  const { error } = (await answer.json()) as JsonObject;
  return { status: answer.status, retryAfter: answer.headers.get("retry-after"), error: String(error ?? "") };
}

/** Whatever would change something is refused in the same way; reading goes on; health says what is wrong. */
async function refusesAll(program: Program, reason: RegExp, sensingJob: string): Promise<void> {
  const message = { agent_id: "ear", body: { heard: "nothing" } };
  const refusals = [
    await post(program, "/jobs", plain),
    await post(program, `/jobs/${sensingJob}/messages`, message),
    await post(program, `/jobs/${sensingJob}/cancel`, {}),
    await post(program, `/jobs/${sensingJob}/pause`, {}),
    await post(program, "/bundles", {
      path: new URL("../../examples/prime-sweep", import.meta.url).pathname,
    }),
    await post(program, "/jobs/cleanup", {}),
  ];
  for (const [i, { status, retryAfter, error }] of refusals.entries()) {
    assert.equal(status, 503, `refusal ${i}: ${error}`);
    assert.ok(Number(retryAfter) >= 1, `refusal ${i} says when to try again`);
    assert.match(error, reason, `refusal ${i}`);
    assert.ok(!error.includes(program.home), "no path leaves the machine");
  }
  const health = await request(program, "GET", "/health");
  assert.equal(health.status, 503);
  assert.equal(health.body.status, "degraded");
  assert.match(String(health.body.detail), reason);
  assert.equal((await jobDetail(program, sensingJob)).job.status, "running", "reading goes on");
}

async function healthy(program: Program): Promise<void> {
  await until("the program is healthy again", async () => {
    const { status } = await request(program, "GET", "/health");
    return status === 200;
  });
}

/** Checks that a job has ended well, and that stream and history agree without a gap. */
async function endedWell(program: Program, jobId: string): Promise<void> {
  const streamed = await historyOf(program, jobId);
  assert.deepEqual(
    streamed.map(({ id }) => id),
    streamed.map((_, i) => i + 1),
    `${jobId}: no gap`,
  );
  assert.equal(streamed.at(-1)?.type, "job_completed", `${jobId}: ${JSON.stringify(streamed.at(-1))}`);
  const { data } = await call(program, "GET", `/jobs/${jobId}/events`);
  const stored = data as readonly JsonObject[];
  assert.deepEqual(
    stored.map(({ type }) => type),
    streamed.map(({ type }) => type),
  );
}

async function listedIds(program: Program): Promise<readonly string[]> {
  const { data } = await call(program, "GET", "/jobs");
  return (data as readonly JsonObject[]).map(({ job_id }) => String(job_id)).sort();
}

test("a full disk: nothing new is accepted while it lasts, and nothing that was accepted is lost", async (t) => {
  const why = whyNoMounts();
  if (why !== null) return t.skip(why);
  const home = await temporaryHome();
  const outside = await mkdtemp(join(tmpdir(), "troupe-gate-"));
  const gate = join(outside, "open");
  const through = onOwnDisk(home, { sizeBytes: 12 * MiB, ballastBytes: 6 * MiB });
  try {
    await using program = await startProgram({ home, through });
    const accepted: string[] = [];
    const accept = async (manifest: JsonObject) => {
      const { id } = await call(program, "POST", "/jobs", manifest);
      accepted.push(String(id));
      return String(id);
    };
    const waiting = await accept(gated(gate));
    const ear = await accept(sensing);
    const listening = historyOf(program, waiting);
    await started(program, waiting);

    const large = { ...plain, initial_inputs: { in: [{ text: "x".repeat(128 * 1024) }] } };
    assert.match((await untilRefused(program, large)).error, /disk is full.*Nothing was accepted; try again/);
    // What the large ones have left is no room for small ones either.
    await fill(asSeenBy(program.pid, join(home, "filler")));
    await untilFull(program);
    const printed = program.output().length;
    const before = await listedIds(program);
    await refusesAll(program, /disk is full.*Free some space/, ear);
    assert.deepEqual(await listedIds(program), before, "what was refused has left nothing");

    // The command ends while its outcome cannot be written.
    await writeFile(gate, "");
    await until("the command has ended", async () => (await children(program)) === 0);
    assert.equal((await jobDetail(program, waiting)).job.status, "running");
    assert.doesNotMatch(program.output().slice(printed), /commits again/, "a full disk never looks well");

    for (const file of ["ballast", "filler"]) await rm(asSeenBy(program.pid, join(home, file)));
    await healthy(program);
    accepted.push(...before.filter((id) => id.startsWith("plain-")));
    await accept(plain);
    assert.equal((await post(program, `/jobs/${ear}/messages`, { agent_id: "ear", body: 1 })).status, 202);
    for (const jobId of accepted) await endedWell(program, jobId);
    assert.equal((await listening).at(-1)?.type, "job_completed", "a stream from before goes on");
    assert.deepEqual(await listedIds(program), [...accepted].sort());
    const { result } = (await jobDetail(program, waiting)).job;
    assert.match(JSON.stringify(result), /attempt 1/, "the command ran once");
  } finally {
    await rm(home, { recursive: true, force: true });
    await rm(outside, { recursive: true, force: true });
  }
});

test("a store that takes no writes when the program is asked to stop: it stops, and the next start goes on", async () => {
  const home = await temporaryHome();
  const outside = await mkdtemp(join(tmpdir(), "troupe-gate-"));
  const gate = join(outside, "open");
  try {
    await using first = await startProgram({ home });
    const waiting = String((await call(first, "POST", "/jobs", gated(gate))).id);
    await started(first, waiting);
    {
      using _lock = lockedBy(home);
      await writeFile(gate, "");
      await until("the command has ended", async () => (await children(first)) === 0);
      assert.deepEqual(await first.stop(), { code: 0, signal: null });
      assert.match(first.output(), /what could not be written is repeated at the next start/);
    }
    await using second = await startRuntimeHere({ home });
    await endedWell(second, waiting);
    const { result } = (await jobDetail(second, waiting)).job;
    assert.match(
      JSON.stringify(result),
      /attempt 2/,
      "its outcome was never written, so the command ran again",
    );
  } finally {
    await rm(home, { recursive: true, force: true });
    await rm(outside, { recursive: true, force: true });
  }
});

test("a database locked by another program: the same, until the lock is gone", async () => {
  const outside = await mkdtemp(join(tmpdir(), "troupe-gate-"));
  const gate = join(outside, "open");
  try {
    await using program = await startProgram();
    const waiting = String((await call(program, "POST", "/jobs", gated(gate))).id);
    const ear = String((await call(program, "POST", "/jobs", sensing)).id);
    await endedWell(program, String((await call(program, "POST", "/jobs", plain)).id));
    await started(program, waiting);
    {
      using other = lockedBy(program.home);
      await refusesAll(program, /locked by another program.*Close that program/, ear);
      await writeFile(gate, "");
      await until("the command has ended", async () => (await children(program)) === 0);
      other.exec("ROLLBACK");
    }
    await healthy(program);
    assert.equal((await post(program, `/jobs/${ear}/messages`, { agent_id: "ear", body: 1 })).status, 202);
    await endedWell(program, waiting);
    await endedWell(program, ear);
    await endedWell(program, String((await call(program, "POST", "/jobs", oneCommand("after", "true"))).id));
  } finally {
    await rm(outside, { recursive: true, force: true });
  }
});

/** Takes the database's lock as another program; what is being written at this moment is waited for. */
function lockedBy(home: string): DatabaseSync {
  const other = new DatabaseSync(join(home, "troupe.db"), { timeout: 60_000 });
  other.exec("BEGIN EXCLUSIVE");
  return other;
}

async function untilRefused(program: Program, manifest: JsonObject): Promise<Refused> {
  for (;;) {
    const answer = await post(program, "/jobs", manifest);
    if (answer.status === 201) continue;
    assert.equal(answer.status, 503, answer.error);
    return answer;
  }
}

/** Submits small jobs until not a single page can be written: the store has tried again and again in vain. */
async function untilFull(program: Program): Promise<void> {
  let refusals = 0;
  await until("nothing fits on the disk any more", async () => {
    const { status, error } = await post(program, "/jobs", plain);
    assert.ok(status === 201 || status === 503, error);
    refusals = status === 503 ? refusals + 1 : 0;
    return refusals === 25;
  });
}

/** Writes a file until the disk has no room for another page. */
async function fill(path: string): Promise<void> {
  const page = Buffer.alloc(4096);
  await using file = await open(path, "w");
  for (;;) {
    try {
      await file.write(page);
    } catch (error) {
      assert.equal((error as NodeJS.ErrnoException).code, "ENOSPC");
      return;
    }
  }
}

async function started(program: Program, jobId: string): Promise<void> {
  for await (const { type } of follow(program, jobId)) if (type === "sandbox_job_started") break;
}

/** How many executors are at work, as the runtime counts them. */
async function children(program: Program): Promise<number> {
  const { nodes } = await call(program, "GET", "/system/summary");
  const [node] = nodes as readonly { executor_pools: Record<string, { in_use: number }> }[];
  return Object.values(node?.executor_pools ?? {}).reduce((sum, pool) => sum + pool.in_use, 0);
}
