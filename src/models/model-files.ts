// Models on disk: models/<model>/<sha256>, a file or a folder, each written once, and shared by all that have the model.
//
// - Content is whole, on disk and what its name says before that name exists.
// - One content is on the disk once: models of the same content are hard links to it, and it goes with the last of them.
// - Rows are the owners, of blueprints that bring a model along and of installations: content goes with the last one that
//   has it. Installing and removing a model take turns, so that nobody relies on what is about to go.

import { link, lstat, mkdir, readdir, rename, rmdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { KeyedMutex } from "../lib/async.ts";
import { FileChanged } from "../lib/copy-file.ts";
import { bytesIn, namesIn, syncFolder } from "../lib/files.ts";
import { folderName } from "../lib/paths.ts";
import { removeTree } from "../lib/remove-tree.ts";
import { OperationFailed } from "../operations/failures.ts";
import type { Content } from "./copy-content.ts";
import { forgetDownload } from "./download.ts";
import { doModelWork } from "./model-work.ts";

const SHA256_PATTERN = /^[0-9a-f]{64}$/;
/** A model's content while it is written. */
const PART = "part";
/** Hard links to content that is there. */
const LINKS = "links";
/** A download, which is gone on with after a restart. */
const DOWNLOAD = "download";

export interface FileRequest {
  readonly modelId: string;
  /** The file that it is copied from. */
  readonly path: string;
  /** What it has to be; null: whatever it is. */
  readonly sha256: string | null;
  /** The content that its owner has of it now; null when it is to be written anew whatever is there. */
  readonly knownSha256: string | null;
  readonly signal: AbortSignal;
  /** Told of the bytes that are done. */
  readonly progress: (bytes: number) => void;
}

interface Making {
  readonly name: typeof PART | typeof DOWNLOAD;
  readonly sha256: string | null;
  readonly isAnew: boolean;
  readonly make: (to: string) => Promise<Content>;
}

/** Writes down that content has an owner, before it can be removed as unowned. */
export type Own = (content: Content) => Promise<void>;

export class ModelFiles {
  readonly #root: string;
  readonly #turns = new KeyedMutex();

  /** @param home SVC_HOME */
  constructor(home: string) {
    this.#root = join(home, "models");
  }

  /** Removes what was being written when a process was killed; to be called before anything is written. */
  async sweep(): Promise<void> {
    for (const model of await namesIn(this.#root))
      for (const name of [PART, LINKS]) await removeTree(join(this.#root, model, name));
  }

  /**
   * Sees to it that the copy of a file is there.
   *
   * @throws OperationFailed `model_failed`; errors of the system as they come
   */
  install(request: FileRequest, own: Own): Promise<Content> {
    const { modelId, path, sha256, signal, progress } = request;
    return this.#turns.run(modelId, async () => {
      const copy = (to: string) => doModelWork({ kind: "copy", from: path, to }, { signal, done: progress });
      const installed = await this.#installed(request);
      const isAnew = request.knownSha256 === null;
      const content = installed ?? (await this.#made(modelId, { name: PART, sha256, isAnew, make: copy }));
      await own(content);
      return content;
    });
  }

  /**
   * Sees to it that what somebody makes is there.
   *
   * @param request.isAnew makes it also when it is there, and in place of that
   * @param request.isDownload whether what is left of a failure is gone on with
   * @param request.make makes it at a path
   * @throws as `install`
   */
  take(
    modelId: string,
    request: {
      readonly sha256: string | null;
      readonly isAnew: boolean;
      readonly isDownload: boolean;
      readonly make: (to: string) => Promise<Content>;
    },
    own: Own,
  ): Promise<Content> {
    const { sha256, isAnew, isDownload, make } = request;
    return this.#turns.run(modelId, async () => {
      const there = sha256 === null || isAnew ? null : await this.#anywhere(modelId, sha256);
      const name = isDownload ? DOWNLOAD : PART;
      const content = there ?? (await this.#made(modelId, { name, sha256, isAnew, make }));
      await own(content);
      return content;
    });
  }

  /** Bytes of a model's content; null when it is not there. */
  async bytes(modelId: string, sha256: string): Promise<number | null> {
    return (await this.#found(modelId, sha256))?.bytes ?? null;
  }

  /** Where a model's content is; null when it is not there. It is there for as long as it has an owner. */
  async file(modelId: string, sha256: string): Promise<string | null> {
    const found = await this.#found(modelId, sha256);
    return found === null ? null : join(this.#folder(modelId), sha256);
  }

  /**
   * Removes the content of a model that has no owner.
   *
   * @param hasOwner whether anybody has the content
   * @param letGo called last, in the same turn: a row outlives what it owns
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
        await removeTree(join(folder, name));
      }
      await rmdir(folder).catch(() => {});
      await letGo();
    });
  }

  /**
   * Removes the models that nobody has.
   *
   * @param owned the ids of those that somebody has, read when it is known what is on disk
   */
  async sweepUnowned(owned: () => Promise<readonly string[]>): Promise<void> {
    const folders = await namesIn(this.#root);
    const kept = new Set((await owned()).map(folderName));
    for (const folder of folders) if (!kept.has(folder)) await removeTree(join(this.#root, folder));
  }

  #folder(modelId: string): string {
    return join(this.#root, folderName(modelId));
  }

  async #found(modelId: string, sha256: string): Promise<Content | null> {
    if (!SHA256_PATTERN.test(sha256)) return null;
    const place = join(this.#folder(modelId), sha256);
    const found = await stat(place).catch(() => null);
    if (found === null) return null;
    return { sha256, bytes: found.isDirectory() ? await bytesIn(place) : found.size };
  }

  /** Null when the file has to be written. */
  async #installed({
    modelId,
    path,
    sha256,
    knownSha256,
    signal,
    progress,
  }: FileRequest): Promise<Content | null> {
    if (knownSha256 === null) return null;
    if (sha256 !== null) return this.#anywhere(modelId, sha256);
    const found = await this.#found(modelId, knownSha256);
    if (found === null) return null;
    // Nobody says what the file should be, so what it is now counts.
    const { sha256: now } = await doModelWork({ kind: "hash", path }, { signal, done: progress });
    return now === found.sha256 ? found : null;
  }

  /** Content that is there, also if it is another model's: then it is this one's, too. */
  async #anywhere(modelId: string, sha256: string): Promise<Content | null> {
    const own = await this.#found(modelId, sha256);
    if (own !== null || !SHA256_PATTERN.test(sha256)) return own;
    const links = join(this.#folder(modelId), LINKS);
    await mkdir(this.#folder(modelId), { recursive: true, mode: 0o700 });
    if (!(await this.#linked(sha256, links))) return null;
    await this.#publish(modelId, links, sha256);
    return this.#found(modelId, sha256);
  }

  async #made(modelId: string, { name, sha256, isAnew, make }: Making): Promise<Content> {
    const folder = this.#folder(modelId);
    const part = join(folder, name);
    await this.#empty(modelId, name);
    try {
      const content = await make(part);
      if (sha256 !== null && content.sha256 !== sha256) {
        await forgetDownload(part);
        throw modelFailed(
          modelId,
          `Its content has the SHA-256 ${content.sha256}, and ${sha256} is what was declared.`,
        );
      }
      const place = join(folder, content.sha256);
      if (isAnew) await removeTree(place);
      const links = join(folder, LINKS);
      const isThere = !isAnew && (await this.#linked(content.sha256, links));
      await this.#publish(modelId, isThere ? links : part, content.sha256);
      await forgetDownload(part);
      return content;
    } catch (error) {
      throw explained(modelId, error);
    } finally {
      if (name === PART) await removeTree(part);
    }
  }

  async #empty(modelId: string, name: Making["name"]): Promise<void> {
    const folder = this.#folder(modelId);
    await mkdir(folder, { recursive: true, mode: 0o700 });
    if (name === PART) await removeTree(join(folder, PART));
  }

  /** Gives content its name. What was at `part` is not there any more. */
  async #publish(modelId: string, part: string, sha256: string): Promise<void> {
    const folder = this.#folder(modelId);
    const place = join(folder, sha256);
    if ((await this.#found(modelId, sha256)) === null) await rename(part, place);
    else await removeTree(part);
    await syncFolder(folder);
    await syncFolder(this.#root);
  }

  /** Makes hard links to content of this hash that some model has. @returns false when none has it, or they cannot be made */
  async #linked(sha256: string, to: string): Promise<boolean> {
    await removeTree(to);
    for (const model of await namesIn(this.#root)) {
      const from = join(this.#root, model, sha256);
      if (!(await lstat(from).catch(() => null))) continue;
      try {
        await linkTree(from, to);
        return true;
      } catch {
        // It is being removed, or the file system knows no more links of it.
        await removeTree(to);
      }
    }
    return false;
  }
}

async function linkTree(from: string, to: string): Promise<void> {
  if (!(await lstat(from)).isDirectory()) return link(from, to);
  await mkdir(to, { mode: 0o700 });
  for (const name of await readdir(from)) await linkTree(join(from, name), join(to, name));
  await syncFolder(to);
}

function explained(modelId: string, error: unknown): unknown {
  if (error instanceof FileChanged)
    return modelFailed(modelId, "Its file changed while it was copied. Try again when nobody writes to it.");
  const { code } = error as NodeJS.ErrnoException;
  if (code !== "EACCES" && code !== "ENOENT") return error;
  return modelFailed(modelId, `Its file cannot be read (${code}).`);
}

export function modelFailed(modelId: string, message: string): OperationFailed {
  return new OperationFailed("model_failed", `The model "${modelId}" could not be installed. ${message}`);
}
