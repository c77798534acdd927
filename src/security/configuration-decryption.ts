// Decrypts a stored configuration for a worker.
//
// - A configuration is decrypted completely or not at all.
// - A variable with a secret of the runtime itself is never read.
// - The content of an encrypted value is literal except for `{"$env": …}`: a `$sealed` inside it is never decrypted.

import type { FailureCode } from "../engine/failure-catalogue.ts";
import { isWithheldVariable } from "../engine/graph.ts";
import { isObject, type JsonObject, type JsonValue } from "../engine/json.ts";
import { isSealed, type Sealed } from "../engine/sealed.ts";
import { Slices } from "../lib/slices.ts";
import { pointer } from "../lib/text.ts";
import type { ValueCipher } from "./encryption.ts";
import { type EnvReference, isEnvReference, looksSecret, secretsInText } from "./secret-detection.ts";

/** A configuration that cannot be decrypted; the message names places and variables, no values. */
export class ConfigurationUnreadable extends Error {
  override readonly name = "ConfigurationUnreadable";
  readonly code: FailureCode;

  constructor(code: FailureCode, message: string) {
    super(message);
    this.code = code;
  }
}

export type Environment = Readonly<Record<string, string | undefined>>;

const PLACES_SHOWN_MAX = 10;

/** Where a value is: under a secret's key or in an encrypted value (`secret`); in an encrypted value (`encrypted`). */
interface Inside {
  readonly secret: boolean;
  readonly encrypted: boolean;
}

export const outside: Inside = { secret: false, encrypted: false };

/** One walk over one configuration. */
export class ConfigurationDecryption {
  /** Texts that must not be shown, in each form in which a worker may print them. */
  readonly secrets: string[] = [];
  /** Whether the result differs from what is stored. */
  replaced = false;
  readonly #cipher: ValueCipher;
  readonly #env: Environment | null;
  /** What has been decrypted before the walk, by its text. */
  readonly #ahead = new Map<JsonValue, ReturnType<ValueCipher["decrypt"]>>();
  readonly #path: (string | number)[] = [];
  readonly #unreadable: string[] = [];
  readonly #missing: string[] = [];
  readonly #withheld: string[] = [];

  /** @param env null leaves `{"$env": …}` as it is */
  constructor(cipher: ValueCipher, env: Environment | null) {
    this.#cipher = cipher;
    this.#env = env;
  }

  /** Decrypts in slices what the walk will need: hundreds of secrets take milliseconds. */
  async ahead(stored: JsonValue): Promise<void> {
    const slices = new Slices();
    for (const text of encryptedIn(stored)) {
      if (slices.isOver) await slices.breathe();
      this.#ahead.set(text, this.#cipher.decrypt(text));
    }
  }

  /** @throws ConfigurationUnreadable that names what could not be decrypted */
  check(): void {
    if (this.#unreadable.length > 0) {
      throw new ConfigurationUnreadable(
        "configuration.unreadable",
        `Secrets of the configuration were encrypted with another key, or are damaged: ${listed(this.#unreadable)}.`,
      );
    }
    if (this.#withheld.length > 0) {
      throw new ConfigurationUnreadable(
        "configuration.variable_withheld",
        `The configuration names variables with the runtime's own secrets, which no worker is given: ${listed(this.#withheld)}.`,
      );
    }
    if (this.#missing.length > 0) {
      throw new ConfigurationUnreadable(
        "configuration.variable_missing",
        `The configuration names variables that the runtime's environment does not have: ${listed(this.#missing)}.`,
      );
    }
  }

  members(object: JsonObject, inside: Inside): JsonObject {
    return Object.fromEntries(
      Object.entries(object).map(([key, value]) => {
        const secret = inside.secret || looksSecret(key);
        return [key, this.#step(key, value, { ...inside, secret })];
      }),
    );
  }

  /** Decrypts a message's body: only its encrypted values are secrets, and a worker may have made one that only looks so. */
  body(value: JsonValue): JsonValue {
    if (Array.isArray(value)) return value.map((item: JsonValue, index) => this.#within(index, item));
    if (!isObject(value)) return value;
    if (isSealed(value) && this.#cipher.looksEncrypted(value.$sealed)) return this.#decrypted(value, outside);
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, this.#within(key, item)]));
  }

  #within(step: string | number, value: JsonValue): JsonValue {
    this.#path.push(step);
    const decrypted = this.body(value);
    this.#path.pop();
    return decrypted;
  }

  #value(value: JsonValue, inside: Inside): JsonValue {
    if (typeof value === "string") {
      if (inside.secret) this.#addSecret(value);
      for (const secret of secretsInText(value)) this.#addSecret(secret);
      return value;
    }
    if (typeof value === "number" && inside.secret) this.secrets.push(String(value));
    if (Array.isArray(value)) {
      return value.map((item: JsonValue, index) => this.#step(index, item, inside));
    }
    if (!isObject(value)) return value;
    if (isSealed(value) && !inside.encrypted) return this.#decrypted(value, inside);
    if (isEnvReference(value)) return this.#resolved(value);
    return this.members(value, inside);
  }

  #step(step: string | number, value: JsonValue, inside: Inside): JsonValue {
    this.#path.push(step);
    const decrypted = this.#value(value, inside);
    this.#path.pop();
    return decrypted;
  }

  #decrypted(encrypted: Sealed, inside: Inside): JsonValue {
    const isWhole = Object.keys(encrypted).length === 1;
    const decrypted = isWhole ? this.#decryptedText(encrypted.$sealed) : null;
    if (decrypted === null) {
      this.#unreadable.push(pointer(this.#path));
      return null;
    }
    this.replaced = true;
    // Of a text that is encrypted for the address in it, the address and its password are the secret.
    const { value } = decrypted;
    const isForAddress = !inside.secret && typeof value === "string" && secretsInText(value).length > 0;
    return this.#value(value, { secret: !isForAddress, encrypted: true });
  }

  #decryptedText(text: JsonValue) {
    const ahead = this.#ahead.get(text);
    return ahead === undefined ? this.#cipher.decrypt(text) : ahead;
  }

  #resolved(reference: EnvReference): JsonValue {
    if (this.#env === null) return reference;
    const { $env: name } = reference;
    if (isWithheldVariable(name)) {
      this.#withheld.push(`${name} at ${pointer(this.#path)}`);
      return null;
    }
    const value = Object.hasOwn(this.#env, name) ? this.#env[name] : undefined;
    if (value === undefined) {
      this.#missing.push(`${name} at ${pointer(this.#path)}`);
      return null;
    }
    this.replaced = true;
    this.#addSecret(value);
    return value;
  }

  #addSecret(text: string): void {
    this.secrets.push(text);
    // The worker is given JSON: printed as it came, the secret has its quotes and line ends escaped.
    const escaped = JSON.stringify(text).slice(1, -1);
    if (escaped !== text) this.secrets.push(escaped);
  }
}

function* encryptedIn(value: JsonValue): Generator<JsonValue> {
  if (Array.isArray(value)) for (const item of value) yield* encryptedIn(item);
  else if (isSealed(value)) yield value.$sealed;
  else if (isObject(value)) for (const key in value) yield* encryptedIn(value[key]!);
}

function listed(places: readonly string[]): string {
  const shown = places.slice(0, PLACES_SHOWN_MAX).join(", ");
  const more = places.length - PLACES_SHOWN_MAX;
  return more > 0 ? `${shown} and ${more} more` : shown;
}
