// Models on disk: models/<model>/<sha256>, each file written once, and shared by all blueprints that bring the same.
//
// - A file is whole, on disk and of the content that its name says before that name exists.
// - The blueprints' rows are the owners: a file goes with the last one that has it. Installing and removing a model
//   take turns, so that no blueprint relies on a file that is about to go.

import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { mkdir, open, realpath, rename, rm, rmdir, stat } from "node:fs/promises";
import { isAbsolute, join } from "node:path";
import { KeyedMutex } from "../lib/async.ts";
import { FileChanged, FileCopier } from "../lib/copy-file.ts";
import { namesIn, syncFolder } from "../lib/files.ts";
import { folderName, isInside, joinInside } from "../lib/paths.ts";
import { removeTree } from "../lib/remove-tree.ts";
import { OperationFailed } from "../operations/failures.ts";
import type { DeclaredModel } from "./package-description.ts";
import type { BlueprintAsset } from "./records.ts";

const SHA256_PATTERN = /^[0-9a-f]{64}$/;
const CHUNK_BYTES = 1024 * 1024;
/** A model's file while it is written. */
const PART = "part";

export interface InstallRequest {
  readonly model: DeclaredModel;
  /** The package's payloads/ folder. */
  readonly payload: string;
  /** The content that the blueprint has of it now; null when it is to be written anew whatever is there. */
  readonly knownSha256: string | null;
  readonly signal: AbortSignal;
  /** Told of the bytes that are done. */
  readonly progress: (bytes: number) => void;
}

export interface InstalledModel {
  readonly sha256: string;
  readonly bytes: number;
}

export class Models {
  readonly #root: string;
  readonly #turns = new KeyedMutex();

  /** @param home SVC_HOME */
  constructor(home: string) {
    this.#root = join(home, "models");
  }

  /** Removes what was being written when a process was killed; to be called before anything is written. */
  async sweep(): Promise<void> {
    for (const model of await namesIn(this.#root)) await rm(join(this.#root, model, PART), { force: true });
  }

  /**
   * Sees to it that a model's file is there.
   *
   * @param own writes down that it has an owner, before it can be removed as unowned
   * @throws OperationFailed `model_failed`; errors of the system as they come
   */
  install(
    request: InstallRequest,
    own: (installed: InstalledModel) => Promise<void>,
  ): Promise<InstalledModel> {
    return this.#turns.run(request.model.modelId, async () => {
      const source = await sourceOf(request);
      const installed = (await this.#installed(request, source)) ?? (await this.#copy(request, source));
      await own(installed);
      return installed;
    });
  }

  /** Null when the file has to be written. */
  async #installed(
    { model, knownSha256, signal, progress }: InstallRequest,
    source: string,
  ): Promise<InstalledModel | null> {
    if (knownSha256 === null) return null;
    const found = await this.#found(model.modelId, model.sha256 ?? knownSha256);
    if (found === null || model.sha256 !== null) return found;
    // Nobody says what the file should be, so what it is now counts.
    return (await hashed(source, signal, progress)).sha256 === found.sha256 ? found : null;
  }

  /** Bytes of the file that a model's declaration names; for progress. 0 when it cannot be read. */
  async sourceBytes({ model, payload }: Pick<InstallRequest, "model" | "payload">): Promise<number> {
    const path = isAbsolute(model.path) ? model.path : joinInside(payload, model.path);
    return path === null ? 0 : ((await stat(path).catch(() => null))?.size ?? 0);
  }

  /** Bytes of a model's file; null when it is not there. */
  async bytes(modelId: string, sha256: string): Promise<number | null> {
    return (await this.#found(modelId, sha256))?.bytes ?? null;
  }

  /** Where a model's file is; null when it is not there. It is there for as long as it has an owner. */
  async file(modelId: string, sha256: string): Promise<string | null> {
    const found = await this.#found(modelId, sha256);
    return found === null ? null : join(this.#folder(modelId), sha256);
  }

  /**
   * Removes the files of a model that have no owner.
   *
   * @param hasOwner whether any blueprint has the content
   * @param letGo called last, in the same turn: a row outlives what it owns (records.ts)
   */
  removeUnowned(
    modelId: string,
    hasOwner: (sha256: string) => Promise<boolean>,
    letGo: () => Promise<void> = async () => {},
  ): Promise<void> {
    return this.#turns.run(modelId, async () => {
      const folder = this.#folder(modelId);
      for (const name of await namesIn(folder)) {
        if (SHA256_PATTERN.test(name) && (await hasOwner(name))) continue;
        await rm(join(folder, name), { force: true });
      }
      await rmdir(folder).catch(() => {});
      await letGo();
    });
  }

  /**
   * Removes the models that no blueprint has.
   *
   * @param assets those of all blueprints, read when it is known what is on disk: each has its row before its first byte
   */
  async sweepUnowned(
    assets: () => Promise<readonly Pick<BlueprintAsset, "kind" | "assetId">[]>,
  ): Promise<void> {
    const folders = await namesIn(this.#root);
    const ofModels = (await assets()).filter(({ kind }) => kind === "model");
    const owned = new Set(ofModels.map(({ assetId }) => folderName(assetId)));
    for (const folder of folders) if (!owned.has(folder)) await removeTree(join(this.#root, folder));
  }

  #folder(modelId: string): string {
    return join(this.#root, folderName(modelId));
  }

  async #found(modelId: string, sha256: string): Promise<InstalledModel | null> {
    if (!SHA256_PATTERN.test(sha256)) return null;
    const found = await stat(join(this.#folder(modelId), sha256)).catch(() => null);
    return found === null ? null : { sha256, bytes: found.size };
  }

  async #copy(request: InstallRequest, source: string): Promise<InstalledModel> {
    const { model } = request;
    const folder = this.#folder(model.modelId);
    await mkdir(folder, { recursive: true, mode: 0o700 });
    const part = join(folder, PART);
    await rm(part, { force: true });
    try {
      const copied = await copyHashed(source, part, request);
      if (model.sha256 !== null && copied.sha256 !== model.sha256) {
        throw failed(
          model,
          `Its file has the SHA-256 ${copied.sha256}, and the manifest declares ${model.sha256}.`,
        );
      }
      await rename(part, join(folder, copied.sha256));
      await syncFolder(folder);
      await syncFolder(this.#root);
      return copied;
    } finally {
      await rm(part, { force: true });
    }
  }
}

async function sourceOf({ model, payload }: InstallRequest): Promise<string> {
  const named = isAbsolute(model.path) ? model.path : joinInside(payload, model.path);
  const where = isAbsolute(model.path) ? "the path that the manifest names" : `payloads/${model.path}`;
  const path = named === null ? null : await realpath(named).catch(() => null);
  const isOutside = path !== null && !isAbsolute(model.path) && !isInside(await realpath(payload), path);
  if (path === null || isOutside || !(await stat(path)).isFile()) {
    throw failed(model, `There is no file at ${where}. Put it there, or fix "path" in the manifest.`);
  }
  return path;
}

/** What is hashed is the copy, as it was written. */
async function copyHashed(from: string, to: string, request: InstallRequest): Promise<InstalledModel> {
  const { model, signal, progress } = request;
  try {
    const half = (bytes: number) => progress(Math.floor(bytes / 2));
    let copiedBytes = 0;
    await new FileCopier(signal).copy(from, to, (bytes) => {
      copiedBytes += bytes;
      half(copiedBytes);
    });
    const copied = await hashed(to, signal, (bytes) => half(copiedBytes + bytes));
    await makeReadOnly(to);
    return copied;
  } catch (error) {
    if (error instanceof FileChanged) {
      throw failed(model, "Its file changed while it was copied. Try again when nobody writes to it.");
    }
    const { code } = error as NodeJS.ErrnoException;
    if (code !== "EACCES" && code !== "ENOENT") throw error;
    throw failed(model, `Its file cannot be read (${code}).`);
  }
}

async function hashed(
  path: string,
  signal: AbortSignal,
  progress: (bytes: number) => void,
): Promise<InstalledModel> {
  const digest = createHash("sha256");
  let bytes = 0;
  for await (const chunk of createReadStream(path, { highWaterMark: CHUNK_BYTES, signal })) {
    digest.update(chunk as Buffer);
    bytes += (chunk as Buffer).length;
    progress(bytes);
  }
  return { sha256: digest.digest("hex"), bytes };
}

/** Makes a file read-only, and puts it on disk. */
async function makeReadOnly(path: string): Promise<void> {
  const file = await open(path, "r");
  try {
    await file.chmod(0o400);
    await file.sync();
  } finally {
    await file.close();
  }
}

function failed({ modelId }: DeclaredModel, message: string): OperationFailed {
  return new OperationFailed("model_failed", `The model "${modelId}" could not be installed. ${message}`);
}
