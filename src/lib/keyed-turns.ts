// Work that must not overlap with other work of the same name: one after the other, in order of arrival.

export class KeyedTurns {
  readonly #turns = new Map<string, Promise<unknown>>();

  /** Runs `work` when everything asked for before under this key has ended, however it ended. */
  async run<Result>(key: string, work: () => Promise<Result>): Promise<Result> {
    const before = this.#turns.get(key) ?? Promise.resolve();
    const mine = before.then(work, work);
    this.#turns.set(key, mine);
    try {
      return await mine;
    } finally {
      if (this.#turns.get(key) === mine) this.#turns.delete(key);
    }
  }
}
