// Seals single values: what is stored tells nothing without the key, and what was changed does not open.
//
// L1. A sealed value is base64url of version (1 byte, 2), key id (4), nonce (12), ciphertext, tag (16): AES-256-GCM over
//     the value's JSON, version and key id authenticated with it. Version 1, of older programs, has no key id.
// L2. Where the value stood is not part of it: a configuration may be rearranged.

import { createCipheriv, createDecipheriv, createSecretKey, type KeyObject, randomBytes } from "node:crypto";
import type { JsonValue } from "../engine/json.ts";
import type { Sealed } from "../engine/sealed.ts";
import type { SecretKey } from "./secret-key.ts";

const ALGORITHM = "aes-256-gcm";
const VERSION = 2;
const VERSION_WITHOUT_KEY_ID = Buffer.of(1);
const KEY_ID_BYTES = 4;
const NONCE_BYTES = 12;
const NONCES_DRAWN = 256;
const TAG_BYTES = 16;
const options = { authTagLength: TAG_BYTES };

/** One key as it is used here. */
interface SealingKey {
  readonly key: KeyObject;
  /** Version and key id. */
  readonly head: Buffer;
}

export class Sealer {
  readonly #current: SealingKey;
  readonly #all: readonly SealingKey[];

  /** @param key seals; its older ones open too */
  constructor(key: SecretKey) {
    this.#current = sealingKey(key);
    this.#all = [this.#current, ...key.older.map(sealingKey)];
  }

  seal(value: JsonValue): Sealed {
    const { key, head } = this.#current;
    const nonce = nextNonce();
    const cipher = createCipheriv(ALGORITHM, key, nonce, options).setAAD(head);
    const ciphertext = cipher.update(JSON.stringify(value), "utf8");
    const bytes = Buffer.concat([head, nonce, ciphertext, cipher.final(), cipher.getAuthTag()]);
    return { $sealed: bytes.toString("base64url") };
  }

  /** @returns null when the value was sealed with a key that is not here, or changed since */
  open(sealed: JsonValue | undefined): { readonly value: JsonValue } | null {
    const opened = this.#opened(sealed);
    return opened === null ? null : { value: opened.value };
  }

  #opened(sealed: JsonValue | undefined) {
    const bytes = bytesOf(sealed);
    if (bytes === null) return null;
    const isOld = bytes[0] === VERSION_WITHOUT_KEY_ID[0];
    for (const by of this.#all) {
      const start = isOld ? VERSION_WITHOUT_KEY_ID : by.head;
      const opened = startsWith(bytes, start) ? decrypted(by.key, bytes, start) : null;
      if (opened !== null) return { ...opened, isCurrent: by === this.#current && !isOld };
    }
    return null;
  }

  /**
   * Seals a value again, under the key that seals.
   *
   * @returns the same text when that key sealed it; null when no key here opens it
   */
  resealed(sealed: string): string | null {
    const opened = this.#opened(sealed);
    if (opened === null) return null;
    return opened.isCurrent ? sealed : String(this.seal(opened.value).$sealed);
  }

  /** Whether a value has the form of one that was sealed here, or with a key of another day. */
  recognises(sealed: JsonValue): boolean {
    const bytes = bytesOf(sealed);
    if (bytes === null || bytes.length < 1 + NONCE_BYTES + TAG_BYTES) return false;
    return bytes[0] === VERSION || bytes[0] === VERSION_WITHOUT_KEY_ID[0];
  }
}

let nonces = Buffer.alloc(0);
let noncesUsed = 0;

/** Drawn many at a time: a call for each costs as much as the encryption, and a document may have hundreds of secrets. */
function nextNonce(): Buffer {
  if (noncesUsed === nonces.length) {
    nonces = randomBytes(NONCE_BYTES * NONCES_DRAWN);
    noncesUsed = 0;
  }
  noncesUsed += NONCE_BYTES;
  return nonces.subarray(noncesUsed - NONCE_BYTES, noncesUsed);
}

function sealingKey(secret: SecretKey): SealingKey {
  const id = secret.derive("key id").subarray(0, KEY_ID_BYTES);
  const key = createSecretKey(secret.derive("configuration secrets"));
  return { key, head: Buffer.concat([Buffer.of(VERSION), id]) };
}

const startsWith = (bytes: Buffer, head: Buffer) => bytes.subarray(0, head.length).equals(head);

function bytesOf(sealed: JsonValue | undefined): Buffer | null {
  if (typeof sealed !== "string") return null;
  const bytes = Buffer.from(sealed, "base64url");
  // The decoder skips what it does not know; only the one true spelling is accepted.
  return bytes.toString("base64url") === sealed ? bytes : null;
}

/** @param head what is authenticated and stands before the nonce */
function decrypted(key: KeyObject, bytes: Buffer, head: Buffer): { readonly value: JsonValue } | null {
  const start = head.length + NONCE_BYTES;
  if (bytes.length < start + TAG_BYTES) return null;
  const decipher = createDecipheriv(ALGORITHM, key, bytes.subarray(head.length, start), options)
    .setAAD(head)
    .setAuthTag(bytes.subarray(-TAG_BYTES));
  const text = decipher.update(bytes.subarray(start, -TAG_BYTES));
  try {
    const whole = Buffer.concat([text, decipher.final()]).toString("utf8");
    return { value: JSON.parse(whole) as JsonValue };
  } catch {
    return null;
  }
}
