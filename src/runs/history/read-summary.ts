// The summary of a run with the links to its outputs, which are all that has to be read for it.

import type { Failure } from "../../engine/failure.ts";
import type { JobRecords } from "../job-records.ts";
import { type ObservabilitySummary, OUTPUT_LINKS_MAX, type SummarizedJob, summaryOf } from "./summary.ts";

/** A run's row, as far as its summary is concerned. */
export type SummarizedRow = SummarizedJob & {
  /** svc.error.v1; null unless the run failed. */
  readonly failureJson: string | null;
};

/**
 * Costs at most one small query, and none for a run whose workers left no files.
 *
 * @param nowMs wall time in ms since 1970, for the duration of an open run; without it, it lasts to its last batch
 */
export async function readSummary(
  records: Pick<JobRecords, "outputPage">,
  job: SummarizedRow,
  nowMs?: number,
): Promise<ObservabilitySummary> {
  const outputs =
    job.tally.artifacts === 0 ? [] : await records.outputPage(job.runId, OUTPUT_LINKS_MAX, null);
  return summaryOf({
    job,
    failure: readFailure(job.failureJson),
    ...(nowMs !== undefined && { nowMs }),
    artifactIds: outputs.map(({ artifactId }) => artifactId),
  });
}

/** A failure as it is kept, or null. */
export function readFailure(failureJson: string | null): Failure | null {
  return failureJson === null ? null : (JSON.parse(failureJson) as Failure);
}

/** The failure and what follows from it, as JSON members with a comma before each; nothing when there is none. */
export function failureMembers(failureJson: string | null): string {
  return failureJson === null ? "" : `,"failure":${failureJson},${reasonMembers(failureJson)}`;
}

/** `reason` and `status_reason`: display strings that follow from the failure (spec "Failure object …"), as JSON members. */
export function reasonMembers(failureJson: string | null): string {
  const desc = JSON.stringify(readFailure(failureJson)?.desc ?? null);
  return `"reason":${desc},"status_reason":${desc}`;
}
