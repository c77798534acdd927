// Open jobs by their ids, in the order in which they were added.
//
// It lets go of deleted jobs, which a Map does not: V8 gives a Map that grows, or has lost much, another table, and the
// old table refers to the new one. Once an old table is in the old generation, it keeps every table behind it, and what
// was in them, until a full collection: each collection of young objects then copies jobs that ended long ago. Here
// tables refer to holders, which are emptied.

import type { Job } from "./job/state.ts";

interface Holder {
  job: Job | null;
}

export class JobMap {
  readonly #holders = new Map<string, Holder>();

  get size(): number {
    return this.#holders.size;
  }

  has(jobId: string): boolean {
    return this.#holders.has(jobId);
  }

  get(jobId: string): Job | undefined {
    return this.#holders.get(jobId)?.job ?? undefined;
  }

  add(job: Job): void {
    const holder = this.#holders.get(job.jobId);
    if (holder === undefined) this.#holders.set(job.jobId, { job });
    else holder.job = job;
  }

  delete(jobId: string): void {
    const holder = this.#holders.get(jobId);
    if (holder === undefined) return;
    holder.job = null;
    this.#holders.delete(jobId);
  }

  /** As a Map's: jobs may be deleted meanwhile, and those that are added come at the end. */
  *[Symbol.iterator](): Generator<Job, void, undefined> {
    for (const { job } of this.#holders.values()) if (job !== null) yield job;
  }
}
