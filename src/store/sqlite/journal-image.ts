// Reading a job's image back: the sum of its batches, for recovery.

import type { DatabaseSync } from "node:sqlite";
import type { JobImage } from "../../engine/journal.ts";
import { limits } from "../../engine/limits.ts";
import { imageOf, type JobRow } from "../sql/job-image.ts";
import type { Schema } from "../sql/schema.generated.ts";
import { isWhole, type Row } from "./row-checksum.ts";
import { tablesOf } from "./tables.ts";

const QUERIES = {
  job: "SELECT * FROM jobs LEFT JOIN job_sources USING (job_id) WHERE job_id = ?",
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
  const jobRows = prepare<JobRow>(QUERIES.job, "jobs", "job_sources");
  const agentRows = prepare<Schema["agents"]>(QUERIES.agents, "agents");
  const messageRows = prepare<Schema["messages"]>(QUERIES.messages, "messages");
  const itemRows = prepare<Schema["items"]>(QUERIES.items, "items");
  const taskRows = prepare<Schema["tasks"]>(QUERIES.tasks, "tasks");
  const requestRows = prepare<Schema["human_requests"]>(QUERIES.humanRequests);
  return (jobId) => {
    const [job] = jobRows(jobId);
    if (job === undefined) return null;
    return imageOf({
      job,
      agents: agentRows(jobId),
      messages: messageRows(jobId),
      items: itemRows(jobId),
      tasks: taskRows(jobId),
      humanRequests: requestRows(jobId),
    });
  };
}
