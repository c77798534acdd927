// I17. No message is lost: each that was sent is taken once, or is a dead letter that says why, or its job ended first.
//      An agent's state counts each message that was worked on once.
// I18. A mailbox refuses a message when it is full, and only then.
// I19. A message with a time to live is not begun after it, nor given up before.
//
// Whether a mailbox was full follows from the history: what was sent to the agent before, and taken after that moment.

import assert from "node:assert/strict";
import type { JsonObject } from "../../src/engine/json.ts";
import type { StoredJob } from "../support/memory-journal.ts";
import type { SeenEvent } from "./checker.ts";
import type { History } from "./waits.ts";

const HOUR_MS = 3_600_000;

/** What became of a message; events are given by their index. */
interface Fate {
  readonly agentId: string;
  takenAt: number | null;
  deadAt: number | null;
  reason: string | null;
}

/** A message from outside that was acknowledged. */
export interface Acknowledged {
  readonly messageId: string;
  readonly sentAtMs: number;
  readonly ttlMs: number | null;
}

export interface Expected {
  /** Whether the job went on until no message was left. */
  readonly drained: boolean;
  readonly mailboxMax: number;
}

/** Judges a job that is over, or idle. */
export function judgeMessages(
  jobId: string,
  job: StoredJob,
  events: readonly SeenEvent[],
  { drained, mailboxMax }: Expected,
): void {
  const fates = fatesOf(jobId, events);
  assert.equal(
    job.deadLetters.length,
    [...fates.values()].filter(({ deadAt }) => deadAt !== null).length,
    `I17: ${jobId} stores the dead letters that its history tells of`,
  );
  const { messageSeq } = job.progress;
  assert.ok(
    [...fates.keys()].every((seq) => seq >= 1 && seq <= messageSeq),
    `I17: ${jobId} has messages that nobody sent`,
  );
  if (!drained) return;
  const untold = messageSeq - fates.size;
  assert.equal(untold, startMessages(job), `I17: ${jobId} has lost messages`);
  judgeMailboxes(jobId, fates, mailboxMax);
  judgeWork(jobId, job, fates);
}

function fatesOf(jobId: string, events: readonly SeenEvent[]): Map<number, Fate> {
  const fates = new Map<number, Fate>();
  for (const [at, { type, agent_id, payload }] of events.entries()) {
    if (type !== "agent_message_received" && type !== "message_dead_lettered") continue;
    const seq = seqOf(String(payload.message_id));
    const fate = fates.get(seq) ?? { agentId: agent_id!, takenAt: null, deadAt: null, reason: null };
    fates.set(seq, fate);
    if (type === "agent_message_received") {
      assert.ok(fate.takenAt === null && fate.deadAt === null, `I17: ${jobId} took message ${seq} twice`);
      fate.takenAt = at;
      continue;
    }
    const reason = String(payload.reason);
    assert.equal(fate.deadAt, null, `I17: message ${seq} of ${jobId} became two dead letters`);
    const mayBeTaken =
      reason === "ttl_expired" || (reason === "processing_failed") === (fate.takenAt !== null);
    assert.ok(mayBeTaken, `I17: message ${seq} of ${jobId} is a dead letter (${reason}) at a wrong time`);
    fate.deadAt = at;
    fate.reason = reason;
  }
  return fates;
}

const seqOf = (messageId: string) => Number(messageId.slice(messageId.lastIndexOf("_") + 1));

/** What starts long-lived workers and watched files is a message that nobody is told of. */
function startMessages({ insert }: StoredJob): number {
  const { nodes } = JSON.parse(insert.manifestJson) as { nodes: readonly { readonly config: JsonObject }[] };
  return nodes.filter(({ config }) => config.lifecycle === "long_lived" || config.file !== undefined).length;
}

function judgeMailboxes(jobId: string, fates: ReadonlyMap<number, Fate>, mailboxMax: number): void {
  for (const [seq, { agentId, deadAt, reason }] of fates) {
    if (reason !== "mailbox_full") continue;
    let waiting = 0;
    for (const [otherSeq, other] of fates) {
      if (other.agentId !== agentId || otherSeq >= seq || other.reason === "mailbox_full") continue;
      if ((other.takenAt ?? other.deadAt!) > deadAt!) waiting++;
    }
    assert.equal(waiting, mailboxMax, `I18: message ${seq} of ${jobId} found no room in ${agentId}`);
  }
}

function judgeWork(jobId: string, job: StoredJob, fates: ReadonlyMap<number, Fate>): void {
  const { nodes } = JSON.parse(job.insert.manifestJson) as { readonly nodes: readonly JsonObject[] };
  for (const { agentId, index, stateJson } of job.agents.values()) {
    const { agent_type: type, config } = nodes[index]!;
    const isLongLived = (config as JsonObject).lifecycle === "long_lived";
    if (isLongLived || (type !== "executor" && type !== "module")) continue;
    const { worked = 0 } = JSON.parse(stateJson) as { readonly worked?: number };
    const done = [...fates.values()].filter((fate) => fate.agentId === agentId && fate.deadAt === null);
    assert.equal(worked, done.length, `I17: ${agentId} of ${jobId} has worked on ${worked} messages`);
  }
}

/** @param clockSetAtMs when the wall clock was set, in the time of the simulation */
export function judgeTimeToLive(
  { messageId, sentAtMs, ttlMs }: Acknowledged,
  { events, committedAtMs }: History,
  clockSetAtMs: readonly number[],
): void {
  if (ttlMs === null) return;
  // A restart has only the wall clock to go by: what comes after it is judged while that clock was right.
  const setAtMs = clockSetAtMs.find((atMs) => atMs >= sentAtMs) ?? Number.POSITIVE_INFINITY;
  const isMisled = ({ type }: SeenEvent, at: number) =>
    type === "job_recovered" && committedAtMs[at]! >= setAtMs;
  const misledAt = events.findIndex(isMisled);
  const isKnown = (at: number) => at >= 0 && (misledAt === -1 || at < misledAt);
  const ageMs = (at: number) => {
    // The stamp's hour may be set, and the commit may come late: together they tell the moment (waits.ts).
    const committedMs = committedAtMs[at]! - sentAtMs;
    const lateMs = (committedMs - (Date.parse(events[at]!.timestamp) - sentAtMs)) % HOUR_MS;
    return committedMs - ((lateMs + HOUR_MS) % HOUR_MS);
  };
  const find = (is: (event: SeenEvent, at: number) => boolean) => events.findIndex(is);
  const isOf = ({ payload }: SeenEvent) => payload.message_id === messageId;
  const taken = find((event) => event.type === "agent_message_received" && isOf(event));
  const dead = find((event) => event.type === "message_dead_lettered" && isOf(event));
  if (isKnown(taken)) assert.ok(ageMs(taken) <= ttlMs, `I19: ${messageId} was taken too late`);
  if (events[dead]?.payload.reason === "ttl_expired") {
    if (isKnown(dead)) assert.ok(ageMs(dead) > ttlMs, `I19: ${messageId} was given up too early`);
  } else if (taken >= 0) {
    const { agent_id } = events[taken]!;
    const begun = find(
      (event, at) => at > taken && event.type === "sandbox_job_started" && event.agent_id === agent_id,
    );
    const isFirst = events[begun]?.payload.attempt === 1;
    if (isFirst && isKnown(begun))
      assert.ok(ageMs(begun) <= ttlMs, `I19: work on ${messageId} began too late`);
  }
}
