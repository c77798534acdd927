// Secrets in configurations: sealed where they are stored, masked where they are shown, in clear for workers alone.
//
// C1. What this module hands out to be stored has no secret in clear; what it hands out to be shown has neither a
//     secret nor a ciphertext.
// C2. What is opened for a worker comes with the texts that must not be shown, for redaction.
// C3. What is shown can be sent back as it is, and changes nothing.
// C4. Each function is one walk: the cost is linear, and the depth is that of the JSON that was let in.

import { isObject, type JsonObject, type JsonValue } from "../engine/json.ts";
import { type ConfigurationProblem, Sealing } from "./given-configuration.ts";
import { type Environment, Opening, outside } from "./open-configuration.ts";
import { Sealer } from "./sealer.ts";
import type { SecretKey } from "./secret-key.ts";
import { isEnvReference, isSealable, isSealed, looksSecret, MASK } from "./values.ts";

export type SealedConfiguration =
  | { readonly kind: "sealed"; readonly value: JsonObject }
  | { readonly kind: "invalid"; readonly errors: readonly ConfigurationProblem[] };

export interface OpenedConfiguration {
  /** For SVC_BLUEPRINT_CONFIG_JSON; never to be written anywhere. */
  readonly json: string;
  /** Every text in it that must not be shown, in each form in which a worker may print it. */
  readonly secrets: readonly string[];
}

export class ConfigurationSecrets {
  readonly #sealer: Sealer;

  constructor(key: SecretKey) {
    this.#sealer = new Sealer(key);
  }

  /**
   * Seals what a client sent. `"********"` in place of a secret keeps the value that is stored at the same path; in a
   * list only if the list is as long as the stored one.
   *
   * @param sent in clear
   * @param stored what is stored now, sealed; `{}` when nothing is
   * @param at JSON Pointer of the configuration in the request's body
   * @returns `invalid` with every wrong place (100, then how many more): a mask where nothing is stored, or a
   *   `{"$sealed": …}`, which only the server makes
   *
   * @example secrets.sealGiven({ api_key: "********" }, stored); // keeps stored.api_key
   */
  sealGiven(sent: JsonObject, stored: JsonObject, at = "/resolved_configuration"): SealedConfiguration {
    const sealing = new Sealing(this.#sealer, at);
    const value = sealing.members(sent, stored);
    const errors = sealing.problems();
    return errors.length > 0 ? { kind: "invalid", errors } : { kind: "sealed", value };
  }

  /**
   * Seals a configuration that is in clear throughout, such as a bundle's own. A `{"$sealed": …}` in it is sealed
   * once more: the worker gets it as it was written, and it is never opened.
   */
  seal(clear: JsonObject): JsonObject {
    return mapped(clear, (value, secret) => sealed(this.#sealer, value, secret));
  }

  /**
   * Opens what is sealed; `{"$env": …}` stays as it is.
   *
   * @returns in clear, so never to be written anywhere
   * @throws ConfigurationUnreadable when a value was sealed with another key or is damaged
   */
  unseal(stored: JsonObject): JsonObject {
    const opening = new Opening(this.#sealer, null);
    const clear = opening.members(stored, outside);
    opening.check();
    return clear;
  }

  /**
   * Opens a stored configuration for a worker that is about to start.
   *
   * @param json as it is stored: an object with its secrets sealed, or in clear as an older version wrote them
   * @param env the runtime's own environment, from which `{"$env": "NAME"}` is resolved, inside secrets too
   * @throws ConfigurationUnreadable when a value does not open, or a variable is not set
   */
  open(json: string, env: Environment): OpenedConfiguration {
    const opening = new Opening(this.#sealer, env);
    const clear = opening.members(JSON.parse(json) as JsonObject, outside);
    opening.check();
    return { json: opening.replaced ? JSON.stringify(clear) : json, secrets: opening.secrets };
  }

  /** Puts `"********"` in place of every secret, sealed or in clear; `{"$env": "NAME"}` is shown as it is. */
  mask(configuration: JsonObject): JsonObject {
    return mapped(configuration, masked);
  }
}

function sealed(sealer: Sealer, value: JsonValue, secret: boolean): JsonValue {
  if (isSealed(value) || (secret && isSealable(value))) return sealer.seal(value);
  if (Array.isArray(value)) return value.map((item: JsonValue) => sealed(sealer, item, false));
  return isObject(value) ? mapped(value, (item, looks) => sealed(sealer, item, looks)) : value;
}

function masked(value: JsonValue, secret: boolean): JsonValue {
  if (isSealed(value) || (secret && isSealable(value))) return MASK;
  if (Array.isArray(value)) return value.map((item: JsonValue) => masked(item, false));
  return isObject(value) && !isEnvReference(value) ? mapped(value, masked) : value;
}

/** Maps an object's values; `secret` tells whether a value's key looks like a secret's. */
function mapped(object: JsonObject, map: (value: JsonValue, secret: boolean) => JsonValue): JsonObject {
  // fromEntries defines properties, so that a key such as __proto__ is only a key.
  return Object.fromEntries(
    Object.entries(object).map(([key, value]) => [key, map(value, looksSecret(key))]),
  );
}
