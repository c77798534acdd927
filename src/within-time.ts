// Synchronous work in which somebody else has a say, such as a package's schema or pattern, ends in time.
//
// T1. It is ended in the middle when its time is over, whatever it is doing. What it has changed by then stays changed.

import { createContext, Script } from "node:vm";

const context = createContext({ work: null });
/** Only a script can be ended while it runs, with all that it has called. */
const script = new Script("work()");

/**
 * Does the work, and holds up the event loop for `timeoutMs` at most.
 *
 * @param timeoutMs whole and more than 0
 * @returns whether it has come to its end
 * @throws what the work throws
 */
export function endsWithin(timeoutMs: number, work: () => void): boolean {
  const outer = context.work;
  context.work = work;
  try {
    script.runInContext(context, { timeout: timeoutMs });
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ERR_SCRIPT_EXECUTION_TIMEOUT") return false;
    throw error;
  } finally {
    context.work = outer;
  }
}
