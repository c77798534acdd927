// Finds where a text is not valid JSON. JSON.parse decides whether it is; its errors do not always have the position.

export interface JsonError {
  readonly kind: "syntax" | "too_deep";
  /** Of the first wrong character; the text's length when it ends too early. */
  readonly offset: number;
}

const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
const LITERAL = /true|false|null/y;
const SPACE = /[ \t\n\r]*/y;
const ESCAPE = /\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})/y;

/** @returns null when the text is JSON and nests no deeper than `depthMax` */
export function findJsonError(text: string, depthMax: number): JsonError | null {
  return new Scanner(text, depthMax).run();
}

/** What may come next: a value, a value or the end of an empty list, a key, what follows a value, … */
type Expectation = "value" | "value_or_end" | "key" | "key_or_end" | "colon" | "separator";

class Scanner {
  readonly #text: string;
  readonly #depthMax: number;
  /** The closing characters that must follow. */
  readonly #open: ("]" | "}")[] = [];
  #at = 0;

  constructor(text: string, depthMax: number) {
    this.#text = text;
    this.#depthMax = depthMax;
  }

  run(): JsonError | null {
    let expected: Expectation = "value";
    for (;;) {
      this.#take(SPACE);
      if (expected === "separator" && this.#open.length === 0) {
        return this.#at === this.#text.length ? null : this.#error("syntax");
      }
      const next = this.#step(expected);
      if (next === "error") return this.#error("syntax");
      if (this.#open.length > this.#depthMax) return { kind: "too_deep", offset: this.#at - 1 };
      expected = next;
    }
  }

  #error(kind: JsonError["kind"]): JsonError {
    return { kind, offset: this.#at };
  }

  /** Takes one token; at an error, `#at` is where it is. */
  #step(expected: Expectation): Expectation | "error" {
    const character = this.#text[this.#at];
    switch (expected) {
      case "key_or_end":
        if (character === "}") return this.#close();
        return this.#string() ? "colon" : "error";
      case "key":
        return this.#string() ? "colon" : "error";
      case "colon":
        return this.#skip(":") ? "value" : "error";
      case "separator":
        if (character === this.#open.at(-1)) return this.#close();
        if (!this.#skip(",")) return "error";
        return this.#open.at(-1) === "}" ? "key" : "value";
      case "value_or_end":
        return character === "]" ? this.#close() : this.#value(character);
      case "value":
        return this.#value(character);
      default:
        return expected satisfies never;
    }
  }

  #value(character: string | undefined): Expectation | "error" {
    if (character === "{" || character === "[") {
      this.#at++;
      this.#open.push(character === "{" ? "}" : "]");
      return character === "{" ? "key_or_end" : "value_or_end";
    }
    const isTaken = character === '"' ? this.#string() : this.#take(NUMBER) || this.#take(LITERAL);
    return isTaken ? "separator" : "error";
  }

  #close(): Expectation {
    this.#open.pop();
    this.#at++;
    return "separator";
  }

  #skip(character: string): boolean {
    if (this.#text[this.#at] !== character) return false;
    this.#at++;
    return true;
  }

  #take(expression: RegExp): boolean {
    expression.lastIndex = this.#at;
    if (!expression.test(this.#text)) return false;
    this.#at = expression.lastIndex;
    return true;
  }

  #string(): boolean {
    if (!this.#skip('"')) return false;
    for (;;) {
      const code = this.#text.charCodeAt(this.#at);
      // NaN, at the end of the text, is none of these.
      if (code === 0x22) return this.#skip('"');
      if (code === 0x5c) {
        if (!this.#take(ESCAPE)) return false;
      } else if (code >= 0x20) this.#at++;
      else return false;
    }
  }
}
