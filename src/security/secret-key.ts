// The secret key of this installation: one key, from which every other one is derived; while it takes the place of
// others, with those.
//
// K1. The key is on disk in one place, SVC_HOME/secret.key, readable by its user alone; with SVC_SECRET_KEY it is
//     on disk nowhere.
// K2. The file is there whole or not at all. One that is there is replaced by a rotation alone (rotation.ts): what was
//     sealed with it could not be opened any more.
// K3. A derived key tells nothing about the key it comes from, nor about its sisters.

import { hkdfSync, randomBytes } from "node:crypto";
import { chmod, link, open, readFile, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { syncFolder } from "../lib/files.ts";
import { KEY_BYTES, keyOfText } from "./key-text.ts";

const FILE_BYTES_MAX = 1024;

/** There is a key, but it cannot be used; the message says why, and what to do. */
export class SecretKeyUnusable extends Error {
  override readonly name = "SecretKeyUnusable";
}

export class SecretKey {
  readonly #bytes: Buffer;
  /** What was sealed with these is opened too, until everything is sealed with this one. */
  readonly older: readonly SecretKey[];

  /** @param bytes 32 of them, as good as random */
  constructor(bytes: Buffer, older: readonly SecretKey[] = []) {
    if (bytes.length !== KEY_BYTES) throw new RangeError(`A secret key has ${KEY_BYTES} bytes.`);
    this.#bytes = bytes;
    this.older = older;
  }

  /** @returns 32 bytes for one purpose (K3): the same for the same label, others for another */
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
  readonly mayMake?: () => boolean;
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
  try {
    const key = await readKey(path);
    if (key !== null) return key;
    if (mayMake?.() === false) throw new SecretKeyUnusable(missingText(path));
    return await makeKey(path, home);
  } catch (error) {
    if (error instanceof SecretKeyUnusable) throw error;
    throw new SecretKeyUnusable(
      `The secret key ${path} cannot be used (${(error as Error).message}). Give this user read and write permission to it, or set SVC_SECRET_KEY.`,
    );
  }
}

/** Where the key is kept when none is given. */
export const secretKeyFile = (home: string) => join(home, "secret.key");

/** @returns the first with the others as its older ones; null when a text is no key, or there is none */
function keyOf(texts: readonly string[]): SecretKey | null {
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
      "were sealed with the key it held, and open with no other. Put the old file back, or set SVC_SECRET_KEY to the " +
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
  // A link, unlike a rename, replaces nothing (K2).
  await putKeys(path, [bytes.toString("base64")], (temporary) => link(temporary, path));
  await syncFolder(home);
  return new SecretKey(bytes);
}

/**
 * Puts a new file with these keys into its place, whole and on disk.
 *
 * @param place gives the new file its name, and its owner
 */
export async function putKeys(
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
