// Reads the fields of one JSON object, and reports each that is not as it must be.
//
// R1. No method throws; a field with a problem reads as its fallback, so that reading goes on.
// R2. null counts as absent, unless the method's name says that null has a meaning of its own.
// R3. A path is built only when there is something to report: a manifest may have 20,000 nodes.

import { isObject, type JsonObject, type JsonValue } from "../json.ts";
import { limits } from "../limits.ts";
import { type Problems, quoted } from "./problems.ts";

const PATH_CHARS_MAX = 4_096;
const TEXT_CHARS_MAX = 1_000;
/** Control characters break file names and environments; lone surrogates do not survive the store. */
const UNFIT_CHARS = /[\p{Cc}\p{Cs}]/u;
/** Nearly every name is of this form, which is quicker to see. */
const PLAIN_NAME = /^[\w.:-]+$/;

export interface Range {
  readonly min: number;
  readonly max: number;
}

const nothing: JsonObject = {};

export class Fields {
  /** The object as it came. */
  readonly source: JsonObject;
  readonly #problems: Problems;
  readonly #parent: Fields | null;
  readonly #key: string | number | null;
  /** Stands between the parent's path and the key when the object lies in a list: `nodes` in /nodes/3. */
  readonly #list: string | null;

  private constructor(
    value: JsonObject,
    problems: Problems,
    at: { parent: Fields | null; list: string | null; key: string | number | null },
  ) {
    this.source = value;
    this.#problems = problems;
    this.#parent = at.parent;
    this.#list = at.list;
    this.#key = at.key;
  }

  static root(value: JsonObject, problems: Problems): Fields {
    return new Fields(value, problems, { parent: null, list: null, key: null });
  }

  /** The field as it came; undefined when it is absent or null. */
  raw(name: string): JsonValue | undefined {
    return this.source[name] ?? undefined;
  }

  /** True when the field is there and null, for the fields in which null has a meaning. */
  isNull(name: string): boolean {
    return this.source[name] === null;
  }

  /** Reports a problem of the field, or of something inside it. */
  report(place: string | readonly (string | number)[], code: string, said: string): void {
    const inside = typeof place === "string" ? [place] : place;
    this.#problems.add([...this.place(), ...inside], code, said);
  }

  /** Names and indexes from the root to this object. */
  place(): (string | number)[] {
    const path = this.#parent === null ? [] : this.#parent.place();
    if (this.#list !== null) path.push(this.#list);
    if (this.#key !== null) path.push(this.#key);
    return path;
  }

  /** The object in the field; an empty one when it is absent or no object. */
  object(name: string): Fields {
    const value = this.raw(name);
    if (value !== undefined && !isObject(value)) {
      this.report(name, "wrong_type", `must be an object, not ${kindOf(value)}`);
    }
    const fields = isObject(value) ? value : nothing;
    return new Fields(fields, this.#problems, { parent: this, list: null, key: name });
  }

  /** The object at `index` of the list in the field. */
  objectIn(name: string, index: number, value: JsonValue): Fields | null {
    if (isObject(value)) return new Fields(value, this.#problems, { parent: this, list: name, key: index });
    this.report([name, index], "wrong_type", `must be an object, not ${kindOf(value)}`);
    return null;
  }

  /** The list in the field; empty when it is absent or no list. */
  list(name: string): readonly JsonValue[] {
    const value = this.raw(name);
    if (value === undefined) return [];
    if (Array.isArray(value)) return value;
    this.report(name, "wrong_type", `must be a list, not ${kindOf(value)}`);
    return [];
  }

  /** A field whose content nobody here reads: only its basic type is looked at. */
  ignored(name: string, kinds: "object" | "object or list"): void {
    const value = this.raw(name);
    if (value === undefined || isObject(value) || (kinds !== "object" && Array.isArray(value))) return;
    const allowed = kinds === "object" ? "an object" : "an object or a list";
    this.report(name, "wrong_type", `must be ${allowed}, not ${kindOf(value)}`);
  }

  /** An identifier or type; `missing` is reported when it is absent. */
  requiredName(name: string): string | null {
    if (this.raw(name) === undefined) {
      this.report(name, "missing", "is missing: it must be a non-empty string");
      return null;
    }
    return this.name(name, null);
  }

  /** An identifier or type: not empty, of bounded length, without control characters. */
  name<Fallback extends string | null>(name: string, fallback: Fallback): string | Fallback {
    const value = this.raw(name);
    if (value === undefined) return fallback;
    return this.checkedName(name, value) ?? fallback;
  }

  /** Like `name`, for a value found at `place`. */
  checkedName(place: string | readonly (string | number)[], value: JsonValue): string | null {
    if (typeof value === "string" && isPlainName(value)) return value;
    if (typeof value !== "string") {
      this.report(place, "wrong_type", `must be a non-empty string, not ${kindOf(value)}`);
    } else if (value === "") {
      this.report(place, "empty", "is empty: it must be a non-empty string");
    } else if (value.length > limits.nameCharsMax) {
      this.report(
        place,
        "too_long",
        `has ${value.length} characters: at most ${limits.nameCharsMax} are allowed`,
      );
    } else if (UNFIT_CHARS.test(value)) {
      this.report(
        place,
        "invalid_characters",
        `is ${quoted(value)}: control characters and half surrogate pairs are not allowed`,
      );
    } else return value;
    return null;
  }

  /** A text for people; may be empty. */
  text(name: string): string | null {
    const value = this.raw(name);
    if (value === undefined) return null;
    if (typeof value !== "string") this.report(name, "wrong_type", `must be a string, not ${kindOf(value)}`);
    else if (value.length > TEXT_CHARS_MAX) {
      this.report(name, "too_long", `has ${value.length} characters: at most ${TEXT_CHARS_MAX} are allowed`);
    } else return value;
    return null;
  }

  /** A path that stays inside the folder it is relative to; null when it is absent or has a problem. */
  relativePath(name: string): string | null {
    const value = this.raw(name);
    return value === undefined ? null : this.checkedRelativePath(name, value);
  }

  checkedRelativePath(place: string | readonly (string | number)[], value: JsonValue): string | null {
    const path = this.checkedPath(place, value);
    if (path === null || staysInside(path)) return path;
    this.report(
      place,
      "path_outside",
      `is ${quoted(path)}: it must be a relative path that does not leave its folder through ..`,
    );
    return null;
  }

  /** A path of any form that a file system takes. */
  path(name: string): string | null {
    const value = this.raw(name);
    return value === undefined ? null : this.checkedPath(name, value);
  }

  checkedPath(place: string | readonly (string | number)[], value: JsonValue): string | null {
    if (typeof value !== "string" || value === "") {
      this.report(
        place,
        "wrong_type",
        `must be a path, a non-empty string, not ${value === "" ? "an empty one" : kindOf(value)}`,
      );
    } else if (value.length > PATH_CHARS_MAX) {
      this.report(place, "too_long", `has ${value.length} characters: at most ${PATH_CHARS_MAX} are allowed`);
    } else if (UNFIT_CHARS.test(value)) {
      this.report(
        place,
        "invalid_characters",
        `is ${quoted(value)}: control characters and half surrogate pairs are not allowed`,
      );
    } else return value;
    return null;
  }

  integer<Fallback extends number | null>(name: string, range: Range, fallback: Fallback): number | Fallback {
    const value = this.raw(name);
    if (value === undefined) return fallback;
    if (Number.isSafeInteger(value) && isWithin(value as number, range)) return value as number;
    this.#reportNumber(name, value, `a whole number${within(range)}`);
    return fallback;
  }

  number<Fallback extends number | null>(name: string, range: Range, fallback: Fallback): number | Fallback {
    const value = this.raw(name);
    if (value === undefined) return fallback;
    if (typeof value === "number" && isWithin(value, range)) return value;
    this.#reportNumber(name, value, `a number${within(range)}`);
    return fallback;
  }

  #reportNumber(name: string, value: JsonValue, allowed: string): void {
    if (typeof value === "number") this.report(name, "out_of_range", `is ${value}: it must be ${allowed}`);
    else this.report(name, "wrong_type", `must be ${allowed}, not ${kindOf(value)}`);
  }

  boolean(name: string, fallback: boolean): boolean {
    const value = this.raw(name);
    if (value === undefined) return fallback;
    if (typeof value === "boolean") return value;
    this.report(name, "wrong_type", `must be true or false, not ${kindOf(value)}`);
    return fallback;
  }

  choice<Word extends string>(name: string, allowed: readonly Word[], fallback: Word): Word {
    const value = this.raw(name);
    if (value === undefined) return fallback;
    const word = allowed.find((one) => one === value);
    if (word !== undefined) return word;
    const given = typeof value === "string" ? quoted(value) : kindOf(value);
    this.report(name, "unknown_value", `is ${given}: it must be ${oneOf(allowed)}`);
    return fallback;
  }
}

/** Whether a value is a name beyond any doubt; `Fields.name` takes others too. */
export function isPlainName(value: string): boolean {
  return value.length <= limits.nameCharsMax && PLAIN_NAME.test(value);
}

/** "a", "b" or "c". */
export function oneOf(words: readonly string[]): string {
  const all = words.map((word) => `"${word}"`);
  const last = all.pop() ?? "";
  return all.length === 0 ? last : `${all.join(", ")} or ${last}`;
}

/** The kind of a JSON value, in words for a message. */
export function kindOf(value: JsonValue): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "a list";
  switch (typeof value) {
    case "string":
      return "a string";
    case "number":
      return "a number";
    case "boolean":
      return "a boolean";
    default:
      return "an object";
  }
}

function isWithin(value: number, range: Range): boolean {
  return value >= range.min && value <= range.max;
}

function within(range: Range): string {
  if (range.min === -Number.MAX_VALUE && range.max === Number.MAX_VALUE) return "";
  return range.max === Number.MAX_SAFE_INTEGER
    ? ` of at least ${range.min}`
    : ` from ${range.min} to ${range.max}`;
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
