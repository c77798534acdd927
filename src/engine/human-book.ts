// What a job remembers of what it asked people: all requests that are open, and the latest that were closed.
//
// K1. Memory is bounded: of the closed ones the oldest are forgotten first. One that is forgotten is asked afresh when
//     a worker asks it again, and takes the place of the old one in the journal.

import type { HumanRequest } from "./journal.ts";
import { limits } from "./limits.ts";

export interface HumanEntry {
  readonly request: HumanRequest;
  /**
   * Which attempt of its task asked it last; of a long-lived command, which one was sent the answer. 0 for what was
   * before a restart, or had no task.
   */
  readonly attempt: number;
  /** When its time is over, on the steady clock; null when it is closed, or has no end. */
  readonly dueAtMs: number | null;
}

export class HumanBook {
  readonly pending = new Map<string, HumanEntry>();
  readonly #closed = new Map<string, HumanEntry>();
  #closedChars = 0;
  /** Whether the history says that no more can be open; see limits.humanRequestsOpenMax. */
  isFullSaid = false;

  get(requestId: string): HumanEntry | undefined {
    return this.pending.get(requestId) ?? this.#closed.get(requestId);
  }

  *all(): Iterable<HumanEntry> {
    yield* this.pending.values();
    yield* this.#closed.values();
  }

  get closed(): Iterable<HumanEntry> {
    return this.#closed.values();
  }

  put(entry: HumanEntry): void {
    const { request } = entry;
    this.pending.delete(request.requestId);
    this.#forget(request.requestId);
    if (request.status === "pending") {
      this.pending.set(request.requestId, entry);
      return;
    }
    this.isFullSaid = false;
    this.#closed.set(request.requestId, entry);
    this.#closedChars += charsOf(request);
    for (const oldest of this.#closed.keys()) {
      const fits =
        this.#closed.size <= limits.humanClosedKeptMax && this.#closedChars <= limits.humanClosedCharsMax;
      if (fits || oldest === request.requestId) break;
      this.#forget(oldest);
    }
  }

  #forget(requestId: string): void {
    const entry = this.#closed.get(requestId);
    if (entry === undefined) return;
    this.#closed.delete(requestId);
    this.#closedChars -= charsOf(entry.request);
  }
}

function charsOf({ prompt, allowedDecisions, response }: HumanRequest): number {
  const decisions = allowedDecisions.reduce((chars, decision) => chars + decision.length, 0);
  return prompt.length + decisions + (response?.comment?.length ?? 0) + (response?.dataJson?.length ?? 0);
}
