// The run that a request is about: a run of a durable job in the gateway, of a submitted job in the runtime API. What
// both APIs show of a run is made from the record here.
//
// The history of a gateway's run is in the journal once the runtime has the run, and in the run's own row when it ended
// before that.

import type { GatewayRecords, JobView, RunRecord } from "../../launch/records.ts";
import { historyOfUnlaunched, summarizedRun } from "../../launch/run-ends.ts";
import { jobNotFound, runNotFound } from "../../launch/runs.ts";
import type { RunContext } from "../../runs/history/run-context.ts";
import type { SummarizedRow } from "../../runs/history/summary.ts";
import type { JobRecord, JobRecords } from "../../runs/job-records.ts";
import type { LogSource } from "../../runs/log-page.ts";
import type { AskedRun } from "../../runs/open-run.ts";
import type { ReadEvents } from "../../runs/run-history.ts";
import * as runtimeErrors from "../core/runtime-errors.ts";

/** A run, whichever API it belongs to. */
export interface FoundRun extends AskedRun, RunContext {
  readonly eventCount: number;
  /** What its summary is made of, with its history's. */
  summarized(): SummarizedRow;
  /** Its history, as in this record. */
  readonly history: LogSource;
  /** Its history while it goes on. */
  readonly live: ReadEvents;
  exists(): Promise<boolean>;
}

/** Finds the run of a request's path. @throws what the API answers when there is none */
export type FindRun = (runId: string) => Promise<FoundRun>;

// --------------------------------------------------------------------------------------------- gateway

export interface RunParts {
  readonly records: Pick<GatewayRecords, "run" | "latestRun">;
  /** The runtime's own records: histories, artifacts, what a runtime job looks like. */
  readonly journal: JobRecords;
}

/** @throws DomainError `run_not_found` */
export async function findRun(
  { records }: { readonly records: Pick<GatewayRecords, "run"> },
  runId: string,
): Promise<RunRecord> {
  const run = await records.run(runId);
  if (run === null) throw runNotFound(runId);
  return run;
}

export function gatewayRuns(parts: RunParts): FindRun {
  return async (runId) => runOfGateway(parts, await findRun(parts, runId));
}

export function runOfGateway(parts: RunParts, run: RunRecord): FoundRun {
  const { runId, traceId, parentSpanId, status } = run;
  return {
    runId,
    traceId,
    parentSpanId,
    jobId: run.runtimeJobId,
    status,
    eventCount: run.progress.eventCount,
    summarized: () => summarizedRun(run),
    history: logSourceOf(parts, run),
    live: liveHistoryOf(parts, run),
    exists: async () => (await parts.records.run(runId)) !== null,
  };
}

/**
 * The run that a job's resource shows: the requested one, or the latest; null when there is none yet.
 *
 * @throws DomainError `run_not_found`, also for a run of another job
 */
export async function runOfJob(
  parts: Pick<RunParts, "records">,
  jobId: string,
  runId: string | undefined,
): Promise<RunRecord | null> {
  if (runId === undefined) return parts.records.latestRun(jobId);
  const run = await findRun(parts, runId);
  if (run.jobId !== jobId) throw runNotFound(runId);
  return run;
}

/** The history of a run, as in this record. */
export function historyOf({ journal }: Pick<RunParts, "journal">, run: RunRecord): ReadEvents {
  const unlaunched = historyOfUnlaunched(run);
  if (unlaunched === null) return (afterSeq) => journal.events(run.runtimeJobId, afterSeq);
  return async (afterSeq) => (afterSeq === 0 ? unlaunched : { firstSeq: afterSeq + 1, lines: [] });
}

/** A waiting run may end before the runtime has it. */
function liveHistoryOf(parts: RunParts, run: RunRecord): ReadEvents {
  return async (afterSeq) => {
    const page = await parts.journal.events(run.runtimeJobId, afterSeq);
    if (page.lines.length > 0 || afterSeq > 0) return page;
    const now = await parts.records.run(run.runId);
    return now === null ? page : historyOf(parts, now)(afterSeq);
  };
}

function logSourceOf(parts: RunParts, run: RunRecord): LogSource {
  const unlaunched = historyOfUnlaunched(run);
  if (unlaunched === null) return journalOf(parts.journal, run, run.runtimeJobId);
  return {
    run,
    after: historyOf(parts, run),
    before: async (beforeSeq) => (beforeSeq > 1 ? unlaunched : { firstSeq: 1, lines: [] }),
    placeOfTime: async () => ({ fromSeq: 1, toSeq: null }),
  };
}

export interface JobParts {
  readonly records: Pick<GatewayRecords, "job">;
}

/** @throws DomainError `job_not_found` */
export async function findJob({ records }: JobParts, jobId: string): Promise<JobView> {
  const job = await records.job(jobId);
  if (job === null) throw jobNotFound(jobId);
  return job;
}

// --------------------------------------------------------------------------------------- runtime API

export interface RuntimeRunParts {
  readonly journal: JobRecords;
}

/** @throws ApiError 404 */
export async function findRuntimeRun({ journal }: RuntimeRunParts, runId: string): Promise<JobRecord> {
  const job = await journal.findRun(runId);
  if (job === null) throw runtimeErrors.runNotFound(runId);
  return job;
}

/** @throws ApiError 404 */
export async function findRuntimeJob({ journal }: RuntimeRunParts, jobId: string): Promise<JobRecord> {
  const job = await journal.find(jobId);
  if (job === null) throw runtimeErrors.jobNotFound(jobId);
  return job;
}

export function runtimeRuns(parts: RuntimeRunParts): FindRun {
  return async (runId) => runOfRuntime(parts, await findRuntimeRun(parts, runId));
}

export function runOfRuntime({ journal }: RuntimeRunParts, job: JobRecord): FoundRun {
  const { jobId } = job;
  const run = contextOf(job);
  const history = journalOf(journal, run, jobId);
  return {
    ...run,
    jobId,
    status: job.status,
    eventCount: job.eventCount,
    summarized: () => job,
    history,
    live: history.after,
    exists: async () => (await journal.find(jobId)) !== null,
  };
}

/** What the views of its history need to know of a run. */
export function contextOf({ runId, trace }: JobRecord): RunContext {
  return { runId, traceId: trace.traceId, parentSpanId: trace.parentSpanId };
}

function journalOf(journal: JobRecords, run: RunContext, jobId: string): LogSource {
  return {
    run,
    after: (afterSeq) => journal.events(jobId, afterSeq),
    before: (beforeSeq) => journal.eventsBefore(jobId, beforeSeq),
    placeOfTime: (timeMs) => journal.placeOfTime(jobId, timeMs),
  };
}
