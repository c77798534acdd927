// What is made of a job's manifest, kept for the job that was asked for last: jobs are polled, many are made from one
// manifest, and a large one takes long to read.

import type { JobRecords } from "./job-records.ts";

type Records = Pick<JobRecords, "manifest">;

export class LastManifest<View> {
  readonly #make: (manifestJson: string) => Promise<View>;
  #last: {
    readonly records: Records;
    readonly jobId: string;
    readonly text: string;
    readonly view: View;
  } | null = null;

  constructor(make: (manifestJson: string) => Promise<View>) {
    this.#make = make;
  }

  /** @returns null when there is no such job */
  async of(records: Records, jobId: string): Promise<View | null> {
    const last = this.#last;
    // A job's manifest never changes.
    if (last?.records === records && last.jobId === jobId) return last.view;
    const text = await records.manifest(jobId);
    if (text === null) return null;
    const view = text === last?.text ? last.view : await this.#make(text);
    this.#last = { records, jobId, text, view };
    return view;
  }
}
