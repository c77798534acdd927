// Gateway records for tests: complete, plain, and in the order of their numbers.

import type { JobChanges, JobProgress } from "../../src/engine/journal.ts";
import type { IdempotencyRecord, JobDefinition, NewRun } from "../../src/launch/records.ts";
import type { Operation } from "../../src/operations/records.ts";
import type { Schedule } from "../../src/schedules/records.ts";
import { changes, next, progress } from "./journal-records.ts";

const digits = (n: number) => String(n).padStart(4, "0");

export function job(n: number, given: Partial<JobDefinition> = {}): JobDefinition {
  return {
    jobId: `job_${digits(n)}`,
    name: `job ${n}`,
    status: "ready",
    source: { kind: "bundle", bundleId: "bundle_1" },
    bundleFingerprint: "f".repeat(64),
    graphId: "g",
    configurationJson: '{"a": {"b":1}}',
    weight: 3,
    extensions: ["svc.response"],
    revision: 1,
    createdAtMs: 1_000 + n,
    updatedAtMs: 1_000 + n,
    ...given,
  };
}

export function run(n: number, jobId: string, given: Partial<NewRun> = {}): NewRun {
  return {
    runId: `run_${digits(n)}`,
    jobId,
    jobName: `job ${Number(jobId.slice("job_".length))}`,
    blueprintId: null,
    rerunOf: null,
    runtimeJobId: `g-${digits(n)}`,
    inputsJson: '{"in": [1, 2]}',
    configOverridesJson: null,
    priority: "high",
    trigger: { kind: "api", id: null },
    traceId: "0af7651916cd43dd8448eb211c80319c",
    parentSpanId: null,
    agentsTotal: 3,
    label: null,
    owner: null,
    createdAtMs: 2_000 + n,
    ...given,
  };
}

/** The first batch of a run's runtime job. */
export function launch(run: NewRun, given: Partial<JobChanges> = {}): JobChanges {
  const { insert } = changes();
  const identity = { runId: run.runId, definitionId: run.jobId };
  return changes({ jobId: run.runtimeJobId, insert: { ...insert!, ...identity }, ...given });
}

/** A later batch of it, as it stands then. */
export function advance(
  run: NewRun,
  revision: number,
  stand: Partial<JobProgress>,
  given: Partial<JobChanges> = {},
) {
  return next(revision, { jobId: run.runtimeJobId, progress: progress(stand), ...given });
}

export function idempotencyRecord(given: Partial<IdempotencyRecord> = {}): IdempotencyRecord {
  return {
    scope: "local POST /api/v1/jobs",
    key: "key-1",
    requestHash: "hash",
    status: 202,
    headersJson: '{"location":"/api/v1/jobs/job_1"}',
    body: '{"job_id":"job_1"}',
    createdAtMs: 5_000,
    ...given,
  };
}

export function operation(n: number, changes: Partial<Operation> = {}): Operation {
  return {
    operationId: `op_000${n}`,
    kind: "blueprint_addition",
    target: `target-${n}`,
    status: "running",
    percent: 10 * n,
    label: "Copying",
    step: "package",
    steps: [{ name: "package", label: "Copying", status: "running" }],
    request: { force: true },
    result: null,
    error: null,
    owner: null,
    eventSeq: 1,
    createdAtMs: n,
    updatedAtMs: n,
    finishedAtMs: null,
    ...changes,
  };
}

/** Active, and due at second `n`. */
export function schedule(n: number, given: Partial<Schedule> = {}): Schedule {
  return {
    scheduleId: `schedule_${n}`,
    name: `schedule ${n}`,
    jobId: "job_0001",
    blueprintId: null,
    rule: { kind: "cron", expressions: ["0 9 * * *"], timezone: "UTC", jitterSeconds: 0 },
    webhook: null,
    inputs: { topic: "bees" },
    configOverrides: null,
    priority: "low",
    overlap: "skip",
    missedPolicy: "run_once",
    catchupLimit: 100,
    untilMs: null,
    maxRuns: null,
    pauseAfterFailures: null,
    status: "active",
    statusReason: null,
    dueAtMs: n * 1_000,
    nextRunAtMs: n * 1_000,
    queuedDueAtMs: null,
    waitingEvents: 0,
    waitingBytes: 0,
    throttledUntilMs: null,
    lastDispatch: null,
    failuresInARow: 0,
    dispatched: 0,
    skipped: 0,
    missed: 0,
    failed: 0,
    revision: 1,
    version: 1,
    createdAtMs: 1,
    updatedAtMs: 1,
    ...given,
  };
}
