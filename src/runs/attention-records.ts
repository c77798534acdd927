// What of a run a person may have to see to: what its workers asked people, and the messages that nobody could process.
// Committed state only. Implemented by src/store; runs are named by their runtime jobs, whose ids never leave the process.

import type { DeadLetterReason, HumanRequest } from "../engine/journal.ts";
import type { Portion } from "./portion.ts";

export type HumanStatus = HumanRequest["status"];
export const humanStatuses: readonly HumanStatus[] = ["pending", "answered", "timed_out"];

export type LetterStatus = "open" | "retried";
export const letterStatuses: readonly LetterStatus[] = ["open", "retried"];

export interface HumanRequestPage {
  /** Null: whatever their status. */
  readonly status: HumanStatus | null;
  readonly limit: number;
  /** `eventSeq` of the last request of the page before; 0 for the first page. */
  readonly afterSeq: number;
}

/** A message that was given up. */
export interface DeadLetter {
  /** `dl_` and a time-ordered id. */
  readonly deadLetterId: string;
  readonly agentId: string | null;
  readonly reason: DeadLetterReason;
  readonly attempts: number;
  readonly status: LetterStatus;
  readonly createdAtMs: number;
  readonly retriedAtMs: number | null;
  /** The message as it stood in the mailbox. */
  readonly messageJson: string;
}

export interface DeadLetterPage {
  readonly status: LetterStatus | null;
  readonly limit: number;
  /** The last letter of the page before; null for the first page. */
  readonly before: string | null;
}

/** Reads of what removed jobs have left find nothing. No read scans a history, whatever the filters. */
export interface AttentionRecords {
  /** In the order in which they were asked. */
  humanRequests(jobId: string, page: HumanRequestPage): Promise<Portion<HumanRequest>>;
  humanRequest(jobId: string, requestId: string): Promise<HumanRequest | null>;
  /** Newest first. */
  deadLetters(jobId: string, page: DeadLetterPage): Promise<Portion<DeadLetter>>;
  deadLetter(jobId: string, deadLetterId: string): Promise<DeadLetter | null>;
  /** The newest open letter's id; null without one. */
  newestOpenLetter(jobId: string): Promise<string | null>;
  /** Open ones behind `after`, up to and including `through`, oldest first: a small portion, to be worked on at once. */
  openLetters(
    jobId: string,
    range: { readonly after: string; readonly through: string; readonly limit: number },
  ): Promise<readonly DeadLetter[]>;
}
