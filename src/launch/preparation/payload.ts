// A run's own payload, when its package's is not enough: a copy of it with the user's folders, and links to the
// blueprint's resources and to models. And where in a payload relative paths begin.
//
// - Every file of it may be changed without effect on others; nothing is linked hard, and no link leads to the
//   user's files.
// - What the package ships at a payload_path is replaced by the user's folder, never mixed with it.

import { constants } from "node:fs";
import { copyFile, mkdir, realpath, rm, stat, symlink } from "node:fs/promises";
import { dirname, join, relative } from "node:path";
import type { LocalFolder } from "../../blueprints/package-description.ts";
import { shown } from "../../bundles/problem.ts";
import type { Graph } from "../../engine/graph.ts";
import { forEachConcurrent } from "../../lib/async.ts";
import { FileChanged, FileCopier } from "../../lib/copy-file.ts";
import { foldersFrom } from "../../lib/files.ts";
import { removeTree } from "../../lib/remove-tree.ts";
import { bytesText } from "../../lib/text.ts";
import { PreparationFailed } from "./findings.ts";
import type { UsedFolder } from "./local-folders.ts";
import type { FolderScan } from "./scan-folder.ts";

/** The threads that wait for the disk are four, and serve others too. */
const FILES_AT_ONCE = 3;

export interface PreparationProgress {
  /** Aborted when the run is cancelled or the program stops. */
  readonly signal: AbortSignal;
  /** For people, such as "Copying documents: 3 of 12 files"; called as often as is convenient. */
  report(label: string): void;
}

export interface PayloadPlan {
  /** The package's payload, which is only read. */
  readonly payload: string;
  readonly used: readonly UsedFolder[];
  /** Folders of the blueprint's resources by their names. */
  readonly resources: ReadonlyMap<string, string>;
  /** Files of models by their names. */
  readonly models: ReadonlyMap<string, string>;
}

/**
 * @param root an empty folder; afterwards it holds `payload` and, if there are any, `resources` and `models`
 * @throws PreparationFailed; the signal's reason when it is aborted. Half of it is left then.
 */
export async function buildPayload(
  root: string,
  { payload, used, resources, models }: PayloadPlan,
  progress: PreparationProgress,
): Promise<void> {
  const own = join(root, "payload");
  progress.report("Copying the package");
  try {
    await copyPayload(payload, own, { signal: progress.signal });
    for (const folder of used) if (folder.kind === "native") await takeAlong(folder, own, progress);
    await linkAll(resources, join(root, "resources"));
    await linkAll(models, join(root, "models"));
  } catch (error) {
    progress.signal.throwIfAborted();
    throw failureOf(error);
  }
}

function failureOf(error: unknown): unknown {
  const { code } = error as NodeJS.ErrnoException;
  if (code === "ENOSPC" || code === "EDQUOT") {
    const message = "The disk of SVC_HOME is full: free some space, then start a new run.";
    return new PreparationFailed("preparation.folder_failed", message);
  }
  if (code === "ENOTDIR" || code === "EEXIST") {
    return takenByFile();
  }
  if (code === "ENAMETOOLONG") {
    const message =
      "A payload_path of local_inputs.folders is too long for this machine; give it a shorter one.";
    return new PreparationFailed("preparation.folder_failed", message);
  }
  // The snapshot is only read, and everything else has been made a moment ago.
  if (code !== "ENOENT") return error;
  return new PreparationFailed("runtime.bundle_missing", "The package's files are no longer in SVC_HOME.");
}

function takenByFile(): PreparationFailed {
  const message =
    "A payload_path of local_inputs.folders leads to, or through, a file of the package; give it another place.";
  return new PreparationFailed("preparation.folder_failed", message);
}

async function takeAlong(
  { declared, name, scan }: UsedFolder & { readonly kind: "native" },
  payload: string,
  { signal, report }: PreparationProgress,
): Promise<void> {
  const target = join(payload, declared.payloadPath);
  const shipped = await stat(target).catch(() => null);
  if (shipped?.isFile()) throw takenByFile();
  await removeTree(target);
  await mkdir(dirname(target), { recursive: true });
  const total = scan.files.length;
  const copied = (files: number, bytes: number) => {
    const progress = `${files} of ${total} files, ${bytesText(bytes)} of ${bytesText(scan.bytes)}`;
    report(`Copying ${name}: ${progress}`);
  };
  copied(0, 0);
  try {
    await copyScanned(scan, target, { signal, copied });
  } catch (error) {
    if (!(error instanceof CopyFailed)) throw error;
    const message = `${declared.configPath}: ${shown(error.path)} of the folder ${shown(name)} could not be copied`;
    throw new PreparationFailed("preparation.folder_failed", `${message}: ${error.message}.`);
  }
}

async function linkAll(places: ReadonlyMap<string, string>, folder: string): Promise<void> {
  if (places.size === 0) return;
  await mkdir(folder, { mode: 0o700 });
  for (const [name, place] of places) await symlink(place, join(folder, name));
}

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
      // A folder on the way may have become a link since it was listed, and the link may lead out of it (scan-folder.ts).
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

/** A link to a folder is created between the copies, if the folder has come along. */
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
  for await (const { path, entries } of foldersFrom(from)) {
    signal.throwIfAborted();
    const target = join(to, relative(from, path));
    await mkdir(target, { recursive: true });
    const files = entries.filter((entry) => entry.isFile());
    await forEachConcurrent(files, FILES_AT_ONCE, async ({ name }) => {
      const file = join(path, name);
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

/**
 * The folder of the payload from which runtime_path leads to payload_path: "worker" for "worker/inputs/docs" and
 * "inputs/docs"; null when the one does not end in the other.
 */
function uploadRootOf({
  payloadPath,
  runtimePath,
}: Pick<LocalFolder, "payloadPath" | "runtimePath">): string | null {
  if (payloadPath === runtimePath) return ".";
  return payloadPath.endsWith(`/${runtimePath}`) ? payloadPath.slice(0, -runtimePath.length - 1) : null;
}

/** Folders in which a relative path may be looked for: the payload itself, where its folders begin, and its uploads. */
export function payloadRoots(
  payload: string,
  folders: readonly LocalFolder[],
  graph: Graph,
): readonly string[] {
  const ofFolders = folders.map(uploadRootOf).filter((root) => root !== null);
  const ofNodes = graph.nodes.flatMap(({ config }) =>
    config.kind === "executor" ? config.uploadPaths.map(({ path }) => path) : [],
  );
  return [...new Set([".", ...ofFolders, ...ofNodes])].map((root) => join(payload, root));
}

/** Where a validator runs: where the folders' runtime paths begin, if they all begin in one place. */
export function workingFolder(payload: string, folders: readonly LocalFolder[]): string {
  const roots = new Set(folders.map(uploadRootOf));
  const [root] = roots;
  return roots.size === 1 && root != null ? join(payload, root) : payload;
}
