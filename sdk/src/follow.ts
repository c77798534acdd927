// Following a run's events over however many connections it takes.
//
// - Every event comes once and in order: a lost connection is reopened after the last event that was yielded.
// - It ends after the terminal event, or its id alone where a view leaves the event out, or when the gateway
//   answers that there is nothing more (204).
// - It fails: on a rejected request; when the first connection fails, after the client's usual retries; and later after
//   FRUITLESS_CONNECTIONS_MAX connections in a row without an event.
// - A connection without any bytes for SILENCE_MS counts as lost: the gateway writes every 15 s.

import { reasonOf, TroupeProblem, TroupeUnreachable } from "./errors.ts";
import { readBlocks } from "./sse.ts";
import { chunksOf } from "./streams.ts";
import { backoffMs, type Timing } from "./timing.ts";

/** About 70 s in all. */
const FRUITLESS_CONNECTIONS_MAX = 12;
const SILENCE_MS = 45_000;
const RETRY_AFTER_MAX_MS = 30_000;

/** The types of the events that nothing follows. */
export const terminalEventTypes: ReadonlySet<string> = new Set([
  "job_completed",
  "job_failed",
  "job_cancelled",
]);

export interface FollowOptions {
  /** The id of the last event that you have processed: what follows it comes. 0 or absent: from the first one on. */
  readonly after?: number | undefined;
  /** Ends the iteration with the signal's reason. */
  readonly signal?: AbortSignal | undefined;
}

export interface Followed<Event> {
  /** Opens the stream of the events after `lastId`, or of all when it is empty; the first time with the client's usual retries. */
  readonly open: (lastId: string, isFirst: boolean) => Promise<Response>;
  /** Whether no id is left out between two events. */
  readonly isGapless: boolean;
  /** Whether it has no terminal event; its ids are opaque, and come without an event, too. */
  readonly isEndless?: boolean;
  /** The types of the events that nothing follows; those of a run when absent. */
  readonly terminalTypes?: ReadonlySet<string>;
  /** Makes an event of a frame's data and id. */
  readonly read: (data: unknown, id: string, type: string) => Event;
  readonly timing: Timing;
  readonly signal: AbortSignal | undefined;
}

/**
 * Yields each event after `after`, until the terminal one.
 *
 * @throws TroupeProblem, TroupeUnreachable, or the signal's reason
 */
export async function* followEvents<Event>(
  followed: Followed<Event>,
  after: string,
): AsyncGenerator<Event, undefined> {
  const { open, timing, signal, isEndless = false, terminalTypes = terminalEventTypes } = followed;
  const watch = <T>(reading: Promise<T>) => within(SILENCE_MS, reading, timing);
  let lastId = after;
  let isFirst = true;
  for (let fruitless = 0; ; fruitless++) {
    let lost: unknown = null;
    try {
      const response = await open(lastId, isFirst);
      isFirst = false;
      // 204: the gateway has nothing more.
      if (response.body === null) return;
      for await (const event of readBlocks(chunksOf(response.body, watch))) {
        signal?.throwIfAborted();
        const { id } = event;
        if (event.data === null) {
          if (!isEndless) return;
          lastId = id;
          continue;
        }
        // An old event again, or one without an id, is nothing new.
        if (!isEndless && !(Number(id) > Number(lastId))) continue;
        const nextId = Number(lastId) + 1;
        if (followed.isGapless && Number(id) !== nextId) throw new Error(`event ${nextId} is missing`);
        const data = followed.read(JSON.parse(event.data), id, event.type);
        lastId = id;
        fruitless = 0;
        yield data;
        if (!isEndless && terminalTypes.has(event.type)) return;
      }
    } catch (error) {
      signal?.throwIfAborted();
      if (isFirst || isDomainError(error)) throw error;
      lost = error;
    }
    if (fruitless >= FRUITLESS_CONNECTIONS_MAX) throw givenUp(lost);
    await timing.pause(askedMs(lost) + backoffMs(fruitless + 1, timing), signal);
  }
}

/** Whether another connection would get the same answer. */
function isDomainError(error: unknown): boolean {
  return error instanceof TroupeProblem && error.status < 500 && error.status !== 429;
}

/** How long the gateway asks to wait, up to a limit: nothing is lost by retrying too early. */
function askedMs(error: unknown): number {
  const isAnswer = error instanceof TroupeProblem || error instanceof TroupeUnreachable;
  return isAnswer ? Math.min(error.retryAfterMs ?? 0, RETRY_AFTER_MAX_MS) : 0;
}

function givenUp(lost: unknown): Error {
  if (lost instanceof TroupeProblem || lost instanceof TroupeUnreachable) return lost;
  const reason = lost === null ? "each time immediately" : reasonOf(lost);
  return new TroupeUnreachable(`The event stream keeps ending (${reason}).`, { cause: lost });
}

async function within<T>(ms: number, promise: Promise<T>, timing: Timing): Promise<T> {
  const settled = new AbortController();
  const silence = timing.pause(ms, settled.signal).then(() => {
    throw new Error(`no data for ${ms / 1_000} s`);
  });
  silence.catch(() => {});
  try {
    return await Promise.race([promise, silence]);
  } finally {
    settled.abort();
  }
}
