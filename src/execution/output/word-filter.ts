// A filter: tells quickly which of many words a text holds; nearly every text holds none.
//
// - It says exactly what a plain search for each word would say.
// - Most characters are never looked at: at each place the last three of a window say how far the next word can be
//   away (the algorithm of Wu and Manber).

const BLOCK_CHARS = 3;
const TABLE_SIZE = 1 << 15;
/** Longer windows skip farther, and fill the table. */
const WINDOW_CHARS_MAX = 32;

export class WordFilter {
  readonly #window: number;
  /** How far the window may move when it ends in a block of this hash. */
  readonly #shifts: Uint8Array;
  /** The words that begin with the text of a window. */
  readonly #words = new Map<string, string[]>();

  /** @param words each of at least three characters */
  constructor(words: readonly string[]) {
    this.#window = words.reduce((least, { length }) => Math.min(least, length), WINDOW_CHARS_MAX);
    if (this.#window < BLOCK_CHARS) throw new Error("A word is too short for the filter.");
    const farthest = this.#window - BLOCK_CHARS + 1;
    this.#shifts = new Uint8Array(TABLE_SIZE).fill(farthest);
    for (const word of words) this.#add(word);
  }

  #add(word: string): void {
    for (let end = BLOCK_CHARS - 1; end < this.#window; end++) {
      const hash = hashAt(word, end);
      this.#shifts[hash] = Math.min(this.#shifts[hash]!, this.#window - 1 - end);
    }
    const start = word.slice(0, this.#window);
    const known = this.#words.get(start);
    if (known === undefined) this.#words.set(start, [word]);
    else known.push(word);
  }

  /** The words that are in the text, each once. */
  wordsIn(text: string): readonly string[] {
    const found = new Set<string>();
    const shifts = this.#shifts;
    for (let end = this.#window - 1; end < text.length; ) {
      const shift = shifts[hashAt(text, end)]!;
      if (shift > 0) {
        end += shift;
        continue;
      }
      const start = end - this.#window + 1;
      end++;
      for (const word of this.#words.get(text.slice(start, end)) ?? []) {
        if (text.startsWith(word, start)) found.add(word);
      }
    }
    return [...found];
  }
}

function hashAt(text: string, end: number): number {
  const mixed = text.charCodeAt(end) + (text.charCodeAt(end - 1) << 5) + (text.charCodeAt(end - 2) << 10);
  return mixed & (TABLE_SIZE - 1);
}
