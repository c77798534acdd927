// A model's file, looked at before anything loads it: what it is, whether it is whole, and whether this machine can run it.

import { constants } from "node:fs";
import { open } from "node:fs/promises";
import { readGguf } from "./gguf.ts";
import { contextThatFits, type MemoryNeed, memoryNeed } from "./memory.ts";
import type { ModelDetails } from "./model-details.ts";
import { ModelInvalid } from "./model-invalid.ts";
import { readSafetensors } from "./safetensors.ts";

const MAGIC = Buffer.from("GGUF");
/** A safetensors file has its header's length there, and then the header's first byte. */
const START_BYTES = 9;

export interface Memory {
  /** Of the machine, or of the control group that this program runs in. */
  readonly totalBytes: number;
  readonly freeBytes: number;
}

export interface Inspection {
  readonly bytes: number;
  readonly details: ModelDetails;
  readonly need: MemoryNeed;
  readonly fit: "fits" | "fits_when_free" | "too_large";
  /** Where the model is too large and a smaller one would do: the context that fits. */
  readonly smallerContext: number | null;
}

/**
 * Reads a file's header.
 *
 * @param context tokens that are to be kept; null for the model's own, at most 8,192
 * @throws ModelInvalid; the system's error when it cannot be read
 */
export async function inspectModel(
  path: string,
  context: number | null,
  memory: Memory,
): Promise<Inspection> {
  // A pipe would be waited for until somebody writes to it.
  const file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    const status = await file.stat();
    if (!status.isFile()) throw new ModelInvalid("It is no file.");
    const start = Buffer.alloc(START_BYTES);
    await file.read(start, 0, START_BYTES, 0);
    const read = readerOf(start);
    const details = await read(file, status.size);
    const need = memoryNeed(details, context);
    const fit =
      need.bytes <= memory.freeBytes
        ? "fits"
        : need.bytes <= memory.totalBytes
          ? "fits_when_free"
          : "too_large";
    const smallerContext = fit === "too_large" ? contextThatFits(details, memory.totalBytes) : null;
    return { bytes: status.size, details, need, fit, smallerContext };
  } finally {
    await file.close();
  }
}

function readerOf(start: Buffer): typeof readGguf {
  if (start.subarray(0, MAGIC.length).equals(MAGIC)) return readGguf;
  if (start.at(-1) === "{".charCodeAt(0)) return readSafetensors;
  throw new ModelInvalid("It is neither a GGUF file nor a safetensors file.");
}
