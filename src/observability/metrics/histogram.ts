// A histogram with fixed buckets. Observing allocates nothing.

export interface HistogramSnapshot {
  readonly count: number;
  readonly sum: number;
  /** How many were no larger than the bound of the same place. */
  readonly cumulative: readonly number[];
}

export class Histogram {
  /** Upper bounds of the buckets, rising. */
  readonly bounds: readonly number[];
  /** Each bucket's own, the last one for what is larger than all bounds. */
  readonly #buckets: number[];
  #sum = 0;

  constructor(bounds: readonly number[]) {
    this.bounds = bounds;
    this.#buckets = new Array<number>(bounds.length + 1).fill(0);
  }

  observe(value: number): void {
    this.#sum += value;
    let bucket = 0;
    while (bucket < this.bounds.length && value > this.bounds[bucket]!) bucket++;
    this.#buckets[bucket] = this.#buckets[bucket]! + 1;
  }

  snapshot(): HistogramSnapshot {
    let count = 0;
    const upTo = this.#buckets.map((own) => {
      count += own;
      return count;
    });
    return { count, sum: this.#sum, cumulative: upTo.slice(0, -1) };
  }
}
