// One writer at a time on one connection, in order of arrival.

export class WriteGate {
  #tail: Promise<unknown> | null = null;

  /** Runs `work` at once if nothing else runs, else after what came before it. */
  run<T>(work: () => T | Promise<T>): Promise<T> {
    const before = this.#tail;
    const result = before === null ? startNow(work) : before.then(work, work);
    this.#tail = result;
    const leave = () => {
      if (this.#tail === result) this.#tail = null;
    };
    result.then(leave, leave);
    return result;
  }

  /** Like `run`, for a synchronous `look` that changes nothing: if it runs at once, later work does not wait for it. */
  look<T>(look: () => T): Promise<T> {
    return this.#tail === null ? startNow(look) : this.run(look);
  }
}

/** Calls `work` in this very turn, and makes a throw a rejection. */
async function startNow<T>(work: () => T | Promise<T>): Promise<T> {
  return work();
}
