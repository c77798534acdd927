// The journal as the engine needs it: what a batch carries, and what is read back after a restart.

import type { Envelope, Message } from "./message.ts";
import type { Priority, Terms } from "./share.ts";
import type { Tally } from "./tally.ts";
import type { ArtifactRecord, Lease, TaskKind, TaskState } from "./task-port.ts";
import type { TraceContext } from "./trace.ts";

export type JobStatus = "pending" | "running" | "queued" | "paused" | "completed" | "failed" | "cancelled";

export const terminalStatuses: readonly JobStatus[] = ["completed", "failed", "cancelled"];

export function isTerminal(status: JobStatus): boolean {
  return status === "completed" || status === "failed" || status === "cancelled";
}

/** What never changes about a job; written with its first batch. Its priority is the exception: it is read back as it is now. */
export interface JobInsert extends Terms {
  readonly graphId: string;
  readonly jobName: string | null;
  readonly runId: string;
  readonly type: "batch" | "service";
  readonly submittedAtMs: number;
  readonly placementPolicy: string;
  readonly recoveryPolicy: string;
  readonly executorCount: number;
  readonly rootAgentIds: readonly string[];
  /** The manifest as it was submitted, as JSON text. */
  readonly manifestJson: string;
  /** The bundle the payload comes from; null for a bare manifest. */
  readonly bundleFingerprint: string | null;
  /** Whether the run has a payload of its own, made of the bundle's (src/launch/preparation). */
  readonly hasOwnPayload: boolean;
  /** The id by which workers and messages know the job, when that is not its own. */
  readonly definitionId: string | null;
  /** The configuration that workers read as SVC_BLUEPRINT_CONFIG_JSON, its secrets encrypted. */
  readonly configurationJson: string | null;
  readonly trace: TraceContext;
}

/** What changes: the job row as it stands after the batch. */
export interface JobProgress {
  /** As readers see it: `queued` while it only waits for slots. */
  readonly status: JobStatus;
  readonly updatedAtMs: number;
  readonly startedAtMs: number | null;
  /** Wall time, like every time that is stored. */
  readonly pausedAtMs: number | null;
  /** Wall time at which the job fails with `job.timeout`; null for never. */
  readonly deadlineAtMs: number | null;
  readonly eventSeq: number;
  readonly messageSeq: number;
  readonly taskSeq: number;
  readonly logBytes: number;
  readonly activeExecutors: number;
  readonly sandboxNames: readonly string[];
  /** Type and agent of the last event, as JSON text; "null" without one. */
  readonly lastEventJson: string;
  /** True once a message was dead-lettered under failure_policy `continue`. */
  readonly partial: boolean;
  readonly tally: Tally;
  /** Requests to people that nobody has answered yet. */
  readonly humanPending: number;
  /** Result and failure as JSON text; null while there is none. */
  readonly resultJson: string | null;
  readonly failureJson: string | null;
}

/** An agent as it stands after the batch. */
export interface AgentRecord {
  readonly agentId: string;
  readonly index: number;
  /** The agent's own status; readers of a terminal job derive the final one. */
  readonly status: AgentStatus;
  /** It will never do anything again, though its job goes on. */
  readonly done: boolean;
  readonly processedMessages: number;
  /** Agent state as JSON text. */
  readonly stateJson: string;
  readonly lastError: string | null;
  /** Last body that no edge carried, as JSON text. */
  readonly unroutedJson: string | null;
  /** Lease of the running task; null without one. */
  readonly lease: Lease | null;
}

export type AgentStatus =
  | "pending"
  | "ready"
  | "running"
  | "waiting"
  | "paused"
  | "done"
  | "failed"
  | "cancelled";

/** A task as it stands after the batch: one message's work outside the engine, over all its attempts. */
export interface TaskRecord {
  readonly taskSeq: number;
  readonly agentIndex: number;
  readonly kind: TaskKind;
  readonly state: TaskState;
  /** Attempts begun, interrupted ones included. */
  readonly attempt: number;
  /** Attempts that failed by themselves; these count against max_attempts. */
  readonly failures: number;
  readonly message: Message;
}

/** A run of bodies that an aggregator collected: JSON texts, the first with number `firstSeq`. */
export interface CollectedItems {
  readonly agentIndex: number;
  readonly firstSeq: number;
  readonly bodiesJson: readonly string[];
}

export interface DeadLetterRecord {
  readonly deadLetterId: string;
  readonly agentId: string | null;
  readonly reason: DeadLetterReason;
  readonly attempts: number;
  readonly message: Envelope;
  readonly createdAtMs: number;
}

/** A dead letter that was sent again: from now on it is closed. */
export interface DeadLetterRetry {
  readonly deadLetterId: string;
  readonly retriedAtMs: number;
  /** `{principal, body}`: who sent it with another body, and with which; null: it was sent as it was. */
  readonly changeJson: string | null;
}

/** What a worker asked a person, as it stands after the batch (CONTRACTS §6 "Evidence", human request). */
export interface HumanRequest {
  /** The worker's own name for it, or one made of the event's number; unique in the run. */
  readonly requestId: string;
  /** The number of the event that asked. */
  readonly eventSeq: number;
  readonly agentId: string;
  /** The task that asked, while its answer goes into that task's file or stdin; null: it becomes a message. */
  readonly taskSeq: number | null;
  readonly prompt: string;
  /** The answers that are allowed; empty: any. */
  readonly allowedDecisions: readonly string[];
  /** A JSON Schema, as text, that the data of an answer is held to; null without one. */
  readonly dataSchemaJson: string | null;
  readonly defaultAction: string | null;
  readonly status: "pending" | "answered" | "timed_out";
  readonly createdAtMs: number;
  /** When the default action is taken; null for never. */
  readonly expiresAtMs: number | null;
  readonly response: HumanResponse | null;
}

export interface HumanResponse {
  readonly decision: string;
  readonly comment: string | null;
  /** As JSON text; null without any. */
  readonly dataJson: string | null;
  /** Who answered; null when the time was over. */
  readonly principal: string | null;
  readonly respondedAtMs: number;
}

export type DeadLetterReason = "ttl_expired" | "target_gone" | "mailbox_full" | "processing_failed";

/** The owner of a job that was handed over: no program ever has this name. */
export const FREE_OWNER = "free";

/** Everything one job contributes to a batch: a consistent cut, written whole or not at all. */
export interface JobChanges {
  readonly jobId: string;
  readonly owner: string;
  readonly epoch: number;
  /** The number of batches this job has committed before this one. */
  readonly revision: number;
  /** Present in the job's first batch only. */
  readonly insert: JobInsert | null;
  readonly progress: JobProgress;
  readonly agents: readonly AgentRecord[];
  /** Mailboxes lost all stored messages up to and including this seq. */
  readonly consumed: readonly { readonly agentIndex: number; readonly throughSeq: number }[];
  /** Messages that wait, and are not stored yet. */
  readonly messages: readonly Message[];
  /** What aggregators collected, and which of them started afresh before that. */
  readonly itemsCleared: readonly number[];
  readonly items: readonly CollectedItems[];
  readonly tasks: readonly TaskRecord[];
  readonly tasksRemoved: readonly number[];
  readonly firstEventSeq: number;
  readonly eventLines: readonly string[];
  readonly deadLetters: readonly DeadLetterRecord[];
  readonly deadLettersRetried: readonly DeadLetterRetry[];
  readonly humanRequests: readonly HumanRequest[];
  readonly artifacts: readonly ArtifactRecord[];
  /** Its new priority; null: the one that it had. */
  readonly priority: Priority | null;
  /** Its owner lets an open job go with this part (J6). */
  readonly isHandedOver: boolean;
}

/** A job as the journal holds it: the sum of its batches. */
export interface JobImage {
  readonly jobId: string;
  readonly epoch: number;
  readonly revision: number;
  readonly insert: JobInsert;
  readonly progress: JobProgress;
  readonly agents: readonly AgentRecord[];
  /** By receiving agent, then by seq. */
  readonly messages: readonly Message[];
  readonly items: readonly CollectedItems[];
  readonly tasks: readonly TaskRecord[];
  /** In the order in which they were asked; of the closed ones the latest, `limits.humanClosedKeptMax` at least. */
  readonly humanRequests: readonly HumanRequest[];
}

export interface CommitAnswer {
  /** Jobs that are not their owner's any more (J2). */
  readonly lost: readonly string[];
  /** Jobs whose part can never be written (J4), and why. */
  readonly unwritable: readonly { readonly jobId: string; readonly reason: string }[];
}

/** The remains of a job whose records cannot be written or read. */
export interface DamagedJob {
  readonly runId: string;
  readonly eventSeq: number;
  readonly trace: TraceContext;
  readonly tally: Tally;
}

/** How such a job ends: one last event, with the number after `eventSeq`. */
export interface DamagedJobEnd {
  readonly nowMs: number;
  readonly eventLine: string;
  readonly lastEventJson: string;
  readonly failureJson: string;
  readonly tally: Tally;
}

/**
 * The durable log of all jobs. test/support/journal-contract.ts is its specification; every implementation passes it.
 *
 * J1. A batch is written whole or not at all, and is on disk when `commit` resolves.
 * J2. A job's part is applied only if owner, epoch and revision are the job's current ones; otherwise nothing of
 *     that job changes, the job is named in `lost`, and the other jobs of the batch are written.
 * J3. A part that is already applied (same owner, epoch, revision + 1) counts as success: a commit whose
 *     answer was lost can be sent again.
 * J4. A part that can never be written (a constraint of the store, a text too long for it) changes nothing, the job is
 *     named in `unwritable`, and the other jobs of the batch are written.
 * J5. The first part of a job that is a run of the gateway is applied only while that run is open; else the job is named
 *     in `lost`. No run ends between the look and the commit.
 * J6. A part that hands its job over is the owner's last one: from then on anybody may claim the job. Sent again (J3), it
 *     counts as success until somebody has.
 */
export interface Journal {
  /**
   * @param batch parts of different jobs
   * @throws JournalUnavailable when the batch was not written, or it is unknown whether it was
   */
  commit(batch: readonly JobChanges[]): Promise<CommitAnswer>;
  /**
   * Takes ownership of open jobs that no living owner has, and that `owner` may take over: their epoch rises by one. Where
   * only one program uses the store, these are all that `owner` does not own yet.
   *
   * @returns their ids, oldest first, at most `limit`; empty when none is left for now
   * @throws JournalUnavailable; what was taken even so comes with the next call
   */
  claim(owner: string, limit: number): Promise<readonly string[]>;
  /**
   * @returns the job's image, or null when there is no such job
   * @throws JournalUnavailable when nothing can be read; any other error means that this job's records are damaged
   */
  load(jobId: string): Promise<JobImage | null>;
  /**
   * Ends an open job as failed whose records cannot be written or read. Its last event takes the place of whatever
   * lies behind its history.
   *
   * @param render makes the end of what is left of the job; called once, at once
   * @returns the number of the last event; null when the job is not `owner`'s, or is over
   * @throws JournalUnavailable; any other error when not even this can be written
   */
  failDamaged(
    jobId: string,
    owner: string,
    render: (job: DamagedJob) => DamagedJobEnd,
  ): Promise<number | null>;
}

/**
 * The state of a write that failed: it was not made, and may be tried again; it is unknown whether it was made, which
 * trying again finds out (J3); it was not made, and none is until an operator has repaired the store.
 */
export type WriteOutcome = "not_written" | "unknown" | "damaged";

/** The store did not confirm a write; the reason is a sentence with the next step for an operator. */
export class JournalUnavailable extends Error {
  override readonly name = "JournalUnavailable";
  readonly outcome: WriteOutcome;

  constructor(reason: string, outcome: WriteOutcome = "not_written") {
    super(reason);
    this.outcome = outcome;
  }
}
