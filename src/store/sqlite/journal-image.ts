// Reading a job's image back: the sum of its batches, for recovery.

import type { DatabaseSync } from "node:sqlite";
import type { CollectedItems, JobImage, JobInsert, JobProgress } from "../../engine/journal.ts";
import { limits } from "../../engine/limits.ts";
import type { Message } from "../../engine/message.ts";
import { readTally } from "../../engine/tally.ts";
import { toHumanRequest } from "../sql/human-requests.ts";
import { toAgentRecord, toTaskRecord, toTrace } from "../sql/jobs.ts";
import type { Schema } from "../sql/schema.ts";
import { isWhole, type Row } from "./row-checksum.ts";
import { tablesOf } from "./tables.ts";

type JobRow = Schema["jobs"] & Schema["job_sources"];

const QUERIES = {
  job: "SELECT * FROM jobs JOIN job_sources USING (job_id) WHERE job_id = ?",
  agents: "SELECT * FROM agents WHERE job_id = ? ORDER BY agent_index",
  messages: "SELECT * FROM messages WHERE job_id = ? ORDER BY agent_index, seq",
  items: "SELECT * FROM items WHERE job_id = ? ORDER BY agent_index, first_seq",
  tasks: "SELECT * FROM tasks WHERE job_id = ? ORDER BY task_seq",
  // Of the closed ones no more than the engine remembers.
  humanRequests: `SELECT * FROM human_requests WHERE job_id = ?1 AND status = 'pending'
    UNION ALL
    SELECT * FROM (SELECT * FROM human_requests WHERE job_id = ?1 AND status <> 'pending'
      ORDER BY event_seq DESC LIMIT ${limits.humanClosedKeptMax})
    ORDER BY event_seq`,
} as const;

/** @returns a reader whose statements are prepared once: a restart reads thousands of images */
export function imageReader(connection: DatabaseSync): (jobId: string) => JobImage | null {
  const known = tablesOf(connection);
  const prepare = <TableRow extends JobRow | Schema[keyof Schema]>(
    sql: string,
    ...tables: readonly string[]
  ) => {
    const statement = connection.prepare(sql);
    const covered = known.filter(({ name }) => tables.includes(name));
    return (jobId: string) => {
      const rows = statement.all(jobId) as unknown as (TableRow & Row)[];
      for (const { name, checksums } of covered) {
        if (rows.every((row) => isWhole(row, checksums))) continue;
        throw new Error(`a row of table ${name} has changed since it was written (its checksum is wrong)`);
      }
      return rows;
    };
  };
  const jobs = prepare<JobRow>(QUERIES.job, "jobs", "job_sources");
  const agents = prepare<Schema["agents"]>(QUERIES.agents, "agents");
  const messages = prepare<Schema["messages"]>(QUERIES.messages, "messages");
  const items = prepare<Schema["items"]>(QUERIES.items, "items");
  const tasks = prepare<Schema["tasks"]>(QUERIES.tasks, "tasks");
  const humanRequests = prepare<Schema["human_requests"]>(QUERIES.humanRequests);
  return (jobId) => {
    const [job] = jobs(jobId);
    if (job === undefined) return null;
    return {
      jobId,
      epoch: job.epoch,
      revision: job.revision,
      insert: toInsert(job),
      progress: toProgress(job),
      agents: agents(jobId).map(toAgentRecord),
      messages: messages(jobId).map((row) => JSON.parse(row.message_json) as Message),
      items: items(jobId).map(toItems),
      tasks: tasks(jobId).map(toTaskRecord),
      humanRequests: humanRequests(jobId).map(toHumanRequest),
    };
  };
}

function toInsert(row: JobRow): JobInsert {
  return {
    graphId: row.graph_id,
    jobName: row.job_name,
    runId: row.run_id,
    type: row.type,
    submittedAtMs: row.submitted_at,
    placementPolicy: row.placement_policy,
    recoveryPolicy: row.recovery_policy,
    executorCount: row.executor_count,
    rootAgentIds: JSON.parse(row.root_agents_json) as string[],
    manifestJson: row.manifest_json,
    bundleFingerprint: row.bundle_fingerprint,
    hasOwnPayload: row.own_payload === 1,
    definitionId: row.definition_id,
    configurationJson: row.configuration_json,
    trace: toTrace(row),
  };
}

function toProgress(row: JobRow): JobProgress {
  return {
    status: row.status as JobProgress["status"],
    updatedAtMs: row.updated_at,
    startedAtMs: row.started_at,
    pausedAtMs: row.paused_at,
    deadlineAtMs: row.deadline_at,
    eventSeq: row.event_seq,
    messageSeq: row.message_seq,
    taskSeq: row.task_seq,
    logBytes: row.log_bytes,
    activeExecutors: row.active_executors,
    sandboxNames: JSON.parse(row.sandboxes_json) as string[],
    lastEventJson: row.last_event_json,
    partial: row.partial === 1,
    tally: readTally(row.tally_json),
    humanPending: row.human_pending,
    resultJson: row.result_json,
    failureJson: row.failure_json,
  };
}

function toItems(row: Schema["items"]): CollectedItems {
  return { agentIndex: row.agent_index, firstSeq: row.first_seq, bodiesJson: row.lines.split("\n") };
}
