// Reads the fields of one JSON object, and reports each that is not as it must be.
//
// - No method throws; a field with a problem reads as its fallback, so that reading goes on.
// - null counts as absent, unless the method's name says that null has a meaning of its own.
// - A whole path is built only when there is something to report: a manifest may have 20,000 nodes.

import { isObject, type JsonObject, type JsonValue } from "../json.ts";
import { limits } from "../limits.ts";
import { type Problems, quoted } from "./problems.ts";

const PATH_CHARS_MAX = 4_096;
const TEXT_CHARS_MAX = 1_000;
/** Control characters break file names and environments; lone surrogates do not survive the store. */
const UNFIT_CHARS = /[\p{Cc}\p{Cs}]/u;

export interface Range {
  readonly min: number;
  readonly max: number;
}

/** A field, or the names and indexes from the object to something inside one. */
export type Place = string | readonly (string | number)[];

const nothing: JsonObject = {};

export class Fields {
  /** The object as it came. */
  readonly source: JsonObject;
  readonly #problems: Problems;
  readonly #parent: Fields | null;
  /** Names and indexes from the parent to this object. */
  readonly #at: readonly (string | number)[];

  private constructor(
    value: JsonObject,
    problems: Problems,
    parent: Fields | null,
    at: readonly (string | number)[],
  ) {
    this.source = value;
    this.#problems = problems;
    this.#parent = parent;
    this.#at = at;
  }

  static root(value: JsonObject, problems: Problems): Fields {
    return new Fields(value, problems, null, []);
  }

  /** The field as it came; undefined when it is absent or null. */
  raw(name: string): JsonValue | undefined {
    return this.source[name] ?? undefined;
  }

  /** True when the field is there and null, for the fields in which null has a meaning. */
  isNull(name: string): boolean {
    return this.source[name] === null;
  }

  // ---------------------------------------------------------------------------------------------- problems

  /** Reports a problem of the field, or of something inside it. */
  report(place: Place, code: string, text: string): void {
    const inside = typeof place === "string" ? [place] : place;
    this.#problems.add([...this.place(), ...inside], code, text);
  }

  /** Reports a value of another kind than what is allowed. */
  reportType(place: Place, allowed: string, value: JsonValue): void {
    this.report(place, "wrong_type", `must be ${allowed}, not ${kindOf(value)}`);
  }

  /** Names and indexes from the root to this object. */
  place(): (string | number)[] {
    return this.#parent === null ? [] : [...this.#parent.place(), ...this.#at];
  }

  /** Whether the field is there; `missing` is reported when it is not. */
  isGiven(name: string, allowed: string): boolean {
    if (this.raw(name) !== undefined) return true;
    this.report(name, "missing", `is missing: it must be ${allowed}`);
    return false;
  }

  /** The value if it is as it must be; otherwise `code` is reported, and null comes back. */
  checked(
    place: Place,
    value: string | null,
    isFit: RegExp | ((value: string) => boolean),
    code: string,
    text: string,
  ): string | null {
    if (value === null || (isFit instanceof RegExp ? isFit.test(value) : isFit(value))) return value;
    this.report(place, code, `is ${quoted(value)}: ${text}`);
    return null;
  }

  // ------------------------------------------------------------------------------------- objects and lists

  /** The object in the field; an empty one when it is absent or no object. */
  object(name: string): Fields {
    const value = this.raw(name);
    if (value !== undefined && !isObject(value)) this.reportType(name, "an object", value);
    return new Fields(isObject(value) ? value : nothing, this.#problems, this, [name]);
  }

  /** The object at `index` of the list in the field. */
  objectIn(name: string, index: number, value: JsonValue): Fields | null {
    if (isObject(value)) return new Fields(value, this.#problems, this, [name, index]);
    this.reportType([name, index], "an object", value);
    return null;
  }

  /** The list in the field; empty when it is absent, no list, or has more items than it may. */
  list(name: string, max = Number.POSITIVE_INFINITY): readonly JsonValue[] {
    const value = this.raw(name);
    if (value === undefined) return [];
    if (!Array.isArray(value)) this.reportType(name, "a list", value);
    else if (value.length > max) {
      this.report(name, "too_many", `has ${value.length} items: at most ${max} are allowed`);
    } else return value;
    return [];
  }

  /** What `read` makes of each object of the list in the field; what is no object is reported and left out. */
  objects<Item>(name: string, max: number, read: (item: Fields) => Item | null): readonly Item[] {
    const found: Item[] = [];
    this.list(name, max).forEach((value, i) => {
      const fields = this.objectIn(name, i, value);
      const item = fields === null ? null : read(fields);
      if (item !== null) found.push(item);
    });
    return found;
  }

  /** The same for a field that may also be a single object. */
  objectOrObjects<Item>(name: string, max: number, read: (item: Fields) => Item): readonly Item[] {
    const value = this.raw(name);
    if (isObject(value)) return [read(this.object(name))];
    if (value === undefined || Array.isArray(value)) return this.objects(name, max, read);
    this.reportType(name, "an object or a list", value);
    return [];
  }

  // --------------------------------------------------------------------------------------------- strings

  /** An identifier or type; `missing` is reported when it is absent. */
  requiredName(name: string): string | null {
    return this.isGiven(name, "a non-empty string") ? this.name(name, null) : null;
  }

  /** An identifier or type: not empty, of bounded length, without control characters. */
  name<Fallback extends string | null>(name: string, fallback: Fallback): string | Fallback {
    const value = this.raw(name);
    return value === undefined ? fallback : (this.checkedName(name, value) ?? fallback);
  }

  /** Like `name`, for a value found at `place`. */
  checkedName(place: Place, value: JsonValue): string | null {
    if (value !== "")
      return this.#string(place, "a non-empty string", limits.nameCharsMax, UNFIT_CHARS, value);
    this.report(place, "empty", "is empty: it must be a non-empty string");
    return null;
  }

  /** A text for people; may be empty. */
  text(name: string): string | null {
    const value = this.raw(name);
    return value === undefined ? null : this.#string(name, "a string", TEXT_CHARS_MAX, null, value);
  }

  /** A path of any form that a file system takes. */
  path(name: string): string | null {
    const value = this.raw(name);
    return value === undefined ? null : this.checkedPath(name, value);
  }

  checkedPath(place: Place, value: JsonValue): string | null {
    if (value !== "")
      return this.#string(place, "a path, a non-empty string", PATH_CHARS_MAX, UNFIT_CHARS, value);
    this.report(place, "wrong_type", "must be a path, a non-empty string, not an empty one");
    return null;
  }

  /** A path that stays inside the folder it is relative to; null when it is absent or has a problem. */
  relativePath(name: string): string | null {
    const value = this.raw(name);
    return value === undefined ? null : this.checkedRelativePath(name, value);
  }

  checkedRelativePath(place: Place, value: JsonValue): string | null {
    const text = "it must be a relative path that does not leave its folder through ..";
    return this.checked(place, this.checkedPath(place, value), staysInside, "path_outside", text);
  }

  /** @param unfit characters that it must not have; null allows all */
  #string(
    place: Place,
    allowed: string,
    charsMax: number,
    unfit: RegExp | null,
    value: JsonValue,
  ): string | null {
    if (typeof value !== "string") this.reportType(place, allowed, value);
    else if (value.length > charsMax) {
      this.report(place, "too_long", `has ${value.length} characters: at most ${charsMax} are allowed`);
    } else if (unfit?.test(value)) {
      const text = "control characters and half surrogate pairs are not allowed";
      this.report(place, "invalid_characters", `is ${quoted(value)}: ${text}`);
    } else return value;
    return null;
  }

  // ----------------------------------------------------------------------------- numbers, flags and words

  integer<Fallback extends number | null>(name: string, range: Range, fallback: Fallback): number | Fallback {
    return this.#number(name, range, fallback, Number.isSafeInteger, "a whole number");
  }

  number<Fallback extends number | null>(name: string, range: Range, fallback: Fallback): number | Fallback {
    return this.#number(name, range, fallback, () => true, "a number");
  }

  #number<Fallback extends number | null>(
    name: string,
    { min, max }: Range,
    fallback: Fallback,
    isFit: (value: number) => boolean,
    kind: string,
  ): number | Fallback {
    const value = this.raw(name);
    if (value === undefined) return fallback;
    if (typeof value === "number" && value >= min && value <= max && isFit(value)) return value;
    const allowed = kind + within(min, max);
    if (typeof value !== "number") this.reportType(name, allowed, value);
    else this.report(name, "out_of_range", `is ${value}: it must be ${allowed}`);
    return fallback;
  }

  boolean(name: string, fallback: boolean): boolean {
    const value = this.raw(name);
    if (typeof value === "boolean") return value;
    if (value !== undefined) this.reportType(name, "true or false", value);
    return fallback;
  }

  choice<Word extends string>(name: string, allowed: readonly Word[], fallback: Word): Word {
    const value = this.raw(name);
    if (value === undefined) return fallback;
    const word = allowed.find((one) => one === value);
    if (word === undefined)
      this.report(name, "unknown_value", `is ${shown(value)}: it must be ${oneOf(allowed)}`);
    return word ?? fallback;
  }
}

/** "a", "b" or "c". */
export function oneOf(words: readonly string[]): string {
  const all = words.map((word) => `"${word}"`);
  const last = all.pop() ?? "";
  return all.length === 0 ? last : `${all.join(", ")} or ${last}`;
}

/** A value in a message: a string as it is, and the kind of any other. */
export function shown(value: JsonValue): string {
  return typeof value === "string" ? quoted(value) : kindOf(value);
}

/** The kind of a JSON value, in words for a message. */
export function kindOf(value: JsonValue): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "a list";
  return typeof value === "object" ? "an object" : `a ${typeof value}`;
}

function within(min: number, max: number): string {
  if (min === -Number.MAX_VALUE && max === Number.MAX_VALUE) return "";
  return max === Number.MAX_SAFE_INTEGER ? ` of at least ${min}` : ` from ${min} to ${max}`;
}

/** Whether a path is relative and its `..` never climb above where it starts. */
export function staysInside(path: string): boolean {
  if (path.startsWith("/")) return false;
  let depth = 0;
  for (const part of path.split("/")) {
    if (part === "..") depth--;
    else if (part !== "" && part !== ".") depth++;
    if (depth < 0) return false;
  }
  return true;
}
