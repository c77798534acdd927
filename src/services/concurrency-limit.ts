// Work that waits for its turn, so that only so much of it goes on at a time.
//
// L1. Those whose work waits take turns, and none has more than a quarter of the places: whose work is slow holds up
//     nobody else's.
// L2. What one of them asks for is done in the order of asking.

import { Fifo } from "../engine/fifo.ts";

type Work = () => Promise<void>;

export class ConcurrencyLimit {
  readonly #atOnceMax: number;
  readonly #ofOneMax: number;
  /** By owner; who has had a turn goes to the end. */
  readonly #waiting = new Map<string, Fifo<Work>>();
  readonly #runningOf = new Map<string, number>();
  #running = 0;

  constructor(atOnceMax: number) {
    this.#atOnceMax = atOnceMax;
    this.#ofOneMax = Math.ceil(atOnceMax / 4);
  }

  /** Does the work as soon as there is room for its owner. @param work must not reject */
  add(owner: string, work: Work): void {
    const queue = this.#waiting.get(owner) ?? new Fifo<Work>();
    queue.push(work);
    this.#waiting.set(owner, queue);
    this.#next();
  }

  #next(): void {
    while (this.#running < this.#atOnceMax) {
      const owner = this.#nextOwner();
      if (owner === undefined) return;
      this.#begin(owner, this.#take(owner));
    }
  }

  /** Few are passed over: no more than four can have their quarter. */
  #nextOwner(): string | undefined {
    for (const owner of this.#waiting.keys()) {
      if ((this.#runningOf.get(owner) ?? 0) < this.#ofOneMax) return owner;
    }
    return undefined;
  }

  #take(owner: string): Work {
    const queue = this.#waiting.get(owner)!;
    const work = queue.shift()!;
    this.#waiting.delete(owner);
    if (queue.size > 0) this.#waiting.set(owner, queue);
    return work;
  }

  #begin(owner: string, work: Work): void {
    this.#count(owner, 1);
    void work().finally(() => {
      this.#count(owner, -1);
      this.#next();
    });
  }

  #count(owner: string, change: number): void {
    this.#running += change;
    const running = (this.#runningOf.get(owner) ?? 0) + change;
    if (running === 0) this.#runningOf.delete(owner);
    else this.#runningOf.set(owner, running);
  }
}
