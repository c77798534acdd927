// An answer of any length, made a little at a time.
//
// No text of it is longer than 128 KB, about: V8 keeps a longer string in pages of its own, and gives those back to the
// system within a pause, all that have died since the last full collection at once.

import { Readable } from "node:stream";
import { scheduler } from "node:timers/promises";

/**
 * The chunks as a stream that yields to the event loop after each of them: reads of the store are synchronous, so that
 * a fast reader would block everything else until the end.
 *
 * @param chunks each made in a few milliseconds at most
 */
export function textStream(chunks: AsyncIterable<string> | Iterable<string>): Readable {
  return Readable.from(inTurns(chunks));
}

/** Characters of a piece of a long answer, before the chunk that exceeds them. */
export const PIECE_CHARS = 32 * 1024;

/** The chunks as bytes, in a few pieces; everything else has its turn after each chunk. */
export async function inPieces(chunks: AsyncIterable<string> | Iterable<string>): Promise<readonly Buffer[]> {
  const pieces: Buffer[] = [];
  let text = "";
  for await (const chunk of inTurns(chunks)) {
    text += chunk;
    if (text.length < PIECE_CHARS) continue;
    pieces.push(Buffer.from(text));
    text = "";
  }
  if (text !== "") pieces.push(Buffer.from(text));
  return pieces;
}

/** The chunks of a short answer as one text: cheaper to send. */
export async function joined(chunks: AsyncIterable<string>): Promise<string> {
  return (await Array.fromAsync(chunks)).join("");
}

/** Few enough that each chunk takes a millisecond or two, also when each has a failure. */
const ITEMS_PER_CHUNK = 50;

/** A list as JSON, a few items at a time. @param shown what is shown of them, as JSON */
export function* listText<Item>(
  items: readonly Item[],
  shown: (some: readonly Item[]) => string = JSON.stringify,
): Generator<string> {
  for (let from = 0; from < items.length; from += ITEMS_PER_CHUNK) {
    const chunk = shown(items.slice(from, from + ITEMS_PER_CHUNK));
    yield (from === 0 ? "[" : ",") + chunk.slice(1, -1);
  }
  yield items.length === 0 ? "[]" : "]";
}

async function* inTurns(chunks: AsyncIterable<string> | Iterable<string>): AsyncGenerator<string> {
  for await (const chunk of chunks) {
    yield chunk;
    await scheduler.yield();
  }
}
