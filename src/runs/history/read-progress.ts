// How far a run has come, as the journal has it: the reads that workflow progress is made of, the same for both APIs.

import { eventType } from "../../engine/event.ts";
import { isTerminal, type JobStatus } from "../../engine/journal.ts";
import { Slices } from "../../lib/slices.ts";
import type { AgentStanding, JobRecord, JobRecords } from "../job-records.ts";
import { LastManifest } from "../last-manifest.ts";
import { readNewest } from "../run-history.ts";
import { storedObject } from "../stored-json.ts";
import { nodeEnds, tellsOfNodes } from "./node-ends.ts";
import { nodesOf, type ProgressSource } from "./progress.ts";
import { readFailure } from "./summary.ts";

/** How far back a history is read, unless the end of its run has cut something off. */
const LOOK_BACK_EVENTS = 2_000;
const AGENTS_PER_READ = 200;
/** Lines that are taken up; more than one look ever finds (run-history.ts). */
const LINES_MAX = 20_000;

const lastNodes = new LastManifest(async (manifestJson) => nodesOf(await storedObject(manifestJson)));

export interface JournalProgress extends ProgressSource {
  readonly job: JobRecord;
}

/**
 * The newest of the history tell what the records do not: what has ended, when, and why.
 *
 * @param given.status the run's, where the caller shows one that it has read before; else the journal's
 * @returns null when the journal has no such job
 */
export async function readProgress(
  records: Pick<JobRecords, "detail" | "manifest" | "standings" | "eventsBefore">,
  jobId: string,
  given: { readonly status?: JobStatus; readonly nowMs: number },
): Promise<JournalProgress | null> {
  const detail = await records.detail(jobId, 0);
  if (detail === null) return null;
  const slices = new Slices();
  const { job, tasks, mailboxDepths } = detail;
  const status = given.status ?? job.status;
  // A large manifest takes all of a slice to read.
  await slices.breathe();
  const nodes = await lastNodes.of(records, jobId);
  if (nodes === null) return null;
  const agents: AgentStanding[] = [];
  for (let from = 0; from < nodes.length; from += AGENTS_PER_READ) {
    if (slices.isOver) await slices.breathe();
    agents.push(...(await records.standings(jobId, from, from + AGENTS_PER_READ)));
  }
  // Each stage begins a slice of its own: without a pause their slices add up.
  await slices.breathe();
  const newest = await newestEvents(records, job, status);
  await slices.breathe();
  const ends = await nodeEnds(newest);
  await slices.breathe();
  return {
    job,
    status,
    nodes,
    agents,
    tasks,
    mailboxDepths,
    ends,
    failure: readFailure(job.failureJson),
    agentEnds: isTerminal(status) ? (job.tally.ends?.agents ?? null) : null,
    nowMs: given.nowMs,
  };
}

/** What the newest events tell of nodes, newest first. What was cut off may have waited since long before the end. */
async function newestEvents(
  records: Pick<JobRecords, "eventsBefore">,
  { jobId, eventCount }: JobRecord,
  status: JobStatus,
): Promise<readonly string[]> {
  const hasCutOff = status === "failed" || status === "cancelled";
  const { items } = await readNewest((beforeSeq) => records.eventsBefore(jobId, beforeSeq), {
    beforeSeq: null,
    fromSeq: hasCutOff ? 1 : eventCount - LOOK_BACK_EVENTS + 1,
    limit: LINES_MAX,
    view: (_seq, line) => (tellsOfNodes(eventType(line)) ? line : null),
  });
  return items;
}
