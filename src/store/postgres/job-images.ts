// Reading images of jobs back, for recovery: those that are asked for together with one statement per table.

import type { JobImage } from "../../engine/journal.ts";
import type { Database } from "../sql/database.ts";
import { type ImageRows, imageOf, type JobRow } from "../sql/job-image.ts";
import type { Schema } from "../sql/schema.generated.ts";
import { IMAGES } from "./journal-statements.ts";

interface Rows {
  readonly jobs: JobRow;
  readonly agents: Schema["agents"];
  readonly messages: Pick<Schema["messages"], "job_id" | "message_json">;
  readonly items: Schema["items"];
  readonly tasks: Schema["tasks"];
  readonly humanRequests: Schema["human_requests"];
}

/** @returns of each job its rows; those that do not exist are left out. @throws what `databaseRead` throws */
export async function rowsOfJobs(
  databaseRead: Database["read"],
  jobIds: readonly string[],
): Promise<ReadonlyMap<string, ImageRows>> {
  const read = <Name extends keyof Rows>(name: Name) =>
    databaseRead<Rows[Name] & { job_id: string }>(IMAGES[name], [jobIds]);
  const [jobs, ...parts] = await Promise.all([
    read("jobs"),
    read("agents"),
    read("messages"),
    read("items"),
    read("tasks"),
    read("humanRequests"),
  ]);
  const [agents, messages, items, tasks, humanRequests] = [
    byJob(parts[0]),
    byJob(parts[1]),
    byJob(parts[2]),
    byJob(parts[3]),
    byJob(parts[4]),
  ];
  const of = <Row>(rows: ReadonlyMap<string, readonly Row[]>, jobId: string) => rows.get(jobId) ?? [];
  return new Map(
    jobs.map((job) => [
      job.job_id,
      {
        job,
        agents: of(agents, job.job_id),
        messages: of(messages, job.job_id),
        items: of(items, job.job_id),
        tasks: of(tasks, job.job_id),
        humanRequests: of(humanRequests, job.job_id),
      },
    ]),
  );
}

function byJob<Row extends { readonly job_id: string }>(
  rows: readonly Row[],
): ReadonlyMap<string, readonly Row[]> {
  return Map.groupBy(rows, ({ job_id }) => job_id);
}

interface Wanted {
  readonly jobId: string;
  readonly resolve: (image: JobImage | null) => void;
  readonly reject: (error: unknown) => void;
}

export class JobImages {
  readonly #read: (jobIds: readonly string[]) => Promise<ReadonlyMap<string, ImageRows>>;
  #wanted: Wanted[] = [];

  /** @param read of jobs that were asked for together; an error is everybody's */
  constructor(read: (jobIds: readonly string[]) => Promise<ReadonlyMap<string, ImageRows>>) {
    this.#read = read;
  }

  /** @returns null when there is no such job. @throws what `read` throws; any other error is about this job alone */
  load(jobId: string): Promise<JobImage | null> {
    if (this.#wanted.length === 0) queueMicrotask(() => void this.#readWanted());
    return new Promise((resolve, reject) => this.#wanted.push({ jobId, resolve, reject }));
  }

  async #readWanted(): Promise<void> {
    const wanted = this.#wanted;
    this.#wanted = [];
    let found: ReadonlyMap<string, ImageRows>;
    try {
      found = await this.#read(wanted.map(({ jobId }) => jobId));
    } catch (error) {
      for (const { reject } of wanted) reject(error);
      return;
    }
    for (const { jobId, resolve, reject } of wanted) {
      const rows = found.get(jobId);
      try {
        resolve(rows === undefined ? null : imageOf(rows));
      } catch (error) {
        reject(error);
      }
    }
  }
}
