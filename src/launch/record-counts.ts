// How many jobs and runs there are, for summaries: counted up to a bound, so that asking costs the same however many
// there are. A port, implemented in src/store.

import type { JobStatus } from "../engine/journal.ts";

/** A count of `maximum` says: this many, or more. */
export interface RecordCounts {
  readonly jobs: number;
  /** Jobs whose latest run has not ended, or that have no run yet. */
  readonly jobsOpen: number;
  /** Runs of jobs that were just deleted count until they are removed. */
  readonly runs: Readonly<Record<JobStatus, number>>;
}

export interface RecordCounter {
  /** Reads indexes only, and of each count at most `maximum` entries. */
  count(maximum: number): Promise<RecordCounts>;
}
