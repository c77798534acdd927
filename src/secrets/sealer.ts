// Seals single values: what is stored tells nothing without the key, and what was changed does not open.
//
// L1. A sealed value is base64url of version (1 byte), nonce (12), ciphertext, tag (16): AES-256-GCM over the
//     value's JSON, the version authenticated with it.
// L2. Where the value stood is not part of it: a configuration may be rearranged.

import { createCipheriv, createDecipheriv, createSecretKey, type KeyObject, randomBytes } from "node:crypto";
import type { JsonValue } from "../engine/json.ts";
import type { SecretKey } from "./secret-key.ts";
import type { Sealed } from "./values.ts";

const ALGORITHM = "aes-256-gcm";
const VERSION = Buffer.of(1);
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const options = { authTagLength: TAG_BYTES };

export class Sealer {
  readonly #key: KeyObject;

  constructor(key: SecretKey) {
    this.#key = createSecretKey(key.derive("configuration secrets"));
  }

  seal(value: JsonValue): Sealed {
    const nonce = randomBytes(NONCE_BYTES);
    const cipher = createCipheriv(ALGORITHM, this.#key, nonce, options).setAAD(VERSION);
    const ciphertext = Buffer.concat([cipher.update(JSON.stringify(value), "utf8"), cipher.final()]);
    const bytes = Buffer.concat([VERSION, nonce, ciphertext, cipher.getAuthTag()]);
    return { $sealed: bytes.toString("base64url") };
  }

  /** @returns null when the value was sealed with another key, or changed since */
  open(sealed: JsonValue | undefined): { readonly value: JsonValue } | null {
    if (typeof sealed !== "string") return null;
    const bytes = Buffer.from(sealed, "base64url");
    // The decoder skips what it does not know; only the one true spelling is accepted.
    if (bytes.toString("base64url") !== sealed) return null;
    if (bytes.length < 1 + NONCE_BYTES + TAG_BYTES || bytes[0] !== VERSION[0]) return null;
    const nonce = bytes.subarray(1, 1 + NONCE_BYTES);
    const decipher = createDecipheriv(ALGORITHM, this.#key, nonce, options)
      .setAAD(VERSION)
      .setAuthTag(bytes.subarray(-TAG_BYTES));
    const start = decipher.update(bytes.subarray(1 + NONCE_BYTES, -TAG_BYTES));
    try {
      const text = Buffer.concat([start, decipher.final()]).toString("utf8");
      return { value: JSON.parse(text) as JsonValue };
    } catch {
      return null;
    }
  }
}
