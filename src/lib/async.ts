// Order and limits of work that runs side by side, and the end of synchronous work that takes too long.

import { createContext, Script } from "node:vm";

/** At most so much work at a time; more waits in order of arrival. */
export class Semaphore {
  #free: number;
  readonly #waiting: (() => void)[] = [];

  constructor(atOnceMax: number) {
    this.#free = atOnceMax;
  }

  async run<Result>(work: () => Promise<Result>): Promise<Result> {
    if (this.#free > 0) this.#free--;
    else await new Promise<void>((resolve) => this.#waiting.push(resolve));
    try {
      return await work();
    } finally {
      // The longest waiter takes the place over.
      const next = this.#waiting.shift();
      if (next === undefined) this.#free++;
      else next();
    }
  }
}

/** Work of one key never overlaps: it runs one after the other, in order of arrival. */
export class KeyedMutex {
  readonly #turns = new Map<string, Promise<unknown>>();

  /** Runs `work` when everything asked for before under this key has ended, however it ended. */
  async run<Result>(key: string, work: () => Promise<Result>): Promise<Result> {
    const before = this.#turns.get(key) ?? Promise.resolve();
    const mine = before.then(work, work);
    this.#turns.set(key, mine);
    try {
      return await mine;
    } finally {
      if (this.#turns.get(key) === mine) this.#turns.delete(key);
    }
  }
}

/**
 * Does `work` for every item, at most `atOnce` of them at the same time, started in their order.
 *
 * After a failure nothing new is started; the failure is thrown when everything that was started has ended, so that
 * clean-up does not run beside it.
 */
export async function forEachConcurrent<Item>(
  items: readonly Item[],
  atOnce: number,
  work: (item: Item) => Promise<void>,
): Promise<void> {
  const left = items.values();
  const failures: unknown[] = [];
  const lane = async () => {
    for (const item of left) {
      if (failures.length > 0) return;
      try {
        await work(item);
      } catch (error) {
        failures.push(error);
      }
    }
  };
  await Promise.all(Array.from({ length: Math.min(atOnce, items.length) }, lane));
  if (failures.length > 0) throw failures[0];
}

/** A function that makes a value when it is first called, and again after a failure. */
export function madeOnce<Value>(make: () => Promise<Value>): () => Promise<Value> {
  let made: Promise<Value> | null = null;
  return () => {
    made ??= make().catch((error: unknown) => {
      made = null;
      throw error;
    });
    return made;
  };
}

/** The machine had no CPU time for the work. The same may be tried again. */
export class MachineBusy extends Error {
  override readonly name = "MachineBusy";

  constructor() {
    super(
      "The machine is too busy to check this request now; nothing was found wrong with it. Try again in a moment.",
    );
  }
}

/** A machine on which work does not get its CPU time within this time is overloaded. */
const WAIT_MS_MAX = 60_000;
const MARGIN = 1.2;
const GROWTH_MAX = 4;

const context = createContext({ work: null });
/** Only a script can be ended while it runs, with all that it has called. */
const script = new Script("work()");

/**
 * Runs synchronous work that is not ours alone, such as a package's schema or pattern, for at most `cpuMs` of CPU time.
 *
 * The work is stopped in the middle when it has used its time; what it has changed by then stays changed. Only a clock
 * can stop a script, and a clock must not refuse work because the machine is busy: work that was stopped before it had
 * its CPU time is run again from its beginning with a longer wait. So it has to start afresh each time it is called.
 *
 * @param cpuMs whole and more than 0
 * @returns whether it has come to its end
 * @throws what the work throws; MachineBusy
 */
export function runWithTimeout(cpuMs: number, work: () => void): boolean {
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

/** CPU time of this thread. @param before an earlier value of `process.threadCpuUsage` */
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
