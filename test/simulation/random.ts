// A small seeded generator (sfc32): the same seed gives the same week, everywhere.

export class Random {
  #a: number;
  #b: number;
  #c: number;
  #d: number;

  constructor(seed: number) {
    this.#a = seed >>> 0;
    this.#b = 0x9e3779b9;
    this.#c = 0x243f6a88;
    this.#d = 1;
    for (let i = 0; i < 12; i++) this.#next();
  }

  #next(): number {
    const t = (((this.#a + this.#b) >>> 0) + this.#d) >>> 0;
    this.#d = (this.#d + 1) >>> 0;
    this.#a = (this.#b ^ (this.#b >>> 9)) >>> 0;
    this.#b = (this.#c + (this.#c << 3)) >>> 0;
    this.#c = ((this.#c << 21) | (this.#c >>> 11)) >>> 0;
    this.#c = (this.#c + t) >>> 0;
    return t;
  }

  /** From 0 up to, not including, 1. */
  fraction(): number {
    return this.#next() / 2 ** 32;
  }

  /** A whole number from 0 to below `end`. */
  below(end: number): number {
    return Math.floor(this.fraction() * end);
  }

  between(from: number, to: number): number {
    return from + this.below(to - from + 1);
  }

  chance(probability: number): boolean {
    return this.fraction() < probability;
  }

  pick<T>(items: readonly T[]): T {
    return items[this.below(items.length)]!;
  }
}
