// The engine's ports: everything it needs from outside, as small interfaces; journal, tasks and services have files of
// their own. Production hands in SQLite, real processes and the real clock; the simulation hands in its own
// and replays a week from one seed.

import type { ExecutorConfig, PlacementPolicy } from "./graph.ts";
import type { Journal } from "./journal.ts";
import type { JsonObject } from "./json.ts";
import { noLabels } from "./labels.ts";
import type { ServiceBoard } from "./service-port.ts";
import type { Share } from "./share.ts";
import type { Lease, TaskRef, TaskRunner } from "./task-port.ts";

/** Two clocks, and the only way to be called later. */
export interface Clock {
  /** Wall time in milliseconds since 1970, for records: it moves when somebody sets the machine's clock. */
  nowMs(): number;
  /**
   * A clock that nobody can set, for waits: what the wall clock read when the process started, plus the milliseconds
   * since. A time on this clock means nothing to another process.
   */
  steadyMs(): number;
  /** Calls `run` once, after `delayMs`; the returned function takes it back. */
  after(delayMs: number, run: () => void): () => void;
  /** Calls `run` once, as soon as what is under way has been handled. */
  soon(run: () => void): void;
}

// Waits run on the steady clock; what has to survive a restart is stored as wall time, as it reads now.

export type Clocks = Pick<Clock, "nowMs" | "steadyMs">;

/** The steady time at which a wait for this wall time is over. */
export function toSteady(clock: Clocks, wallMs: number): number {
  return wallMs - clock.nowMs() + clock.steadyMs();
}

/** The wall time, as the wall clock stands now, of a time on the steady clock. */
export function toWall(clock: Clocks, steadyMs: number): number {
  return steadyMs - clock.steadyMs() + clock.nowMs();
}

/** Where ids and jitter come from. */
export interface Randomness {
  /** A new time-ordered id, lower case, without a prefix; later calls sort behind earlier ones. */
  id(): string;
  /** From 0 up to, not including, 1. */
  fraction(): number;
}

export type Grant =
  | { readonly kind: "granted"; readonly lease: Lease }
  /** `hint`: what it waits for beside slots, or why no node can grant it as the nodes are now. */
  | { readonly kind: "queued"; readonly hint?: string }
  | { readonly kind: "unsatisfiable"; readonly reason: string };

/** What an attempt needs of its node, beside slots. */
export type NodeNeeds = Pick<ExecutorConfig, "nodeLabels" | "demand">;

export const noNeeds: NodeNeeds = { nodeLabels: noLabels, demand: null };

/** The slots of all pools, and the resources of the machines. Pure bookkeeping: no I/O. */
export interface Slots {
  /**
   * Asks for slots. A queued request is granted later through `onGranted`, in fair order.
   *
   * @param placement by which the node is chosen that grants them; "here": only the job's own node
   * @param needs nothing when absent
   * @param share by which the order is fair
   */
  request(
    key: string,
    pool: string,
    slots: number,
    placement: PlacementPolicy | "here",
    needs?: NodeNeeds,
    share?: Share,
  ): Grant;
  /** Gives a lease back, or takes a queued request back. Doing it twice changes nothing. */
  release(key: string): void;
  /** When, on the steady clock, an attempt has ended for certain that an earlier owner of its job had begun with the lease. */
  endOfFormer(lease: Lease): number;
  /** Set once by the engine: called when a queued request gets its lease. */
  onGranted: (key: string, lease: Lease) => void;
}

/** The name under which an attempt asks for slots; also the only thing `Slots` knows about it. */
export function slotsKey(ref: TaskRef): string {
  return `${ref.jobId}/${ref.taskSeq}/${ref.attempt}`;
}

export function parseSlotsKey(key: string): TaskRef {
  const [jobId = "", taskSeq, attempt] = key.split("/");
  return { jobId, taskSeq: Number(taskSeq), attempt: Number(attempt) };
}

/** Receives what a commit made visible; must not throw. */
export interface Feed {
  published(jobId: string, firstSeq: number, lines: readonly string[], terminal: boolean): void;
}

/** One plain line of the runtime's own log. */
export interface EngineLog {
  warn(fields: JsonObject, message: string): void;
  error(fields: JsonObject, message: string): void;
}

export interface EnginePorts {
  /** Names this process among all owners until it gives its jobs up; never used twice. */
  readonly owner: string;
  readonly clock: Clock;
  readonly randomness: Randomness;
  readonly journal: Journal;
  readonly runner: TaskRunner;
  readonly slots: Slots;
  readonly feed: Feed;
  readonly services: ServiceBoard;
  /** Why a JSON Schema cannot be used, continuing a sentence that begins with its name; null when it can. */
  readonly schemaProblem: (schema: JsonObject) => string | null;
  readonly log: EngineLog;
}
