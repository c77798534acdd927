// Definitions of snapshots at hand: every run of a job asks for the same few.
//
// C1. Snapshots never change, so a definition is read once for as long as it is kept.
// C2. What is kept is bounded in number and in characters; the least recently used goes first, the last one asked
//     for stays, whatever its size.
// C3. Who asks while it is being read waits for that reading. A failure is not kept.

import type { Definition } from "./definition.ts";

export interface DefinitionCacheOptions {
  readonly read: (fingerprint: string) => Promise<Definition>;
  readonly entriesMax: number;
  /** Of JSON text; in memory a definition takes several bytes for each. */
  readonly charsMax: number;
}

interface Entry {
  readonly definition: Promise<Definition>;
  /** 0 until it has been read. */
  chars: number;
}

export class DefinitionCache {
  readonly #options: DefinitionCacheOptions;
  /** Least recently used first. */
  readonly #entries = new Map<string, Entry>();
  #chars = 0;

  constructor(options: DefinitionCacheOptions) {
    this.#options = options;
  }

  /** @returns the same object as long as it is kept; nobody may change it */
  get(fingerprint: string): Promise<Definition> {
    const known = this.#entries.get(fingerprint);
    if (known !== undefined) {
      this.#entries.delete(fingerprint);
      this.#entries.set(fingerprint, known);
      return known.definition;
    }
    const entry: Entry = { definition: this.#options.read(fingerprint), chars: 0 };
    this.#entries.set(fingerprint, entry);
    this.#evict();
    entry.definition.then(
      ({ jsonChars }) => {
        if (this.#entries.get(fingerprint) !== entry) return;
        entry.chars = jsonChars;
        this.#chars += jsonChars;
        this.#evict();
      },
      () => {
        if (this.#entries.get(fingerprint) === entry) this.#entries.delete(fingerprint);
      },
    );
    return entry.definition;
  }

  #evict(): void {
    const { entriesMax, charsMax } = this.#options;
    for (const [fingerprint, { chars }] of this.#entries) {
      const isRoomy = this.#entries.size <= entriesMax && this.#chars <= charsMax;
      if (isRoomy || this.#entries.size === 1) return;
      this.#entries.delete(fingerprint);
      this.#chars -= chars;
    }
  }
}
