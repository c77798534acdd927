// What the edges read about jobs and runs: committed state only, as domain records. Implemented by src/store.
//
// Heavy parts stay JSON text (names end in Json): they were written as JSON and are answered as JSON.

import type { AgentRecord, ArtifactRecord, JobStatus, TaskRecord } from "../engine/ports.ts";

export interface JobRecord {
  readonly jobId: string;
  readonly runId: string;
  readonly graphId: string;
  readonly jobName: string | null;
  readonly type: "batch" | "service";
  readonly status: JobStatus;
  readonly submittedAtMs: number;
  readonly updatedAtMs: number;
  readonly startedAtMs: number | null;
  readonly placementPolicy: string;
  readonly recoveryPolicy: string;
  readonly executorCount: number;
  readonly activeExecutors: number;
  readonly eventCount: number;
  readonly partial: boolean;
  readonly bundleFingerprint: string | null;
  /** The durable job that this one is a run of; null for what was submitted to the runtime itself. */
  readonly definitionId: string | null;
  readonly rootAgentIdsJson: string;
  readonly sandboxNamesJson: string;
  readonly lastEventJson: string;
}

/** A job with what only its detail shows. */
export interface JobDetail {
  readonly job: JobRecord;
  readonly resultJson: string | null;
  readonly failureJson: string | null;
  readonly manifestJson: string;
  readonly agents: readonly AgentRecord[];
  /** Waiting messages by agent index; agents without any are left out. */
  readonly mailboxDepths: ReadonlyMap<number, number>;
  readonly tasks: readonly TaskRecord[];
  /** The newest lines, newest first. */
  readonly recentEvents: readonly string[];
}

/** A run of consecutive events; `lines[i]` has the number `firstSeq + i`. */
export interface EventPage {
  readonly firstSeq: number;
  readonly lines: readonly string[];
}

export interface JobPageRequest {
  readonly includeTerminal: boolean;
  readonly limit: number;
  /** The last job of the page before; null for the first page. */
  readonly after: { readonly submittedAtMs: number; readonly jobId: string } | null;
}

/** Files on disk that no row speaks of any more: a blob by its SHA-256, the folder of a run by its id. */
export interface Garbage {
  readonly kind: "blob" | "run";
  readonly name: string;
}

export interface JobRecords {
  /** Newest first; one query per page. */
  page(request: JobPageRequest): Promise<readonly JobRecord[]>;
  find(jobId: string): Promise<JobRecord | null>;
  /** @param recentEvents how many of the newest events to bring along */
  detail(jobId: string, recentEvents: number): Promise<JobDetail | null>;
  /** Events behind `afterSeq` in order, a bounded page; empty at the end of what is committed. */
  events(jobId: string, afterSeq: number): Promise<EventPage>;
  findRun(runId: string): Promise<JobRecord | null>;
  artifacts(runId: string): Promise<readonly ArtifactRecord[]>;
  /** In the order of their ids, those behind `after`; at most `limit`. */
  artifactPage(runId: string, limit: number, after: string | null): Promise<readonly ArtifactRecord[]>;
  /** Outputs alone: primary ones first, each kind in the order of ids; those behind `after`, at most `limit`. */
  outputPage(
    runId: string,
    limit: number,
    after: { readonly primary: boolean; readonly artifactId: string } | null,
  ): Promise<readonly ArtifactRecord[]>;
  artifact(runId: string, artifactId: string): Promise<ArtifactRecord | null>;
  /**
   * Removes up to `limit` terminal jobs with all their rows, oldest first, in one transaction, and notes their
   * files as garbage.
   * @returns the ids of the removed jobs
   */
  deleteTerminal(limit: number): Promise<readonly string[]>;
  /** Garbage behind `after`, at most `limit`. Blobs that an artifact names again are not among it. */
  garbage(limit: number, after: Garbage | null): Promise<readonly Garbage[]>;
  /** The file is gone, so its note may go. */
  forgetGarbage(garbage: Garbage): Promise<void>;
}
