// The system's clock and randomness: the one place that reads them for the engine.

import { randomInt } from "node:crypto";
import { idSource } from "../engine/ids.ts";
import type { Clock, Randomness } from "../engine/ports.ts";

/** setTimeout counts in 32 bits, and fires immediately when given more: longer waits take several timers. */
const TIMER_MS_MAX = 2 ** 31 - 1;

export const systemClock: Clock = {
  nowMs: () => Date.now(),
  steadyMs: () => Math.floor(performance.timeOrigin + performance.now()),
  after(delayMs, run) {
    let timer: NodeJS.Timeout;
    const wait = (leftMs: number) => {
      const turnMs = Math.min(leftMs, TIMER_MS_MAX);
      timer = setTimeout(() => (leftMs > turnMs ? wait(leftMs - turnMs) : run()), turnMs);
    };
    wait(delayMs);
    return () => clearTimeout(timer);
  },
  soon: (run) => {
    setImmediate(run);
  },
};

/** Monotonic milliseconds, for durations. */
export const stopwatch = () => performance.now();

const fraction = () => randomInt(2 ** 32) / 2 ** 32;

export const systemRandomness: Randomness = { id: idSource(systemClock.nowMs, fraction), fraction };
