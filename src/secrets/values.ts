// What the values of a configuration can be besides plain JSON.
//
// V1. `{"$sealed": "…"}` is a secret as it is stored, and never comes from outside.
// V2. `{"$env": "NAME"}`, with no other key, stands for a variable of the runtime's environment.

import { isObject, type JsonObject, type JsonValue } from "../engine/json.ts";

/** What a client is shown in place of a secret, and sends back to keep it. */
export const MASK = "********";

const SECRET_KEY = /(?:api[_-]?key|token|secret|password|authorization|cookie|private[_-]?key)$/i;

/** Whether a configuration key or variable of this name holds a secret. */
export function looksSecret(name: string): boolean {
  return SECRET_KEY.test(name);
}

/** Whether a value under a secret's key is worth sealing: nothing, an empty text and a switch tell no secret. */
export function isSealable(value: JsonValue): boolean {
  if (value === null || value === "" || typeof value === "boolean") return false;
  return !isEnvReference(value);
}

export interface EnvReference extends JsonObject {
  readonly $env: string;
}

/** Whether the value stands for a variable (V2). */
export function isEnvReference(value: JsonValue | undefined): value is EnvReference {
  return isObject(value) && typeof value.$env === "string" && Object.keys(value).length === 1;
}

export interface Sealed extends JsonObject {
  readonly $sealed: JsonValue;
}

/** Whether the value is, or is meant to be, a sealed one: it has the key `$sealed`, whatever else. */
export function isSealed(value: JsonValue | undefined): value is Sealed {
  return isObject(value) && Object.hasOwn(value, "$sealed");
}
