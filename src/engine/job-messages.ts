// Messages of a job on their way: from an agent's emit, over the edges, into mailboxes; or to where nobody reads
// them any more, the dead letters.

import type { Action } from "./agents/step.ts";
import type { AgentSlot, Job } from "./job.ts";
import type { DeadLetterReason } from "./journal.ts";
import type { JsonValue } from "./json.ts";
import { limits } from "./limits.ts";
import { type Envelope, type Message, messageId, toEnvelope } from "./message.ts";
import { toSteady } from "./steady-time.ts";

export interface NewMessage {
  /** Index of the receiving agent. */
  readonly to: number;
  readonly from: string | null;
  readonly type: string;
  readonly body: JsonValue;
  readonly correlationId?: string | null;
  readonly causationId?: string | null;
  readonly ttlMs?: number | null;
  /** Length of the body as JSON, if it is already known. */
  readonly chars?: number;
}

/** Numbers and stamps a message of this job. */
function create(job: Job, given: NewMessage): Message {
  const seq = ++job.messageSeq;
  return withExpiry(job, {
    seq,
    from: given.from,
    to: given.to,
    type: given.type,
    class: "event",
    body: given.body,
    correlationId: given.correlationId ?? messageId(job.runId, seq),
    causationId: given.causationId ?? null,
    ttlMs: given.ttlMs ?? null,
    timestampMs: job.context.clock.nowMs(),
    chars: given.chars ?? JSON.stringify(given.body).length,
  });
}

/** The message with the end of its time to live on this process's clock, if it has one. */
export function withExpiry(job: Job, message: Message): Message {
  if (message.ttlMs === null) return message;
  return { ...message, expiresAtMs: toSteady(job.context.clock, message.timestampMs + message.ttlMs) };
}

/** The message that starts what no message started: a long-lived worker, a watched file. */
export function startMessage(job: Job, to: number): Message {
  return create(job, { to, from: null, type: "init", body: {} });
}

/** Sends what an agent emitted: to the agent it names, or along every edge that carries the type. */
export function emit(
  job: Job,
  agent: AgentSlot,
  given: Extract<Action, { kind: "emit" }>,
  cause: Message | null,
): void {
  const from = agent.node.nodeId;
  // Measured once, however many agents it goes to.
  const chars = JSON.stringify(given.body).length;
  if (chars > limits.formedCharsMax) {
    const most = `more than the ${limits.formedCharsMax} that one message may have`;
    const message = `Agent "${from}" sent a body of ${chars} characters, ${most}.`;
    job.failRun("message.body_too_large", message, { agentId: from });
    return;
  }
  const head = {
    from,
    type: given.type,
    body: given.body,
    chars,
    correlationId: cause?.correlationId ?? null,
    causationId: cause === null ? null : messageId(job.runId, cause.seq),
  };
  if (given.to !== null) {
    const to = job.graph.indexOf.get(given.to);
    if (to !== undefined) deliver(job, { ...head, to });
    else deadLetterToNobody(job, given.to, head);
    return;
  }
  const typed = agent.node.toByType.get(given.type);
  for (const to of agent.node.toAll) deliver(job, { ...head, to });
  if (typed !== undefined) for (const to of typed) deliver(job, { ...head, to });
  if (agent.node.toAll.length === 0 && typed === undefined) {
    agent.unrouted = given.body;
    job.event("message_unrouted", from, { type: given.type });
  }
}

/**
 * Puts a message into an agent's mailbox, or where it belongs if that agent can take no more.
 * @returns the message's id
 */
export function deliver(job: Job, given: NewMessage): string {
  const message = create(job, given);
  const agent = job.agents[given.to]!;
  const refusal = refusalOf(job, agent, message.chars);
  if (refusal !== null) deadLetter(job, message, refusal, 0);
  else {
    agent.mailbox.push(message);
    job.waitingMessages++;
    job.waitingChars += message.chars;
    job.draft.mailboxFilled(given.to);
    job.enqueue(agent);
  }
  return messageId(job.runId, message.seq);
}

/** Why an agent can take no message of this size now; null when it can. */
export function refusalOf(job: Job, agent: AgentSlot, chars: number): DeadLetterReason | null {
  const isFull =
    agent.mailbox.size >= limits.mailboxMessagesMax || job.waitingChars + chars > limits.waitingCharsMax;
  if (isFull) return "mailbox_full";
  return agent.done ? "target_gone" : null;
}

/** Whether a message's time to live is over. */
export function isExpired(job: Job, { expiresAtMs }: Message): boolean {
  return expiresAtMs !== undefined && job.context.clock.steadyMs() > expiresAtMs;
}

/** Takes the next message out of an agent's mailbox. */
export function take(job: Job, agent: AgentSlot): Message | undefined {
  const message = agent.mailbox.shift();
  if (message === undefined) return undefined;
  job.waitingMessages--;
  job.waitingChars -= message.chars;
  if (message.seq <= agent.storedSeq) job.draft.storedMessageConsumed(agent.node.index, message.seq);
  return message;
}

/** Nobody will read this mailbox again: what waits in it becomes dead letters. */
export function discardMailbox(job: Job, agent: AgentSlot): void {
  for (let message = take(job, agent); message !== undefined; message = take(job, agent)) {
    deadLetter(job, message, "target_gone", 0);
  }
}

/** @param attempts how often its processing was tried */
export function deadLetter(job: Job, message: Message, reason: DeadLetterReason, attempts: number): void {
  const agentId = job.graph.nodes[message.to]!.nodeId;
  record(job, agentId, reason, attempts, toEnvelope(message, job, agentId, Math.max(attempts, 1)));
}

function deadLetterToNobody(job: Job, to: string, head: Omit<NewMessage, "to">): void {
  const message = create(job, { ...head, to: 0 });
  record(job, to, "target_gone", 0, toEnvelope(message, job, to, 1));
}

function record(
  job: Job,
  agentId: string,
  reason: DeadLetterReason,
  attempts: number,
  message: Envelope,
): void {
  const deadLetterId = `dl_${job.context.randomness.id()}`;
  const createdAtMs = job.context.clock.nowMs();
  job.draft.deadLetters.push({ deadLetterId, agentId, reason, attempts, message, createdAtMs });
  job.event("message_dead_lettered", agentId, {
    dead_letter_id: deadLetterId,
    message_id: message.message_id,
    type: message.type,
    reason,
  });
}
