// Folders: walking through them, their size, making them, and putting them on disk.

import { constants, type Dirent, existsSync, lstatSync, mkdirSync, readdirSync, statSync } from "node:fs";
import { lstat, open, opendir, readdir, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import { pipeline } from "node:stream/promises";
import { forEachConcurrent } from "./async.ts";

/** A folder with what is directly in it. */
export interface Folder {
  readonly path: string;
  readonly entries: readonly Dirent[];
}

/**
 * A folder and all below it, each before those in it. Symlinks are not followed.
 *
 * @param unreadable what becomes of a folder that is gone meanwhile, or closed to us
 * @throws the system's error unless those are skipped
 */
export async function* foldersFrom(
  root: string,
  unreadable: "throw" | "skip" = "throw",
): AsyncGenerator<Folder> {
  const paths = [root];
  for (let path = paths.pop(); path !== undefined; path = paths.pop()) {
    const entries: Dirent[] = [];
    try {
      for await (const entry of await opendir(path)) entries.push(entry);
    } catch (error) {
      if (unreadable === "throw") throw error;
    }
    yield { path, entries };
    for (const entry of entries) if (entry.isDirectory()) paths.push(join(path, entry.name));
  }
}

/** Bytes of the files in a folder; what cannot be read counts as nothing. Symlinks are not followed. */
export async function bytesIn(root: string): Promise<number> {
  let bytes = 0;
  for await (const { path, entries } of foldersFrom(root, "skip")) {
    for (const entry of entries) {
      if (!entry.isDirectory()) bytes += (await lstat(join(path, entry.name)).catch(() => null))?.size ?? 0;
    }
  }
  return bytes;
}

/** A folder of this size has a few hundred entries, on some file systems a few thousand. */
const SMALL_BYTES_MAX = 4_096;

/**
 * The entries of a folder that can be read without holding up the event loop: two quick system calls, in a fraction of
 * the time that a round through the thread pool takes.
 *
 * @returns null when it cannot be read, or is so large that it has, or once had, many entries
 */
export function entriesOfSmall(folder: string): readonly Dirent[] | null {
  try {
    return statSync(folder).size > SMALL_BYTES_MAX ? null : readdirSync(folder, { withFileTypes: true });
  } catch {
    return null;
  }
}

/** Whether a folder, and no symlink to one, is there and has no entry; false as well when that cannot be seen at once. */
export function isEmptyFolder(path: string): boolean {
  try {
    const found = lstatSync(path);
    return found.isDirectory() && found.size <= SMALL_BYTES_MAX && readdirSync(path).length === 0;
  } catch {
    return false;
  }
}

/** Whether the error of a call says that the file or folder does not exist. */
export function isMissing(error: unknown): boolean {
  return (error as NodeJS.ErrnoException).code === "ENOENT";
}

/** Whether there is a file or folder at a path. A link without a target is not. */
export async function exists(path: string): Promise<boolean> {
  return (await stat(path).catch(() => null)) !== null;
}

/** @returns the names in a folder, in no order; none when there is no such folder */
export async function namesIn(folder: string): Promise<readonly string[]> {
  try {
    return await readdir(folder);
  } catch (error) {
    if (!isMissing(error)) throw error;
    return [];
  }
}

/**
 * Unlike mkdir with `recursive`, it ends where a file system says ENOENT of a name whose parent is there, as /proc does.
 *
 * @throws the system's error; EEXIST when something other than a folder has this name
 */
export function makeFolder(path: string, mode = 0o777): void {
  try {
    mkdirSync(path, { mode });
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "EEXIST" && statSync(path).isDirectory()) return;
    const parent = dirname(path);
    if (code !== "ENOENT" || existsSync(parent)) throw error;
    makeFolder(parent, mode);
    makeFolder(path, mode);
  }
}

/**
 * Writes a file that does not exist yet, for its user alone. It is not made behind a rejection, so that what is left of it can
 * be removed then.
 */
export async function writeNew(path: string, bytes: AsyncIterable<Uint8Array>): Promise<void> {
  const file = await open(path, "wx", 0o600);
  await pipeline(bytes, file.createWriteStream());
}

/** Puts a folder's entries on disk. */
export async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, constants.O_RDONLY);
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}

/** Node has four threads for the disk, and others use them too. */
const FILES_AT_ONCE = 3;

/**
 * Links are not followed. A file that may not be opened, or is gone by now, is skipped.
 *
 * @throws the signal's reason when it is aborted; the system's errors
 */
export async function syncTree(root: string, signal: AbortSignal): Promise<void> {
  for await (const { path, entries } of foldersFrom(root)) {
    const files = entries.filter((entry) => entry.isFile());
    await forEachConcurrent(files, FILES_AT_ONCE, async ({ name }) => {
      signal.throwIfAborted();
      await syncFile(join(path, name));
    });
    await syncFolder(path);
  }
}

async function syncFile(path: string): Promise<void> {
  try {
    await using file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW);
    await file.sync();
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code !== "EACCES" && code !== "ENOENT") throw error;
  }
}
