// Cleanup: removes finished jobs with their history, files and artifacts, in small transactions.
//
// U1. Rows go first, and with them a note of every file that has become garbage; a file goes after its row, and its
//     note after the file. A crash in between leaves notes, and the next start goes on with them.
// U2. A blob is kept while an artifact names it, and for a while after it was put: its artifact may be about to be
//     committed.
// U3. A run's folder is removed after its last command has ended, so that nothing is written into it afterwards.

import type { Engine } from "../engine/engine.ts";
import type { Clock, EngineLog } from "../engine/ports.ts";
import type { Garbage, JobRecords } from "./job-records.ts";

const JOBS_PER_TRANSACTION = 200;
const GARBAGE_PER_PAGE = 500;
/** How long after it was put a blob may still wait for the commit that names it. */
const PUT_TO_COMMIT_MS_MAX = 60_000;

export interface CleanupPorts {
  readonly records: JobRecords;
  readonly engine: Engine;
  readonly clock: Clock;
  readonly log: EngineLog;
  /** Removes a blob unless it was put after `sinceMs`. @returns whether it is gone */
  readonly removeBlob: (sha256: string, sinceMs: number) => Promise<boolean>;
  /** Removes the run's workspaces; those that are gone are no error. */
  readonly removeRunFiles: (runId: string) => Promise<void>;
  /** Resolves when no command of the run is left. */
  readonly commandsEnded: (runId: string) => Promise<void>;
}

export class Cleanup {
  readonly #ports: CleanupPorts;
  #cancelLater: (() => void) | null = null;
  #isStopped = false;

  constructor(ports: CleanupPorts) {
    this.#ports = ports;
  }

  /**
   * Runs of durable jobs are left alone: they go with their job.
   *
   * @param request.all also open jobs: they are cancelled first
   * @returns the ids of the jobs that were removed
   */
  async run(request: { readonly all: boolean }): Promise<string[]> {
    if (request.all) await this.#cancelOpenJobs();
    const deleted: string[] = [];
    for (;;) {
      const jobIds = await this.#ports.records.deleteTerminal(JOBS_PER_TRANSACTION);
      if (jobIds.length === 0) break;
      deleted.push(...jobIds);
    }
    await this.collectGarbage();
    return deleted;
  }

  async #cancelOpenJobs(): Promise<void> {
    const { records, engine } = this.#ports;
    let after: { submittedAtMs: number; jobId: string } | null = null;
    for (;;) {
      const open = await records.page({ includeTerminal: false, limit: JOBS_PER_TRANSACTION, after });
      const last = open.at(-1);
      if (last === undefined) return;
      const own = open.filter((job) => job.definitionId === null);
      await Promise.all(own.map((job) => engine.cancel(job.jobId)));
      after = { submittedAtMs: last.submittedAtMs, jobId: last.jobId };
    }
  }

  /** Removes the files that are noted as garbage; what is too young is looked at again a while later. */
  async collectGarbage(): Promise<void> {
    let after: Garbage | null = null;
    let left = 0;
    for (;;) {
      const page: readonly Garbage[] = await this.#ports.records.garbage(GARBAGE_PER_PAGE, after);
      for (const garbage of page) if (!(await this.#remove(garbage))) left++;
      after = page.at(-1) ?? null;
      if (after === null || this.#isStopped) break;
    }
    if (left > 0) this.#lookAgainLater();
  }

  async #remove(garbage: Garbage): Promise<boolean> {
    const { records, clock, removeBlob, removeRunFiles, commandsEnded } = this.#ports;
    if (garbage.kind === "blob") {
      if (!(await removeBlob(garbage.name, clock.nowMs() - PUT_TO_COMMIT_MS_MAX))) return false;
    } else {
      await commandsEnded(garbage.name);
      await removeRunFiles(garbage.name);
    }
    await records.forgetGarbage(garbage);
    return true;
  }

  #lookAgainLater(): void {
    if (this.#cancelLater !== null || this.#isStopped) return;
    this.#cancelLater = this.#ports.clock.after(PUT_TO_COMMIT_MS_MAX, () => {
      this.#cancelLater = null;
      this.collectGarbage().catch((error: unknown) =>
        this.#ports.log.warn(
          { error: String(error) },
          "files of removed jobs could not be removed; the next start tries again",
        ),
      );
    });
  }

  stop(): void {
    this.#isStopped = true;
    this.#cancelLater?.();
  }
}
