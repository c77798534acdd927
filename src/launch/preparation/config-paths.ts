// Values at dotted paths (lib/text.ts) of a configuration.
//
// - Only a value's own keys are read, and a changed configuration is a new one; "__proto__" is no part of a path.
// - Paths come from callers, thousands at a time: their cost is that of the paths and of what they lead
//   through together, never the one times the other.

import { isObject, type JsonObject, type JsonValue } from "../../engine/json.ts";
import { partsOf, pointer } from "../../lib/text.ts";

const INDEX = /^(?:0|[1-9]\d{0,8})$/;

/** The JSON Pointer of a dotted path: "/documents/folder". */
export function pointerOf(path: string): string {
  return pointer(partsOf(path) ?? [path]);
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
 * A configuration with values at paths, put there one after the other; it is copied once. Objects on the way are
 * made where there is nothing, or a blank; a path that leads through something else (a number, an item that a list does
 * not have) changes nothing.
 */
export function withValuesAt(
  configuration: JsonObject,
  settings: readonly { readonly path: string; readonly value: JsonValue }[],
): JsonObject {
  let changed: JsonObject | null = null;
  for (const { path, value } of settings) {
    const parts = partsOf(path);
    if (parts === null || !hasRoomFor(changed ?? configuration, parts)) continue;
    changed ??= structuredClone(configuration);
    let holder: Holder = changed;
    for (const part of parts.slice(0, -1)) {
      const below = child(holder, part);
      const next = isHolder(below) ? below : {};
      put(holder, part, next);
      holder = next;
    }
    // A later path may lead through it.
    put(holder, parts.at(-1)!, structuredClone(value));
  }
  return changed ?? configuration;
}

/** Whether a value can be put at the path. */
export function canSetAt(configuration: JsonObject, path: string): boolean {
  const parts = partsOf(path);
  return parts !== null && hasRoomFor(configuration, parts);
}

function hasRoomFor(configuration: JsonObject, parts: readonly string[]): boolean {
  let value: JsonValue = configuration;
  for (const part of parts) {
    if (isBlank(value)) return true;
    if (!isHolder(value)) return false;
    const below = child(value, part);
    if (below === undefined) return isObject(value);
    value = below;
  }
  return true;
}

/** By part; what a path ends at may have others below it. */
interface PathTree extends Map<string, PathTree> {}

/**
 * Makes what takes away what is blank at the paths, or on the way to them: `{"documents": ""}` for "documents.folder".
 * Items of lists stay, so that the others keep their numbers. What it costs depends on the object alone.
 */
export function blanksTakenAt(paths: readonly string[]): (object: JsonObject) => JsonObject {
  const tree: PathTree = new Map();
  for (const path of paths) {
    let node = tree;
    for (const part of partsOf(path) ?? []) {
      const next: PathTree = node.get(part) ?? new Map();
      node.set(part, next);
      node = next;
    }
  }
  return (object) => withoutBlanks(object, tree) as JsonObject;
}

function withoutBlanks(base: JsonValue, tree: PathTree): JsonValue {
  if (!isHolder(base) || tree.size === 0) return base;
  if (Array.isArray(base)) {
    return base.map((item: JsonValue, i) => withoutBlanks(item, tree.get(String(i)) ?? nothing));
  }
  const entries = Object.entries(base)
    .filter(([key, value]) => !(tree.has(key) && isBlank(value)))
    .map(([key, value]) => [key, withoutBlanks(value, tree.get(key) ?? nothing)]);
  // fromEntries defines properties, so that a key of any name is only a key.
  return Object.fromEntries(entries);
}

const nothing: PathTree = new Map();

/** Nothing, an empty text or only spaces: what a form sends for a field that was left alone. */
export function isBlank(value: JsonValue | undefined): boolean {
  return value === undefined || value === null || (typeof value === "string" && value.trim() === "");
}

function child(value: JsonValue, part: string): JsonValue | undefined {
  if (Array.isArray(value)) return INDEX.test(part) ? value[Number(part)] : undefined;
  return isObject(value) && Object.hasOwn(value, part) ? value[part] : undefined;
}

type Holder = JsonObject | JsonValue[];

const isHolder = (value: JsonValue | undefined): value is Holder => Array.isArray(value) || isObject(value);

/** @param part of a path, so neither "__proto__" nor an item that the list does not have */
function put(holder: Holder, part: string, value: JsonValue): void {
  if (Array.isArray(holder)) holder[Number(part)] = value;
  else (holder as Record<string, JsonValue>)[part] = value;
}
