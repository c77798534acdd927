// How much memory a model takes when it answers, by the ways of llama.cpp: an estimate. The program that runs it may need less
// (a sliding window, a cache of smaller numbers), or more (several answers at once).

import type { ModelDetails } from "./model-details.ts";

/** The context that is assumed of a model made for more. */
const CONTEXT_USUAL = 8_192;
/** With fewer tokens little can be done. */
const CONTEXT_LEAST = 512;
/** Numbers of the cache have two bytes. */
const KEPT_BYTES = 2;
/** Tokens that are worked on at once, with four bytes for each number. */
const BATCH = 512;
const NUMBER_BYTES = 4;
/** Of the program itself. */
const PROGRAM_BYTES = 64 * 1024 * 1024;

export interface MemoryNeed {
  /** Tokens; null when the file does not say what the model is made for. */
  readonly context: number | null;
  readonly weightBytes: number;
  /** For the tokens of the context. */
  readonly cacheBytes: number;
  readonly workingBytes: number;
  readonly bytes: number;
}

/** @param given tokens of the context; else what the model is made for, at most 8,192 */
export function memoryNeed(details: ModelDetails, given: number | null): MemoryNeed {
  const { shape, weightBytes, vocabulary } = details;
  const context = given ?? (details.context === null ? null : Math.min(details.context, CONTEXT_USUAL));
  const cacheBytes = (context ?? 0) * (shape?.keptPerToken ?? 0) * KEPT_BYTES;
  const perToken =
    (vocabulary ?? 0) + 6 * (shape?.embedding ?? 0) + 2 * (shape?.feedForward ?? 0) + (context ?? 0);
  const workingBytes = PROGRAM_BYTES + BATCH * NUMBER_BYTES * perToken;
  return { context, weightBytes, cacheBytes, workingBytes, bytes: weightBytes + cacheBytes + workingBytes };
}

/**
 * The largest context that fits, a power of two: at least 512 tokens, or what a smaller model was made for.
 *
 * @returns null when none does, or the model's context does not change what it needs
 */
export function contextThatFits(details: ModelDetails, bytes: number): number | null {
  if (!details.context || !details.shape?.keptPerToken) return null;
  const largest = 2 ** Math.floor(Math.log2(details.context));
  for (let context = largest; context >= Math.min(CONTEXT_LEAST, largest); context /= 2)
    if (memoryNeed(details, context).bytes <= bytes) return context;
  return null;
}
