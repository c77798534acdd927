// What an owner of jobs and a node that runs their attempts (the host) tell each other. All of it is JSON.
//
// - A session is one start of an owner at one start of a host. Within it messages are neither lost nor repeated
//   (link.ts); when it is lost, everything of it has ended.
// - The host asks the owner for a task lease again and again (`ping`): it may run the owner's attempts until it has been
//   answered for too long, and ends them in time (host.ts). So the owner knows when attempts that it cannot reach
//   have ended.

import type { DeclaredOutput } from "../../engine/graph.ts";
import type { Envelope } from "../../engine/message.ts";
import { type Claim, claimKinds, type Demand, type NamedDemand } from "../../engine/resources.ts";
import { isPriority, isWeight, type Share } from "../../engine/share.ts";
import type {
  Lease,
  TaskEvent,
  TaskOutcome,
  TaskRef,
  TaskStart,
  WorkerActions,
} from "../../engine/task-port.ts";
import { type Frame, WrongFrame } from "./link.ts";

/** Keys are those of the engine's slots (slotsKey). */
export type ToHost =
  | {
      readonly kind: "request";
      readonly key: string;
      /** A request that was taken back and made again has another number; a grant says which one it answers. */
      readonly number: number;
      readonly pool: string;
      readonly slots: number;
      /** Of the node's resources. */
      readonly demand?: Demand;
      /** Absent from a program that knows none. */
      readonly share?: Share;
    }
  | { readonly kind: "release"; readonly key: string }
  | { readonly kind: "start"; readonly task: TaskStart; readonly outputs: readonly DeclaredOutput[] }
  | { readonly kind: "stop"; readonly ref: TaskRef }
  | { readonly kind: "send"; readonly ref: TaskRef; readonly envelope: Envelope }
  | { readonly kind: "respond"; readonly ref: TaskRef; readonly line: string };

export type ToOwner =
  | { readonly kind: "granted"; readonly key: string; readonly number: number; readonly lease: Lease }
  /** The node has no such pool, or not as many slots; or it cannot read what else is asked for. */
  | { readonly kind: "refused"; readonly key: string; readonly number: number }
  | { readonly kind: "events"; readonly ref: TaskRef; readonly events: readonly TaskEvent[] }
  | { readonly kind: "actions"; readonly ref: TaskRef; readonly actions: WorkerActions }
  | { readonly kind: "ended"; readonly ref: TaskRef; readonly outcome: TaskOutcome };

/** The first thing on a connection, from the owner. */
export interface Hello {
  /** The owner's name (`<node id>/<start id>`), which is the session's at this host. */
  readonly owner: string;
  /** Messages of this session that the owner has received; null: it begins. */
  readonly received: number | null;
  /** How long the host may run attempts of this owner until a ping is answered; as in Pong. */
  readonly validMs: number;
}

/** The host's answer. */
export interface Welcome {
  readonly host: string;
  /** Messages of this session that the host has received; null: it has no such session, or it has ended. */
  readonly received: number | null;
}

/** Sent by the host; the owner answers each with a pong of the same number. */
export interface Ping {
  readonly ping: number;
}

export interface Pong {
  readonly pong: number;
  /** How long after it had sent the ping the host may run attempts of this owner; not more than the owner's own lease. */
  readonly validMs: number;
}

/** Sent by the host after its welcome, and when that changes: slots that nobody waits for. Only the latest counts. */
export interface Free {
  readonly free: Readonly<Record<string, number>>;
}

export type FromOwner = Hello | Pong | Frame<ToHost>;
export type FromHost = Welcome | Ping | Free | Frame<ToOwner>;

/** One connection between the two. Frames come in order; when some are lost, it is closed. */
export interface Connection<Out, In> {
  write(frame: Out): void;
  close(): void;
  /** Set once, before anything can come. */
  onFrame: (frame: In) => void;
  onClose: () => void;
}

/**
 * A number of a frame, which another version of the program may have sent.
 *
 * @throws WrongFrame when it is none: no time is over behind it
 */
export function numberIn(value: unknown, name: string): number {
  if (typeof value === "number" && Number.isFinite(value)) return value;
  throw new WrongFrame(`${name} is no number`);
}

/** What a message asks for. @returns null when another version of the program has sent what this one cannot read */
export function demandIn({ cpuMillis, memoryBytes, diskBytes, gpus, named }: Demand): Demand | null {
  const amounts = { cpuMillis, memoryBytes, diskBytes, gpus };
  if (!Object.values(amounts).every(isAmount)) return null;
  if (named === undefined) return amounts;
  return isNamedDemand(named) ? { ...amounts, named } : null;
}

const isAmount = (value: number) => Number.isFinite(value) && value >= 0;

function isNamedDemand({ claims, freePorts }: NamedDemand): boolean {
  const isClaim = ({ kind, name, isShared }: Claim) =>
    claimKinds.includes(kind) && typeof name === "string" && typeof isShared === "boolean";
  return isAmount(freePorts) && Array.isArray(claims) && claims.every(isClaim);
}

/** A share in a message. @returns null when another version of the program has sent what is none to this one */
export function shareIn({ job, priority, weight }: Share): Share | null {
  const isShare = typeof job === "string" && isPriority(priority) && isWeight(weight);
  return isShare ? { job, priority, weight } : null;
}

/** What the version before does not tell of a command. */
const untold = { demand: null, ports: [], volumes: [], module: null } as const;

/** An attempt in a message. */
export function taskIn(task: TaskStart): TaskStart {
  const { config } = task;
  return config.kind === "executor" ? { ...task, config: { ...untold, ...config } } : task;
}
