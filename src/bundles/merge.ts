// Configuration in layers.

import { isObject, type JsonObject, type JsonValue } from "../engine/json.ts";
import { isEnvReference } from "../security/values.ts";

/**
 * Lays `over` on `base`: objects are merged key by key, everything else (lists and null too) is replaced. A reference to
 * a variable is one value, though it is written as an object: it replaces, and is replaced, whole.
 *
 * @example merged({ a: { b: 1, c: 2 } }, { a: { b: 3 } }); // { a: { b: 3, c: 2 } }
 */
export function merged(base: JsonObject, over: JsonObject): JsonObject {
  const entries = new Map<string, JsonValue>(Object.entries(base));
  for (const [key, value] of Object.entries(over)) {
    const below = entries.get(key);
    entries.set(key, isLayer(below) && isLayer(value) ? merged(below, value) : value);
  }
  // fromEntries defines properties, so that a key such as __proto__ is only a key.
  return Object.fromEntries(entries);
}

function isLayer(value: JsonValue | undefined): value is JsonObject {
  return isObject(value) && !isEnvReference(value);
}
