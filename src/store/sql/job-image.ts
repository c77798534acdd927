// A job's image made of its rows, for recovery.

import type { CollectedItems, JobImage, JobInsert, JobProgress } from "../../engine/journal.ts";
import type { Message } from "../../engine/message.ts";
import { agents, readAgents } from "./agents.ts";
import { humanRequests } from "./human-requests.ts";
import { fixedColumns, progressColumns, termColumns } from "./job-columns.ts";
import { tasks, toTrace } from "./jobs.ts";
import type { Schema } from "./schema.generated.ts";

/** Of a brief job the source is in its own row. */
export type JobRow = Schema["jobs"] & {
  readonly manifest_json: string | null;
  readonly configuration_json: string | null;
};

/** The rows of one job, each list in the order of its key. */
export interface ImageRows {
  readonly job: JobRow;
  readonly agents: readonly Schema["agents"][];
  readonly messages: readonly Pick<Schema["messages"], "message_json">[];
  readonly items: readonly Schema["items"][];
  readonly tasks: readonly Schema["tasks"][];
  readonly humanRequests: readonly Schema["human_requests"][];
}

/** @throws when a row does not hold what was written */
export function imageOf(rows: ImageRows): JobImage {
  const { job } = rows;
  return {
    jobId: job.job_id,
    epoch: job.epoch,
    revision: job.revision,
    insert: toInsert(job),
    progress: toProgress(job),
    agents:
      job.brief_agents_json === null ? rows.agents.map(agents.toRecord) : readAgents(job.brief_agents_json),
    messages: rows.messages.map((row) => JSON.parse(row.message_json) as Message),
    items: rows.items.map(toItems),
    tasks: rows.tasks.map(tasks.toRecord),
    humanRequests: rows.humanRequests.map(humanRequests.toRecord),
  };
}

function toInsert(row: JobRow): JobInsert {
  const { jobId, traceId, parentSpanId, ...fixed } = fixedColumns.toRecord(row);
  return {
    ...fixed,
    manifestJson: row.brief_manifest_json ?? row.manifest_json ?? "",
    configurationJson: row.configuration_json,
    trace: toTrace(row),
    ...termColumns.toRecord(row),
  };
}

function toProgress(row: JobRow): JobProgress {
  const { terminal, storedBytes, ...progress } = progressColumns.toRecord(row);
  return progress;
}

function toItems(row: Schema["items"]): CollectedItems {
  return { agentIndex: row.agent_index, firstSeq: row.first_seq, bodiesJson: row.lines.split("\n") };
}
