// A text as bytes, in chunks, with turns for everything else between them: a result may have many megabytes.

import { createHash } from "node:crypto";
import { Slices } from "../slices.ts";

const CHUNK_CHARS = 64 * 1024;

/** Yields the text as UTF-8. */
export async function* textChunks(text: string): AsyncGenerator<Buffer> {
  const slices = new Slices();
  for (let from = 0; from < text.length; ) {
    let to = Math.min(text.length, from + CHUNK_CHARS);
    // The two halves of a character stay together.
    if (to < text.length && isFirstHalf(text.charCodeAt(to - 1))) to++;
    yield Buffer.from(text.slice(from, to));
    from = to;
    if (slices.isOver) await slices.breathe();
  }
}

/** @returns the text's bytes, how many there are, and their SHA-256 as hex */
export async function encoded(
  text: string,
): Promise<{ readonly chunks: readonly Buffer[]; readonly size: number; readonly sha256: string }> {
  const hash = createHash("sha256");
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of textChunks(text)) {
    hash.update(chunk);
    chunks.push(chunk);
    size += chunk.length;
  }
  return { chunks, size, sha256: hash.digest("hex") };
}

function isFirstHalf(unit: number): boolean {
  return unit >= 0xd800 && unit < 0xdc00;
}
