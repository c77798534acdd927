// A run and its history, wherever that is: in the journal once the runtime has the run, in the run's own row when it
// ended before that.

import type { FastifyReply } from "fastify";
import { isTerminal } from "../../engine/ports.ts";
import type { RunRecord } from "../../jobs/records.ts";
import { historyOfUnlaunched } from "../../jobs/run-ends.ts";
import { runNotFound } from "../../jobs/runs.ts";
import type { ReadEvents } from "../../runs/run-history.ts";
import type { GatewayServices } from "./services.ts";

/** @throws Refusal `run_not_found` */
export async function findRun({ records }: GatewayServices, runId: string): Promise<RunRecord> {
  const run = await records.run(runId);
  if (run === null) throw runNotFound(runId);
  return run;
}

/**
 * The run that a job's resource speaks of: the one that is asked for, or the latest; null when there is none yet.
 *
 * @throws Refusal `run_not_found`, also for a run of another job
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
export function historyOf({ journal }: GatewayServices, run: RunRecord): ReadEvents {
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

/** Whether a reader who has the events up to `seq` has them all, for good. */
export function hasAll(run: RunRecord, seq: number): boolean {
  return isTerminal(run.status) && seq === run.progress.eventCount;
}

export function sendJson(reply: FastifyReply, body: string): FastifyReply {
  return reply.type("application/json; charset=utf-8").send(body);
}
