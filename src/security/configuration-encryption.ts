// Prepares what a client sends for the store: secrets are encrypted, masks replaced by the stored values.
//
// - The result has no secret in plaintext: each secret value is encrypted as a whole. Their number is limited.
// - Only this program encrypts: `{"$sealed": …}` from a client is refused, so that no client can plant a ciphertext.
// - A mask keeps the value that is stored at the same path; where there is none it is refused, never stored.
// - Encrypting takes most of the time: it is done after the walk, a few secrets at a time, and only if nothing is wrong.

import { scheduler } from "node:timers/promises";
import { isWithheldVariable } from "../engine/graph.ts";
import { isObject, type JsonObject, type JsonValue } from "../engine/json.ts";
import { isSealed, MASK } from "../engine/sealed.ts";
import { pointer } from "../lib/text.ts";
import type { ValueCipher } from "./encryption.ts";
import {
  holdsSecret,
  isEnvReference,
  isPlain,
  isSecret,
  mayBeSecret,
  SECRETS_MAX,
  type SecretPaths,
  secretsLeft,
  TOO_MANY_SECRETS,
  under,
} from "./secret-detection.ts";

/** One wrong place of a configuration; the form of `errors` in a problem body. */
export interface ConfigurationProblem {
  /** JSON Pointer into the request's body. */
  readonly path: string;
  readonly code:
    | "nothing_to_keep"
    | "sealed_not_accepted"
    | "too_many_secrets"
    | "variable_withheld"
    | "more_problems";
  readonly message: string;
}

const PROBLEMS_MAX = 100;

/** Secrets encrypted without a pause: they take a millisecond in a program that has just started. */
const SECRETS_AT_ONCE = 20;

/** One walk over one configuration that a client sent. */
export class ConfigurationEncryption {
  readonly #cipher: ValueCipher;
  readonly #at: string;
  /** From the configuration's root to the value that is looked at. */
  readonly #path: (string | number)[] = [];
  readonly #problems: ConfigurationProblem[] = [];
  #problemCount = 0;
  /** What is to be encrypted, and where it goes. */
  readonly #secrets: { readonly plaintext: JsonValue; readonly place: { $sealed: JsonValue } }[] = [];

  /** @param at where the configuration is in the request's body, as a JSON Pointer */
  constructor(cipher: ValueCipher, at: string) {
    this.#cipher = cipher;
    this.#at = at;
  }

  /** What was wrong on the walk: 100 places at most, and then how many more. */
  problems(): readonly ConfigurationProblem[] {
    const more = this.#problemCount - this.#problems.length;
    if (more === 0) return this.#problems;
    return [...this.#problems, { path: this.#at, code: "more_problems", message: `and ${more} more` }];
  }

  /**
   * @param stored what is stored now
   * @param paths what the manifest names as secret
   * @returns the value as it may be stored, provided that there are no problems
   */
  async whole(value: JsonValue, stored: JsonValue, paths: SecretPaths): Promise<JsonValue> {
    if (isPlain(value, paths)) return value;
    const left = secretsLeft(value, paths, SECRETS_MAX);
    if (left < 0) {
      this.#refuse("too_many_secrets", TOO_MANY_SECRETS);
      return {};
    }
    if (SECRETS_MAX - left > SECRETS_AT_ONCE) await scheduler.yield();
    const whole = this.#value(value, stored, false, paths);
    if (this.#problemCount === 0) await this.#encrypt();
    return whole;
  }

  async #encrypt(): Promise<void> {
    const pauses = this.#secrets.length > SECRETS_AT_ONCE;
    for (const [index, { plaintext, place }] of this.#secrets.entries()) {
      if (pauses && index % SECRETS_AT_ONCE === 0) await scheduler.yield();
      place.$sealed = this.#cipher.encrypt(plaintext).$sealed;
    }
  }

  #encrypted(plaintext: JsonValue): JsonValue {
    const place = { $sealed: "" };
    this.#secrets.push({ plaintext, place });
    return place;
  }

  /** @param stored what is stored at the same place */
  #members(object: JsonObject, stored: JsonValue | undefined, paths: SecretPaths): JsonObject {
    if (isSealed(object)) this.#refuseSealed();
    const before = isObject(stored) ? stored : {};
    return Object.fromEntries(
      Object.entries(object).map(([key, value]) => {
        const kept = Object.hasOwn(before, key) ? before[key] : undefined;
        const { named, below } = under(key, paths);
        return [key, this.#inside(key, () => this.#value(value, kept, named, below))];
      }),
    );
  }

  #items(list: readonly JsonValue[], stored: JsonValue | undefined, paths: SecretPaths): JsonValue {
    // In a list whose length has changed, items cannot be matched: a key could be sent to another item's address.
    const before = Array.isArray(stored) && stored.length === list.length ? stored : [];
    return list.map((item, index) =>
      this.#inside(index, () => this.#value(item, before[index], false, paths)),
    );
  }

  #value(value: JsonValue, stored: JsonValue | undefined, named: boolean, paths: SecretPaths): JsonValue {
    this.#checkVariable(value);
    if (value === MASK && (named || isSealed(stored) || holdsSecret(stored))) return this.#keep(stored);
    if (isSecret(value, named)) {
      this.#checkInside(value);
      return this.#encrypted(value);
    }
    if (Array.isArray(value)) return this.#items(value, stored, paths);
    return isObject(value) ? this.#members(value, stored, paths) : value;
  }

  #keep(stored: JsonValue | undefined): JsonValue {
    if (stored === undefined) {
      this.#refuseMask();
      return MASK;
    }
    return !isSealed(stored) && mayBeSecret(stored) ? this.#encrypted(stored) : stored;
  }

  /** A value that is encrypted whole was shown as one mask; what it holds inside is new. */
  #checkInside(value: JsonValue): void {
    if (value === MASK) this.#refuseMask();
    else if (Array.isArray(value)) {
      value.forEach((item: JsonValue, index) => {
        this.#inside(index, () => this.#checkInside(item));
      });
    } else if (isObject(value)) {
      if (isSealed(value)) this.#refuseSealed();
      this.#checkVariable(value);
      for (const [key, item] of Object.entries(value)) this.#inside(key, () => this.#checkInside(item));
    }
  }

  #inside<Result>(step: string | number, look: () => Result): Result {
    this.#path.push(step);
    const result = look();
    this.#path.pop();
    return result;
  }

  #checkVariable(value: JsonValue): void {
    if (!isEnvReference(value) || !isWithheldVariable(value.$env)) return;
    const message = `${value.$env} holds or leads to a secret of the runtime itself: no worker is given it.`;
    this.#refuse("variable_withheld", message);
  }

  #refuseMask(): void {
    this.#refuse(
      "nothing_to_keep",
      `"${MASK}" keeps the value stored here, and there is none. Send the secret itself; in a list whose length changes, send all of its secrets again.`,
    );
  }

  #refuseSealed(): void {
    this.#refuse(
      "sealed_not_accepted",
      `A value with the key "$sealed" is made by the server alone. Send the secret itself, or "${MASK}" to keep the stored one.`,
    );
  }

  #refuse(code: ConfigurationProblem["code"], message: string): void {
    this.#problemCount++;
    if (this.#problems.length >= PROBLEMS_MAX) return;
    this.#problems.push({ path: this.#at + pointer(this.#path), code, message });
  }
}
