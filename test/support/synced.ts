// What is put on disk while something works: each path as soon as it is.

import { existsSync, readlinkSync } from "node:fs";
import { type FileHandle, mkdir, open, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** Linux tells which file a handle is of. */
export const seesHandles = existsSync("/proc/self/fd");

/** @returns the paths that `work` has synced, in their order */
export async function pathsSynced(work: () => Promise<void>): Promise<readonly string[]> {
  await using any = await open(tmpdir());
  const handles = Object.getPrototypeOf(any) as FileHandle;
  const { sync } = handles;
  const synced: string[] = [];
  handles.sync = async function (this: FileHandle) {
    const path = readlinkSync(`/proc/self/fd/${this.fd}`);
    await sync.call(this);
    synced.push(path);
  };
  try {
    await work();
  } finally {
    handles.sync = sync;
  }
  return synced;
}

/** Files, folders and a link below a folder. */
export async function writeTree(root: string): Promise<void> {
  await mkdir(join(root, "payload/deep/empty"), { recursive: true });
  for (const path of ["payload/one", "payload/deep/two"]) await writeFile(join(root, path), path);
  await symlink("/etc/hostname", join(root, "payload/link"));
}

/** What of it can be synced, in the order of names. */
export const treePaths = [
  "",
  "payload",
  "payload/deep",
  "payload/deep/empty",
  "payload/deep/two",
  "payload/one",
];
