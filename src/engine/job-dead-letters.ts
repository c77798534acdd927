// Dead letters that are sent again: the letter is closed, and what it said is a new message to the same agent.
//
// D1. A letter is sent again once, however many callers ask for it at the same time.
// D2. A letter that would only become another one stays open: its agent does not exist, has ended, or has no room.

import type { Job } from "./job.ts";
import * as mail from "./job-messages.ts";
import { limits } from "./limits.ts";
import type { Envelope } from "./message.ts";

/** An open dead letter, as the journal holds it. */
export interface Letter {
  readonly deadLetterId: string;
  readonly agentId: string | null;
  readonly message: Envelope;
}

/**
 * Sends letters again, in order.
 * @returns the ids of those that were sent
 */
export function retry(job: Job, letters: readonly Letter[]): readonly string[] {
  return letters.filter((letter) => retryOne(job, letter)).map(({ deadLetterId }) => deadLetterId);
}

function retryOne(job: Job, { deadLetterId, agentId, message }: Letter): boolean {
  const to = agentId === null ? undefined : job.graph.indexOf.get(agentId);
  if (to === undefined || job.retriedLetters.has(deadLetterId)) return false;
  const agent = job.agents[to]!;
  const chars = JSON.stringify(message.body).length;
  if (mail.refusalOf(job, agent, chars) !== null) return false;
  if (agent.failed) {
    // What it failed at is given another chance, and so is the agent.
    agent.failed = false;
    job.draft.dirtyAgents.add(to);
  }
  const messageId = mail.deliver(job, {
    to,
    from: message.from,
    type: message.type,
    body: message.body,
    correlationId: message.correlation_id,
    causationId: message.message_id,
    ttlMs: message.ttl_ms,
    chars,
  });
  job.event("message_retried", agentId, { dead_letter_id: deadLetterId, message_id: messageId });
  job.draft.deadLettersRetried.push({ deadLetterId, retriedAtMs: job.context.clock.nowMs() });
  remember(job, deadLetterId);
  return true;
}

/** The caller read the letter before this batch is on disk, and another one may have read it too. */
function remember({ retriedLetters }: Job, deadLetterId: string): void {
  retriedLetters.add(deadLetterId);
  if (retriedLetters.size <= limits.retriedLettersKeptMax) return;
  for (const oldest of retriedLetters) {
    retriedLetters.delete(oldest);
    break;
  }
}
