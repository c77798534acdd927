// A list that what is in it is linked into by itself: whatever is done with it takes the same time, however long it is.

export interface Linked<T> {
  previous: T | null;
  next: T | null;
}

/** Of things that are in one chain at a time. */
export class Chain<T extends Linked<T>> {
  first: T | null = null;
  #last: T | null = null;

  /** Adds it behind all others. */
  push(item: T): void {
    item.previous = this.#last;
    item.next = null;
    if (this.#last === null) this.first = item;
    else this.#last.next = item;
    this.#last = item;
  }

  /** @param item one that is in it */
  remove(item: T): void {
    const { previous, next } = item;
    if (previous === null) this.first = next;
    else previous.next = next;
    if (next === null) this.#last = previous;
    else next.previous = previous;
    item.previous = null;
    item.next = null;
  }
}
