// Replacing the secret key: everything is encrypted under the first key, then the older ones are needed no more.
//
// R1. The file secret.key always holds a key for each stored value: the new key is in it before the first value is
//     encrypted with it, and the old one until the last value is.

import { randomBytes } from "node:crypto";
import { chown, readFile, realpath, rename, stat } from "node:fs/promises";
import { dirname } from "node:path";
import { syncFolder } from "../lib/files.ts";
import { KEY_BYTES } from "./key-text.ts";
import { Sealer } from "./sealer.ts";
import { putKeys, type SecretKey } from "./secret-key.ts";

/** Puts a new key before those in the file. */
export async function addKey(file: string): Promise<void> {
  const keys = await keysIn(file);
  await replaceKeys(file, [randomBytes(KEY_BYTES).toString("base64"), ...keys]);
}

/** Removes all keys from the file but the first. */
export async function removeOlderKeys(file: string): Promise<void> {
  const keys = await keysIn(file);
  await replaceKeys(file, keys.slice(0, 1));
}

const keysIn = async (file: string) => (await readFile(file, "utf8")).trim().split(/\s+/);

/** The file has the old keys or the new ones, whatever happens, and stays with its owner. */
async function replaceKeys(file: string, keys: readonly string[]): Promise<void> {
  const path = await realpath(file);
  const { uid, gid } = await stat(path);
  await putKeys(path, keys, async (temporary) => {
    await chown(temporary, uid, gid);
    await rename(temporary, path);
  });
  await syncFolder(dirname(path));
}

/** Encrypts values under the first key, and counts them. */
export class Reencryption {
  reencrypted = 0;
  /** Were under the first key already. */
  current = 0;
  /** Decrypt with no key that is here; they stay as they are. */
  unreadable = 0;
  readonly #sealer: Sealer;

  constructor(key: SecretKey) {
    this.#sealer = new Sealer(key);
  }

  value(encrypted: string): string {
    // What a worker made may only look like an encrypted value.
    if (!this.#sealer.recognises(encrypted)) return encrypted;
    const result = this.#sealer.resealed(encrypted);
    if (result === null) this.unreadable++;
    else if (result === encrypted) this.current++;
    else this.reencrypted++;
    return result ?? encrypted;
  }
}
