// Texts and files as chunks of bytes, with turns for everything else between them: a result may have many megabytes.

import { createHash } from "node:crypto";
import { open } from "node:fs/promises";
import { Slices } from "../../lib/slices.ts";

const CHUNK_CHARS = 64 * 1024;
const CHUNK_BYTES = 128 * 1024;

/** @returns the text as UTF-8, how many bytes there are, and their SHA-256 as hex */
export async function encoded(
  text: string,
): Promise<{ readonly chunks: readonly Buffer[]; readonly size: number; readonly sha256: string }> {
  const slices = new Slices();
  const hash = createHash("sha256");
  const chunks: Buffer[] = [];
  let size = 0;
  for (let from = 0; from < text.length; ) {
    let to = Math.min(text.length, from + CHUNK_CHARS);
    // The two halves of a character stay together.
    if (to < text.length && isFirstHalf(text.charCodeAt(to - 1))) to++;
    const chunk = Buffer.from(text.slice(from, to));
    hash.update(chunk);
    chunks.push(chunk);
    size += chunk.length;
    from = to;
    if (slices.isOver) await slices.breathe();
  }
  return { chunks, size, sha256: hash.digest("hex") };
}

function isFirstHalf(unit: number): boolean {
  return unit >= 0xd800 && unit < 0xdc00;
}

/** Yields the first `size` bytes of a file, or fewer when it has fewer; the chunk is good until the next one. */
export async function* readThrough(path: string, size: number): AsyncGenerator<Buffer> {
  const slices = new Slices();
  const file = await open(path, "r");
  try {
    const chunk = Buffer.allocUnsafe(CHUNK_BYTES);
    for (let from = 0; from < size; ) {
      const { bytesRead } = await file.read(chunk, 0, Math.min(chunk.length, size - from), from);
      if (bytesRead === 0) return;
      yield chunk.subarray(0, bytesRead);
      from += bytesRead;
      if (slices.isOver) await slices.breathe();
    }
  } finally {
    await file.close();
  }
}
