// Messages of a job: into mailboxes and out of them; or to where nobody reads them any more, the dead letters, and from
// there back as new messages.
//
// - A dead letter is sent again once, however many callers ask for it at the same time.
// - A letter that would only become another one stays open: its agent does not exist, has ended, or has no room.

import type { DeadLetterReason } from "../journal.ts";
import type { JsonValue } from "../json.ts";
import { limits } from "../limits.ts";
import { type Envelope, type Message, messageId, toEnvelope } from "../message.ts";
import { toSteady } from "../ports.ts";
import { addEvent } from "./history.ts";
import { enqueue } from "./schedule.ts";
import type { AgentState, Job } from "./state.ts";

export interface NewMessage {
  readonly from: string | null;
  readonly type: string;
  readonly body: JsonValue;
  readonly correlationId?: string | null;
  readonly causationId?: string | null;
  readonly ttlMs?: number | null;
  /** Length of the body as JSON, and the time, if they are already known: one body may go to many agents. */
  readonly chars?: number;
  readonly timestampMs?: number;
}

/** Numbers and stamps a message of this job. */
function create(job: Job, to: number, given: NewMessage): Message {
  const seq = ++job.messageSeq;
  return withExpiry(job, {
    seq,
    from: given.from,
    to,
    type: given.type,
    class: "event",
    body: given.body,
    correlationId: given.correlationId ?? messageId(job.runId, seq),
    causationId: given.causationId ?? null,
    ttlMs: given.ttlMs ?? null,
    timestampMs: given.timestampMs ?? job.context.clock.nowMs(),
    chars: given.chars ?? JSON.stringify(given.body).length,
  });
}

/** The message with the end of its time to live on this process's clock, if it has one. */
export function withExpiry(job: Job, message: Message): Message {
  if (message.ttlMs === null) return message;
  return { ...message, expiresAtMs: toSteady(job.context.clock, message.timestampMs + message.ttlMs) };
}

/** Whether a message's time to live is over. */
export function isExpired(job: Job, { expiresAtMs }: Message): boolean {
  return expiresAtMs !== undefined && job.context.clock.steadyMs() > expiresAtMs;
}

/** The message that starts what no message started: a long-lived worker, a watched file. */
export function startMessage(job: Job, to: number): Message {
  return create(job, to, { from: null, type: "init", body: {} });
}

/**
 * Puts a message into an agent's mailbox, or where it belongs if that agent can take no more.
 *
 * @param to index of the receiving agent
 * @returns the message's number
 */
export function deliver(job: Job, to: number, given: NewMessage): number {
  const message = create(job, to, given);
  const agent = job.agents[to]!;
  const reason = whyNot(job, agent, message.chars);
  if (reason !== null) deadLetter(job, message, reason, 0);
  else {
    putInMailbox(job, agent, message);
    job.draft.filledMailboxes.add(to);
    enqueue(job, agent);
  }
  return message.seq;
}

/** Why an agent can take no message of this size now; null when it can. */
function whyNot(job: Job, agent: AgentState, chars: number): DeadLetterReason | null {
  const isFull =
    agent.mailbox.size >= limits.mailboxMessagesMax || job.waitingChars + chars > limits.waitingCharsMax;
  if (isFull) return "mailbox_full";
  return agent.done ? "target_gone" : null;
}

export function putInMailbox(job: Job, agent: AgentState, message: Message): void {
  agent.mailbox.push(message);
  job.waitingMessages++;
  job.waitingChars += message.chars;
}

/** Takes the next message out of an agent's mailbox. */
export function takeMessage(job: Job, agent: AgentState): Message | undefined {
  const message = agent.mailbox.shift();
  if (message === undefined) return undefined;
  job.waitingMessages--;
  job.waitingChars -= message.chars;
  if (message.seq <= agent.storedSeq) job.draft.consumed.set(agent.node.index, message.seq);
  return message;
}

/** Nobody will read this mailbox again: what waits in it becomes dead letters. */
export function discardMailbox(job: Job, agent: AgentState): void {
  for (let message = takeMessage(job, agent); message !== undefined; message = takeMessage(job, agent)) {
    deadLetter(job, message, "target_gone", 0);
  }
}

/** @param attempts how often its processing was tried */
export function deadLetter(job: Job, message: Message, reason: DeadLetterReason, attempts: number): void {
  const agentId = job.graph.nodes[message.to]!.nodeId;
  addDeadLetter(job, agentId, reason, attempts, toEnvelope(message, job, agentId, Math.max(attempts, 1)));
}

/** @param to the id of an agent that does not exist */
export function deadLetterToNobody(job: Job, to: string, given: NewMessage): void {
  addDeadLetter(job, to, "target_gone", 0, toEnvelope(create(job, 0, given), job, to, 1));
}

function addDeadLetter(
  job: Job,
  agentId: string,
  reason: DeadLetterReason,
  attempts: number,
  message: Envelope,
): void {
  const deadLetterId = `dl_${job.context.randomness.id()}`;
  const createdAtMs = job.context.clock.nowMs();
  job.draft.deadLetters.push({ deadLetterId, agentId, reason, attempts, message, createdAtMs });
  addEvent(job, "message_dead_lettered", agentId, {
    dead_letter_id: deadLetterId,
    message_id: message.message_id,
    type: message.type,
    reason,
  });
}

/** An open dead letter, as the journal holds it. */
export interface Letter {
  readonly deadLetterId: string;
  readonly agentId: string | null;
  readonly message: Envelope;
  /** Who has changed the message's body for sending it again; absent: it is as it was. */
  readonly changedBy?: string;
}

/**
 * Sends dead letters again, in order.
 * @returns the ids of those that were sent
 */
export function retryDeadLetters(job: Job, letters: readonly Letter[]): readonly string[] {
  return letters.filter((letter) => retryDeadLetter(job, letter)).map(({ deadLetterId }) => deadLetterId);
}

function retryDeadLetter(job: Job, { deadLetterId, agentId, message, changedBy }: Letter): boolean {
  const to = agentId === null ? undefined : job.graph.indexOf.get(agentId);
  if (to === undefined || job.retriedLetters.has(deadLetterId)) return false;
  const agent = job.agents[to]!;
  const chars = JSON.stringify(message.body).length;
  if (whyNot(job, agent, chars) !== null) return false;
  if (agent.failed) {
    // What it failed at is given another chance, and so is the agent.
    agent.failed = false;
    job.draft.changedAgents.add(to);
  }
  const seq = deliver(job, to, {
    from: message.from,
    type: message.type,
    body: message.body,
    correlationId: message.correlation_id,
    causationId: message.message_id,
    ttlMs: message.ttl_ms,
    chars,
  });
  addEvent(job, "message_retried", agentId, {
    dead_letter_id: deadLetterId,
    message_id: messageId(job.runId, seq),
    ...(changedBy !== undefined && { changed_by: changedBy }),
  });
  const changeJson =
    changedBy === undefined ? null : JSON.stringify({ principal: changedBy, body: message.body });
  job.draft.deadLettersRetried.push({ deadLetterId, retriedAtMs: job.context.clock.nowMs(), changeJson });
  remember(job, deadLetterId);
  return true;
}

/** The caller read the letter before this batch is on disk, and another one may have read it too. */
function remember({ retriedLetters }: Job, deadLetterId: string): void {
  retriedLetters.add(deadLetterId);
  if (retriedLetters.size <= limits.retriedLettersKeptMax) return;
  const [oldest] = retriedLetters;
  retriedLetters.delete(oldest!);
}
