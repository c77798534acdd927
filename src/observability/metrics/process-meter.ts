// The process as the system sees it: memory, processor time, and how long the event loop keeps callers waiting.
//
// The delay of the loop is measured by a timer inside Node that fires every LAG_RESOLUTION_MS; what it is late by is
// the delay. Figures go back to the reading before the last one that is at least LAG_WINDOW_MS old, so that they describe
// the present and not the whole life of the process, however often they are read.

import { monitorEventLoopDelay } from "node:perf_hooks";

const LAG_RESOLUTION_MS = 50;
const LAG_WINDOW_MS = 60_000;

type Histogram = ReturnType<typeof monitorEventLoopDelay>;

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
  readonly #nowMs: () => number;
  /** Two windows, started one after the other: the older one is read. */
  #older: Histogram;
  #newer: Histogram;
  #newerSinceMs: number;

  /** @param nowMs wall time in ms since 1970 */
  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
    this.#older = started();
    this.#newer = this.#older;
    this.#newerSinceMs = nowMs();
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
    const lag = {
      p50Ms: lateness(this.#older.percentile(50)),
      p99Ms: lateness(this.#older.percentile(99)),
      maxMs: lateness(this.#older.max),
    };
    if (Math.abs(this.#nowMs() - this.#newerSinceMs) >= LAG_WINDOW_MS) this.#turn();
    return lag;
  }

  #turn(): void {
    if (this.#older !== this.#newer) this.#older.disable();
    this.#older = this.#newer;
    this.#newer = started();
    this.#newerSinceMs = this.#nowMs();
  }

  stop(): void {
    this.#older.disable();
    this.#newer.disable();
  }
}

function started(): Histogram {
  const histogram = monitorEventLoopDelay({ resolution: LAG_RESOLUTION_MS });
  histogram.enable();
  return histogram;
}

/** From the time between two ticks of the timer, in ns. */
function lateness(intervalNs: number): number {
  return Math.max(0, Math.round((intervalNs / 1e6 - LAG_RESOLUTION_MS) * 100) / 100);
}
