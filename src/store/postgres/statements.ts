// Names for prepared statements. A connection keeps what was prepared under a name, so only texts that come again get one.
//
// - What returns "*" is of no use once a newer program has added a column to its table: then all names are other ones.

/** Texts that are remembered; a query with a list in it has as many texts as the list has lengths. */
const TEXTS_MAX = 1_000;
const NAMED_MAX = 400;
/** A text is prepared when it comes for this time. */
const USES_BEFORE_NAMED = 3;

export class StatementNames {
  readonly #names = new Map<string, string>();
  readonly #uses = new Map<string, number>();
  #renewals = 0;

  /** @returns the name to prepare it under; undefined to send it without one */
  of(text: string): string | undefined {
    const known = this.#names.get(text);
    if (known !== undefined) return known;
    const uses = (this.#uses.get(text) ?? 0) + 1;
    if (uses < USES_BEFORE_NAMED || this.#names.size >= NAMED_MAX) {
      if (this.#uses.size >= TEXTS_MAX) this.#uses.clear();
      this.#uses.set(text, uses);
      return undefined;
    }
    this.#uses.delete(text);
    const name = `s${this.#renewals}_${this.#names.size}`;
    this.#names.set(text, name);
    return name;
  }

  /** What was prepared is of no use any more, on all connections. */
  renew(): void {
    this.#renewals++;
    this.#names.clear();
  }
}
