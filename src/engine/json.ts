// JSON values as types, and the checks of every value that comes from outside.

export type JsonValue = null | boolean | number | string | readonly JsonValue[] | JsonObject;
export interface JsonObject {
  readonly [key: string]: JsonValue;
}

/** Narrows to a JSON object: not null, not a list. */
export function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Narrows to a list whose items are all strings. */
export function isStringList(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((item) => typeof item === "string");
}

/**
 * Reads JSON text and refuses what later code could not handle: nesting deeper than `depthMax` (serialising
 * recurses, so a deep value that parses could still overflow the stack when it is written).
 *
 * @returns the value, or null when the text is no JSON or nests too deep
 */
export function parseJson(text: string, depthMax: number): { readonly value: JsonValue } | null {
  if (nestsDeeperThan(text, depthMax)) return null;
  try {
    return { value: JSON.parse(text) as JsonValue };
  } catch {
    return null;
  }
}

function nestsDeeperThan(text: string, depthMax: number): boolean {
  // Most texts have few brackets, which are found much faster than each character is read.
  if (!hasMoreBrackets(text, depthMax)) return false;
  let depth = 0;
  let inString = false;
  for (let i = 0; i < text.length; i++) {
    const c = text.charCodeAt(i);
    if (inString) {
      if (c === 0x5c) i++;
      else if (c === 0x22) inString = false;
    } else if (c === 0x22) inString = true;
    else if (c === 0x7b || c === 0x5b) {
      if (++depth > depthMax) return true;
    } else if (c === 0x7d || c === 0x5d) depth--;
  }
  return false;
}

function hasMoreBrackets(text: string, max: number): boolean {
  let count = 0;
  for (const bracket of ["{", "["]) {
    for (let at = text.indexOf(bracket); at >= 0; at = text.indexOf(bracket, at + 1)) {
      if (++count > max) return true;
    }
  }
  return false;
}
