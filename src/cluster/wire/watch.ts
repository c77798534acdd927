// The stream of a job's events to another node.
//
// - What the other node does not take in time is dropped, up to then: it is told how far the history goes, and reads what
//   it lacks in the database.
// - A message has a bounded size: lines that do not fit into one are left out in the same way.

import { create } from "@bufbuild/protobuf";
import type { EventPage } from "../../runs/job-records.ts";
import { type WatchResponse, WatchResponseSchema } from "./gen/svc/node/v1/node_pb.ts";

/** Of the lines of one message; UTF-8 has up to three bytes for each. */
const MESSAGE_CHARS_MAX = 512 * 1024;
const WAITING_CHARS_MAX = 2 * 1024 * 1024;

/** What a stream says: events, or without lines how far they go. */
export interface WatchNews extends EventPage {
  readonly isEnd: boolean;
}

export class WatchQueue {
  readonly #signal: AbortSignal;
  #waiting: WatchNews[] = [];
  #waitingChars = 0;
  #wake = () => {};

  /** @param signal aborted when nobody takes anything more */
  constructor(signal: AbortSignal) {
    this.#signal = signal;
    signal.addEventListener("abort", () => this.#wake(), { once: true });
  }

  push(page: EventPage, isEnd: boolean): void {
    for (const part of parts(page, isEnd)) {
      const chars = charsOf(part.lines);
      const hasRoom = this.#waitingChars + chars <= WAITING_CHARS_MAX;
      if (!hasRoom) this.#waiting = [];
      this.#waitingChars = hasRoom ? this.#waitingChars + chars : 0;
      this.#waiting.push(hasRoom ? part : withoutLines(part));
    }
    this.#wake();
  }

  /** Ends behind the job's end, or with the signal. The first one says that from now on nothing is missed. */
  async *messages(): AsyncGenerator<WatchResponse> {
    yield create(WatchResponseSchema);
    while (!this.#signal.aborted) {
      const next = this.#waiting.shift();
      if (next === undefined) {
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
        continue;
      }
      this.#waitingChars -= charsOf(next.lines);
      yield toWire(next);
      if (next.isEnd) return;
    }
  }
}

const charsOf = (lines: readonly string[]) => lines.reduce((sum, line) => sum + line.length, 0);

function withoutLines({ firstSeq, lines, isEnd }: WatchNews): WatchNews {
  return { firstSeq: firstSeq + lines.length, lines: [], isEnd };
}

/** The page in messages; a line that is too long for one is left out, so that there is a gap before what follows. */
function* parts({ firstSeq, lines }: EventPage, isEnd: boolean): Generator<WatchNews> {
  let from = 0;
  while (from < lines.length) {
    let to = from;
    let chars = 0;
    while (to < lines.length && chars + lines[to]!.length <= MESSAGE_CHARS_MAX) chars += lines[to++]!.length;
    const isTooLong = to === from;
    if (isTooLong) to++;
    const part = {
      firstSeq: firstSeq + from,
      lines: lines.slice(from, to),
      isEnd: isEnd && to === lines.length,
    };
    yield isTooLong ? withoutLines(part) : part;
    from = to;
  }
}

function toWire({ firstSeq, lines, isEnd }: WatchNews): WatchResponse {
  const throughSeq = BigInt(firstSeq + lines.length - 1);
  return create(WatchResponseSchema, { throughSeq, lines: [...lines], isEnd });
}

/** Null for the message that says that the stream has begun. */
export function newsFromWire({ throughSeq, lines, isEnd }: WatchResponse): WatchNews | null {
  if (throughSeq === 0n) return null;
  return { firstSeq: Number(throughSeq) - lines.length + 1, lines, isEnd };
}
