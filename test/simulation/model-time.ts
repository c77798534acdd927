// Simulated time for millions of planned things: it goes on by the millisecond, and what is due in one happens in the order
// in which it was planned.

/** A program: what a dead one had planned never happens. */
export interface Living {
  isAlive: boolean;
}

interface Planned {
  readonly by: Living | null;
  run: (() => void) | null;
}

export class ModelTime {
  nowMs = Date.UTC(2026, 0, 1);
  readonly #due = new Map<number, Planned[]>();

  /** @returns how to take it back */
  plan(delayMs: number, by: Living | null, run: () => void): () => void {
    const atMs = this.nowMs + Math.max(0, Math.ceil(delayMs));
    const planned: Planned = { by, run };
    const due = this.#due.get(atMs);
    if (due === undefined) this.#due.set(atMs, [planned]);
    else due.push(planned);
    return () => {
      planned.run = null;
    };
  }

  /** Lets everything happen that is due now, and what follows from it at once; then a millisecond passes. */
  async step(): Promise<void> {
    for (let due = this.#take(); due !== undefined; due = this.#take()) {
      for (const { by, run } of due) if (by === null || by.isAlive) run?.();
      // Every promise that can settle now settles before the next thing happens.
      await new Promise((resolve) => setImmediate(resolve));
    }
    this.nowMs++;
  }

  #take(): readonly Planned[] | undefined {
    const due = this.#due.get(this.nowMs);
    this.#due.delete(this.nowMs);
    return due;
  }
}
