// A sieve: tells quickly that a text holds none of many words, which is true of nearly every text.
//
// V1. When it says that a word may be there, one is; when it says that none is, none is.
// V2. Most characters are never looked at: at each place the last three of a window say how far the next word can be
//     away (the algorithm of Wu and Manber).

const BLOCK_CHARS = 3;
const TABLE_SIZE = 1 << 15;
/** Longer windows skip farther, and fill the table. */
const WINDOW_CHARS_MAX = 32;

export class SecretSieve {
  readonly #window: number;
  /** How far the window may move when it ends in a block of this hash. */
  readonly #shifts: Uint8Array;
  /** The words whose window ends in a block of this hash. */
  readonly #words = new Map<number, string[]>();

  /** @param words each of at least three characters */
  constructor(words: readonly string[]) {
    this.#window = Math.min(WINDOW_CHARS_MAX, ...words.map((word) => word.length));
    if (this.#window < BLOCK_CHARS) throw new Error("A word is too short for the sieve.");
    const farthest = this.#window - BLOCK_CHARS + 1;
    this.#shifts = new Uint8Array(TABLE_SIZE).fill(farthest);
    for (const word of words) this.#add(word);
  }

  #add(word: string): void {
    for (let end = BLOCK_CHARS - 1; end < this.#window; end++) {
      const hash = hashAt(word, end);
      this.#shifts[hash] = Math.min(this.#shifts[hash]!, this.#window - 1 - end);
    }
    const last = hashAt(word, this.#window - 1);
    const known = this.#words.get(last);
    if (known === undefined) this.#words.set(last, [word]);
    else known.push(word);
  }

  /** Whether one of the words is in the text. */
  holds(text: string): boolean {
    const shifts = this.#shifts;
    for (let end = this.#window - 1; end < text.length; ) {
      const hash = hashAt(text, end);
      const shift = shifts[hash]!;
      if (shift > 0) {
        end += shift;
        continue;
      }
      const start = end - this.#window + 1;
      if (this.#words.get(hash)?.some((word) => text.startsWith(word, start)) === true) return true;
      end++;
    }
    return false;
  }
}

function hashAt(text: string, end: number): number {
  const mixed = text.charCodeAt(end) + (text.charCodeAt(end - 1) << 5) + (text.charCodeAt(end - 2) << 10);
  return mixed & (TABLE_SIZE - 1);
}
