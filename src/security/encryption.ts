// Authenticated encryption of single values.
//
// - An encrypted value is base64url of version (1 byte, 2), key id (4), nonce (12), ciphertext, tag (16): AES-256-GCM over
//   the value's JSON, version and key id authenticated with it. Version 1, of older programs, has no key id.
// - The value's place is not part of it: a configuration may be rearranged.

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
interface CipherKey {
  readonly key: KeyObject;
  /** Version and key id. */
  readonly head: Buffer;
}

export class ValueCipher {
  readonly #current: CipherKey;
  readonly #all: readonly CipherKey[];

  /** @param key encrypts; its older ones decrypt too */
  constructor(key: SecretKey) {
    this.#current = cipherKey(key);
    this.#all = [this.#current, ...key.older.map(cipherKey)];
  }

  encrypt(value: JsonValue): Sealed {
    const { key, head } = this.#current;
    const nonce = nextNonce();
    const cipher = createCipheriv(ALGORITHM, key, nonce, options).setAAD(head);
    const ciphertext = cipher.update(JSON.stringify(value), "utf8");
    const bytes = Buffer.concat([head, nonce, ciphertext, cipher.final(), cipher.getAuthTag()]);
    return { $sealed: bytes.toString("base64url") };
  }

  /** @returns null when the value was encrypted with a key that is not here, or changed since */
  decrypt(
    encrypted: JsonValue | undefined,
  ): { readonly value: JsonValue; readonly isCurrent: boolean } | null {
    const bytes = bytesOf(encrypted);
    if (bytes === null) return null;
    const isOld = bytes[0] === VERSION_WITHOUT_KEY_ID[0];
    for (const by of this.#all) {
      const start = isOld ? VERSION_WITHOUT_KEY_ID : by.head;
      const decrypted = startsWith(bytes, start) ? decryptedBytes(by.key, bytes, start) : null;
      if (decrypted !== null) return { ...decrypted, isCurrent: by === this.#current && !isOld };
    }
    return null;
  }

  /** Whether a value has the form of an encrypted one, whatever its key. */
  looksEncrypted(text: JsonValue): boolean {
    const bytes = bytesOf(text);
    if (bytes === null || bytes.length < 1 + NONCE_BYTES + TAG_BYTES) return false;
    return bytes[0] === VERSION || bytes[0] === VERSION_WITHOUT_KEY_ID[0];
  }
}

let nonces = Buffer.alloc(0);
let noncesUsed = 0;

/** Generated many at a time: a call for each costs as much as the encryption, and a document may have hundreds of secrets. */
function nextNonce(): Buffer {
  if (noncesUsed === nonces.length) {
    nonces = randomBytes(NONCE_BYTES * NONCES_DRAWN);
    noncesUsed = 0;
  }
  noncesUsed += NONCE_BYTES;
  return nonces.subarray(noncesUsed - NONCE_BYTES, noncesUsed);
}

function cipherKey(secret: SecretKey): CipherKey {
  const id = secret.derive("key id").subarray(0, KEY_ID_BYTES);
  const key = createSecretKey(secret.derive("configuration secrets"));
  return { key, head: Buffer.concat([Buffer.of(VERSION), id]) };
}

const startsWith = (bytes: Buffer, head: Buffer) => bytes.subarray(0, head.length).equals(head);

function bytesOf(text: JsonValue | undefined): Buffer | null {
  if (typeof text !== "string") return null;
  const bytes = Buffer.from(text, "base64url");
  // The decoder skips what it does not know; only the one true spelling is accepted.
  return bytes.toString("base64url") === text ? bytes : null;
}

/** @param head authenticated bytes before the nonce */
function decryptedBytes(key: KeyObject, bytes: Buffer, head: Buffer): { readonly value: JsonValue } | null {
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

/** Encrypts values under the first key, and counts them. */
export class Reencryption {
  reencrypted = 0;
  /** Were under the first key already. */
  current = 0;
  /** Decrypt with no key that is here; they stay as they are. */
  unreadable = 0;
  readonly #cipher: ValueCipher;

  constructor(key: SecretKey) {
    this.#cipher = new ValueCipher(key);
  }

  value(encrypted: string): string {
    // What a worker made may only look like an encrypted value.
    if (!this.#cipher.looksEncrypted(encrypted)) return encrypted;
    const decrypted = this.#cipher.decrypt(encrypted);
    if (decrypted === null) this.unreadable++;
    else if (decrypted.isCurrent) this.current++;
    else {
      this.reencrypted++;
      return String(this.#cipher.encrypt(decrypted.value).$sealed);
    }
    return encrypted;
  }
}
