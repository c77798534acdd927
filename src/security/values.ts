// What the values of a configuration can be besides plain JSON.
//
// V1. `{"$sealed": "…"}` is a secret as it is stored, and never comes from outside.
// V2. `{"$env": "NAME"}`, with no other key, stands for a variable of the runtime's environment.

import { isObject, type JsonObject, type JsonValue } from "../engine/json.ts";
import { holdsSealed } from "../engine/sealed.ts";
import { looksSecret } from "./secret-names.ts";
import { noPaths, type SecretPaths } from "./secret-paths.ts";
import { holdsSecret } from "./secret-texts.ts";

/** Whether a value under a secret's key is worth sealing: nothing, an empty text and a switch tell no secret. */
export function isSealable(value: JsonValue): boolean {
  if (value === null || value === "" || typeof value === "boolean") return false;
  return !isEnvReference(value);
}

/** Whether a value is a secret; `named` tells whether its key, or the manifest, says so. */
export function isSecret(value: JsonValue, named: boolean): boolean {
  return (named && isSealable(value)) || holdsSecret(value);
}

/** What is known of the value under a key: whether it is a secret by name, and what is named below it. */
export function under(
  key: string,
  paths: SecretPaths,
): { readonly named: boolean; readonly below: SecretPaths } {
  const found = paths.get(key);
  return { named: found === null || looksSecret(key), below: found ?? noPaths };
}

/** Secrets that one configuration, or one run's inputs, may have: encrypting each takes some ten microseconds. */
export const SECRETS_MAX = 500;

export const TOO_MANY_SECRETS = `holds more than ${SECRETS_MAX} secrets. Put them below one key that looks like a secret's, such as "secrets": it is encrypted as one`;

/** Whether a value has more secrets than it may have; looks no further than that. */
export function hasTooManySecrets(value: JsonValue, paths: SecretPaths): boolean {
  return secretsLeft(value, paths, SECRETS_MAX) < 0;
}

/** Whether there is a secret in a value that is in clear, or something that looks sealed. */
export function hasSecrets(value: JsonValue, paths: SecretPaths): boolean {
  return holdsSealed(value) || secretsLeft(value, paths, 0) < 0;
}

function secretsLeft(value: JsonValue, paths: SecretPaths, max: number): number {
  let left = max;
  const look = (inner: JsonValue, named: boolean, below: SecretPaths) => {
    left = isSecret(inner, named) ? left - 1 : secretsLeft(inner, below, left);
    return left >= 0;
  };
  if (Array.isArray(value)) value.every((item: JsonValue) => look(item, false, paths));
  else if (isObject(value)) {
    Object.entries(value).every(([key, member]) => {
      const { named, below } = under(key, paths);
      return look(member, named, below);
    });
  }
  return left;
}

export interface EnvReference extends JsonObject {
  readonly $env: string;
}

/** Whether the value stands for a variable (V2). */
export function isEnvReference(value: JsonValue | undefined): value is EnvReference {
  return isObject(value) && typeof value.$env === "string" && Object.keys(value).length === 1;
}
