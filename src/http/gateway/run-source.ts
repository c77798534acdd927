// A run and its history, wherever that is: in the journal once the runtime has the run, in the run's own row when it
// ended before that.

import type { FastifyReply } from "fastify";
import { isTerminal } from "../../engine/journal.ts";
import type { RunRecord } from "../../launch/records.ts";
import { historyOfUnlaunched } from "../../launch/run-ends.ts";
import { runNotFound } from "../../launch/runs.ts";
import type { LogSource } from "../../runs/log-page.ts";
import type { AskedRun } from "../../runs/open-run.ts";
import type { ReadEvents } from "../../runs/run-history.ts";
import type { GatewayServices } from "./services.ts";

/** @throws DomainError `run_not_found` */
export async function findRun({ records }: GatewayServices, runId: string): Promise<RunRecord> {
  const run = await records.run(runId);
  if (run === null) throw runNotFound(runId);
  return run;
}

/** The run that something is asked of. @throws DomainError `run_not_found` */
export async function askedRun(services: GatewayServices, runId: string): Promise<AskedRun> {
  const { runtimeJobId, status } = await findRun(services, runId);
  return { runId, jobId: runtimeJobId, status };
}

/**
 * The run that a job's resource speaks of: the one that is asked for, or the latest; null when there is none yet.
 *
 * @throws DomainError `run_not_found`, also for a run of another job
 */
export async function runOfJob(
  services: GatewayServices,
  jobId: string,
  runId: string | undefined,
): Promise<RunRecord | null> {
  if (runId === undefined) return services.records.latestRun(jobId);
  const run = await findRun(services, runId);
  if (run.jobId !== jobId) throw runNotFound(runId);
  return run;
}

/** The history of a run as it stands in this record. */
export function historyOf({ journal }: Pick<GatewayServices, "journal">, run: RunRecord): ReadEvents {
  const unlaunched = historyOfUnlaunched(run);
  if (unlaunched === null) return (afterSeq) => journal.events(run.runtimeJobId, afterSeq);
  return async (afterSeq) => (afterSeq === 0 ? unlaunched : { firstSeq: afterSeq + 1, lines: [] });
}

/** The history of a run that goes on: one that waits may still end without the runtime. */
export function liveHistoryOf(services: GatewayServices, run: RunRecord): ReadEvents {
  return async (afterSeq) => {
    const page = await services.journal.events(run.runtimeJobId, afterSeq);
    if (page.lines.length > 0 || afterSeq > 0) return page;
    const now = await services.records.run(run.runId);
    return now === null ? page : historyOf(services, now)(afterSeq);
  };
}

/** The same for its log, which is read from either end. */
export function logSourceOf(services: GatewayServices, run: RunRecord): LogSource {
  const { journal } = services;
  const { runtimeJobId: jobId } = run;
  const after = historyOf(services, run);
  const unlaunched = historyOfUnlaunched(run);
  if (unlaunched === null) {
    return {
      run,
      after,
      before: (beforeSeq) => journal.eventsBefore(jobId, beforeSeq),
      placeOfTime: (timeMs) => journal.placeOfTime(jobId, timeMs),
    };
  }
  const nothing = { firstSeq: 1, lines: [] };
  return {
    run,
    after,
    before: async (beforeSeq) => (beforeSeq > 1 ? unlaunched : nothing),
    placeOfTime: async () => ({ fromSeq: 1, toSeq: null }),
  };
}

/** Whether a reader who has the events up to `seq` has them all, for good. */
export function hasAll(run: RunRecord, seq: number): boolean {
  return isTerminal(run.status) && seq === run.progress.eventCount;
}

export function sendJson(reply: FastifyReply, body: string): FastifyReply {
  return reply.type("application/json; charset=utf-8").send(body);
}
