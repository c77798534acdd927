// The newest changes of records, in order: who was away for a while gets each record that has changed meanwhile once, as it
// is now, or learns that it was away for too long.
//
// R1. Of each key there is one change, the newest; its position is greater than that of every earlier change of any key.
// R2. Behind a position there is every key that was put behind it, or the position is forgotten.
// R3. What is kept is bounded by number, by size and by age.

export interface Change {
  readonly position: number;
  readonly topic: string;
  /** What is sent. */
  readonly text: string;
}

interface Kept extends Change {
  readonly key: string;
  readonly atMs: number;
}

export interface RingLimits {
  readonly changesMax: number;
  /** Of the texts. */
  readonly charsMax: number;
  readonly ageMaxMs: number;
}

export class ChangeRing {
  readonly #limits: RingLimits;
  /** By position. A change that a newer one has taken the place of stays until the next tidying. */
  #kept: Kept[] = [];
  readonly #newest = new Map<string, Kept>();
  #chars = 0;
  #head = 0;
  /** Behind it nothing is missing. */
  #floor = 0;

  constructor(limits: RingLimits) {
    this.#limits = limits;
  }

  /** The position of the last change; 0 before the first. */
  get head(): number {
    return this.#head;
  }

  /** @returns the change's position */
  put(
    change: { readonly topic: string; readonly key: string; readonly text: string },
    nowMs: number,
  ): number {
    const kept = { ...change, position: ++this.#head, atMs: nowMs };
    this.#chars += kept.text.length - (this.#newest.get(kept.key)?.text.length ?? 0);
    this.#newest.set(kept.key, kept);
    this.#kept.push(kept);
    if (this.#kept.length > 2 * this.#newest.size + 64) {
      this.#kept = this.#kept.filter((one) => this.#isNewest(one));
    }
    this.trim(nowMs);
    return kept.position;
  }

  /** Forgets what is too much or too old. */
  trim(nowMs: number): void {
    const { changesMax, charsMax, ageMaxMs } = this.#limits;
    let count = 0;
    for (const one of this.#kept) {
      if (this.#isNewest(one)) {
        const isTooMuch = this.#newest.size > changesMax || this.#chars > charsMax;
        if (!isTooMuch && nowMs - one.atMs < ageMaxMs) break;
        this.#newest.delete(one.key);
        this.#chars -= one.text.length;
        this.#floor = one.position;
      }
      count++;
    }
    if (count > 0) this.#kept.splice(0, count);
  }

  /** From now on all earlier positions are forgotten. */
  forget(): void {
    this.#kept = [];
    this.#newest.clear();
    this.#chars = 0;
    this.#floor = ++this.#head;
  }

  /** Whether nothing is missing behind the position. */
  has(position: number): boolean {
    return this.#floor <= position && position <= this.#head;
  }

  /**
   * Changes behind a position that is had, in order.
   *
   * @param charsMax ends the page once it has so many; one change at least
   * @returns with the position up to which there are no others
   */
  behind(
    position: number,
    topics: ReadonlySet<string>,
    charsMax: number,
  ): { readonly changes: readonly Change[]; readonly position: number } {
    const changes: Change[] = [];
    let chars = 0;
    for (let i = this.#firstBehind(position); i < this.#kept.length; i++) {
      const one = this.#kept[i]!;
      if (!topics.has(one.topic) || !this.#isNewest(one)) continue;
      changes.push(one);
      chars += one.text.length;
      if (chars >= charsMax) return { changes, position: one.position };
    }
    return { changes, position: this.#head };
  }

  #isNewest(one: Kept): boolean {
    return this.#newest.get(one.key) === one;
  }

  #firstBehind(position: number): number {
    let low = 0;
    let high = this.#kept.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.#kept[middle]!.position > position) high = middle;
      else low = middle + 1;
    }
    return low;
  }
}
