// Staging: copies of the payload's files and folders, made for one agent's workspace.
//
// G1. Nothing outside the payload is read: neither by a path's words nor through a symlink.
// G2. Everything staged is a copy of its own (a reflink where the disk can), never a hard link: what a worker
//     does to its files cannot change the payload, nor another agent's files.

import { constants } from "node:fs";
import { chmod, copyFile, lstat, mkdir, readdir, readlink, realpath, symlink } from "node:fs/promises";
import { dirname, isAbsolute, join, resolve } from "node:path";
import type { Upload } from "../engine/graph.ts";
import { isInside, joinInside } from "./paths.ts";

/** Entries that one agent's uploads may have together. */
const ENTRIES_MAX = 100_000;
const OWNER_WRITE = 0o200;

/** The manifest or the payload is to blame; the message names the path. */
export class StagingError extends Error {
  override readonly name = "StagingError";
}

interface Copying {
  readonly payload: string;
  /** Folder of the payload that is being copied; links that stay inside it are kept as links. */
  readonly source: string;
  /** Where links' targets are named from, for messages. */
  readonly upload: string;
  readonly entries: { left: number };
}

/**
 * Copies uploads into `target`, a folder that exists and is empty.
 *
 * @param payload the payload folder; null when the job has no bundle
 * @throws StagingError when an upload is missing, leaves the payload, or holds something that cannot be copied
 */
export async function stage(
  payload: string | null,
  uploads: readonly Upload[],
  target: string,
): Promise<void> {
  if (uploads.length === 0) return;
  if (payload === null) {
    throw new StagingError(
      `The node uploads "${uploads[0]?.path}", but the job has no bundle to take it from.`,
    );
  }
  const root = await resolved(payload, "The payload folder");
  const entries = { left: ENTRIES_MAX };
  for (const upload of uploads) {
    const named = joinInside(root, upload.path);
    if (named === null) throw new StagingError(`upload_path "${upload.path}" leaves the payload folder.`);
    const source = await resolved(named, `upload_path "${upload.path}"`);
    if (!isInside(root, source)) {
      throw new StagingError(`upload_path "${upload.path}" leaves the payload folder through a symlink.`);
    }
    const destination = joinInside(target, upload.as);
    if (destination === null) throw new StagingError(`upload_as "${upload.as}" leaves the workspace.`);
    await makeFolder(dirname(destination));
    await copyEntry({ payload: root, source, upload: upload.path, entries }, source, destination);
  }
}

async function resolved(path: string, what: string): Promise<string> {
  try {
    return await realpath(path);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT" || code === "ENOTDIR")
      throw new StagingError(`${what} does not exist in the payload.`);
    if (code === "ELOOP") throw new StagingError(`${what} is a symlink to itself.`);
    throw error;
  }
}

async function copyEntry(copying: Copying, from: string, to: string): Promise<void> {
  if (--copying.entries.left < 0) {
    throw new StagingError(`The node's uploads hold more than ${ENTRIES_MAX} files and folders.`);
  }
  const entry = await lstat(from);
  if (entry.isDirectory()) {
    await makeFolder(to);
    for (const name of await readdir(from)) await copyEntry(copying, join(from, name), join(to, name));
  } else if (entry.isFile()) await copyRegular(from, to, entry.mode);
  else if (entry.isSymbolicLink()) await copyLink(copying, from, to);
  else throw new StagingError(`"${from.slice(copying.payload.length + 1)}" is neither a file nor a folder.`);
}

async function makeFolder(path: string): Promise<void> {
  try {
    await mkdir(path, { recursive: true });
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code !== "EEXIST" && code !== "ENOTDIR") throw error;
    throw new StagingError(`Two uploads collide: "${path}" is a folder where a file is staged already.`);
  }
}

async function copyRegular(from: string, to: string, mode: number): Promise<void> {
  const existing = await lstat(to).catch(() => null);
  if (existing?.isDirectory()) {
    throw new StagingError(`Two uploads collide: "${from}" is a file where a folder is staged already.`);
  }
  await copyFile(from, to, constants.COPYFILE_FICLONE);
  // The registered payload is read-only; the worker's own copy is not.
  if ((mode & OWNER_WRITE) === 0) await chmod(to, (mode & 0o777) | OWNER_WRITE);
}

/** A link inside the uploaded folder stays a link; one to another file of the payload becomes a copy of it. */
async function copyLink(copying: Copying, from: string, to: string): Promise<void> {
  const name = from.slice(copying.payload.length + 1);
  const written = await readlink(from);
  const target = await resolved(from, `The target of symlink "${name}"`);
  if (!isInside(copying.payload, target)) {
    throw new StagingError(`Symlink "${name}" leaves the payload folder (it points to "${written}").`);
  }
  const direct = resolve(dirname(from), written);
  if (!isAbsolute(written) && isInside(copying.source, direct) && isInside(copying.source, target)) {
    await symlink(written, to);
    return;
  }
  const entry = await lstat(target);
  if (!entry.isFile()) {
    throw new StagingError(
      `Symlink "${name}" points to a folder outside "${copying.upload}"; upload that folder.`,
    );
  }
  await copyRegular(target, to, entry.mode);
}
