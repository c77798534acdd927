// Makes what a run uploads from when its package's own payload is not enough: a copy of it with the user's folders, and
// links to the blueprint's resources and to models.
//
// P1. Every file of it may be changed without anybody else noticing; nothing is linked hard, and no link leads to the
//     user's files.
// P2. What the package ships at a payload_path is replaced by the user's folder, never mixed with it.

import { mkdir, stat, symlink } from "node:fs/promises";
import { dirname, join } from "node:path";
import { removeTree } from "../../lib/remove-tree.ts";
import { CopyFailed, copyPayload, copyScanned } from "./copy-folder.ts";
import type { UsedFolder } from "./local-folders.ts";
import { PreparationFailed, type PreparationProgress } from "./preparation.ts";
import { bytesText } from "./requirements.ts";
import { shown } from "./scan-folder.ts";

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
    const said = "The disk of SVC_HOME is full: free some space, then start a new run.";
    return new PreparationFailed("preparation.folder_failed", said);
  }
  if (code === "ENOTDIR" || code === "EEXIST") {
    return takenByFile();
  }
  if (code === "ENAMETOOLONG") {
    const said =
      "A payload_path of local_inputs.folders is too long for this machine; give it a shorter one.";
    return new PreparationFailed("preparation.folder_failed", said);
  }
  // The snapshot is only read, and everything else has been made a moment ago.
  if (code !== "ENOENT") return error;
  return new PreparationFailed("runtime.bundle_missing", "The package's files are no longer in SVC_HOME.");
}

function takenByFile(): PreparationFailed {
  const said =
    "A payload_path of local_inputs.folders leads to, or through, a file of the package; give it another place.";
  return new PreparationFailed("preparation.folder_failed", said);
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
    const said = `${declared.configPath}: ${shown(error.path)} of the folder ${shown(name)} could not be copied`;
    throw new PreparationFailed("preparation.folder_failed", `${said}: ${error.message}.`);
  }
}

async function linkAll(places: ReadonlyMap<string, string>, folder: string): Promise<void> {
  if (places.size === 0) return;
  await mkdir(folder, { mode: 0o700 });
  for (const [name, place] of places) await symlink(place, join(folder, name));
}
