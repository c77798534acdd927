// Synchronous work in which somebody else has a say, such as a package's schema or pattern, ends in time.
//
// T1. It is ended in the middle when it has used its CPU time, whatever it is doing. What it has changed by then stays
//     changed.
// T2. The clock refuses nothing. Only a clock can end a script, so work that was ended while the machine did something
//     else is done again from its beginning, with more time to wait. Work has to start afresh when it is called.

import { createContext, Script } from "node:vm";

/** Nothing was found out: the machine had no time for it. The same may be tried again. */
export class MachineBusy extends Error {
  override readonly name = "MachineBusy";

  constructor() {
    super(
      "The machine is too busy to check this request now; nothing was found wrong with it. Try again in a moment.",
    );
  }
}

/** A machine on which work does not get its CPU time within this time has no time for anything. */
const WAIT_MS_MAX = 60_000;
const MARGIN = 1.2;
const GROWTH_MAX = 4;

const context = createContext({ work: null });
/** Only a script can be ended while it runs, with all that it has called. */
const script = new Script("work()");

/**
 * Does the work, and lets it use `cpuMs` of CPU time; it may be begun more than once (T2).
 *
 * @param cpuMs whole and more than 0
 * @returns whether it has come to its end
 * @throws what the work throws; MachineBusy
 */
export function endsWithin(cpuMs: number, work: () => void): boolean {
  let waitMs = cpuMs * MARGIN;
  while (waitMs <= WAIT_MS_MAX) {
    const before = process.threadCpuUsage();
    if (endsBefore(Math.ceil(waitMs), work)) return true;
    const usedMs = cpuMsSince(before);
    if (usedMs >= cpuMs) return false;
    // As long as it takes at the share of the CPU that it has just had.
    waitMs *= MARGIN * Math.min(cpuMs / usedMs, GROWTH_MAX);
  }
  throw new MachineBusy();
}

/** CPU time of this thread. @param before what `process.threadCpuUsage` said then */
export function cpuMsSince(before: NodeJS.CpuUsage): number {
  const { user, system } = process.threadCpuUsage(before);
  return (user + system) / 1_000;
}

function endsBefore(waitMs: number, work: () => void): boolean {
  const outer = context.work;
  context.work = work;
  try {
    script.runInContext(context, { timeout: waitMs });
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ERR_SCRIPT_EXECUTION_TIMEOUT") return false;
    throw error;
  } finally {
    context.work = outer;
  }
}
