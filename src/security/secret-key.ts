// The secret key of this installation, from which all others are derived; during a rotation, with the older keys.
//
// - The key is on disk in one place, SVC_HOME/secret.key, readable by its user alone; with SVC_SECRET_KEY it is
//   on disk nowhere.
// - The file is there whole or not at all. One that is there is replaced by a rotation alone: what was encrypted with
//   it could not be decrypted any more.
// - A derived key reveals nothing about the key it comes from, nor about others derived from it.
// - During a rotation the file always holds a key for each stored value: the new key is in it before the first value
//   is encrypted with it, and the old one until the last value is.

import { hkdfSync, randomBytes } from "node:crypto";
import { chmod, chown, link, open, readFile, realpath, rename, rm, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import { syncFolder } from "../lib/files.ts";

export const KEY_BYTES = 32;
const FILE_BYTES_MAX = 1024;

/** There is a key, but it cannot be used; the message says why, and what to do. */
export class SecretKeyUnusable extends Error {
  override readonly name = "SecretKeyUnusable";
}

export class SecretKey {
  readonly #bytes: Buffer;
  /** Values encrypted with these are decrypted too, until all are encrypted with this one. */
  readonly older: readonly SecretKey[];

  /** @param bytes 32 of them, as good as random */
  constructor(bytes: Buffer, older: readonly SecretKey[] = []) {
    if (bytes.length !== KEY_BYTES) throw new RangeError(`A secret key has ${KEY_BYTES} bytes.`);
    this.#bytes = bytes;
    this.older = older;
  }

  /** Tells it from others, and nothing else about it. */
  get id(): string {
    return this.derive("key id").toString("hex");
  }

  /** @returns the one of this key and its older ones that has this id, with all others as its older ones */
  led(id: string): SecretKey {
    const all = [this, ...this.older];
    const first = all.find((key) => key.id === id)!;
    return new SecretKey(
      first.#bytes,
      all.filter((key) => key !== first),
    );
  }

  /** This key and its older ones, as the file has them: for another node of the cluster alone. */
  get texts(): readonly string[] {
    return [this, ...this.older].map((key) => key.#bytes.toString("base64"));
  }

  /** @returns 32 bytes for one purpose: the same for the same label, others for another */
  derive(label: string): Buffer {
    return Buffer.from(hkdfSync("sha256", this.#bytes, "", `troupe ${label}`, KEY_BYTES));
  }
}

export interface SecretKeyPlace {
  /** SVC_HOME; it exists, and this program has it locked. */
  readonly home: string;
  /** SVC_SECRET_KEY, the key in use first; the file is neither read nor made when there are any. */
  readonly given: readonly string[];
  /** Whether a missing file may be made anew: not while stored values need the lost key. Absent: it may. */
  readonly mayMake?: () => Promise<boolean>;
}

/**
 * Finds the secret key, and makes one at the first start.
 *
 * @throws SecretKeyUnusable when the file is damaged, is missing and needed, or cannot be read or written
 */
export async function openSecretKey({ home, given, mayMake }: SecretKeyPlace): Promise<SecretKey> {
  if (given.length > 0) {
    const key = keyOf(given);
    if (key !== null) return key;
    throw new SecretKeyUnusable(`SVC_SECRET_KEY is not ${KEY_BYTES} bytes as base64 or hex.`);
  }
  const path = secretKeyFile(home);
  const key = await usable(path, () => readKey(path));
  if (key !== null) return key;
  if ((await mayMake?.()) === false) throw new SecretKeyUnusable(missingText(path));
  return usable(path, () => makeKey(path, home));
}

async function usable<T>(path: string, use: () => Promise<T>): Promise<T> {
  try {
    return await use();
  } catch (error) {
    if (error instanceof SecretKeyUnusable) throw error;
    throw new SecretKeyUnusable(
      `The secret key ${path} cannot be used (${(error as Error).message}). Give this user read and write permission to it, or set SVC_SECRET_KEY.`,
    );
  }
}

/** Where the key is kept when none is given. */
export const secretKeyFile = (home: string) => join(home, "secret.key");

/** @returns the 32 bytes that the text spells in hex or in base64 (of either alphabet); null when it does not */
export function keyOfText(text: string): Buffer | null {
  if (/^[0-9a-f]{64}$/i.test(text)) return Buffer.from(text, "hex");
  if (/^[A-Za-z0-9+/_-]{43}=?$/.test(text)) return Buffer.from(text, "base64");
  return null;
}

/** @returns the first with the others as its older ones; null when a text is no key, or there is none */
export function keyOf(texts: readonly string[]): SecretKey | null {
  const [first, ...older] = texts.map(keyOfText);
  if (first == null || older.includes(null)) return null;
  return new SecretKey(
    first,
    older.map((bytes) => new SecretKey(bytes!)),
  );
}

/** @returns null when there is no file */
async function readKey(path: string): Promise<SecretKey | null> {
  const facts = await stat(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return null;
    throw error;
  });
  if (facts === null) return null;
  const readable = facts.isFile() && facts.size <= FILE_BYTES_MAX;
  if (readable && (facts.mode & 0o077) !== 0) await closeToOthers(path);
  const key = readable ? keyOf((await readFile(path, "utf8")).trim().split(/\s+/)) : null;
  if (key !== null) return key;
  throw new SecretKeyUnusable(
    `The secret key ${path} is damaged: it must hold ${KEY_BYTES} bytes as base64 or hex, or several such keys, one per line. The secrets in jobs' configurations ` +
      "were encrypted with the key it held, and no other decrypts them. Put the old file back, or set SVC_SECRET_KEY to the " +
      "old key. If it is lost, remove the file and start once with --new-key: a new key is made, and each job's secrets " +
      "have to be sent again.",
  );
}

function missingText(path: string): string {
  return (
    `The secret key ${path} is missing, and the database holds secrets that were encrypted with it. Put the file back, ` +
    "or set SVC_SECRET_KEY to the key. If it is lost, start once with --new-key: a new key is made, and each job's " +
    "secrets have to be sent again."
  );
}

async function closeToOthers(path: string): Promise<void> {
  try {
    await chmod(path, 0o600);
  } catch (error) {
    // A key that an operator mounts read-only, or as another user's file, is as open as the operator made it.
    if (!["EPERM", "EROFS"].includes((error as NodeJS.ErrnoException).code ?? "")) throw error;
  }
}

async function makeKey(path: string, home: string): Promise<SecretKey> {
  const bytes = randomBytes(KEY_BYTES);
  // A link, unlike a rename, replaces nothing.
  await putKeys(path, [bytes.toString("base64")], (temporary) => link(temporary, path));
  await syncFolder(home);
  return new SecretKey(bytes);
}

/** Makes these the keys of a home in which nothing is encrypted. */
export async function putSecretKeys(home: string, keys: readonly string[]): Promise<void> {
  const path = secretKeyFile(home);
  await putKeys(path, keys, (temporary) => rename(temporary, path));
  await syncFolder(home);
}

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

/**
 * Puts a new file with these keys into its place, whole and on disk.
 *
 * @param place gives the new file its name, and its owner
 */
async function putKeys(
  path: string,
  keys: readonly string[],
  place: (temporary: string) => Promise<void>,
): Promise<void> {
  // The home is locked, so a file of this name is what was cut short before.
  const temporary = `${path}.new`;
  await rm(temporary, { force: true });
  try {
    const file = await open(temporary, "wx", 0o600);
    try {
      await file.writeFile(`${keys.join("\n")}\n`);
      await file.sync();
    } finally {
      await file.close();
    }
    await place(temporary);
  } finally {
    await rm(temporary, { force: true });
  }
}
