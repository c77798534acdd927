// Secrets in the bodies of messages. The engine holds them encrypted, `{"$sealed": "…"}`, and cannot decrypt them: they are
// encrypted at the edge (src/security), and decrypted for workers (src/execution).

import { isObject, type JsonObject, type JsonValue } from "./json.ts";

/** Shown in place of a secret. */
export const MASK = "********";

export interface Sealed extends JsonObject {
  readonly $sealed: JsonValue;
}

/** Whether the value is, or claims to be, an encrypted one: it has the key `$sealed`, whatever else. */
export function isSealed(value: JsonValue | undefined): value is Sealed {
  return isObject(value) && Object.hasOwn(value, "$sealed");
}

/** Whether any part of the value is encrypted. */
export function holdsSealed(value: JsonValue): boolean {
  if (!isObject(value)) return Array.isArray(value) && value.some(holdsSealed);
  // A list of the values would cost three times as much as looking at them.
  for (const key in value) if (key === "$sealed" || holdsSealed(value[key]!)) return true;
  return false;
}

/** The value as it may be shown: a mask for each encrypted part. */
export function withoutSealed<V extends JsonValue>(value: V): V {
  return holdsSealed(value) ? (masked(value) as V) : value;
}

function masked(value: JsonValue): JsonValue {
  if (isSealed(value)) return MASK;
  if (Array.isArray(value)) return value.map(masked);
  if (!isObject(value)) return value;
  // fromEntries defines properties, so that a key such as __proto__ is only a key.
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, masked(item)]));
}
