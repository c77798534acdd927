// Removes what a worker has left, whatever modes it has given to its folders, and however much and deep it is.
//
// - Nothing is removed but what is in the tree: folders are held open, so a symlink that takes the place of one
//   meanwhile leads nowhere.
// - Two folders are open at a time, however deep the tree: what is in a folder's folders is moved up.
// - It ends, also while somebody goes on making folders: those that came later are left, and that is a failure. Two
//   removals of one tree at a time both end, and nothing is left.

import { randomBytes } from "node:crypto";
import { lstat, opendir, rename, rmdir, unlink } from "node:fs/promises";
import { forEachConcurrent } from "./async.ts";
import { isMissing } from "./files.ts";
import { OpenFolder } from "./open-folder.ts";

/** Node has four threads for the disk, and others use them too. */
const FILES_AT_ONCE = 3;
const ENTRIES_AT_ONCE = 256;
const OWNER_ALL = 0o700;
/** Entries that were added meanwhile, such as by another removal, are looked for again. */
const TRIES = 5;

/**
 * Removes a file or folder with all that is in it; nothing happens when it is not there.
 *
 * @throws the system's first error when something cannot be removed even by its owner
 */
export async function removeTree(path: string): Promise<void> {
  for (let tries = 1; ; tries++) {
    const failures = await removeOnce(path);
    if (failures.length === 0) return;
    const isRefilled = failures.every((error) => (error as NodeJS.ErrnoException).code === "ENOTEMPTY");
    if (!isRefilled || tries === TRIES) throw failures[0];
  }
}

async function removeOnce(path: string): Promise<readonly unknown[]> {
  const failures: unknown[] = [];
  await attempt(failures, async () => {
    if (!(await lstat(path)).isDirectory()) return await unlink(path);
    {
      using root = await openOwn(path);
      await empty(root, failures);
    }
    await rmdir(path);
  });
  return failures;
}

/** Removes what is in a folder. What its folders hold is moved into the folder itself, until nothing is left. */
async function empty(root: OpenFolder, failures: unknown[]): Promise<void> {
  const prefix = `${randomBytes(8).toString("hex")}-`;
  const seen = new Set<string>();
  let moved = 0;
  for (let isFirst = true; ; isFirst = false) {
    const found = await removeFiles(root, failures);
    const folders = found.filter((name) => !seen.has(name) && (isFirst || name.startsWith(prefix)));
    if (folders.length === 0) return;
    for (const name of folders) {
      seen.add(name);
      await attempt(failures, async () => {
        {
          using folder = await openOwn(root.path(name));
          for (const inner of await removeFiles(folder, failures)) {
            // A folder that is moved has its ".." rewritten, which needs the right to write into it.
            (await openOwn(folder.path(inner)))[Symbol.dispose]();
            await rename(folder.path(inner), root.path(prefix + ++moved));
          }
        }
        await rmdir(root.path(name));
      });
    }
  }
}

/** Removes the files of a folder, a few at a time. @returns the names of its folders */
async function removeFiles(folder: OpenFolder, failures: unknown[]): Promise<string[]> {
  const folders: string[] = [];
  const files: string[] = [];
  for await (const entry of await opendir(folder.path("."), { bufferSize: ENTRIES_AT_ONCE })) {
    (entry.isDirectory() ? folders : files).push(entry.name);
  }
  await forEachConcurrent(files, FILES_AT_ONCE, (name) => attempt(failures, () => unlink(folder.path(name))));
  return folders;
}

/** Opens a folder with all rights to what is in it. */
async function openOwn(path: string): Promise<OpenFolder> {
  const { mode } = await lstat(path);
  return (mode & OWNER_ALL) === OWNER_ALL ? OpenFolder.open(path) : OpenFolder.openWithAllRights(path);
}

/** Records a failure and continues; a missing entry is none. */
async function attempt(failures: unknown[], work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    if (!isMissing(error)) failures.push(error);
  }
}
