// Real time and real chance: the one place that reads them for the engine.

import { randomInt } from "node:crypto";
import { idSource } from "./engine/ids.ts";
import type { Clock, Randomness } from "./engine/ports.ts";

export const systemClock: Clock = {
  nowMs: () => Date.now(),
  after(delayMs, run) {
    // setTimeout counts in 32 bits; whoever waits longer is woken early and looks again.
    const timer = setTimeout(run, Math.min(delayMs, 2 ** 31 - 1));
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
