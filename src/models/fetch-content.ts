// Brings a model's content from its source into the home.
//
// - Before the first byte there is room for all of them on the disk, beside what others are bringing at the time.
// - What is no model is not taken, unless its SHA-256 was declared: who asks for it knows its content then. So nobody reads
//   files of the machine by way of a model.
// - A download that is cut goes on where it was; how often and when it is tried again is up to what the server says.

import { opendir, realpath, stat } from "node:fs/promises";
import { join } from "node:path";
import type { Clock } from "../engine/ports.ts";
import { isInside, joinInside } from "../lib/paths.ts";
import { bytesText } from "../lib/text.ts";
import { OperationFailed } from "../operations/failures.ts";
import type { OperationContext } from "../operations/progress.ts";
import type { Content } from "./copy-content.ts";
import { DownloadFailed } from "./download.ts";
import type { Inspection, Memory } from "./inspect-model.ts";
import { type ModelFiles, modelFailed, type Own } from "./model-files.ts";
import { ModelInvalid } from "./model-invalid.ts";
import type { ModelSource } from "./model-source.ts";
import { doModelWork } from "./model-work.ts";
import type { ModelContent } from "./records.ts";
import { TransferLabel } from "./transfer-label.ts";

/** Tries of a download in a row in which nothing came. */
const TRIES_MAX = 6;
const FIRST_WAIT_MS = 500;
const WAIT_MAX_MS = 60_000;
/** What the rest of the program needs of the disk. */
const SPARE_BYTES = 64 * 1024 * 1024;
/** Files of a folder. */
const FILES_MAX = 1_000;
/** What belongs to a model, of a folder's files. */
const MODEL_FILES = /\.(safetensors|json|txt|model|tiktoken|jinja|gguf|md)$|^LICENSE/;
const WEIGHTS = /\.(safetensors|gguf)$/;

export interface FetchParts {
  readonly files: ModelFiles;
  /** Bytes that the disk of SVC_HOME has for what is written now. */
  readonly freeBytes: () => Promise<number>;
  readonly memory: () => Memory;
  /** The payloads/ folder of an added blueprint; null when it is not added. */
  readonly payloadOf: (blueprintId: string) => Promise<string | null>;
  readonly clock: Clock;
}

export interface FetchRequest {
  readonly modelId: string;
  readonly source: Exclude<ModelSource, { readonly kind: "ollama" | "openai" }>;
  /** What the content has to be; null: whatever it is. */
  readonly sha256: string | null;
  /** Whether it is made also when it is there. */
  readonly isAnew: boolean;
}

export class ContentFetcher {
  readonly #parts: FetchParts;
  /** Bytes that are still to come, of all that are under way. */
  #heldBytes = 0;

  constructor(parts: FetchParts) {
    this.#parts = parts;
  }

  /** @throws OperationFailed `model_failed`, `disk_full`; the signal's reason */
  async fetch(
    { modelId, source, sha256, isAnew }: FetchRequest,
    context: OperationContext,
    own: Own,
  ): Promise<ModelContent> {
    const { files } = this.#parts;
    const { signal } = context;
    const declared = source.kind === "url" ? source.sha256 : sha256;
    const found: { said?: ModelContent } = {};
    const looked = async (path: string, content: Content) => {
      found.said = await this.#said(modelId, path, content, declared !== null, signal);
    };
    const content = await files.take(
      modelId,
      {
        sha256: declared,
        isAnew,
        isDownload: source.kind === "url",
        make: async (to) => {
          const made = await this.#made(modelId, source, to, context);
          if (declared === null || made.sha256 === declared) await looked(to, made);
          return made;
        },
      },
      own,
    );
    const place = await files.file(modelId, content.sha256);
    if (found.said === undefined && place !== null) await looked(place, content);
    return found.said ?? { ...nothingSaid, ...content };
  }

  async #made(
    modelId: string,
    source: FetchRequest["source"],
    to: string,
    context: OperationContext,
  ): Promise<Content> {
    switch (source.kind) {
      case "file":
        return this.#copied(modelId, source.path, to, context);
      case "payload":
        return this.#copied(modelId, await this.#payloadFile(modelId, source), to, context);
      case "folder":
        return this.#copiedFolder(modelId, source.path, to, context);
      case "url":
        return this.#downloaded(modelId, source, to, context);
      default:
        return source satisfies never;
    }
  }

  async #payloadFile(
    modelId: string,
    { path, blueprintId }: Extract<ModelSource, { readonly kind: "payload" }>,
  ): Promise<string> {
    const payload = await this.#parts.payloadOf(blueprintId);
    if (payload === null)
      throw modelFailed(
        modelId,
        `The blueprint ${blueprintId} is not added. Add it, then install the model again.`,
      );
    const named = joinInside(payload, path);
    const file = named === null ? null : await realpath(named).catch(() => null);
    if (file === null || !isInside(await realpath(payload), file))
      throw modelFailed(modelId, `The blueprint ${blueprintId} has no file at payloads/${path}.`);
    return file;
  }

  async #copied(modelId: string, path: string, to: string, context: OperationContext): Promise<Content> {
    const found = await stat(path).catch(() => null);
    if (found === null || !found.isFile())
      throw modelFailed(modelId, `There is no file at ${path} on the machine of the gateway.`);
    const { size } = found;
    return this.#holding(modelId, size, async (done) => {
      const report = this.#reporter("Copying", context);
      return doModelWork(
        { kind: "copy", from: path, to },
        { signal: context.signal, done: (bytes) => report(done(bytes), size) },
      );
    });
  }

  async #copiedFolder(
    modelId: string,
    path: string,
    to: string,
    context: OperationContext,
  ): Promise<Content> {
    const files = await filesOf(modelId, path);
    let size = 0;
    for (const file of files) size += (await stat(join(path, file))).size;
    return this.#holding(modelId, size, async (done) => {
      const report = this.#reporter("Copying", context);
      return doModelWork(
        { kind: "copy_folder", from: path, to, files },
        { signal: context.signal, done: (bytes) => report(done(bytes), size) },
      );
    });
  }

  async #downloaded(
    modelId: string,
    { url, token }: Extract<ModelSource, { readonly kind: "url" }>,
    to: string,
    context: OperationContext,
  ): Promise<Content> {
    const label = new TransferLabel("Downloading", this.#parts.clock);
    for (let tries = 1; ; tries++) {
      const free = (await this.#parts.freeBytes()) - this.#heldBytes;
      let total: number | null = null;
      let held = 0;
      let came = false;
      try {
        return await doModelWork(
          { kind: "download", url, token, to },
          {
            signal: context.signal,
            begins: (totalBytes, bytesThere) => {
              total = totalBytes;
              held = Math.max(0, (totalBytes ?? 0) - bytesThere);
              this.#checkRoom(modelId, held, free);
              this.#heldBytes += held;
              label.begins(bytesThere);
            },
            done: (bytes) => {
              came = true;
              context.progress(total === null ? 0 : bytes / total, label.text(bytes, total));
            },
          },
        );
      } catch (error) {
        if (!(error instanceof DownloadFailed)) throw error;
        if (came) tries = 1;
        if (!error.isPassing || tries >= TRIES_MAX || (error.waitMs ?? 0) > WAIT_MAX_MS)
          throw modelFailed(
            modelId,
            `${error.message} What has come is gone on with when it is installed again.`,
          );
        const waitMs = error.waitMs ?? Math.min(WAIT_MAX_MS, FIRST_WAIT_MS * 2 ** (tries - 1));
        context.progress(0, `Waiting ${Math.ceil(waitMs / 1_000)} s to go on: ${error.message}`);
        await this.#wait(waitMs, context.signal);
      } finally {
        this.#heldBytes -= held;
      }
    }
  }

  /** Does the work while there is room for so many bytes. @param work told how to say what is written already */
  async #holding(
    modelId: string,
    size: number,
    work: (done: (bytes: number) => number) => Promise<Content>,
  ): Promise<Content> {
    this.#checkRoom(modelId, size, (await this.#parts.freeBytes()) - this.#heldBytes);
    this.#heldBytes += size;
    let left = size;
    try {
      return await work((bytes) => {
        const now = Math.max(0, size - bytes);
        this.#heldBytes += now - left;
        left = now;
        return bytes;
      });
    } finally {
      this.#heldBytes -= left;
    }
  }

  #checkRoom(modelId: string, needed: number, free: number): void {
    if (needed + SPARE_BYTES <= free) return;
    throw new OperationFailed(
      "disk_full",
      `The model "${modelId}" needs ${bytesText(needed)} on the disk of SVC_HOME, and ${bytesText(Math.max(0, free - SPARE_BYTES))} are free. Free some space, then install it again.`,
    );
  }

  #reporter(what: string, context: OperationContext): (bytes: number, total: number) => void {
    const label = new TransferLabel(what, this.#parts.clock);
    return (bytes, total) => context.progress(total === 0 ? 1 : bytes / total, label.text(bytes, total));
  }

  #wait(ms: number, signal: AbortSignal): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const cancel = this.#parts.clock.after(ms, resolve);
    const aborted = () => reject(signal.reason);
    signal.addEventListener("abort", aborted, { once: true });
    return promise.finally(() => {
      cancel();
      signal.removeEventListener("abort", aborted);
    });
  }

  /** What the content says of itself. @param isDeclared whether it may be of a format that nobody knows here */
  async #said(
    modelId: string,
    path: string,
    content: Content,
    isDeclared: boolean,
    signal: AbortSignal,
  ): Promise<ModelContent> {
    try {
      const first = await weightsIn(path);
      const work = { kind: "inspect", path: first, context: null, memory: this.#parts.memory() } as const;
      const { details } = await doModelWork(work, { signal });
      return { ...saidBy(details), ...content };
    } catch (error) {
      if (!(error instanceof ModelInvalid)) throw error;
      if (isDeclared) return { ...nothingSaid, ...content };
      throw modelFailed(
        modelId,
        `${error.message} A file of another format is taken when its "sha256" is registered.`,
      );
    }
  }
}

const nothingSaid = {
  format: null,
  architecture: null,
  license: null,
  parameters: null,
  quantisation: null,
  context: null,
  tokenizer: null,
  vocabulary: null,
  hasChatTemplate: null,
} as const;

function saidBy(details: Inspection["details"]): Omit<ModelContent, "sha256" | "bytes"> {
  const { format, architecture, license, parameters, quantisation, context } = details;
  const { tokenizer, vocabulary, hasChatTemplate } = details;
  const said = { architecture, license, parameters, quantisation, context, tokenizer, vocabulary };
  return { format, ...said, hasChatTemplate };
}

/** The file itself; of a folder the first of its weights. */
export async function weightsIn(path: string): Promise<string> {
  if (!(await stat(path)).isDirectory()) return path;
  const weights: string[] = [];
  for await (const { name } of await opendir(path)) if (WEIGHTS.test(name)) weights.push(name);
  const [first] = weights.toSorted();
  if (first === undefined) throw new ModelInvalid("The folder has neither safetensors nor GGUF files.");
  return join(path, first);
}

/** The files of a folder that belong to the model: those at its top, also by way of links as Hugging Face's cache has them. */
async function filesOf(modelId: string, folder: string): Promise<readonly string[]> {
  const files: string[] = [];
  try {
    for await (const { name } of await opendir(folder)) {
      if (name.startsWith(".") || !MODEL_FILES.test(name)) continue;
      if (!(await stat(join(folder, name))).isFile()) continue;
      files.push(name);
      if (files.length > FILES_MAX)
        throw modelFailed(modelId, `The folder has more than ${FILES_MAX} files.`);
    }
  } catch (error) {
    if (error instanceof OperationFailed) throw error;
    const { code } = error as NodeJS.ErrnoException;
    throw modelFailed(
      modelId,
      `The folder ${folder} on the machine of the gateway cannot be read (${code}).`,
    );
  }
  if (!files.includes("config.json") || !files.some((file) => WEIGHTS.test(file)))
    throw modelFailed(modelId, `The folder ${folder} has no config.json, or no weights as safetensors.`);
  return files;
}
