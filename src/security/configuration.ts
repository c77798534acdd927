// Secrets in configurations and in runs' inputs: sealed where they are stored, masked where they are shown, in clear for
// workers alone. What is secret follows from names (secret-names.ts), from texts (secret-texts.ts), and from what the
// manifest names (secret-paths.ts).
//
// C1. What this module hands out to be stored has no secret in clear; what it hands out to be shown has neither a
//     secret nor a ciphertext.
// C2. What is opened for a worker comes with the texts that must not be shown, for redaction.
// C3. What is shown can be sent back as it is, and changes nothing.
// C4. Each function is one walk: the cost is linear, and the depth is that of the JSON that was let in.

import type { Graph } from "../engine/graph.ts";
import { isObject, type JsonObject, type JsonValue } from "../engine/json.ts";
import { holdsSealed, isSealed, MASK } from "../engine/sealed.ts";
import { type ConfigurationProblem, Sealing } from "./given-configuration.ts";
import { type Environment, Opening, outside } from "./open-configuration.ts";
import { pointer } from "./pointer.ts";
import { Sealer } from "./sealer.ts";
import type { SecretKey } from "./secret-key.ts";
import { noPaths, type SecretPaths } from "./secret-paths.ts";
import { hasSecrets, isEnvReference, isSecret, under } from "./values.ts";

export type SealedConfiguration = SealedValue<JsonObject>;

export type SealedValue<V extends JsonValue> =
  | { readonly kind: "sealed"; readonly value: V }
  | { readonly kind: "invalid"; readonly errors: readonly ConfigurationProblem[] };

export interface OpenedConfiguration {
  /** For SVC_BLUEPRINT_CONFIG_JSON; never to be written anywhere. */
  readonly json: string;
  /** Every text in it that must not be shown, in each form in which a worker may print it. */
  readonly secrets: readonly string[];
}

export interface GivenPlace {
  readonly at?: string;
  readonly paths?: SecretPaths;
}

export interface OpenedBody {
  /** In clear; for a worker, never to be written anywhere. */
  readonly body: JsonValue;
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
   * @param given.at JSON Pointer of the configuration in the request's body
   * @param given.paths what the manifest names as secret
   * @returns `invalid` with every wrong place (100, then how many more): a mask where nothing is stored, or a
   *   `{"$sealed": …}`, which only the server makes; or too many secrets
   *
   * @example secrets.sealGiven({ api_key: "********" }, stored); // keeps stored.api_key
   */
  sealGiven(
    sent: JsonObject,
    stored: JsonObject,
    { at = "/resolved_configuration", paths = noPaths }: GivenPlace = {},
  ): Promise<SealedConfiguration> {
    return this.#sealed(sent, stored, { at, paths }) as Promise<SealedConfiguration>;
  }

  /** Seals the body of a message that a client sent, as sealGiven does where nothing is stored. */
  sealBody(
    body: JsonValue,
    { at = "/body", paths = noPaths }: GivenPlace = {},
  ): Promise<SealedValue<JsonValue>> {
    return this.#sealed(body, {}, { at, paths });
  }

  /**
   * Seals a run's inputs in the same way: one body for all entrypoints, or bodies under `$entrypoints`.
   *
   * @param given.paths into each body
   */
  async sealInputs(
    inputs: JsonObject,
    { at = "/inputs", paths = noPaths }: GivenPlace = {},
  ): Promise<SealedConfiguration> {
    const { $entrypoints: addressed } = inputs;
    if (!isObject(addressed)) return this.sealGiven(inputs, {}, { at, paths });
    const sealed = await this.sealAddressed(addressed, { at: `${at}/$entrypoints`, paths });
    if (sealed.kind === "invalid") return sealed;
    return { kind: "sealed", value: { ...inputs, $entrypoints: sealed.value } };
  }

  /** Seals bodies by the node that they are for, whose name says nothing of what is in them. */
  async sealAddressed(
    addressed: JsonObject,
    { at = "", paths = noPaths }: GivenPlace = {},
  ): Promise<SealedConfiguration> {
    const nodes = Object.keys(addressed);
    const sealed = await this.sealBody(Object.values(addressed), { at, paths });
    if (sealed.kind === "sealed")
      return { kind: "sealed", value: zipped(nodes, sealed.value as JsonValue[]) };
    const errors = sealed.errors.map(({ path, ...error }) => {
      const [, index, rest = ""] = /^\/(\d+)(.*)$/s.exec(path.slice(at.length)) ?? [];
      return { ...error, path: index === undefined ? path : at + pointer([nodes[Number(index)]!]) + rest };
    });
    return { kind: "invalid", errors };
  }

  async #sealed(
    sent: JsonValue,
    stored: JsonObject,
    { at, paths }: Required<GivenPlace>,
  ): Promise<SealedValue<JsonValue>> {
    const sealing = new Sealing(this.#sealer, at);
    const value = await sealing.whole(sent, stored, paths);
    const errors = sealing.problems();
    return errors.length > 0 ? { kind: "invalid", errors } : { kind: "sealed", value };
  }

  /** Seals inputs that are in clear throughout, as `seal` does. */
  sealOwnInputs(inputs: JsonObject, paths: SecretPaths): JsonObject {
    return mappedBodies(inputs, (body) => sealed(this.#sealer, body, false, paths));
  }

  /** Seals the manifest's own first messages, which are in clear; the same graph when there is nothing to seal. */
  withSealedInputs(graph: Graph, paths: SecretPaths): Graph {
    const bodies = [...graph.initialInputs];
    if (
      !hasSecrets(
        bodies.map(([, list]) => [...list]),
        paths,
      )
    )
      return graph;
    const sealBody = (body: JsonValue) => sealed(this.#sealer, body, false, paths);
    return { ...graph, initialInputs: new Map(bodies.map(([node, list]) => [node, list.map(sealBody)])) };
  }

  /**
   * Seals a configuration that is in clear throughout, such as a bundle's own. A `{"$sealed": …}` in it is sealed
   * once more: the worker gets it as it was written, and it is never opened.
   */
  seal(clear: JsonObject, paths = noPaths): JsonObject {
    return mapped(clear, paths, (value, named, below) => sealed(this.#sealer, value, named, below));
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

  /**
   * Opens the body of a message for a worker. What only looks sealed was made by a worker, and stays.
   *
   * @throws ConfigurationUnreadable when a value was sealed with another key or is damaged
   */
  openBody(body: JsonValue): OpenedBody {
    if (!holdsSealed(body)) return { body, secrets: [] };
    const opening = new Opening(this.#sealer, null);
    const clear = opening.body(body);
    opening.check();
    return { body: clear, secrets: opening.secrets };
  }

  /**
   * Puts `"********"` in place of every secret, sealed or in clear; `{"$env": "NAME"}` is shown as it is.
   *
   * @param paths what the manifest names as secret: for what is not sealed
   */
  mask(configuration: JsonObject, paths = noPaths): JsonObject {
    return mapped(configuration, paths, masked);
  }

  /** The same for a run's inputs. */
  maskInputs(inputs: JsonObject, paths = noPaths): JsonObject {
    return mappedBodies(inputs, (body) => masked(body, false, paths));
  }
}

function sealed(sealer: Sealer, value: JsonValue, named: boolean, paths: SecretPaths): JsonValue {
  if (isSealed(value) || isSecret(value, named)) return sealer.seal(value);
  if (Array.isArray(value)) return value.map((item: JsonValue) => sealed(sealer, item, false, paths));
  if (!isObject(value)) return value;
  return mapped(value, paths, (item, itemNamed, below) => sealed(sealer, item, itemNamed, below));
}

function masked(value: JsonValue, named: boolean, paths: SecretPaths): JsonValue {
  if (isSealed(value) || isSecret(value, named)) return MASK;
  if (Array.isArray(value)) return value.map((item: JsonValue) => masked(item, false, paths));
  return isObject(value) && !isEnvReference(value) ? mapped(value, paths, masked) : value;
}

/** Maps what a run's entrypoints are sent: the inputs as one body, or bodies under `$entrypoints`. */
function mappedBodies(inputs: JsonObject, map: (body: JsonValue) => JsonValue): JsonObject {
  const { $entrypoints: addressed } = inputs;
  if (!isObject(addressed)) return map(inputs) as JsonObject;
  return { ...inputs, $entrypoints: zipped(Object.keys(addressed), Object.values(addressed).map(map)) };
}

function zipped(keys: readonly string[], values: readonly JsonValue[]): JsonObject {
  // fromEntries defines properties, so that a key such as __proto__ is only a key.
  return Object.fromEntries(keys.map((key, i) => [key, values[i]!]));
}

/** Maps an object's values; `named` tells whether a value is a secret by its key or the manifest. */
function mapped(
  object: JsonObject,
  paths: SecretPaths,
  map: (value: JsonValue, named: boolean, below: SecretPaths) => JsonValue,
): JsonObject {
  // fromEntries defines properties, so that a key such as __proto__ is only a key.
  return Object.fromEntries(
    Object.entries(object).map(([key, value]) => {
      // What is sealed is a secret under any key.
      const { named, below } = isSealed(value) ? { named: true, below: noPaths } : under(key, paths);
      return [key, map(value, named, below)];
    }),
  );
}
