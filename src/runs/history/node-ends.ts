// What the newest events of a run tell of its nodes: which of them its end has cut off, when each of them last began and
// ended, and what failed. The records of agents do not say: they hold no task any more once it is over.

import { eventType } from "../../engine/event.ts";
import type { Failure } from "../../engine/failure.ts";
import { Slices } from "../../lib/slices.ts";
import { fieldsOf, type ParsedEvent, parseEvent, textField, wholeField } from "./line.ts";

export interface NodeEnd {
  /** It was at work, or waited for slots, when the run ended. */
  readonly isCutOff: boolean;
  /** Of its last task; null where there was none, or it lies too far back. */
  readonly attempt: number | null;
  /** Of the last attempt; of a node without attempts, when its first message came. */
  readonly startedAt: string | null;
  readonly finishedAt: string | null;
  /** Why it failed for good, or else how its last attempt failed. */
  readonly failure: Failure | null;
}

/** A node while its events are read, newest first; undefined: not known yet. */
interface Seen {
  isCutOff?: boolean;
  attempt?: number | null;
  attemptStartedAt?: string;
  attemptFinishedAt?: string;
  attemptFailure?: Failure | null;
  startedAt?: string;
  finishedAt?: string;
  failure?: Failure | null;
}

/**
 * Works in slices: lines with failures are long.
 *
 * @param newest lines of the run, newest first
 */
export async function nodeEnds(newest: readonly string[]): Promise<ReadonlyMap<string, NodeEnd>> {
  const seen = new Map<string, Seen>();
  const slices = new Slices();
  for (const line of newest) {
    const look = looks.get(eventType(line));
    if (look === undefined) continue;
    if (slices.isOver) await slices.breathe();
    const event = parseEvent(line);
    if (event.agentId === null) continue;
    let node = seen.get(event.agentId);
    if (node === undefined) {
      node = {};
      seen.set(event.agentId, node);
    }
    look(node, event);
  }
  return new Map([...seen].map(([agentId, node]) => [agentId, toEnd(node)]));
}

/** Whether an event of this type says anything of a node here; cheap. */
export function tellsOfNodes(type: string): boolean {
  return looks.has(type);
}

type Look = (node: Seen, event: ParsedEvent) => void;

/** What each type tells; what is known already, from newer events, is not changed. */
const looks: ReadonlyMap<string, Look> = new Map<string, Look>([
  ["executor_lease_requested", cutOff],
  ["executor_lease_acquired", cutOff],
  ["executor_lease_released", leaseReleased],
  ["sandbox_job_started", attemptStarted],
  ["sandbox_job_completed", attemptEnded],
  ["sandbox_job_failed", attemptEnded],
  ["executor_interrupted", attemptEnded],
  [
    "agent_started",
    (node, { timestamp }) => {
      node.startedAt ??= timestamp;
    },
  ],
  [
    "agent_completed",
    (node, { timestamp }) => {
      node.finishedAt ??= timestamp;
    },
  ],
  [
    "agent_failed",
    (node, { timestamp, failure }) => {
      node.finishedAt ??= timestamp;
      node.failure ??= failure;
    },
  ],
]);

/** The newest word on an agent's slots is that they are asked for, or held. */
function cutOff(node: Seen): void {
  node.isCutOff ??= true;
}

/** Slots were taken from the agent, or given back because it was through. */
function leaseReleased(node: Seen, event: ParsedEvent): void {
  const isTaken = textField(fieldsOf(event), "reason") === "cancelled";
  node.isCutOff ??= isTaken;
  // Nothing else tells the end of an attempt that was cut off.
  if (isTaken && node.attemptStartedAt === undefined) node.attemptFinishedAt ??= event.timestamp;
}

function attemptEnded(node: Seen, event: ParsedEvent): void {
  // The end of an older attempt: the newest one has begun, and has not ended if no event tells its end.
  if (node.attemptStartedAt !== undefined) return;
  node.attempt ??= wholeField(fieldsOf(event), "attempt");
  node.attemptFinishedAt ??= event.timestamp;
  if (node.attemptFailure === undefined) node.attemptFailure = event.failure;
}

function attemptStarted(node: Seen, event: ParsedEvent): void {
  if (node.attemptStartedAt !== undefined) return;
  node.attempt ??= wholeField(fieldsOf(event), "attempt");
  node.attemptStartedAt = event.timestamp;
}

function toEnd(node: Seen): NodeEnd {
  const hasAttempt = node.attemptStartedAt !== undefined || node.attemptFinishedAt !== undefined;
  return {
    isCutOff: node.isCutOff ?? false,
    attempt: node.attempt ?? null,
    startedAt: (hasAttempt ? node.attemptStartedAt : node.startedAt) ?? null,
    finishedAt: (hasAttempt ? node.attemptFinishedAt : node.finishedAt) ?? null,
    failure: node.failure ?? node.attemptFailure ?? null,
  };
}
