// One seed of the gateway: jobs, clients, a few crashes; then peace, in which everything must come to its end.
//
// W2. A run that was accepted is handed to the runtime once and ends; one that ends before is never handed over.
// W3. An operation goes forwards only, is published behind its commits and ends once; what its end brings about is there
//     exactly if it was completed. Of one target one is open at a time.
// W5. Nothing is left: no port in use, no folder, no work; and what was prepared is there while commands need it.

import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import { isTerminal } from "../../src/engine/journal.ts";
import type { Operation } from "../../src/operations/records.ts";
import { sqlOperationRecords } from "../../src/store/sql/operations.ts";
import { unpackLines } from "../../src/store/sql/packed-lines.ts";
import { sqlPortRecords } from "../../src/store/sql/ports.ts";
import { until } from "../support/until.ts";
import { GatewayClients } from "./gateway-clients.ts";
import { jobOf } from "./gateway-process.ts";
import { GatewayWorld, LEASE_MS, noGatewayFaults } from "./gateway-world.ts";
import type { Counts } from "./kinds.ts";
import { Random } from "./random.ts";

const JOBS = ["job_plain", "job_prepared", "job_other_prepared"];
const TARGETS = ["digest", "letters"];
const SPAN_MS = 3_000;
const STEPS_MAX = 100_000;
/** Of a gateway that stands still, or is cut off: shorter and longer than its lease. */
const AWAY_MS_MAX = 3 * LEASE_MS;
/** By then everybody is back, and nothing goes wrong any more. */
const PEACE_MS = SPAN_MS + AWAY_MS_MAX;
const ROUNDS_MAX = 20;

/** @throws AssertionError that says which invariant broke */
export async function runGatewaySeed(seed: number): Promise<Counts> {
  const random = new Random(seed);
  const hard = random.chance(0.8);
  const nodes = random.chance(0.7) ? ["a", "b"] : ["a"];
  const world = new GatewayWorld(random, nodes, {
    storeFails: hard ? 0.02 : 0,
    crashAfterWrite: hard ? 0.02 : 0,
    standsStill: hard && nodes.length > 1 ? 0.02 : 0,
    preparationFails: random.chance(0.5) ? 0.1 : 0,
    commandFails: 0.1,
    handlerFails: random.chance(0.5) ? 0.1 : 0,
  });
  const found = (error: unknown) => world.broken(error);
  process.on("unhandledRejection", found);
  try {
    await live(world, hard);
    return world.counts;
  } finally {
    process.off("unhandledRejection", found);
    await world.close();
  }
}

async function live(world: GatewayWorld, hard: boolean): Promise<void> {
  const { random, database } = world;
  const clients = new GatewayClients(world);
  const { faults } = world;
  world.faults = noGatewayFaults;
  const inserted = world.anyProcess.records.write(async (writes) => {
    for (const jobId of JOBS) await writes.insertJob(jobOf(jobId, world.nowMs));
  });
  await run(world);
  await inserted;
  world.faults = faults;
  for (let n = random.between(1, 8); n > 0; n--) clients.planRequest("run", random.pick(JOBS), SPAN_MS);
  for (let n = random.below(4); n > 0; n--) clients.planRequest("operation", random.pick(TARGETS), SPAN_MS);
  for (let n = random.below(6); n > 0; n--) clients.planControl(SPAN_MS);
  for (let n = hard ? random.below(4) : 0; n > 0; n--) {
    world.plan(random.between(1, SPAN_MS), null, () => world.crash());
  }
  for (let n = hard ? random.below(3) : 0; n > 0; n--) {
    const awayMs = random.between(100, AWAY_MS_MAX);
    const befalls = random.chance(0.5) ? () => world.standStill(awayMs) : () => world.cutOff(awayMs);
    world.plan(random.between(1, SPAN_MS), null, befalls);
  }
  // People do not leave a run paused for ever: what is refused a port, or a busy target, waits for its end.
  world.plan(PEACE_MS, null, () => world.heal());
  world.plan(PEACE_MS + SPAN_MS, null, () => resumeAll(world, clients));
  await run(world);
  for (let rounds = 0; openRuns(world).length > 0; rounds++) {
    assert.ok(rounds < ROUNDS_MAX, `W2: ${openRuns(world).join(", ")} did not end`);
    resumeAll(world, clients);
    await run(world);
  }
  clients.judge();
  judgeRuns(world, clients);
  await judgeOperations(world);
  await judgeLeftovers(world);
  countStored(world);
  assert.equal((await sqlPortRecords(database).portsInUse()).size, 0, "W5: no port is in use");
}

const run = (world: GatewayWorld) => world.untilQuiet(STEPS_MAX);

function resumeAll(world: GatewayWorld, clients: GatewayClients): void {
  for (const runId of openRuns(world)) clients.control(runId, "running");
}

interface RunRow {
  readonly run_id: string;
  readonly runtime_job_id: string;
  readonly status: string;
  readonly launched: number;
  readonly finished_at: number | null;
  readonly failure_json: string | null;
}

function runRows({ database }: GatewayWorld): readonly RunRow[] {
  return database.connection.prepare("SELECT * FROM runs ORDER BY run_id").all() as unknown as RunRow[];
}

const openRuns = (world: GatewayWorld) =>
  runRows(world)
    .filter(({ finished_at }) => finished_at === null)
    .map(({ run_id }) => run_id);

function judgeRuns(world: GatewayWorld, { cancelled }: GatewayClients): void {
  const { connection } = world.database;
  const begun = connection.prepare("SELECT lines FROM events WHERE job_id = ? ORDER BY first_seq");
  const stored = connection.prepare("SELECT status, terminal FROM jobs WHERE job_id = ?");
  const runs = runRows(world);
  for (const { run_id, runtime_job_id, status, launched } of runs) {
    const lines = begun.all(runtime_job_id).flatMap((row) => unpackLines(String(row.lines)));
    const times = lines.filter((line) => line.includes('"type":"job_pending"')).length;
    assert.equal(times, launched, `W2: ${run_id} was handed to the runtime ${times} times`);
    const job = stored.get(runtime_job_id);
    if (launched === 1) assert.equal(job?.status, status, `W2: ${run_id} ends as its runtime job`);
    else assert.equal(job, undefined, `W2: ${run_id} has ended, and was handed over`);
    if (cancelled.has(run_id)) assert.equal(status, "cancelled", `W4: ${run_id} was cancelled`);
  }
  const jobs = connection.prepare("SELECT count(*) AS count FROM jobs").get();
  const handed = runs.filter(({ launched }) => launched === 1).length;
  assert.equal(jobs?.count, handed, "W2: the runtime has the jobs of runs, and no others");
}

async function judgeOperations({ database, nowMs }: GatewayWorld): Promise<void> {
  const records = sqlOperationRecords(database);
  const { rows } = await records.operations({ target: null, status: null, limit: 100, after: null });
  for (const operation of rows) {
    const { operationId, status, error } = operation;
    const { lines } = await records.operationEvents(operationId, 0, 10_000);
    const events = lines.map((line) => JSON.parse(line) as OperationEvent);
    for (const [i, { id, payload, type }] of events.entries()) {
      assert.equal(id, i + 1, `W3: the events of ${operationId} are numbered`);
      assert.equal(isEnd(type), i === events.length - 1, `W3: ${operationId} ends once`);
      const before = events[i - 1]?.payload ?? payload;
      assert.ok(payload.percent >= before.percent, `W3: ${operationId} went back to ${payload.percent} %`);
      const isBack = payload.steps.some((step, n) => rankOf(step) < rankOf(before.steps[n]!));
      assert.ok(!isBack, `W3: a step of ${operationId} went back`);
    }
    const sql = "SELECT count(*) AS count FROM job_definitions WHERE job_id = ?";
    const made = database.connection.prepare(sql).get(`job_of_${operationId}`)?.count;
    assert.equal(made, status === "completed" ? 1 : 0, `W3: the end of ${operationId} is whole`);
    assert.equal(error !== null, status === "failed", `W3: ${operationId} ends as ${status}`);
    assert.ok(operation.finishedAtMs !== null && operation.finishedAtMs <= nowMs);
  }
  for (const one of rows) {
    const overlaps = rows.filter((other) => other.target === one.target && isDuring(one, other));
    assert.deepEqual(overlaps, [], `W3: of ${one.target} one operation is open at a time`);
  }
}

interface OperationEvent {
  readonly id: number;
  readonly type: string;
  readonly payload: { readonly percent: number; readonly steps: readonly { readonly status: string }[] };
}

const isEnd = (type: string) => type === "operation_completed" || type === "operation_failed";
const rankOf = ({ status }: { readonly status: string }) =>
  ["pending", "running", "skipped", "completed", "failed"].indexOf(status);

function isDuring(one: Operation, other: Operation): boolean {
  return (
    one !== other && other.createdAtMs > one.createdAtMs && other.createdAtMs < (one.finishedAtMs ?? Infinity)
  );
}

async function judgeLeftovers(world: GatewayWorld): Promise<void> {
  const { connection } = world.database;
  for (const table of ["messages", "items", "tasks"]) {
    const row = connection.prepare(`SELECT count(*) AS count FROM ${table}`).get();
    assert.equal(row?.count, 0, `W5: ${table} has no rows`);
  }
  for (const { launcher } of world.processes) assert.equal(launcher.waiting, 0, "W5: the launcher is idle");
  for (const one of world.processes) await one.sweep();
  const left = () =>
    readdirSync(world.home, { recursive: true }).filter((name) => String(name).includes("/prepared"));
  await until("W5: what was prepared is gone", () => left().length === 0);
}

function countStored(world: GatewayWorld): void {
  const { counts } = world;
  for (const { status, launched, failure_json: failure } of runRows(world)) {
    assert.ok(isTerminal(status as Parameters<typeof isTerminal>[0]));
    if (launched === 1) counts.add(status === "completed" ? "run that completed" : "run that was cut short");
    else if (status === "cancelled") counts.add("run that was cancelled before its launch");
    else if (failure?.includes("preparation.")) counts.add("run that failed in its preparation");
  }
  const sql = "SELECT status, count(*) AS count FROM operations GROUP BY status";
  for (const { status, count } of world.database.connection.prepare(sql).all()) {
    counts.add(status === "completed" ? "operation that completed" : "operation that failed", Number(count));
  }
}
