// An event stream read by a client that may be cut off after any byte, or that does not read at all. What counts for it
// is what a browser counts: the blocks that came whole.

import { get, type IncomingMessage } from "node:http";
import type { Program } from "./program.ts";

/** One whole block of a stream that has an id. */
export interface WireEvent {
  readonly id: number;
  readonly event: string;
  /** The data as it came. */
  readonly data: string;
}

export type StreamEnd =
  /** The server closed it. */
  | "ended"
  /** It was cut off: by this client, or by the server in the middle of the answer. */
  | "cut"
  /** There is nothing to come (204). */
  | "nothing_left";

export interface ReadOptions {
  /** Sent as Last-Event-ID, if there is one. */
  readonly lastId?: number;
  /** Bytes of the body after which the connection is torn down; 0: right after the request. */
  readonly bytesMax?: number;
  /** Called when the answer's head is there. */
  readonly onOpen?: () => void;
  /** Nothing of the body is read before this has resolved. */
  readonly idleUntil?: Promise<unknown>;
}

/**
 * Reads a stream until it ends or is cut.
 *
 * @param path below /api/v1
 * @param take called with each whole block that is an event
 */
export function readStream(
  program: Program,
  path: string,
  options: ReadOptions,
  take: (block: Buffer) => void,
): Promise<StreamEnd> {
  const { lastId, bytesMax = Number.POSITIVE_INFINITY, idleUntil = Promise.resolve() } = options;
  const blocks = new Blocks(take);
  const headers = { ...(lastId !== undefined && { "last-event-id": String(lastId) }) };
  return new Promise((resolve, reject) => {
    const request = get(program.api + path, { agent: false, headers }, (response) => {
      options.onOpen?.();
      response.on("error", () => resolve("cut"));
      response.on("end", () => {
        const end = endOf(response);
        if (end !== null) resolve(end);
        else reject(new Error(`${path} after ${lastId}: ${response.statusCode} ${blocks.rest}`));
      });
      let left = bytesMax;
      const read = (chunk: Buffer) => {
        blocks.push(chunk.subarray(0, Math.min(left, chunk.length)));
        left -= chunk.length;
        if (left > 0) return;
        resolve("cut");
        request.destroy();
      };
      void idleUntil.then(() => response.on("data", read));
    });
    // Also after the cut, when nobody waits any more.
    request.on("error", (error) => (bytesMax === 0 ? resolve("cut") : reject(error)));
    if (bytesMax === 0) request.on("finish", () => request.destroy());
  });
}

function endOf({ statusCode }: IncomingMessage): StreamEnd | null {
  if (statusCode === 204) return "nothing_left";
  return statusCode === 200 ? "ended" : null;
}

/** Like `readStream`, for streams that fit in memory. */
export async function readPiece(
  program: Program,
  path: string,
  options: ReadOptions = {},
): Promise<{ readonly end: StreamEnd; readonly events: readonly WireEvent[] }> {
  const events: WireEvent[] = [];
  const end = await readStream(program, path, options, (block) => events.push(toEvent(block)));
  return { end, events };
}

/** Takes blocks out of bytes that may be torn anywhere, in the middle of a character too. */
class Blocks {
  readonly #take: (block: Buffer) => void;
  #rest: Buffer = Buffer.alloc(0);

  constructor(take: (block: Buffer) => void) {
    this.#take = take;
  }

  get rest(): string {
    return this.#rest.toString("utf8");
  }

  push(bytes: Buffer): void {
    let rest = this.#rest.length === 0 ? bytes : Buffer.concat([this.#rest, bytes]);
    for (let end = rest.indexOf("\n\n"); end >= 0; end = rest.indexOf("\n\n")) {
      const block = rest.subarray(0, end);
      if (!isSign(block)) this.#take(block);
      rest = rest.subarray(end + 2);
    }
    // A copy: a few bytes must not hold on to the whole chunk that they came in.
    this.#rest = Buffer.from(rest);
  }
}

const COLON = 0x3a;
const RETRY = Buffer.from("retry: 1000");

/** The first block, and signs of life. */
const isSign = (block: Buffer) => block[0] === COLON || block.equals(RETRY);

const EVENT = /^id: (\d+)\nevent: ([a-z_]+)\ndata: (.*)$/;

export function toEvent(block: Buffer): WireEvent {
  const text = block.toString("utf8");
  const [, id, event, data] = EVENT.exec(text) ?? [];
  if (id === undefined || event === undefined || data === undefined) throw new Error(`No event: ${text}`);
  return { id: Number(id), event, data };
}
