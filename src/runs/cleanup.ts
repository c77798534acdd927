// Cleanup: removes finished jobs of the runtime's own API when it is asked to, and what any removed job has left.
//
// - Rows go first, and with them a note of everything that has become garbage; what is noted goes in pieces, and its
//   note after it. A crash in between leaves notes, and the next start continues with them.
// - A blob is kept while an artifact names it, and for a while after it was put: its artifact may be about to
//   be committed.
// - A run's folders are removed after its last command has ended, so that nothing is written into them afterwards.
// - Removing takes a share of the thread, and a small one at a time.
// - What cannot be deleted (a worker's files may be another user's) stays noted, and delays nothing else.

import type { Engine } from "../engine/engine.ts";
import type { JobControl } from "../engine/job-control.ts";
import type { Clock } from "../engine/ports.ts";
import { Slices } from "../lib/slices.ts";
import type { JobRecords } from "./job-records.ts";
import { Pace } from "./pace.ts";
import type { FileGarbage, RetentionRecords } from "./retention-records.ts";

const OPEN_JOBS_PER_PAGE = 200;
const JOBS_PER_TRANSACTION = 25;
const GARBAGE_PER_PAGE = 200;
/** How long after it was put a blob may still wait for the commit that names it: attempts may leave many large files. */
const PUT_TO_COMMIT_MS_MAX = 60 * 60 * 1_000;

export interface Counted {
  readonly count: number;
  readonly bytes: number;
}

/** What was removed, and the first thing that the system refused to remove; null when there was none. */
export interface Collected extends Counted {
  readonly refusal: Error | null;
}

/** The outcome for a blob: it was put lately, it is gone (its size in bytes), it was not there. */
export type BlobRemoval =
  | { readonly kind: "kept" }
  | { readonly kind: "removed"; readonly size: number }
  | { readonly kind: "missing" };

export interface CleanupPorts {
  readonly records: JobRecords;
  readonly retention: RetentionRecords;
  readonly engine: Pick<Engine, "unavailable">;
  readonly control: Pick<JobControl, "cancel">;
  readonly clock: Clock;
  /** Removes a blob unless it was put after `sinceMs`; a preview removes nothing. */
  readonly removeBlob: (
    sha256: string,
    sinceMs: number,
    options: { readonly isPreview: boolean },
  ) => Promise<BlobRemoval>;
  /** Removes the run's workspaces and history files; those that are gone are no error. */
  readonly removeRunFiles: (runId: string) => Promise<void>;
  /** Resolves when no command of the run is left. */
  readonly commandsEnded: (runId: string) => Promise<void>;
}

export class Cleanup {
  readonly #ports: CleanupPorts;
  readonly #pace: Pace;
  readonly #stopping = Promise.withResolvers<void>();
  #collecting: Promise<unknown> = Promise.resolve();
  #isStopped = false;

  constructor(ports: CleanupPorts) {
    this.#ports = ports;
    this.#pace = new Pace(ports.clock);
  }

  /**
   * Runs of durable jobs are left alone: they go with their job, or when they are old.
   *
   * @param request.all also open jobs: they are cancelled first
   * @returns the ids of the jobs that were removed; not all of them when it is stopped meanwhile
   */
  async run(request: { readonly all: boolean }): Promise<string[]> {
    if (request.all) await this.#cancelOpenJobs();
    const deleted: string[] = [];
    do {
      const jobIds = await this.#pace.step(() => this.#ports.retention.removeOwn(JOBS_PER_TRANSACTION));
      if (jobIds.length === 0) break;
      deleted.push(...jobIds);
    } while (!this.#isStopped);
    await this.collectGarbage();
    return deleted;
  }

  async #cancelOpenJobs(): Promise<void> {
    const { records, control } = this.#ports;
    let after: { submittedAtMs: number; jobId: string } | null = null;
    for (;;) {
      const { rows: open } = await records.page({
        includeTerminal: false,
        limit: OPEN_JOBS_PER_PAGE,
        after,
      });
      const last = open.at(-1);
      if (last === undefined) return;
      const own = open.filter((job) => job.definitionId === null);
      await Promise.all(own.map((job) => control.cancel(job.jobId)));
      after = { submittedAtMs: last.submittedAtMs, jobId: last.jobId };
    }
  }

  /**
   * Removes what is noted as garbage; blobs that are too young wait for a later call. Calls take turns.
   *
   * @returns the blobs that were removed
   */
  collectGarbage(): Promise<Collected> {
    const collected = this.#collecting.then(() => this.#collect());
    this.#collecting = collected.catch(() => {});
    return collected;
  }

  async #collect(): Promise<Collected> {
    const { retention } = this.#ports;
    let refusal: Error | null = null;
    while (!this.#isStopped && (await this.#pace.step(() => this.#removeParts()))) {
      // One small transaction after the other, so that others write in between.
    }
    let count = 0;
    let bytes = 0;
    let after: FileGarbage | null = null;
    while (!this.#isStopped) {
      const page: readonly FileGarbage[] = await retention.fileGarbage(GARBAGE_PER_PAGE, after);
      after = page.at(-1) ?? null;
      if (after === null) break;
      const removed: FileGarbage[] = [];
      for (const garbage of page) {
        if (this.#isStopped) break;
        const removal = await this.#remove(garbage).catch((error: unknown): BlobRemoval => {
          if (!isSystemError(error)) throw error;
          refusal ??= error;
          return { kind: "kept" };
        });
        if (removal.kind !== "kept") removed.push(garbage);
        if (removal.kind !== "removed") continue;
        count++;
        bytes += removal.size;
      }
      await retention.forgetGarbage(removed);
    }
    return { count, bytes, refusal };
  }

  #removeParts(): Promise<boolean> {
    const slices = new Slices();
    return this.#ports.retention.removeParts(() => slices.isOver);
  }

  async #remove({ kind, name }: FileGarbage): Promise<BlobRemoval> {
    if (kind === "blob") return this.removeUnnamedBlob(name, { isPreview: false });
    // A stop does not wait for commands: it ends them a little later.
    await Promise.race([this.#ports.commandsEnded(name), this.#stopping.promise]);
    if (this.#isStopped) return { kind: "kept" };
    await this.#ports.removeRunFiles(name);
    return { kind: "missing" };
  }

  /** Removes a blob that nothing names, unless it was put lately. @param options.isPreview removes nothing */
  async removeUnnamedBlob(sha256: string, options: { readonly isPreview: boolean }): Promise<BlobRemoval> {
    const { engine, clock, removeBlob } = this.#ports;
    // While the store takes no writes, a commit that names it may be waiting for any time.
    if (engine.unavailable !== null) return { kind: "kept" };
    return removeBlob(sha256, clock.nowMs() - PUT_TO_COMMIT_MS_MAX, options);
  }

  /** Resolves when nothing is being removed any more. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#stopping.resolve();
    this.#pace.stop();
    await this.#collecting;
  }
}

/** Whether this is the system's own error about a file or folder. */
export function isSystemError(error: unknown): error is Error {
  return (error as NodeJS.ErrnoException | null)?.syscall !== undefined;
}
