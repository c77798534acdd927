// A file's first bytes, in chunks, with turns for everything else between them.

import { open } from "node:fs/promises";
import { Slices } from "../slices.ts";

const CHUNK_BYTES = 128 * 1024;

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
