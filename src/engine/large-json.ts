// Large JSON texts, parsed piece by piece: JSON.parse takes some 5 ms for a megabyte, and nothing else runs meanwhile.
//
// The text is looked through for the members of the outermost value. As many as make a piece are parsed together; one that
// is larger than a piece is parsed in the same way. JSON.parse judges everything but the commas between pieces, the colon
// of a large member, and the outermost brackets.

import { type JsonValue, parseJson } from "./json.ts";

/** Characters of a text that is worth it; the most that parsing the others takes is two milliseconds. */
export const LARGE_JSON_CHARS = 256 * 1024;

/** Characters that are parsed, or looked through, in one step: less than a millisecond. */
const PIECE_CHARS = 64 * 1024;

/**
 * Does what parseJson does, with the same result, in short steps.
 *
 * @returns the value, or null when the text is no JSON or nests too deep
 */
export function* jsonSteps(
  text: string,
  depthMax: number,
): Generator<void, { readonly value: JsonValue } | null> {
  if (text.length < LARGE_JSON_CHARS) return parseJson(text, depthMax);
  try {
    return { value: yield* valueSteps(text, 0, text.length, depthMax) };
  } catch (error) {
    if (error instanceof SyntaxError) return null;
    throw error;
  }
}

/** @throws SyntaxError */
function* valueSteps(text: string, from: number, to: number, depthMax: number): Generator<void, JsonValue> {
  const start = afterSpace(text, from);
  if (text[start] !== "[" && text[start] !== "{") return JSON.parse(text.slice(from, to)) as JsonValue;
  const value = new GrowingValue(text, text[start] === "[");
  const members = new Members(text, start, depthMax);
  let pieceFrom = start + 1;
  while (!members.areOver) {
    const memberFrom = members.end + 1;
    while (!members.findEnd()) yield;
    const { end, areOver } = members;
    if (end - memberFrom > PIECE_CHARS) {
      if (memberFrom > pieceFrom) value.addPiece(pieceFrom, memberFrom - 1);
      const { key, valueFrom } = value.keyAt(memberFrom);
      value.add(key, yield* valueSteps(text, valueFrom, end, depthMax - 1));
      pieceFrom = end + 1;
    } else if (areOver || end - pieceFrom > PIECE_CHARS) {
      // Where no comma stands, nothing need stand.
      value.addPiece(pieceFrom, end, areOver && pieceFrom === start + 1);
      pieceFrom = end + 1;
      yield;
    }
  }
  if (text[members.end] !== value.bracket || afterSpace(text, members.end + 1) < to) {
    throw new SyntaxError("The value does not end where it should.");
  }
  return value.whole;
}

/** A list or an object, of which a part has been parsed. */
class GrowingValue {
  readonly whole: JsonValue[] | Record<string, JsonValue>;
  /** The one at its end. */
  readonly bracket: string;
  readonly #text: string;

  constructor(text: string, isList: boolean) {
    this.#text = text;
    this.whole = isList ? [] : {};
    this.bracket = isList ? "]" : "}";
  }

  /** Adds some members. */
  addPiece(from: number, to: number, mayBeEmpty = false): void {
    const inside = this.#text.slice(from, to);
    const piece = JSON.parse(Array.isArray(this.whole) ? `[${inside}]` : `{${inside}}`) as typeof this.whole;
    const keys = Object.keys(piece);
    if (keys.length === 0 && !mayBeEmpty) throw new SyntaxError("Nothing stands beside a comma.");
    if (Array.isArray(piece)) for (const item of piece) this.add("", item);
    else for (const key of keys) this.add(key, piece[key]!);
  }

  /** @param key of a list's item any */
  add(key: string, value: JsonValue): void {
    if (Array.isArray(this.whole)) this.whole.push(value);
    else if (key !== "__proto__") this.whole[key] = value;
    else {
      Object.defineProperty(this.whole, key, {
        value,
        configurable: true,
        enumerable: true,
        writable: true,
      });
    }
  }

  /** The key of a member, and where its value begins. */
  keyAt(from: number): { readonly key: string; readonly valueFrom: number } {
    if (Array.isArray(this.whole)) return { key: "", valueFrom: from };
    const text = this.#text;
    const start = afterSpace(text, from);
    let end = start + 1;
    while (end < text.length && text[end] !== '"') end += text[end] === "\\" ? 2 : 1;
    const key: unknown = JSON.parse(text.slice(start, end + 1));
    const colon = afterSpace(text, end + 1);
    if (typeof key !== "string" || text[colon] !== ":") throw new SyntaxError("A member is no pair.");
    return { key, valueFrom: colon + 1 };
  }
}

/** Finds where the members of a list or an object end. */
class Members {
  readonly #text: string;
  readonly #depthMax: number;
  #depth = 1;
  #inString = false;
  #next: number;
  /** Where the member that was found last ends: at a comma, or at the last bracket. */
  end: number;
  areOver = false;

  constructor(text: string, start: number, depthMax: number) {
    this.#text = text;
    this.#depthMax = depthMax;
    this.#next = start + 1;
    this.end = start;
    if (depthMax < 1) throw new SyntaxError("It nests too deep.");
  }

  /** Looks on, through a piece at most. @returns whether it has found the next end */
  findEnd(): boolean {
    const text = this.#text;
    let at = this.#next;
    for (const limit = Math.min(text.length, at + PIECE_CHARS); at < limit; at++) {
      const c = text.charCodeAt(at);
      if (this.#inString) {
        if (c === 0x5c) at++;
        else if (c === 0x22) this.#inString = false;
      } else if (c === 0x22) this.#inString = true;
      else if (c === 0x7b || c === 0x5b) {
        if (++this.#depth > this.#depthMax) throw new SyntaxError("It nests too deep.");
      } else if (c === 0x7d || c === 0x5d) this.#depth--;
      if (this.#depth === 0 || (c === 0x2c && this.#depth === 1 && !this.#inString)) {
        this.end = at;
        this.#next = at + 1;
        this.areOver = this.#depth === 0;
        return true;
      }
    }
    if (at >= text.length) throw new SyntaxError("The text ends within a value.");
    this.#next = at;
    return false;
  }
}

/** The first place that is no white space. */
function afterSpace(text: string, from: number): number {
  let at = from;
  while (text[at] === " " || text[at] === "\n" || text[at] === "\r" || text[at] === "\t") at++;
  return at;
}
