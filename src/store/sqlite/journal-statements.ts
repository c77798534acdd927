// The journal's statements, prepared once.

import type { DatabaseSync, StatementSync } from "node:sqlite";
import { agents } from "../sql/agents.ts";
import { artifacts } from "../sql/artifacts.ts";
import { briefColumns } from "../sql/brief-jobs.ts";
import { letters } from "../sql/dead-letters.ts";
import { humanRequests } from "../sql/human-requests.ts";
import { fixedColumns, progressColumns, termColumns } from "../sql/job-columns.ts";
import { tasks } from "../sql/jobs.ts";

const FIXED = [...fixedColumns.names, "fixed_checksum"];
const BRIEF = [...briefColumns, "brief_checksum"];
const PROGRESS = [...progressColumns.names, "progress_checksum"];
const INSERTED = [...FIXED, ...PROGRESS, ...BRIEF, ...termColumns.names];
const SET_PROGRESS = PROGRESS.map((name) => `${name} = ?`).join(", ");

const parameters = (columns: readonly string[]) => columns.map(() => "?").join(", ");

const insertInto = (table: string, columns: readonly string[], verb = "INSERT") =>
  `${verb} INTO ${table} (${columns.join(", ")}) VALUES (${parameters(columns)})`;

/** Replaces a row with the same values in the first two columns, which are the key. */
const upsertInto = (table: string, columns: readonly string[]) => {
  const changes = columns.slice(2).map((name) => `${name} = excluded.${name}`);
  return `${insertInto(table, columns)} ON CONFLICT (${columns.slice(0, 2).join(", ")}) DO UPDATE SET ${changes.join(", ")}`;
};

export type Statements = Record<keyof typeof STATEMENTS, StatementSync>;

const STATEMENTS = {
  begin: "BEGIN IMMEDIATE",
  commit: "COMMIT",
  rollback: "ROLLBACK",
  probe: "UPDATE schema_migrations SET name = name",
  insertJob: `INSERT INTO jobs (owner, epoch, revision, ${INSERTED.join(", ")}) VALUES (?, ?, 1, ${parameters(INSERTED)})
    ON CONFLICT (job_id) DO NOTHING`,
  selectOpenRun: "SELECT 1 FROM runs WHERE runtime_job_id = ? AND terminal = 0",
  insertSource: insertInto("job_sources", ["job_id", "manifest_json", "configuration_json", "checksum"]),
  updateJob: `UPDATE jobs SET revision = revision + 1, ${SET_PROGRESS}
    WHERE job_id = ? AND owner = ? AND epoch = ? AND revision = ?`,
  setPriority: "UPDATE jobs SET priority = ? WHERE job_id = ?",
  freeJob: "UPDATE jobs SET owner = ? WHERE job_id = ?",
  selectClaim: "SELECT owner, epoch, revision FROM jobs WHERE job_id = ?",
  claim: `UPDATE jobs SET owner = ?, epoch = epoch + 1 WHERE job_id IN (
      SELECT job_id FROM jobs WHERE terminal = 0 AND (owner IS NULL OR owner <> ?)
        AND (submitted_at, job_id) > (?, ?)
      ORDER BY submitted_at, job_id LIMIT ?)
    RETURNING job_id, submitted_at`,
  selectDamaged: "SELECT * FROM jobs WHERE job_id = ? AND owner = ? AND terminal = 0",
  // A new epoch: what is under way of the old one comes too late.
  failDamaged: `UPDATE jobs SET epoch = epoch + 1, revision = revision + 1, ${SET_PROGRESS} WHERE job_id = ?`,
  deleteEventsFrom: "DELETE FROM events WHERE job_id = ? AND first_seq >= ?",
  savepoint: "SAVEPOINT part",
  release: "RELEASE part",
  rollbackPart: "ROLLBACK TO part",
  insertEvents: insertInto("events", ["job_id", "first_seq", "event_count", "lines", "checksum"]),
  upsertAgent: upsertInto("agents", ["job_id", ...agents.names, "checksum"]),
  insertMessage: insertInto("messages", ["job_id", "agent_index", "seq", "message_json", "checksum"]),
  deleteMessages: "DELETE FROM messages WHERE job_id = ? AND agent_index = ? AND seq <= ?",
  deleteSomeMessages: `DELETE FROM messages WHERE job_id = ?1 AND agent_index = ?2 AND seq <= min(?3, coalesce(
    (SELECT seq FROM messages WHERE job_id = ?1 AND agent_index = ?2 ORDER BY seq LIMIT 1 OFFSET ?4 - 1), ?3))`,
  selectWaiting: "SELECT coalesce(sum(depth), 0) AS messages FROM mailboxes WHERE job_id = ?",
  clearSomeMessages: `DELETE FROM messages WHERE job_id = ? AND (agent_index, seq) IN
    (SELECT agent_index, seq FROM messages WHERE job_id = ? LIMIT ?)`,
  clearMessages: "DELETE FROM messages WHERE job_id = ?",
  changeDepth: `INSERT INTO mailboxes (job_id, agent_index, depth) VALUES (?, ?, ?)
    ON CONFLICT (job_id, agent_index) DO UPDATE SET depth = depth + excluded.depth`,
  clearDepths: "DELETE FROM mailboxes WHERE job_id = ?",
  insertItems: insertInto("items", ["job_id", "agent_index", "first_seq", "lines", "checksum"]),
  deleteItems: "DELETE FROM items WHERE job_id = ? AND agent_index = ?",
  clearItems: "DELETE FROM items WHERE job_id = ?",
  upsertTask: upsertInto("tasks", ["job_id", ...tasks.names, "checksum"]),
  deleteTask: "DELETE FROM tasks WHERE job_id = ? AND task_seq = ?",
  clearTasks: "DELETE FROM tasks WHERE job_id = ?",
  insertDeadLetter: insertInto("dead_letters", ["job_id", ...letters.names]),
  retryDeadLetter: `UPDATE dead_letters SET status = 'retried', retried_at = ?, change_json = ?
    WHERE job_id = ? AND dead_letter_id = ?`,
  // Replaces the request as it was, and a closed one of the same name.
  upsertHumanRequest: insertInto("human_requests", ["job_id", ...humanRequests.names], "REPLACE"),
  replaceOutput: `UPDATE artifacts INDEXED BY artifacts_output_names SET kind = 'artifact'
    WHERE kind = 'output' AND run_id = (SELECT run_id FROM jobs WHERE job_id = ?) AND agent_id IS ? AND name = ?`,
  insertArtifact: `INSERT INTO artifacts (run_id, job_id, ${artifacts.names.join(", ")})
    VALUES ((SELECT run_id FROM jobs WHERE job_id = ?), ?, ${parameters(artifacts.names)})`,
} as const;

export function prepareAll(connection: DatabaseSync): Statements {
  const entries = Object.entries(STATEMENTS).map(([name, sql]) => [name, connection.prepare(sql)] as const);
  return Object.fromEntries(entries) as Statements;
}
