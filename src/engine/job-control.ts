// What callers may ask of an open job. The engine answers for the jobs that it holds; with many nodes, src/cluster asks the
// owner of the others, with the same answers and errors.

import type { Answered, PersonsAnswer } from "./job/human-answers.ts";
import type { Letter } from "./job/messages.ts";
import type { JsonValue } from "./json.ts";
import type { Priority } from "./share.ts";

export interface ExternalMessage {
  readonly agentId: string;
  readonly type: string;
  readonly body: JsonValue;
  readonly correlationId: string | null;
  readonly ttlMs: number | null;
}

/** The job is terminal, or nobody carries it on at the moment: the journal has its state. */
export interface NotOpen {
  readonly kind: "not_open";
}

export type ControlAnswer = { readonly kind: "done"; readonly status: string } | NotOpen;

export type DeliverAnswer =
  | { readonly kind: "accepted"; readonly messageId: string }
  | { readonly kind: "unknown_agent" }
  | NotOpen;

export type HumanAnswer = Answered | NotOpen;

/** `retried` has the ids of the letters that were sent again. */
export type RetryAnswer = { readonly kind: "done"; readonly retried: readonly string[] } | NotOpen;

/** Every answer is given once what it says is on disk. All throw EngineUnavailable. */
export interface JobControl {
  cancel(jobId: string): Promise<ControlAnswer>;
  pause(jobId: string): Promise<ControlAnswer>;
  resume(jobId: string): Promise<ControlAnswer>;
  /** What waits for slots waits with this priority from now on. */
  prioritize(jobId: string, priority: Priority): Promise<ControlAnswer>;
  /** Sends a message from outside to one agent. */
  deliver(jobId: string, message: ExternalMessage): Promise<DeliverAnswer>;
  /**
   * Gives a person's answer to what a worker of an open job asked. The first answer stands. Whether the decision is one
   * of those that are allowed is the caller's to check.
   */
  answerHuman(jobId: string, given: PersonsAnswer): Promise<HumanAnswer>;
  /**
   * Sends dead letters of an open job again, as new messages. Letters are left as they are whose agent does not exist,
   * has ended or has no room, and those that were given before.
   */
  retryDeadLetters(jobId: string, letters: readonly Letter[]): Promise<RetryAnswer>;
}
