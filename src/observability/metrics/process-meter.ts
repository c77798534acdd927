// The process as the system sees it: memory, processor time, and how long the event loop keeps callers waiting.
//
// The delay of the loop is how long a caller waits for the iteration that runs when it arrives. Node measures the iterations
// without waking a loop that has nothing to do. Figures go back to the reading before the last one that is at least
// LAG_WINDOW_MS old, so that they describe the present and not the whole life of the process, however often they are read.

import { monitorEventLoopDelay } from "node:perf_hooks";

const LAG_WINDOW_MS = 60_000;

/** The iterations of the loop since a moment. */
interface Window {
  readonly sinceMs: number;
  readonly iterations: ReturnType<typeof monitorEventLoopDelay>;
}

export interface ProcessSample {
  readonly rssBytes: number;
  readonly heapUsedBytes: number;
  readonly heapTotalBytes: number;
  readonly externalBytes: number;
  readonly cpuUserSeconds: number;
  readonly cpuSystemSeconds: number;
  readonly lag: Lag;
}

export interface Lag {
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly maxMs: number;
}

export class ProcessMeter {
  readonly #steadyMs: () => number;
  /** Two windows, started one after the other: the older one is read. */
  #older: Window;
  #newer: Window;

  /** @param steadyMs monotonic time in ms */
  constructor(steadyMs: () => number) {
    this.#steadyMs = steadyMs;
    this.#older = this.#started();
    this.#newer = this.#older;
  }

  sample(): ProcessSample {
    const memory = process.memoryUsage();
    const cpu = process.cpuUsage();
    return {
      rssBytes: memory.rss,
      heapUsedBytes: memory.heapUsed,
      heapTotalBytes: memory.heapTotal,
      externalBytes: memory.external,
      cpuUserSeconds: cpu.user / 1e6,
      cpuSystemSeconds: cpu.system / 1e6,
      lag: this.lag(),
    };
  }

  lag(): Lag {
    const { sinceMs, iterations } = this.#older;
    const windowMs = this.#steadyMs() - sinceMs;
    const lag = {
      p50Ms: waitOf(0.5, iterations, windowMs),
      p99Ms: waitOf(0.99, iterations, windowMs),
      maxMs: milliseconds(iterations.max),
    };
    if (this.#steadyMs() - this.#newer.sinceMs >= LAG_WINDOW_MS) this.#turn();
    return lag;
  }

  #turn(): void {
    if (this.#older !== this.#newer) this.#older.iterations.disable();
    this.#older = this.#newer;
    this.#newer = this.#started();
  }

  #started(): Window {
    const iterations = monitorEventLoopDelay({ samplePerIteration: true });
    iterations.enable();
    return { sinceMs: this.#steadyMs(), iterations };
  }

  stop(): void {
    this.#older.iterations.disable();
    this.#newer.iterations.disable();
  }
}

/**
 * How long at most this share of the callers waits that arrive at any moment of the window. An iteration counts by its
 * duration: a long one meets more callers than a thousand short ones.
 */
function waitOf(share: number, { percentiles, count }: Window["iterations"], windowMs: number): number {
  const steps = [...percentiles];
  let leftMs = (1 - share) * windowMs;
  for (let i = steps.length - 1; i > 0; i--) {
    const [percentile, ns] = steps[i]!;
    const iterations = ((percentile - steps[i - 1]![0]) / 100) * count;
    leftMs -= iterations * (ns / 1e6);
    if (leftMs < 0) return milliseconds(ns);
  }
  return 0;
}

const milliseconds = (ns: number) => Math.round(ns / 1e4) / 100;
