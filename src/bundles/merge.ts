// Configurations laid over one another, and patched. A reference to a variable is one value, though it is written as an
// object.

import { isObject, type JsonObject, type JsonValue } from "../engine/json.ts";
import { isEnvReference } from "../security/secret-detection.ts";

/**
 * Lays `over` on `base`: objects are merged key by key, everything else (lists and null too) is replaced.
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

/**
 * Applies a JSON merge patch (RFC 7396) to a configuration: objects are merged key by key, null takes a key away, everything else replaces.
 *
 * @example mergePatch({ a: 1, b: { c: 2 } }, { a: null, b: { d: 3 } }); // { b: { c: 2, d: 3 } }
 */
export function mergePatch(target: JsonValue, patch: JsonObject): JsonObject {
  const entries = new Map<string, JsonValue>(isLayer(target) ? Object.entries(target) : []);
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) entries.delete(key);
    else if (!isLayer(value)) entries.set(key, value);
    else entries.set(key, mergePatch(entries.get(key) ?? null, value));
  }
  // fromEntries defines properties, so that a key such as __proto__ is only a key.
  return Object.fromEntries(entries);
}

function isLayer(value: JsonValue | undefined): value is JsonObject {
  return isObject(value) && !isEnvReference(value);
}
