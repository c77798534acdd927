// How far a run has come, as the journal has it: the reads that workflow progress is made of, the same for both APIs.

import type { JsonObject } from "../../engine/json.ts";
import { isTerminal, type JobStatus } from "../../engine/ports.ts";
import type { JobRecord, JobRecords } from "../job-records.ts";
import { END_EVENTS, nodeEnds } from "./node-ends.ts";
import { nodesOf, type ProgressSource } from "./progress.ts";
import { readFailure } from "./read-summary.ts";

export interface JournalProgress extends ProgressSource {
  readonly job: JobRecord;
}

/**
 * The history is looked at only where the records do not say all: of a run that has ended, and of one that goes on
 * although an agent has failed.
 *
 * @param given.status the run's, where the caller shows one that it has read before; else the journal's
 * @returns null when the journal has no such job
 */
export async function readProgress(
  records: Pick<JobRecords, "detail" | "eventsBefore">,
  jobId: string,
  given: { readonly status?: JobStatus; readonly nowMs: number },
): Promise<JournalProgress | null> {
  const detail = await records.detail(jobId, 0);
  if (detail === null) return null;
  const { job, manifestJson, agents, tasks, mailboxDepths } = detail;
  const status = given.status ?? job.status;
  const hasEnds = isTerminal(status) || agents.some((agent) => agent.status === "failed");
  return {
    job,
    status,
    nodes: nodesOf(JSON.parse(manifestJson) as JsonObject),
    agents,
    tasks,
    mailboxDepths,
    ends: await nodeEnds(hasEnds ? await newestEvents(records, jobId) : []),
    failure: readFailure(job.failureJson),
    nowMs: given.nowMs,
  };
}

/** Newest first, at most END_EVENTS. */
async function newestEvents(
  records: Pick<JobRecords, "eventsBefore">,
  jobId: string,
): Promise<readonly string[]> {
  const newest: string[] = [];
  let beforeSeq = Number.MAX_SAFE_INTEGER;
  while (newest.length < END_EVENTS) {
    const { firstSeq, lines } = await records.eventsBefore(jobId, beforeSeq);
    if (lines.length === 0) break;
    newest.push(...lines.slice(newest.length - END_EVENTS).reverse());
    beforeSeq = firstSeq;
  }
  return newest;
}
