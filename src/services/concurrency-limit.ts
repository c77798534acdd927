// Limits concurrent work fairly between its owners.
//
// - Owners take turns, and none has more than a quarter of the places: slow work of one does not delay the others.
// - Work of one owner runs in the order of its submission.

import { Fifo } from "../engine/fifo.ts";

type Work = () => Promise<void>;

export class ConcurrencyLimit {
  readonly #atOnceMax: number;
  readonly #ofOneMax: number;
  /** By owner; one that had a turn moves to the end. */
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

  /** Skips at most four owners: no more can have used up their quarter. */
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
