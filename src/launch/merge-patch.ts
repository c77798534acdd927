// JSON merge patch (RFC 7396) on configurations, in which a reference to a variable is one value.

import { isObject, type JsonObject, type JsonValue } from "../engine/json.ts";
import { isEnvReference } from "../security/values.ts";

/**
 * Applies a merge patch: objects are merged key by key, null takes a key away, everything else replaces.
 *
 * @example mergePatch({ a: 1, b: { c: 2 } }, { a: null, b: { d: 3 } }); // { b: { c: 2, d: 3 } }
 */
export function mergePatch(target: JsonValue, patch: JsonObject): JsonObject {
  const below = isObject(target) && !isEnvReference(target) ? Object.entries(target) : [];
  const entries = new Map<string, JsonValue>(below);
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) entries.delete(key);
    else if (!isObject(value) || isEnvReference(value)) entries.set(key, value);
    else entries.set(key, mergePatch(entries.get(key) ?? null, value));
  }
  // fromEntries defines properties, so that a key such as __proto__ is only a key.
  return Object.fromEntries(entries);
}
