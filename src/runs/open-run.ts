// A run that something is asked of, and what its caller is told when it is not open.

import { EngineUnavailable } from "../engine/batch.ts";
import { isTerminal, type JobStatus } from "../engine/journal.ts";
import { DomainError } from "../lib/domain-error.ts";
import type { JobRecords } from "./job-records.ts";

export interface AskedRun {
  readonly runId: string;
  /** Of its runtime job. */
  readonly jobId: string;
  /** As it was read. */
  readonly status: JobStatus;
}

export function runEnded({ runId }: AskedRun, status: JobStatus, what: string): DomainError {
  return new DomainError("run_ended", `Run ${runId} is ${status}, which is final: ${what}.`);
}

/** Why the engine does not have a run open: it has ended meanwhile, or this start has not come to it yet. */
export async function whyNotOpen(
  jobs: Pick<JobRecords, "find">,
  run: AskedRun,
  what: string,
): Promise<DomainError | EngineUnavailable> {
  const status = (await jobs.find(run.jobId))?.status ?? run.status;
  if (isTerminal(status)) return runEnded(run, status, what);
  return new EngineUnavailable(`Run ${run.runId} is not carried on here yet; try again in a moment.`);
}
