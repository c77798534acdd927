// Staging: copies of the payload's files and folders, made for one agent's workspace.
//
// - Nothing outside the payload is read, and nothing outside the workspace is written: neither by a path's words nor
//   through a symlink, also one that is put in a folder's place meanwhile.
// - Everything staged is a copy of its own (a reflink where the disk can), never a hard link: what a worker
//   does to its files cannot change the payload, nor another agent's files.

import { lstat, readdir, readlink, realpath, rm, symlink } from "node:fs/promises";
import { basename, dirname, isAbsolute, join, relative, resolve } from "node:path";
import type { Upload } from "../../engine/graph.ts";
import { FileChanged, FileCopier } from "../../lib/copy-file.ts";
import { OpenFolder, SymlinkInPath } from "../../lib/open-folder.ts";
import { isInside, joinInside } from "../../lib/paths.ts";

/** Entries that one agent's uploads may have together. */
const ENTRIES_MAX = 100_000;

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
  readonly copier: FileCopier;
}

/** A file or folder where it is, and where its copy goes. */
interface Place {
  /** In the payload. */
  readonly path: string;
  readonly folder: OpenFolder;
  readonly name: string;
}

/**
 * Copies uploads into `target`, an empty folder.
 *
 * @param payload the payload folder; null when the job has no bundle
 * @throws StagingError when an upload is missing, leaves the payload, or holds something that cannot be copied
 */
export async function stage(
  payload: string | null,
  uploads: readonly Upload[],
  target: OpenFolder,
): Promise<void> {
  if (uploads.length === 0) return;
  if (payload === null) {
    throw new StagingError(
      `The node uploads "${uploads[0]?.path}", but the job has no bundle to take it from.`,
    );
  }
  const root = await resolved(payload, "The payload folder");
  const entries = { left: ENTRIES_MAX };
  const copier = new FileCopier(new AbortController().signal);
  for (const upload of uploads) {
    const named = joinInside(root, upload.path);
    if (named === null) throw new StagingError(`upload_path "${upload.path}" leaves the payload folder.`);
    const source = await resolved(named, `upload_path "${upload.path}"`);
    if (!isInside(root, source)) {
      throw new StagingError(`upload_path "${upload.path}" leaves the payload folder through a symlink.`);
    }
    if (joinInside("/", upload.as) === null)
      throw new StagingError(`upload_as "${upload.as}" leaves the workspace.`);
    const copying = { payload: root, source, upload: upload.path, entries, copier };
    try {
      if ((await lstat(source)).isDirectory()) {
        using from = OpenFolder.below(root, relative(root, source) || ".");
        using to = madeFolder(target, upload.as);
        await copyFolder(copying, source, from, to);
      } else {
        using from = OpenFolder.below(root, relative(root, dirname(source)) || ".");
        using to = madeFolder(target, dirname(upload.as));
        await copyEntry(
          copying,
          { path: source, folder: from, name: basename(source) },
          to,
          basename(upload.as),
        );
      }
    } catch (error) {
      if (error instanceof SymlinkInPath)
        throw new StagingError(`upload_path "${upload.path}" could not be copied: ${error.message}`);
      throw error;
    }
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

async function copyFolder(copying: Copying, path: string, from: OpenFolder, to: OpenFolder): Promise<void> {
  for (const name of await readdir(from.path(".")))
    await copyEntry(copying, { path: join(path, name), folder: from, name }, to, name);
}

async function copyEntry(copying: Copying, from: Place, target: OpenFolder, name: string): Promise<void> {
  if (--copying.entries.left < 0) {
    throw new StagingError(`The node's uploads hold more than ${ENTRIES_MAX} files and folders.`);
  }
  const entry = await lstat(from.folder.path(from.name));
  if (entry.isDirectory()) {
    using source = from.folder.folder(from.name);
    using to = madeFolder(target, name);
    await copyFolder(copying, from.path, source, to);
  } else if (entry.isFile()) await copyRegular(copying, from, target, name);
  else if (entry.isSymbolicLink()) await copyLink(copying, from, target, name);
  else throw new StagingError(`"${shown(copying, from)}" is neither a file nor a folder.`);
}

function madeFolder(target: OpenFolder, way: string): OpenFolder {
  try {
    return target.made(way);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code !== "EEXIST" && code !== "ENOTDIR") throw error;
    throw new StagingError(`Two uploads collide: "${way}" is a folder where a file is staged already.`);
  }
}

async function copyRegular(
  { copier }: Copying,
  { path, folder, name: source }: Place,
  target: OpenFolder,
  name: string,
): Promise<void> {
  const to = target.path(name);
  const existing = await lstat(to).catch(() => null);
  if (existing?.isDirectory()) {
    throw new StagingError(`Two uploads collide: "${name}" is a file where a folder is staged already.`);
  }
  if (existing !== null) await rm(to);
  try {
    await copier.copy(folder.path(source), to, () => {});
  } catch (error) {
    if (!(error instanceof FileChanged)) throw error;
    throw new StagingError(`"${basename(path)}" changed while it was copied.`);
  }
}

/** A link inside the uploaded folder stays a link; one to another file of the payload becomes a copy of it. */
async function copyLink(copying: Copying, from: Place, to: OpenFolder, name: string): Promise<void> {
  const link = shown(copying, from);
  const written = await readlink(from.folder.path(from.name));
  const target = await resolved(from.path, `The target of symlink "${link}"`);
  if (!isInside(copying.payload, target)) {
    throw new StagingError(`Symlink "${link}" leaves the payload folder (it points to "${written}").`);
  }
  const direct = resolve(dirname(from.path), written);
  if (!isAbsolute(written) && isInside(copying.source, direct) && isInside(copying.source, target)) {
    await symlink(written, to.path(name));
    return;
  }
  if (!(await lstat(target)).isFile()) {
    throw new StagingError(
      `Symlink "${link}" points to a folder outside "${copying.upload}"; upload that folder.`,
    );
  }
  using folder = OpenFolder.below(copying.payload, relative(copying.payload, dirname(target)) || ".");
  await copyRegular(copying, { path: target, folder, name: basename(target) }, to, name);
}

/** A path as it is in the payload. */
function shown({ payload }: Copying, { path }: Place): string {
  return path.slice(payload.length + 1);
}
