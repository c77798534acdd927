// Tasks: what the engine hands to a runner, what a runner reports back, and how far a task is.

import type { FailureCode } from "./failure-catalogue.ts";
import type { AgentConfig } from "./graph.ts";
import type { JsonValue } from "./json.ts";
import type { Envelope } from "./message.ts";
import type { Enforcement } from "./resources.ts";

export interface TaskRef {
  readonly jobId: string;
  readonly taskSeq: number;
  readonly attempt: number;
}

export type TaskKind = "command" | "module" | "file";

export interface Lease {
  readonly leaseId: string;
  readonly pool: string;
  readonly slots: number;
  /** The node that has granted it, when it is not the job's own. */
  readonly node?: string;
  /** The indices of the GPUs that are its own. */
  readonly gpus?: readonly number[];
  /** Those that were chosen for it, in the order in which it asks for them. */
  readonly ports?: readonly number[];
}

/** What a runner needs to start one attempt. */
export interface TaskStart {
  readonly ref: TaskRef;
  readonly kind: TaskKind;
  /** What the worker is told as its job's id. */
  readonly publicJobId: string;
  readonly runId: string;
  readonly agentId: string;
  readonly config: AgentConfig;
  readonly maxAttempts: number;
  /** The same for every attempt of one message. */
  readonly idempotencyKey: string;
  readonly sandboxName: string;
  readonly lease: Lease | null;
  readonly envelope: Envelope;
  readonly agentState: JsonValue;
  readonly workflow: {
    readonly graph_id: string;
    readonly job_name: string | null;
    readonly type: "batch" | "service";
  };
  readonly bundleFingerprint: string | null;
  /** Whether the run has a payload of its own, made of the bundle's. */
  readonly hasOwnPayload: boolean;
  readonly configurationJson: string | null;
  /** W3C trace context of the attempt's span. */
  readonly traceparent: string;
  /** Answers to what earlier attempts of this task asked people, each a line of JSON. */
  readonly humanResponses: readonly string[];
  /** Milliseconds until the attempt is ended as timed out; null never. */
  readonly timeoutMs: number | null;
}

export interface WorkerEmit {
  readonly type: string;
  readonly body: JsonValue;
  /** Receiver by agent id; null follows the edges. */
  readonly to: string | null;
}

/** What a worker's result object asks for, checked and bounded. */
export interface WorkerActions {
  readonly events: readonly { readonly type: string; readonly payload: JsonValue }[];
  readonly emits: readonly WorkerEmit[];
  /** undefined: not given. */
  readonly nextState: JsonValue | undefined;
  readonly completeStep: JsonValue | undefined;
  readonly completeRun: JsonValue | undefined;
}

export const noActions: WorkerActions = {
  events: [],
  emits: [],
  nextState: undefined,
  completeStep: undefined,
  completeRun: undefined,
};

export interface ArtifactRecord {
  /** Stable and unique in the run. */
  readonly artifactId: string;
  readonly agentId: string | null;
  readonly name: string;
  readonly kind: "artifact" | "output";
  readonly title: string | null;
  readonly primary: boolean;
  readonly size: number;
  readonly sha256: string;
  readonly contentType: string;
  readonly createdAtMs: number;
}

/** A command's visible result, as messages carry it. */
export interface CommandResult {
  readonly exitCode: number | null;
  readonly signal: string | null;
  readonly stdout: string;
  readonly stderr: string;
  readonly durationMs: number;
  /** Null when the operating system could not be asked. */
  readonly usage: ResourceUsage | null;
  /** By what it was kept within the resources that are its own; absent when it has none. */
  readonly enforcement?: Enforcement;
}

/** What a command and its descendants used. */
export interface ResourceUsage {
  readonly cpuMs: number;
  /** The most memory that one of its processes held at a time; null for one that ended before it could be seen. */
  readonly rssBytesMax: number | null;
}

export type TaskOutcome =
  | {
      readonly kind: "succeeded";
      readonly actions: WorkerActions;
      /** Null for modules and file sensors. */
      readonly command: CommandResult | null;
      readonly artifacts: readonly ArtifactRecord[];
      /** What a file sensor saw; null otherwise. */
      readonly observation: JsonValue;
    }
  | {
      readonly kind: "failed";
      readonly code: FailureCode;
      readonly message: string;
      readonly command: CommandResult | null;
      readonly artifacts: readonly ArtifactRecord[];
    }
  /** Ended because `stop` asked for it, or because the runtime is draining: the attempt does not count. */
  | { readonly kind: "interrupted"; readonly reason: string };

export type TaskState =
  /** Waits for slots. */
  | { readonly kind: "queued" }
  | {
      readonly kind: "running";
      readonly lease: Lease | null;
      readonly sandboxName: string;
      readonly startedAtMs: number;
    }
  | { readonly kind: "backoff"; readonly dueAtMs: number }
  /** Ended, and its agent has not yet looked at the outcome (the job is paused). */
  | {
      readonly kind: "ended";
      readonly outcome: TaskOutcome;
      readonly lease: Lease | null;
      readonly sandboxName: string;
    };

export interface TaskEvent {
  readonly type: string;
  readonly payload: JsonValue;
}

/** An attempt that is under way. */
export interface RunningAttempt {
  readonly ref: TaskRef;
  readonly runId: string;
}

/** Runs tasks outside the engine. Calls nothing back from within `start`, `stop` or `send`. */
export interface TaskRunner {
  /** Starts one attempt. Its outcome is reported exactly once, also when starting fails. */
  start(task: TaskStart): void;
  /**
   * Stops an attempt: SIGTERM to its process tree, SIGKILL after `graceMs`, 5 s when absent. It reports `interrupted`.
   * Stopping again can only make the grace shorter.
   */
  stop(ref: TaskRef, graceMs?: number): void;
  /** Hands a message to a running long-lived command: one line of JSON on its stdin. */
  send(ref: TaskRef, envelope: Envelope): void;
  /** Adds an answer of a person, a line of JSON, to the file that a running command reads them from. */
  respond(ref: TaskRef, line: string): void;
}

/** What a runner reports to. */
export interface TaskListener {
  /** Adds events to the job's history, in order. Events of an attempt that is no longer current are dropped. */
  taskEvents(ref: TaskRef, events: readonly TaskEvent[]): void;
  /** What a long-lived command asked for while it goes on running. */
  taskActions(ref: TaskRef, actions: WorkerActions): void;
  taskEnded(ref: TaskRef, outcome: TaskOutcome): void;
  /** Null while there is room for more events of the attempt; otherwise a promise to wait for before reading on. */
  backpressure(ref: TaskRef): Promise<void> | null;
}
