// timeline.json: the whole timeline as one document. It is not kept: its bytes are those of timeline.jsonl with a comma
// in place of each line's end, between a head and a tail. So both have the same length but for those, and a range of
// one is a range of the other.
//
// A line's end is never part of a record: JSON writes it as \n.

import { createHash, type Hash } from "node:crypto";
import type { RunContext } from "../history/run-context.ts";

const LINE_END = 0x0a;
const COMMA = 0x2c;
const TAIL = "]}";

export class TimelineJson {
  readonly head: string;
  readonly tail = TAIL;
  readonly #hash: Hash;
  /** The last line's end, until it is known whether another line follows. */
  #isEndHeld = false;

  constructor({ runId, traceId }: RunContext) {
    const ids = `"run_id":${JSON.stringify(runId)},"trace_id":${JSON.stringify(traceId)}`;
    this.head = `{"schema_version":"svc.timeline.v1",${ids},"records":[`;
    this.#hash = createHash("sha256").update(this.head);
  }

  /** Takes the next bytes of timeline.jsonl. */
  add(bytes: Buffer): void {
    if (bytes.length === 0) return;
    if (this.#isEndHeld) this.#hash.update(",");
    this.#isEndHeld = bytes.at(-1) === LINE_END;
    const shown = Buffer.from(this.#isEndHeld ? bytes.subarray(0, -1) : bytes);
    this.#hash.update(withCommas(shown));
  }

  /** Hex, of the document as far as it goes. */
  get sha256(): string {
    return this.#hash.copy().update(TAIL).digest("hex");
  }

  /** @param linesSize bytes of timeline.jsonl */
  sizeOf(linesSize: number): number {
    return Buffer.byteLength(this.head) + recordsSize(linesSize) + TAIL.length;
  }
}

/** The records' bytes: the last line's end is left out. */
export function recordsSize(linesSize: number): number {
  return Math.max(0, linesSize - 1);
}

/** Changes the bytes in place. */
export function withCommas(bytes: Buffer): Buffer {
  for (let at = bytes.indexOf(LINE_END); at >= 0; at = bytes.indexOf(LINE_END, at + 1)) bytes[at] = COMMA;
  return bytes;
}
