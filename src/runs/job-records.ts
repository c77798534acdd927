// What the edges read about jobs and runs: committed state only, as domain records. Implemented by src/store.
//
// Heavy parts stay JSON text (names end in Json): they were written as JSON and are answered as JSON.

import type { AgentRecord, AgentStatus, JobStatus, TaskRecord } from "../engine/journal.ts";
import type { Priority } from "../engine/share.ts";
import type { EndedJob } from "../engine/submission.ts";
import type { Tally } from "../engine/tally.ts";
import type { ArtifactRecord } from "../engine/task-port.ts";
import type { TraceContext } from "../engine/trace.ts";
import type { Page } from "../lib/page.ts";

export interface JobRecord {
  readonly jobId: string;
  readonly runId: string;
  /** Of the node that executes it, or has; null where that was not read. */
  readonly owner: string | null;
  readonly graphId: string;
  readonly jobName: string | null;
  readonly type: "batch" | "service";
  readonly status: JobStatus;
  readonly submittedAtMs: number;
  readonly updatedAtMs: number;
  readonly startedAtMs: number | null;
  readonly placementPolicy: string;
  readonly recoveryPolicy: string;
  readonly priority: Priority;
  readonly weight: number;
  readonly executorCount: number;
  readonly activeExecutors: number;
  readonly eventCount: number;
  readonly partial: boolean;
  readonly bundleFingerprint: string | null;
  /** The durable job that this one is a run of; null for what was submitted to the runtime itself. */
  readonly definitionId: string | null;
  readonly trace: TraceContext;
  /** What its history amounts to. */
  readonly tally: Tally;
  /** Requests to people that are still open. */
  readonly humanPending: number;
  /** Of the run, svc.error.v1; null unless it failed. */
  readonly failureJson: string | null;
  readonly rootAgentIdsJson: string;
  readonly sandboxNamesJson: string;
  /** Type and agent of the last event; in older jobs also its time, which is that of the last update. */
  readonly lastEventJson: string;
}

/** A job with what its own record shows beside the list's. */
export interface WholeJob {
  readonly job: JobRecord;
  readonly resultJson: string | null;
}

/** The same of a job whose last commit is at hand, without reading it. */
export function wholeJobOf(jobId: string, { insert, progress }: EndedJob): WholeJob {
  return {
    job: {
      ...insert,
      ...progress,
      jobId,
      owner: null,
      eventCount: progress.eventSeq,
      rootAgentIdsJson: JSON.stringify(insert.rootAgentIds),
      sandboxNamesJson: JSON.stringify(progress.sandboxNames),
    },
    resultJson: progress.resultJson,
  };
}

/** A job with what only its detail shows; its agents are read by `agents`, as there may be 10,000 of them, its nodes by `manifest`. */
export interface JobDetail extends WholeJob {
  /** Waiting messages by agent index; agents without any are left out. */
  readonly mailboxDepths: ReadonlyMap<number, number>;
  readonly tasks: readonly TaskRecord[];
  /** The newest lines, newest first. */
  readonly recentEvents: readonly string[];
}

/** How far an agent has come. */
export type AgentStanding = Pick<AgentRecord, "index" | "status" | "processedMessages" | "lastError">;

/** What a job was made from, and what it came to. */
export interface JobTexts {
  readonly manifestJson: string;
  /** The configuration of its workers, secrets encrypted; null without any. */
  readonly configurationJson: string | null;
  /** Null until there is one. */
  readonly resultJson: string | null;
}

/** A run of consecutive events; `lines[i]` has the number `firstSeq + i`. */
export interface EventPage {
  readonly firstSeq: number;
  readonly lines: readonly string[];
}

/**
 * Where a time is in a history: at most one segment lies between the two numbers. Taken from the events' own times,
 * which may be out of order after the clock was set back.
 */
export interface PlaceOfTime {
  /** Events before this number are earlier. */
  readonly fromSeq: number;
  /** Events from this number on are at that time or later; null when none is known yet. */
  readonly toSeq: number | null;
}

export interface JobPageRequest {
  readonly includeTerminal: boolean;
  readonly limit: number;
  /** The last job of the page before; null for the first page. */
  readonly after: { readonly submittedAtMs: number; readonly jobId: string } | null;
}

export interface JobRecords {
  /** Newest first; one query per page. */
  page(request: JobPageRequest): Promise<Page<JobRecord>>;
  /** The newest jobs, with nothing but what a system summary shows of them. */
  newestStatuses(limit: number): Promise<readonly Pick<JobRecord, "jobId" | "status">[]>;
  find(jobId: string): Promise<JobRecord | null>;
  whole(jobId: string): Promise<WholeJob | null>;
  /** @param recentEvents how many of the newest events to bring along */
  detail(jobId: string, recentEvents: number): Promise<JobDetail | null>;
  /** Null when there is no such job. */
  manifest(jobId: string): Promise<string | null>;
  /** Of the nodes `fromIndex` up to, not including, `toIndex` of the graph, those that something has come to, in its order. */
  agents(jobId: string, fromIndex: number, toIndex: number): Promise<readonly AgentRecord[]>;
  /** The same without what takes the most memory. */
  standings(jobId: string, fromIndex: number, toIndex: number): Promise<readonly AgentStanding[]>;
  /** Of several jobs that are not brief, what some of their agents are, in no order: those that something has come to. One query. */
  agentStates(
    jobIds: readonly string[],
    indices: readonly number[],
  ): Promise<readonly { readonly jobId: string; readonly index: number; readonly status: AgentStatus }[]>;
  /** Of several jobs that are not brief, the agents that failed in one of them, in the order of the graph. */
  failedAgents(jobIds: readonly string[], limit: number): Promise<readonly number[]>;
  /** The job's result as JSON; null while it has none, and for a job that is not there. */
  result(jobId: string): Promise<string | null>;
  /** Events behind `afterSeq` in order, a bounded page; empty at the end of what is committed. */
  events(jobId: string, afterSeq: number): Promise<EventPage>;
  /** The events right before `beforeSeq` in order, a bounded page; empty before the first one. */
  eventsBefore(jobId: string, beforeSeq: number): Promise<EventPage>;
  /** Where a time is in the history, found without reading it. */
  placeOfTime(jobId: string, timeMs: number): Promise<PlaceOfTime>;
  findRun(runId: string): Promise<JobRecord | null>;
  /** In the order of their ids, those behind `after`; at most `limit`. */
  artifactPage(runId: string, limit: number, after: string | null): Promise<readonly ArtifactRecord[]>;
  /** Outputs alone, of one producer and name the newest: primary ones first, each kind in the order of ids; those behind `after`, at most `limit`. */
  outputPage(
    runId: string,
    limit: number,
    after: { readonly primary: boolean; readonly artifactId: string } | null,
  ): Promise<readonly ArtifactRecord[]>;
  artifact(runId: string, artifactId: string): Promise<ArtifactRecord | null>;
  /** The file that a user came for: the newest final_artifact.*, else the first primary output, else the only one. */
  finalArtifact(runId: string): Promise<ArtifactRecord | null>;
  /** What is large of a job; null when there is no such job. */
  texts(jobId: string): Promise<JobTexts | null>;
}
