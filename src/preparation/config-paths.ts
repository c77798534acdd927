// Dotted paths into a configuration, such as "documents.folder".
//
// P1. A part is a key of an object, or the index of an item of a list. A dot that belongs to a key is written "\.", a
//     backslash "\\".
// P2. Only a value's own keys are read, and a changed configuration is a new one; "__proto__" is no part of a path.

import { isObject, type JsonObject, type JsonValue } from "../engine/json.ts";

const PARTS_MAX = 64;
const INDEX = /^(?:0|[1-9]\d{0,8})$/;

/** @returns the parts of a dotted path; null when it is none */
export function partsOf(path: string): readonly string[] | null {
  const parts = [""];
  for (let i = 0; i < path.length; i++) {
    const char = path[i]!;
    if (char === ".") parts.push("");
    else if (char === "\\" && (path[i + 1] === "." || path[i + 1] === "\\"))
      parts.push(parts.pop() + path[++i]!);
    else parts.push(parts.pop() + char);
  }
  const isWrong = parts.length > PARTS_MAX || parts.some((part) => part === "" || part === "__proto__");
  return isWrong ? null : parts;
}

/** The JSON Pointer of a dotted path: "/documents/folder". */
export function pointerOf(path: string): string {
  const parts = partsOf(path) ?? [path];
  return parts.map((part) => `/${part.replaceAll("~", "~0").replaceAll("/", "~1")}`).join("");
}

/** @returns the value at a path; undefined when there is none, or the path is none */
export function valueAt(configuration: JsonObject, path: string): JsonValue | undefined {
  let value: JsonValue | undefined = configuration;
  for (const part of partsOf(path) ?? [""]) {
    if (value === undefined) return undefined;
    value = child(value, part);
  }
  return value;
}

/**
 * A configuration with `value` at the path. Objects on the way are made where there is nothing, or a blank; a path that
 * leads through something else (a number, an item that a list does not have) changes nothing.
 */
export function withValueAt(configuration: JsonObject, path: string, value: JsonValue): JsonObject {
  const parts = partsOf(path);
  if (parts === null) return configuration;
  const changed = replaced(configuration, parts, value);
  return isObject(changed) ? changed : configuration;
}

/** A configuration without what is blank at the path, or on the way to it: `{"documents": ""}` for "documents.folder". */
export function withoutBlankAt(configuration: JsonObject, path: string): JsonObject {
  const parts = partsOf(path);
  const left = parts === null ? configuration : withoutBlank(configuration, parts);
  return isObject(left) ? left : configuration;
}

/** Items of lists stay, so that the others keep their numbers. */
function withoutBlank(base: JsonValue, [part, ...rest]: readonly string[]): JsonValue {
  const value = part === undefined ? undefined : child(base, part);
  if (part === undefined || value === undefined) return base;
  if (Array.isArray(base)) return base.with(Number(part), withoutBlank(value, rest));
  const entries = Object.entries(base as JsonObject);
  if (isBlank(value)) return Object.fromEntries(entries.filter(([key]) => key !== part));
  const left = withoutBlank(value, rest);
  return Object.fromEntries(entries.map(([key, other]) => [key, key === part ? left : other]));
}

/** Nothing, an empty text or only spaces: what a form sends for a field that was left alone. */
export function isBlank(value: JsonValue | undefined): boolean {
  return value === undefined || value === null || (typeof value === "string" && value.trim() === "");
}

function child(value: JsonValue, part: string): JsonValue | undefined {
  if (Array.isArray(value)) return INDEX.test(part) ? value[Number(part)] : undefined;
  return isObject(value) && Object.hasOwn(value, part) ? value[part] : undefined;
}

/** Undefined when the path leads through something that has no parts. */
function replaced(
  base: JsonValue | undefined,
  [part, ...rest]: readonly string[],
  value: JsonValue,
): JsonValue | undefined {
  if (part === undefined) return value;
  if (Array.isArray(base)) {
    const item = child(base, part);
    const changed = item === undefined ? undefined : replaced(item, rest, value);
    return changed === undefined ? undefined : base.with(Number(part), changed);
  }
  if (!isBlank(base) && !isObject(base)) return undefined;
  const object = isObject(base) ? base : {};
  const changed = replaced(child(object, part), rest, value);
  if (changed === undefined) return undefined;
  // fromEntries defines properties, so that a key of any name is only a key.
  return Object.fromEntries([...Object.entries(object).filter(([key]) => key !== part), [part, changed]]);
}
