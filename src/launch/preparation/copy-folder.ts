// Copies folders into a run's own payload: the package's files, and the folders that its user chose.

import { constants, type Dirent } from "node:fs";
import { copyFile, mkdir, opendir, realpath, rm, stat, symlink } from "node:fs/promises";
import { dirname, join, relative } from "node:path";
import { FileChanged, FileCopier } from "../../execution/runner/copy-file.ts";
import { forEachConcurrent } from "../../lib/async.ts";
import type { FolderScan } from "./scan-folder.ts";

/** The threads that wait for the disk are four, and serve others too. */
const FILES_AT_ONCE = 3;

/** A file of the user's that could not be copied; `path` is below the folder. */
export class CopyFailed extends Error {
  override readonly name = "CopyFailed";
  readonly path: string;

  /** @param cause FileChanged or the system's error */
  constructor(path: string, cause: unknown) {
    super(cause instanceof FileChanged ? "it changed while it was copied" : reasonOf(cause));
    this.path = path;
  }
}

function reasonOf(cause: unknown): string {
  const { code } = cause as NodeJS.ErrnoException;
  switch (code) {
    case "ENOENT":
      return "it is not there any more";
    case "EACCES":
    case "EPERM":
      return "it may not be read";
    case "ENOSPC":
    case "EDQUOT":
      return "the disk of SVC_HOME is full";
    case "ENAMETOOLONG":
      return "its path is too long below SVC_HOME";
    default:
      return code ?? String(cause);
  }
}

export interface CopyProgress {
  readonly signal: AbortSignal;
  /** Told as files and bytes arrive. */
  readonly copied: (files: number, bytes: number) => void;
}

/**
 * Copies what a scan has found.
 *
 * @param target a folder that does not exist yet
 * @throws CopyFailed; the signal's reason when it is aborted. Half a copy is left then.
 */
export async function copyScanned(scan: FolderScan, target: string, progress: CopyProgress): Promise<void> {
  const copier = new FileCopier(progress.signal);
  await mkdir(target, { recursive: true });
  for (const folder of new Set(scan.files.map(({ path }) => dirname(path)))) {
    await mkdir(join(target, folder), { recursive: true }).catch((error: unknown) => {
      throw new CopyFailed(folder, error);
    });
  }
  let files = 0;
  let bytes = 0;
  await forEachConcurrent(scan.files, FILES_AT_ONCE, async ({ path, source }) => {
    try {
      // A folder on the way may have become a link since it was looked at, and the link may leave (F1 in scan-folder.ts).
      if ((await realpath(source)) !== source) throw new FileChanged();
      await copier.copy(source, join(target, path), (more) => {
        bytes += more;
        progress.copied(files, bytes);
      });
      if ((await realpath(source)) !== source) throw new FileChanged();
    } catch (error) {
      progress.signal.throwIfAborted();
      throw new CopyFailed(path, error);
    }
    progress.copied(++files, bytes);
  });
  for (const { path, target: linked } of scan.links) {
    await link(join(target, path), join(target, linked)).catch((error: unknown) => {
      throw new CopyFailed(path, error);
    });
  }
}

/** A link to a folder is made anew between the copies, if the folder has come along. */
async function link(path: string, linked: string): Promise<void> {
  const isThere = await stat(linked).then(
    (found) => found.isDirectory(),
    () => false,
  );
  if (!isThere) return;
  await mkdir(dirname(path), { recursive: true });
  await symlink(relative(dirname(path), linked) || ".", path);
}

export interface PayloadCopy {
  readonly signal: AbortSignal;
  /**
   * Files of this size or more that the disk cannot clone become links to the package's own, which may only be read;
   * absent: every file is copied.
   */
  readonly linkFromBytes?: number;
}

/**
 * Copies a package's payload, of which every file may be written afterwards.
 *
 * @param from a snapshot's folder: files and folders, nothing else
 * @param to a folder that does not exist yet
 */
export async function copyPayload(from: string, to: string, options: PayloadCopy): Promise<void> {
  const { signal, linkFromBytes = Number.POSITIVE_INFINITY } = options;
  const copier = new FileCopier(signal);
  const folders = [""];
  for (let folder = folders.pop(); folder !== undefined; folder = folders.pop()) {
    signal.throwIfAborted();
    const target = join(to, folder);
    await mkdir(target, { recursive: true });
    const entries: Dirent[] = [];
    for await (const entry of await opendir(join(from, folder))) entries.push(entry);
    const inFolder = folder;
    folders.push(...entries.filter((entry) => entry.isDirectory()).map(({ name }) => join(inFolder, name)));
    const files = entries.filter((entry) => entry.isFile());
    await forEachConcurrent(files, FILES_AT_ONCE, async ({ name }) => {
      const file = join(from, inFolder, name);
      const isLarge = linkFromBytes < Number.POSITIVE_INFINITY && (await stat(file)).size >= linkFromBytes;
      if (!isLarge) await copier.copy(file, join(target, name), () => {});
      else if (!(await tryClone(file, join(target, name)))) await symlink(file, join(target, name));
    });
  }
}

/** Whether a file can be cloned to this name, so that the copy takes no time and no room; there is a clone then. */
export async function tryClone(file: string, target: string): Promise<boolean> {
  try {
    await copyFile(file, target, constants.COPYFILE_FICLONE_FORCE | constants.COPYFILE_EXCL);
    return true;
  } catch {
    await rm(target, { force: true });
    return false;
  }
}
