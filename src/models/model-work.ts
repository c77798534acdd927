// Work on models' files, each piece of it in a thread of its own, which ends with it. A small file takes less than a thread does.

import { stat } from "node:fs/promises";
import { Worker } from "node:worker_threads";
import { FileChanged } from "../lib/copy-file.ts";
import type { Content } from "./copy-content.ts";
import { DownloadFailed } from "./download.ts";
import type { Inspection } from "./inspect-model.ts";
import { ModelInvalid } from "./model-invalid.ts";
import { type ModelWork, type WorkError, type WorkMessage, worked } from "./work.ts";

/** Of the headers that it parses, the largest have some hundred megabytes as objects. */
const THREAD_MEMORY_MB = 512;
const SMALL_BYTES = 4 * 1024 * 1024;

export interface WorkProgress {
  readonly signal: AbortSignal;
  /** Told of the bytes that are done. */
  readonly done?: (bytes: number) => void;
  /** Told when a download begins; what it throws ends the work. */
  readonly begins?: (totalBytes: number | null, bytesThere: number) => void;
}

type ResultOf<Work extends ModelWork> = Work extends { readonly kind: "inspect" } ? Inspection : Content;

/**
 * Does a piece of work.
 *
 * @throws FileChanged, DownloadFailed, ModelInvalid; the system's errors; the signal's reason when it is aborted
 */
export async function doModelWork<const Work extends ModelWork>(
  work: Work,
  { signal, done = () => {}, begins = () => {} }: WorkProgress,
): Promise<ResultOf<Work>> {
  signal.throwIfAborted();
  if (await isSmall(work)) return (await worked(work, { begins, done })) as ResultOf<Work>;
  return inThread(work, { signal, done, begins });
}

async function isSmall(work: ModelWork): Promise<boolean> {
  if (work.kind === "download" || work.kind === "copy_folder") return false;
  const found = await stat(work.kind === "copy" ? work.from : work.path).catch(() => null);
  return found === null || !found.isFile() || found.size <= SMALL_BYTES;
}

function inThread<Work extends ModelWork>(
  work: Work,
  { signal, done, begins }: Required<WorkProgress>,
): Promise<ResultOf<Work>> {
  const { promise, resolve, reject } = Promise.withResolvers<ResultOf<Work>>();
  const thread = new Worker(new URL("./work-thread.ts", import.meta.url), {
    workerData: work,
    env: {},
    argv: [],
    execArgv: [],
    resourceLimits: { maxOldGenerationSizeMb: THREAD_MEMORY_MB, maxYoungGenerationSizeMb: 16 },
  });
  let hasEnded = false;
  const end = (settle: () => void) => {
    if (hasEnded) return;
    hasEnded = true;
    signal.removeEventListener("abort", aborted);
    // Its files are not touched any more when the work has ended.
    void thread.terminate().then(settle);
  };
  const fail = (error: unknown) => end(() => reject(error));
  const aborted = () => fail(signal.reason);
  signal.addEventListener("abort", aborted, { once: true });
  thread.on("message", (message: WorkMessage) => {
    try {
      switch (message.kind) {
        case "begins":
          return begins(message.totalBytes, message.bytesThere);
        case "done":
          return done(message.bytes);
        case "ended":
          return end(() => resolve(message.result as ResultOf<Work>));
        case "failed":
          return fail(errorOf(message.error));
        default:
          return message satisfies never;
      }
    } catch (error) {
      fail(error);
    }
  });
  thread.on("error", (error: unknown) => {
    const isTooLarge = (error as NodeJS.ErrnoException).code === "ERR_WORKER_OUT_OF_MEMORY";
    fail(isTooLarge ? new ModelInvalid("Its header takes too much memory.") : error);
  });
  thread.on("exit", () => fail(new Error("The thread that works on models has ended.")));
  return promise;
}

function errorOf({ name, message, code, isPassing, waitMs }: WorkError): Error {
  switch (name) {
    case "FileChanged":
      return new FileChanged(message);
    case "DownloadFailed":
      return new DownloadFailed(message, isPassing, waitMs);
    case "ModelInvalid":
      return new ModelInvalid(message);
    default:
      return Object.assign(new Error(message), code === undefined ? {} : { code });
  }
}
