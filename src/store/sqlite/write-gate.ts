// One writer of a database at a time, in order of arrival; and looks at it, on the same connection, between two of them.

export class WriteGate {
  #tail: Promise<unknown> | null = null;
  /** Whether a work is under way on this connection, so that a look would see half of it. */
  #isWriting = false;
  #looks: (() => void)[] = [];

  /** Runs `work` at once if nothing else runs, else after what came before it. */
  run<T>(work: () => T | Promise<T>): Promise<T> {
    return this.#inTurn(async () => {
      this.#isWriting = true;
      try {
        return await work();
      } finally {
        this.#isWriting = false;
        const looks = this.#looks;
        this.#looks = [];
        for (const look of looks) look();
      }
    });
  }

  /** The same for work on another connection: looks do not wait for it. */
  runElsewhere<T>(work: () => Promise<T>): Promise<T> {
    return this.#inTurn(work);
  }

  /** Runs a synchronous `look` that changes nothing: at once, or before the next work. Later work does not wait for it. */
  look<T>(look: () => T): Promise<T> {
    if (!this.#isWriting) return startNow(look);
    return new Promise((resolve, reject) => {
      this.#looks.push(() => startNow(look).then(resolve, reject));
    });
  }

  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const before = this.#tail;
    const result = before === null ? work() : before.then(work, work);
    this.#tail = result;
    const leave = () => {
      if (this.#tail === result) this.#tail = null;
    };
    result.then(leave, leave);
    return result;
  }
}

/** Calls `look` in this very turn, and makes a throw a rejection. */
async function startNow<T>(look: () => T): Promise<T> {
  return look();
}
