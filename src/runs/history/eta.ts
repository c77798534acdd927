// How long a run will still take, going by those of the same job that have completed.

/** How many of the newest completed runs are looked at. */
export const ETA_RUNS = 10;

/**
 * @param durationsMs of completed runs, in any order
 * @param elapsedMs since the run's start
 * @returns milliseconds, 0 for a run that takes longer than usual; null without anything to go by
 */
export function etaMs(durationsMs: readonly number[], elapsedMs: number): number | null {
  if (durationsMs.length === 0) return null;
  const sorted = durationsMs.toSorted((a, b) => a - b);
  const middle = sorted.length >> 1;
  const upper = sorted[middle]!;
  const median = sorted.length % 2 === 1 ? upper : (sorted[middle - 1]! + upper) / 2;
  return Math.max(0, Math.round(median - elapsedMs));
}
