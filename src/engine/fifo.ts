// A first-in first-out queue on an array: both ends are O(1), memory follows the size.

const COMPACT_AT = 1_024;

export class Fifo<T> {
  #items: T[] = [];
  #head = 0;

  get size(): number {
    return this.#items.length - this.#head;
  }

  push(item: T): void {
    this.#items.push(item);
  }

  first(): T | undefined {
    return this.#items[this.#head];
  }

  shift(): T | undefined {
    if (this.size === 0) return undefined;
    const item = this.#items[this.#head];
    // The slot lets go of what was taken, or a queue that never empties would keep a thousand dead items alive.
    this.#items[this.#head] = undefined as T;
    this.#head++;
    if (this.#head === this.#items.length) {
      this.#items = [];
      this.#head = 0;
    } else if (this.#head >= COMPACT_AT && this.#head * 2 >= this.#items.length) {
      this.#items = this.#items.slice(this.#head);
      this.#head = 0;
    }
    return item;
  }

  /** Whether one of the items satisfies `test`. */
  some(test: (item: T) => boolean): boolean {
    for (let i = this.#head; i < this.#items.length; i++) if (test(this.#items[i]!)) return true;
    return false;
  }

  /**
   * The items at the end that satisfy `test`, oldest first; found by bisecting.
   *
   * @param test once an item satisfies it, all later ones do
   */
  tailWhile(test: (item: T) => boolean): readonly T[] {
    let from = this.#head;
    for (let to = this.#items.length; from < to; ) {
      const middle = (from + to) >>> 1;
      if (test(this.#items[middle]!)) to = middle;
      else from = middle + 1;
    }
    return this.#items.slice(from);
  }
}
