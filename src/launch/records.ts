// What the gateway keeps: durable job definitions, their runs, and the stored idempotency responses. Ports,
// implemented in src/store.
//
// Two words, two things: a *job* here is the gateway's durable definition; the runtime executes a *runtime job*, of
// which a run has exactly one. `runtimeJobId` never leaves the process (spec gateway-api "Run").
//
// - A `write` is one transaction: all of its work or none, on disk when it resolves. Writes that are asked for at
//   the same moment share a commit.
// - A run's status is written by the journal in the batch that changes the runtime job's; before the runtime has
//   the job, and only then, by the functions below.
// - A run is either waiting to be launched (launched = false) or known to the journal, or it ended before that.
//
// Heavy parts stay JSON text (names end in Json): they were written as JSON and are answered as JSON.

import type { BlueprintWrites } from "../blueprints/records.ts";
import type { BundleRecord } from "../bundles/records.ts";
import type { NodeWrites } from "../cluster/node-writes.ts";
import type { DeploymentRecords, DeploymentWrites } from "../deployments/records.ts";
import type { JobStatus } from "../engine/journal.ts";
import type { Priority } from "../engine/share.ts";
import type { AgentEnds } from "../engine/tally.ts";
import type { Page } from "../lib/page.ts";
import type { ModelWrites } from "../models/records.ts";
import type { LlmUsageWrites, ServedModelRecords, ServedModelWrites } from "../models/serving/records.ts";
import type { OperationWrites } from "../operations/records.ts";
import type { EventRecords, EventWrites } from "../schedules/event-records.ts";
import type { ScheduleRecords, ScheduleWrites } from "../schedules/records.ts";
import type { SessionReads, SessionWrites } from "../security/session-records.ts";
import type { PortWrites } from "../web/records.ts";

export type JobSource =
  | { readonly kind: "bundle"; readonly bundleId: string }
  | { readonly kind: "blueprint"; readonly blueprintId: string };

export interface JobDefinition {
  /** `job_` and a time-ordered id. */
  readonly jobId: string;
  readonly name: string;
  readonly status: "ready" | "preparing" | "failed_preparation";
  readonly source: JobSource;
  /** The snapshot that every run of this revision uses; null for a blueprint's job that is not ready. */
  readonly bundleFingerprint: string | null;
  readonly graphId: string;
  /** What the client gave, secrets encrypted (src/security); laid over the bundle's own at launch. */
  readonly configurationJson: string;
  /** Its part of slots that others want, too: slots of one turn (src/execution/turns.ts). */
  readonly weight: number;
  readonly extensions: readonly string[];
  /** From 1; each change adds one. */
  readonly revision: number;
  readonly createdAtMs: number;
  readonly updatedAtMs: number;
}

export type DesiredState = "running" | "paused" | "cancelled";

export const triggerKinds = ["api", "blueprint", "schedule", "event", "deployment"] as const;

export interface RunTrigger {
  readonly kind: (typeof triggerKinds)[number];
  readonly id: string | null;
}

/** What a run is created with. */
export interface NewRun {
  /** `run_` and a time-ordered id. */
  readonly runId: string;
  readonly jobId: string;
  readonly jobName: string;
  /** Of which its job was made; null for one of a bundle. */
  readonly blueprintId: string | null;
  /** The run that it repeats; null for one of its own. */
  readonly rerunOf: string | null;
  readonly runtimeJobId: string;
  /** Secrets encrypted, as in configOverridesJson. */
  readonly inputsJson: string;
  readonly configOverridesJson: string | null;
  readonly priority: Priority;
  readonly trigger: RunTrigger;
  /** W3C trace id: 32 hex digits. */
  readonly traceId: string;
  /** The caller's span; null without one. */
  readonly parentSpanId: string | null;
  readonly agentsTotal: number;
  /** For people, about a run that prepares or waits; null otherwise. */
  readonly label: string | null;
  /** The program that launches it (operations/ownership.ts). */
  readonly owner: string | null;
  readonly createdAtMs: number;
}

export interface RunRecord extends NewRun {
  readonly status: JobStatus;
  readonly desiredState: DesiredState;
  /** Whether the journal has the runtime job. */
  readonly launched: boolean;
  readonly startedAtMs: number | null;
  readonly finishedAtMs: number | null;
  readonly updatedAtMs: number;
  /** Null until there is one. */
  readonly resultJson: string | null;
  readonly failureJson: string | null;
  /** What its history amounts to; null until the journal has the runtime job. */
  readonly tallyJson: string | null;
  readonly progress: RunProgress;
  /** Messages that were not processed and not sent again; `openLettersMax` for as many or more. */
  readonly openLetters: number;
}

/** A run's open dead letters are counted up to so many. */
export const openLettersMax = 1_000;

export interface RunProgress {
  /** Agents that have done what there was for them so far; all of them in a completed run. */
  readonly agentsDone: number;
  /** How the agents ended; null before that. */
  readonly agentEnds: AgentEnds | null;
  readonly messages: number;
  readonly tasksRunning: number;
  /** Requests to people that are still open. */
  readonly humanPending: number;
  /** What the only one of them asks, perhaps cut; null when there are several or none. */
  readonly humanPrompt: string | null;
  readonly eventCount: number;
}

/** A run as other resources mention it: nothing of it is large. */
export interface RunSummary {
  readonly runId: string;
  readonly jobId: string;
  readonly status: JobStatus;
  readonly desiredState: DesiredState;
  readonly trigger: RunTrigger;
  readonly createdAtMs: number;
  readonly startedAtMs: number | null;
  readonly finishedAtMs: number | null;
  readonly updatedAtMs: number;
}

/** A run as a column of its job's grid. */
export interface GridRun extends RunSummary {
  readonly runtimeJobId: string;
  /** Of the package whose graph its agents are numbered by; null until the runtime has it. */
  readonly bundleFingerprint: string | null;
  /** How its agents ended; null before that. */
  readonly agentEnds: AgentEnds | null;
}

/** A run that has not ended, as those see it who bring it to another state: nothing of it is large. */
export interface OpenRun {
  readonly runId: string;
  readonly runtimeJobId: string;
  readonly status: JobStatus;
  readonly desiredState: DesiredState;
  readonly launched: boolean;
  /** The program that launches it, or has launched it. */
  readonly owner: string | null;
}

/** A run that has ended, and whose end was not told as a trigger event yet. */
export interface UntoldEnd {
  readonly runId: string;
  readonly jobId: string;
  readonly blueprintId: string | null;
  readonly status: JobStatus;
  /** Whether an event has started it. */
  readonly isOfEvent: boolean;
  /** Null without one, and for one that is too long for an event. */
  readonly resultJson: string | null;
  readonly failureJson: string | null;
}

/** A job with what is derived from its runs. */
export interface JobView extends JobDefinition {
  readonly latestRun: RunSummary | null;
  readonly activeRuns: number;
}

/** Newest first, those behind `after` (the last id of the page before). */
export interface KeysetPage {
  readonly limit: number;
  readonly after: string | null;
}

export interface JobPage extends KeysetPage {
  /** False leaves out jobs whose latest run is terminal. */
  readonly includeTerminal: boolean;
  /** Jobs made from this blueprint only; all of them when absent. */
  readonly blueprintId?: string;
}

export interface RunPage extends KeysetPage {
  readonly jobId: string | null;
  /** Null: whatever their status. */
  readonly status: readonly JobStatus[] | null;
  readonly blueprintId?: string | null;
  readonly trigger?: RunTrigger["kind"] | null;
  readonly rerunOf?: string | null;
  /** By the time in their ids: of their acceptance, or when they were due. */
  readonly sinceMs?: number | null;
  readonly untilMs?: number | null;
  /**
   * In their ids, their job's id or name, or their blueprint's id; upper and lower case are the same. A run's or a job's
   * whole id is that of the run, or the job.
   */
  readonly text?: string | null;
}

export interface FoundRuns extends Page<RunRecord> {
  /** With fewer rows than asked for: where the search ended, to go on from; absent when that is the last row, or the end. */
  readonly searchedTo?: string;
}

/** Oldest first, of one job or of all. */
export interface OpenRunPage extends KeysetPage {
  readonly jobId: string | null;
}

/** A stored idempotency response: what the first request with an Idempotency-Key was answered. */
export interface IdempotencyRecord {
  /** Principal, method and path, as one text. */
  readonly scope: string;
  readonly key: string;
  /** SHA-256 over what the request asked for. */
  readonly requestHash: string;
  readonly status: number;
  readonly headersJson: string;
  readonly body: string;
  readonly createdAtMs: number;
}

/** Reads of committed state. */
export interface GatewayRecords extends ScheduleRecords {
  write<T>(work: (writes: GatewayWrites) => Promise<T>): Promise<T>;
  readonly events: EventRecords;
  readonly deployments: DeploymentRecords;
  readonly sessions: SessionReads;
  readonly servedModels: ServedModelRecords;

  /** Null when there is none, or it was deleted. */
  job(jobId: string): Promise<JobView | null>;
  jobs(page: JobPage): Promise<Page<JobView>>;

  /** Null when there is none, or its job was deleted. */
  run(runId: string): Promise<RunRecord | null>;
  /** By indexes, whatever the filters; a text is looked for in a bounded number of runs. */
  runs(page: RunPage): Promise<FoundRuns>;
  /** Those of these runs, and of the runs of these runtime jobs, that are there: without inputs, overrides and result. */
  changedRuns(named: {
    readonly runIds: readonly string[];
    readonly jobIds: readonly string[];
  }): Promise<readonly RunRecord[]>;
  /** The newest runs of a job, newest first. */
  recentRuns(jobId: string, limit: number): Promise<readonly RunSummary[]>;
  /** The same up to the run `newest`, it included; null: up to the newest of all. */
  gridRuns(jobId: string, limit: number, newest: string | null): Promise<readonly GridRun[]>;
  latestRun(jobId: string): Promise<RunRecord | null>;
  /** How long the newest completed runs of a job took, from their start to their end, in ms; at most `limit`. */
  completedDurations(jobId: string, limit: number): Promise<readonly number[]>;
  /** Null when it has ended, or is gone. */
  openRun(runId: string): Promise<OpenRun | null>;
  /**
   * Open runs that are to be launched, or whose status is not the desired one. A run whose job is being prepared is
   * not to be launched yet.
   */
  unsettledRuns(page: OpenRunPage): Promise<readonly OpenRun[]>;
  /** Of those, the runs that are not launched and that `owner` has taken on. */
  waitingRunsOf(owner: string, page: KeysetPage): Promise<readonly OpenRun[]>;
  /** Of those, launched runs whose runtime jobs are `owner`'s, that have not changed since `beforeMs`. */
  strayedRunsOf(owner: string, beforeMs: number, page: KeysetPage): Promise<readonly OpenRun[]>;

  /** In the order of their ids. */
  untoldEnds(limit: number): Promise<readonly UntoldEnd[]>;

  idempotency(scope: string, key: string): Promise<IdempotencyRecord | null>;

  /** Newest first. */
  bundles(page: {
    readonly limit: number;
    readonly after: { readonly createdAtMs: number; readonly bundleId: string } | null;
  }): Promise<readonly BundleRecord[]>;

  /**
   * Removes what deleted jobs have left: their ended runs with the runtime's rows (files are noted as garbage), and
   * at last the jobs' own rows. One small transaction.
   * @returns whether there was something to remove
   */
  purgeDeleted(limit: number): Promise<boolean>;
  /** Removes idempotency records made before `beforeMs`, at most `limit`; returns how many. */
  forgetIdempotency(beforeMs: number, limit: number): Promise<number>;
}

/** The writes of one transaction; reads inside see what it has written so far. */
export interface GatewayWrites extends Pick<GatewayRecords, "job" | "run"> {
  readonly operations: OperationWrites;
  readonly blueprints: BlueprintWrites;
  readonly models: ModelWrites;
  readonly ports: PortWrites;
  /** Only of a database that several programs share. */
  readonly nodes: NodeWrites;
  readonly schedules: ScheduleWrites;
  readonly events: EventWrites;
  readonly deployments: DeploymentWrites;
  readonly sessions: SessionWrites;
  readonly servedModels: ServedModelWrites;
  readonly llmUsage: LlmUsageWrites;

  /** Does a part of the work that may fail alone: one that throws leaves nothing, and the others continue. */
  apart<T>(work: () => Promise<T>): Promise<T>;

  /** @returns false when there is a record of this key that was made after `expiredMs`; nothing is changed */
  saveIdempotency(record: IdempotencyRecord, expiredMs: number): Promise<boolean>;

  insertJob(job: JobDefinition): Promise<void>;
  /** @returns false when the job's revision is not `expectedRevision` any more, or it is gone; nothing is changed */
  updateJob(job: JobDefinition, expectedRevision: number): Promise<boolean>;
  /** Makes the job and its runs invisible; `purgeDeleted` removes them. @returns as `updateJob` */
  deleteJob(jobId: string, expectedRevision: number): Promise<boolean>;

  /** @returns false when the job is gone; nothing is changed */
  insertRun(run: NewRun): Promise<boolean>;
  /** All runs of a job that have not ended, oldest first. */
  openRuns(jobId: string): Promise<readonly OpenRun[]>;
  /** Of all runs of a job that have not ended. */
  setDesiredStates(jobId: string, desired: DesiredState, nowMs: number): Promise<void>;
  setDesiredState(runId: string, desired: DesiredState, nowMs: number): Promise<void>;
  /** For a run that is not launched; of others the runtime's job has it. */
  setPriority(runId: string, priority: Priority): Promise<void>;
  /** For a run that is not launched: pending <-> paused, or what it is waiting for; and who launches it. */
  setWaiting(
    runId: string,
    waiting: {
      readonly status: "pending" | "paused";
      readonly label: string | null;
      readonly owner: string | null;
    },
    nowMs: number,
  ): Promise<void>;
  /** `owner` launches what runs of a job are not launched. */
  adoptRuns(jobId: string, owner: string): Promise<void>;
  /** For a run that is not launched, whatever its status: what it is waiting for. */
  setLabel(runId: string, label: string | null, nowMs: number): Promise<void>;
  /** For a run that is not launched: it ends, and never will be. */
  endUnlaunched(
    runId: string,
    end: { readonly status: "failed" | "cancelled"; readonly failureJson: string | null },
    nowMs: number,
  ): Promise<void>;

  /** Notes that the end of a run was told. @returns false when it was before, or the run is gone */
  tellEnd(runId: string): Promise<boolean>;

  bundle(bundleId: string): Promise<BundleRecord | null>;
  /** Writes the record, in place of one of the same id, whose time of creation stays. */
  saveBundle(record: BundleRecord): Promise<void>;
}

/** For summaries. A count of `maximum` says: this many, or more. */
export interface RecordCounts {
  readonly jobs: number;
  /** Jobs whose latest run has not ended, or that have no run yet. */
  readonly jobsOpen: number;
  /** Runs of jobs that were just deleted count until they are removed. */
  readonly runs: Readonly<Record<JobStatus, number>>;
}

/** Runs that have ended in a part of the time, by how. */
export type EndCounts = Readonly<Record<"completed" | "failed" | "cancelled", number>>;

/** Counts read indexes only, and of each count at most `maximum` entries. */
export interface RecordCounter {
  count(maximum: number): Promise<RecordCounts>;
  /** Of the runs that ended at `fromMs` or later, and before `toMs`. */
  countEnds(fromMs: number, toMs: number, maximum: number): Promise<EndCounts>;
}
