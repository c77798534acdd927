// Clock and randomness of the client. Tests provide their own.

export interface Timing {
  /** Wall time in ms since 1970. */
  nowMs(): number;
  /** Resolves after `ms`, or immediately when the signal is aborted. */
  pause(ms: number, signal: AbortSignal | undefined): Promise<void>;
  /** From 0 to 1. */
  random(): number;
}

export const realTiming: Timing = {
  nowMs: () => Date.now(),
  random: () => Math.random(),
  pause: (ms, signal) =>
    new Promise((resolve) => {
      if (signal?.aborted) {
        resolve();
        return;
      }
      const end = () => {
        clearTimeout(timer);
        signal?.removeEventListener("abort", end);
        resolve();
      };
      const timer = setTimeout(end, ms);
      signal?.addEventListener("abort", end, { once: true });
    }),
};

const PAUSE_FIRST_MS = 250;
const PAUSE_MAX_MS = 8_000;

/**
 * How long to wait before the n-th attempt after the first, n from 1. It doubles, up to a limit; randomness spreads
 * clients that were cut off together over its second half.
 */
export function backoffMs(n: number, timing: Timing): number {
  const wholeMs = Math.min(PAUSE_MAX_MS, PAUSE_FIRST_MS * 2 ** (n - 1));
  return Math.round(wholeMs * (0.5 + timing.random() / 2));
}
