// Cleanup: removes finished jobs with their history, files and artifacts, in small transactions.

import type { Engine } from "../engine/engine.ts";
import type { JobRecords } from "./job-records.ts";

const JOBS_PER_TRANSACTION = 200;

export interface CleanupPorts {
  readonly records: JobRecords;
  readonly engine: Engine;
  /** Removes a stored content unless it was put in again just now. */
  readonly removeBlob: (sha256: string) => Promise<void>;
  /** Removes the run's workspaces; those that are gone are no error. */
  readonly removeRunFiles: (runId: string) => Promise<void>;
}

export class Cleanup {
  readonly #ports: CleanupPorts;

  constructor(ports: CleanupPorts) {
    this.#ports = ports;
  }

  /**
   * @param request.all also open jobs: they are cancelled first
   * @returns the ids of the jobs that were removed
   */
  async run(request: { readonly all: boolean }): Promise<string[]> {
    if (request.all) await this.#cancelOpenJobs();
    const deleted: string[] = [];
    for (;;) {
      const { jobs, orphanedSha256 } = await this.#ports.records.deleteTerminal(JOBS_PER_TRANSACTION);
      if (jobs.length === 0) return deleted;
      for (const { jobId, runId } of jobs) {
        deleted.push(jobId);
        await this.#ports.removeRunFiles(runId);
      }
      for (const sha256 of orphanedSha256) await this.#ports.removeBlob(sha256);
    }
  }

  async #cancelOpenJobs(): Promise<void> {
    const { records, engine } = this.#ports;
    let after: { submittedAtMs: number; jobId: string } | null = null;
    for (;;) {
      const open = await records.page({ includeTerminal: false, limit: JOBS_PER_TRANSACTION, after });
      const last = open.at(-1);
      if (last === undefined) return;
      await Promise.all(open.map((job) => engine.cancel(job.jobId)));
      after = { submittedAtMs: last.submittedAtMs, jobId: last.jobId };
    }
  }
}
