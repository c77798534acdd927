// Simulated time: it leaps from one planned thing to the next, and everything that can settle has settled in between.

/** A process, or whatever else plans things: what a dead one had planned never happens. */
export interface Living {
  readonly isAlive: boolean;
  /** Nothing of it happens before; absent for one that is never stopped. */
  readonly stoppedUntilMs?: number;
}

interface Planned {
  readonly atMs: number;
  readonly order: number;
  readonly by: Living | null;
  readonly run: () => void;
  /** Whether it goes on for ever, so that it is nothing to wait for. */
  readonly isBackground: boolean;
}

export class Timeline {
  nowMs = Date.UTC(2026, 0, 1);
  #planned: Planned[] = [];
  #order = 0;
  #stop: Promise<unknown> | null = null;

  /** @returns how to take it back */
  plan(delayMs: number, by: Living | null, run: () => void, isBackground = false): () => void {
    const atMs = this.nowMs + Math.max(0, delayMs);
    const entry: Planned = { atMs, order: this.#order++, by, run, isBackground };
    this.#planned.push(entry);
    return () => {
      const at = this.#planned.indexOf(entry);
      if (at >= 0) this.#planned.splice(at, 1);
    };
  }

  drop(by: Living): void {
    this.#planned = this.#planned.filter((entry) => entry.by !== by);
  }

  /** Nothing that is planned happens before `work` has ended. */
  stopFor(work: Promise<unknown>): void {
    this.#stop = work;
  }

  /** Whether something is planned that is no background. */
  get isBusy(): boolean {
    return this.#planned.some(({ isBackground }) => !isBackground);
  }

  /** Lets the earliest planned thing happen. @returns false when nothing is planned */
  async step(): Promise<boolean> {
    let next: Planned | undefined;
    let nextMs = Number.POSITIVE_INFINITY;
    for (const entry of this.#planned) {
      const atMs = Math.max(entry.atMs, entry.by?.stoppedUntilMs ?? 0);
      // What was due while its process was stopped happens in its order.
      const isEarlier =
        atMs < nextMs ||
        (next !== undefined &&
          atMs === nextMs &&
          (entry.atMs < next.atMs || (entry.atMs === next.atMs && entry.order < next.order)));
      if (!isEarlier) continue;
      next = entry;
      nextMs = atMs;
    }
    if (next === undefined) return false;
    this.#planned.splice(this.#planned.indexOf(next), 1);
    this.nowMs = Math.max(this.nowMs, nextMs);
    if (next.by === null || next.by.isAlive) next.run();
    // Every promise that can settle now settles before the next thing happens.
    await new Promise((resolve) => setImmediate(resolve));
    await this.#stop;
    return true;
  }
}
