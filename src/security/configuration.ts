// Secrets in configurations and in runs' inputs: encrypted where they are stored, masked where they are shown, plaintext
// for workers alone. secret-detection.ts says what is a secret.
//
// - What this module hands out to be stored has no secret in plaintext; what it hands out to be shown has neither a
//   secret nor a ciphertext.
// - What is decrypted for a worker comes with the texts that must not be shown, for redaction.
// - What is shown can be sent back as it is, and changes nothing.
// - Each function is one walk: the cost is linear, and the depth is that of the JSON that was let in.

import type { Graph } from "../engine/graph.ts";
import { isObject, type JsonObject, type JsonValue } from "../engine/json.ts";
import { holdsSealed, isSealed, MASK, type Sealed } from "../engine/sealed.ts";
import { pointer } from "../lib/text.ts";
import { ConfigurationDecryption, type Environment, outside } from "./configuration-decryption.ts";
import { ConfigurationEncryption, type ConfigurationProblem } from "./configuration-encryption.ts";
import { ValueCipher } from "./encryption.ts";
import {
  hasSecrets,
  isEnvReference,
  isSecret,
  noPaths,
  type SecretPaths,
  under,
} from "./secret-detection.ts";
import type { SecretKey } from "./secret-key.ts";

export type EncryptedConfiguration = EncryptedValue<JsonObject>;

export type EncryptedValue<V extends JsonValue> =
  | { readonly kind: "encrypted"; readonly value: V }
  | { readonly kind: "invalid"; readonly errors: readonly ConfigurationProblem[] };

export interface DecryptedConfiguration {
  /** For SVC_BLUEPRINT_CONFIG_JSON; never to be written anywhere. */
  readonly json: string;
  /** Every text in it that must not be shown, in each form in which a worker may print it. */
  readonly secrets: readonly string[];
}

export interface GivenPlace {
  readonly at?: string;
  readonly paths?: SecretPaths;
}

export interface GivenBody extends GivenPlace {
  /** The body that the client was shown and has changed, encrypted; nothing without it. */
  readonly stored?: JsonValue;
}

export interface DecryptedBody {
  /** Plaintext for a worker, never to be written anywhere. */
  readonly body: JsonValue;
  readonly secrets: readonly string[];
}

export class ConfigurationSecrets {
  readonly #cipher: ValueCipher;

  constructor(key: SecretKey) {
    this.#cipher = new ValueCipher(key);
  }

  /**
   * Encrypts the secrets in what a client sent. `"********"` in place of a secret keeps the value that is stored at the same path; in a
   * list only if the list is as long as the stored one.
   *
   * @param sent in plaintext
   * @param stored what is stored now, encrypted; `{}` when nothing is
   * @param given.at JSON Pointer of the configuration in the request's body
   * @param given.paths what the manifest names as secret
   * @returns `invalid` with every wrong place (100, then how many more): a mask where nothing is stored, or a
   *   `{"$sealed": …}`, which only the server makes; or too many secrets
   *
   * @example secrets.encryptGiven({ api_key: "********" }, stored); // keeps stored.api_key
   */
  encryptGiven(
    sent: JsonObject,
    stored: JsonObject,
    { at = "/resolved_configuration", paths = noPaths }: GivenPlace = {},
  ): Promise<EncryptedConfiguration> {
    return this.#encryptedGiven(sent, stored, { at, paths }) as Promise<EncryptedConfiguration>;
  }

  /** Encrypts the body of a message that a client sent, as encryptGiven does. */
  encryptBody(
    body: JsonValue,
    { at = "/body", paths = noPaths, stored = {} }: GivenBody = {},
  ): Promise<EncryptedValue<JsonValue>> {
    return this.#encryptedGiven(body, stored, { at, paths });
  }

  /**
   * Encrypts a run's inputs in the same way: one body for all entrypoints, or bodies under `$entrypoints`.
   *
   * @param given.paths into each body
   */
  async encryptInputs(
    inputs: JsonObject,
    { at = "/inputs", paths = noPaths }: GivenPlace = {},
  ): Promise<EncryptedConfiguration> {
    const { $entrypoints: addressed } = inputs;
    if (!isObject(addressed)) return this.encryptGiven(inputs, {}, { at, paths });
    const result = await this.encryptAddressed(addressed, { at: `${at}/$entrypoints`, paths });
    if (result.kind === "invalid") return result;
    return { kind: "encrypted", value: { ...inputs, $entrypoints: result.value } };
  }

  /** Encrypts bodies by the node that they are for; a node's name does not make them secret. */
  async encryptAddressed(
    addressed: JsonObject,
    { at = "", paths = noPaths }: GivenPlace = {},
  ): Promise<EncryptedConfiguration> {
    const nodes = Object.keys(addressed);
    const result = await this.encryptBody(Object.values(addressed), { at, paths });
    if (result.kind === "encrypted")
      return { kind: "encrypted", value: zipped(nodes, result.value as JsonValue[]) };
    const errors = result.errors.map(({ path, ...error }) => {
      const [, index, rest = ""] = /^\/(\d+)(.*)$/s.exec(path.slice(at.length)) ?? [];
      return { ...error, path: index === undefined ? path : at + pointer([nodes[Number(index)]!]) + rest };
    });
    return { kind: "invalid", errors };
  }

  async #encryptedGiven(
    sent: JsonValue,
    stored: JsonValue,
    { at, paths }: Required<GivenPlace>,
  ): Promise<EncryptedValue<JsonValue>> {
    const encryption = new ConfigurationEncryption(this.#cipher, at);
    const value = await encryption.whole(sent, stored, paths);
    const errors = encryption.problems();
    return errors.length > 0 ? { kind: "invalid", errors } : { kind: "encrypted", value };
  }

  /** Encrypts a text that is a secret, wherever it stands. */
  encryptText(text: string): Sealed {
    return this.#cipher.encrypt(text);
  }

  /** @returns null when it was encrypted with a key that is not here, or changed since */
  decryptText({ $sealed }: Sealed): string | null {
    const decrypted = this.#cipher.decrypt($sealed);
    return typeof decrypted?.value === "string" ? decrypted.value : null;
  }

  /** Encrypts inputs that are plaintext throughout, as `encrypt` does. */
  encryptOwnInputs(inputs: JsonObject, paths: SecretPaths): JsonObject {
    return mappedBodies(inputs, (body) => encrypted(this.#cipher, body, false, paths));
  }

  /** Encrypts the manifest's own first messages, which are plaintext; the same graph when there is nothing to encrypt. */
  withEncryptedInputs(graph: Graph, paths: SecretPaths): Graph {
    const bodies = [...graph.initialInputs];
    if (
      !hasSecrets(
        bodies.map(([, list]) => [...list]),
        paths,
      )
    )
      return graph;
    const encryptBody = (body: JsonValue) => encrypted(this.#cipher, body, false, paths);
    return { ...graph, initialInputs: new Map(bodies.map(([node, list]) => [node, list.map(encryptBody)])) };
  }

  /**
   * Encrypts the secrets of a configuration that is plaintext throughout, such as a bundle's own. A `{"$sealed": …}` in
   * it is encrypted once more: the worker gets it as it was written, and it is never decrypted.
   */
  encrypt(plaintext: JsonObject, paths = noPaths): JsonObject {
    return mapped(plaintext, paths, (value, named, below) => encrypted(this.#cipher, value, named, below));
  }

  /**
   * Decrypts, in slices; `{"$env": …}` stays as it is.
   *
   * @returns plaintext, so never to be written anywhere
   * @throws ConfigurationUnreadable when a value was encrypted with another key or is damaged
   */
  async decrypt(stored: JsonObject): Promise<JsonObject> {
    const decryption = new ConfigurationDecryption(this.#cipher, null);
    await decryption.ahead(stored);
    const plaintext = decryption.members(stored, outside);
    decryption.check();
    return plaintext;
  }

  /**
   * Decrypts a stored configuration, in slices, for a worker that is about to start.
   *
   * @param json as it is stored: an object with its secrets encrypted, or in plaintext as an older version wrote them
   * @param env the runtime's own environment, from which `{"$env": "NAME"}` is resolved, inside secrets too
   * @throws ConfigurationUnreadable when a value cannot be decrypted, or a variable is not set
   */
  async decryptForWorker(json: string, env: Environment): Promise<DecryptedConfiguration> {
    const decryption = new ConfigurationDecryption(this.#cipher, env);
    const stored = JSON.parse(json) as JsonObject;
    await decryption.ahead(stored);
    const plaintext = decryption.members(stored, outside);
    decryption.check();
    return { json: decryption.replaced ? JSON.stringify(plaintext) : json, secrets: decryption.secrets };
  }

  /**
   * Decrypts the body of a message for a worker. What only looks encrypted was made by a worker, and stays.
   *
   * @throws ConfigurationUnreadable when a value was encrypted with another key or is damaged
   */
  decryptBody(body: JsonValue): DecryptedBody {
    if (!holdsSealed(body)) return { body, secrets: [] };
    const decryption = new ConfigurationDecryption(this.#cipher, null);
    const plaintext = decryption.body(body);
    decryption.check();
    return { body: plaintext, secrets: decryption.secrets };
  }

  /**
   * Puts `"********"` in place of every secret, encrypted or not; `{"$env": "NAME"}` is shown as it is.
   *
   * @param paths what the manifest names as secret: for what is not encrypted
   */
  mask(configuration: JsonObject, paths = noPaths): JsonObject {
    return mapped(configuration, paths, masked);
  }

  /** The same for a run's inputs. */
  maskInputs(inputs: JsonObject, paths = noPaths): JsonObject {
    return mappedBodies(inputs, (body) => masked(body, false, paths));
  }
}

function encrypted(cipher: ValueCipher, value: JsonValue, named: boolean, paths: SecretPaths): JsonValue {
  if (isSealed(value) || isSecret(value, named)) return cipher.encrypt(value);
  if (Array.isArray(value)) return value.map((item: JsonValue) => encrypted(cipher, item, false, paths));
  if (!isObject(value)) return value;
  return mapped(value, paths, (item, itemNamed, below) => encrypted(cipher, item, itemNamed, below));
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
      // What is encrypted is a secret under any key.
      const { named, below } = isSealed(value) ? { named: true, below: noPaths } : under(key, paths);
      return [key, map(value, named, below)];
    }),
  );
}
