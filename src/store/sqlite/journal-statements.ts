// The journal's statements, prepared once.

import type { DatabaseSync, StatementSync } from "node:sqlite";
import { FIXED_COLUMNS, PROGRESS_COLUMNS } from "./job-columns.ts";

const FIXED = [...FIXED_COLUMNS, "fixed_checksum"];
const PROGRESS = [...PROGRESS_COLUMNS, "progress_checksum"];
const SET_PROGRESS = PROGRESS.map((name) => `${name} = ?`).join(", ");

export type Statements = Record<keyof typeof STATEMENTS, StatementSync>;

const STATEMENTS = {
  begin: "BEGIN IMMEDIATE",
  commit: "COMMIT",
  rollback: "ROLLBACK",
  probe: "UPDATE schema_migrations SET name = name",
  insertJob: `INSERT INTO jobs (owner, epoch, revision, ${[...FIXED, ...PROGRESS].join(", ")})
    VALUES (?, ?, 1, ${[...FIXED, ...PROGRESS].map(() => "?").join(", ")})
    ON CONFLICT (job_id) DO NOTHING`,
  insertSource:
    "INSERT INTO job_sources (job_id, manifest_json, configuration_json, checksum) VALUES (?, ?, ?, ?)",
  updateJob: `UPDATE jobs SET revision = revision + 1, ${SET_PROGRESS}
    WHERE job_id = ? AND owner = ? AND epoch = ? AND revision = ?`,
  selectClaim: "SELECT owner, epoch, revision FROM jobs WHERE job_id = ?",
  claim: `UPDATE jobs SET owner = ?, epoch = epoch + 1 WHERE job_id IN (
      SELECT job_id FROM jobs WHERE terminal = 0 AND (owner IS NULL OR owner <> ?)
      ORDER BY submitted_at, job_id LIMIT ?)
    RETURNING job_id, submitted_at`,
  selectDamaged: "SELECT * FROM jobs WHERE job_id = ? AND owner = ? AND terminal = 0",
  // A new epoch: what is under way of the old one comes too late.
  failDamaged: `UPDATE jobs SET epoch = epoch + 1, revision = revision + 1, ${SET_PROGRESS} WHERE job_id = ?`,
  deleteEventsFrom: "DELETE FROM events WHERE job_id = ? AND first_seq >= ?",
  savepoint: "SAVEPOINT part",
  release: "RELEASE part",
  rollbackPart: "ROLLBACK TO part",
  insertEvents: "INSERT INTO events (job_id, first_seq, event_count, lines, checksum) VALUES (?, ?, ?, ?, ?)",
  upsertAgent: `INSERT INTO agents (job_id, agent_index, agent_id, status, done, processed_messages, state_json,
      last_error, unrouted_json, lease_json, checksum)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (job_id, agent_index) DO UPDATE SET status = excluded.status, done = excluded.done,
      processed_messages = excluded.processed_messages, state_json = excluded.state_json,
      last_error = excluded.last_error, unrouted_json = excluded.unrouted_json, lease_json = excluded.lease_json,
      checksum = excluded.checksum`,
  insertMessage:
    "INSERT INTO messages (job_id, agent_index, seq, message_json, checksum) VALUES (?, ?, ?, ?, ?)",
  deleteMessages: "DELETE FROM messages WHERE job_id = ? AND agent_index = ? AND seq <= ?",
  clearMessages: "DELETE FROM messages WHERE job_id = ?",
  insertItems: "INSERT INTO items (job_id, agent_index, first_seq, lines, checksum) VALUES (?, ?, ?, ?, ?)",
  deleteItems: "DELETE FROM items WHERE job_id = ? AND agent_index = ?",
  clearItems: "DELETE FROM items WHERE job_id = ?",
  upsertTask: `INSERT INTO tasks (job_id, task_seq, agent_index, kind, attempt, failures, state_json, message_json,
      checksum)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (job_id, task_seq) DO UPDATE SET attempt = excluded.attempt, failures = excluded.failures,
      state_json = excluded.state_json, message_json = excluded.message_json, checksum = excluded.checksum`,
  deleteTask: "DELETE FROM tasks WHERE job_id = ? AND task_seq = ?",
  clearTasks: "DELETE FROM tasks WHERE job_id = ?",
  insertDeadLetter: `INSERT INTO dead_letters (dead_letter_id, job_id, agent_id, reason, attempts, message_json,
      created_at) VALUES (?, ?, ?, ?, ?, ?, ?)`,
  retryDeadLetter: `UPDATE dead_letters SET status = 'retried', retried_at = ?
    WHERE job_id = ? AND dead_letter_id = ?`,
  // Replaces the request as it was, and a closed one of the same name.
  upsertHumanRequest: `INSERT OR REPLACE INTO human_requests (job_id, event_seq, request_id, agent_id, task_seq,
      prompt, allowed_json, default_action, status, created_at, expires_at, response_json)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  replaceOutput: `UPDATE artifacts INDEXED BY artifacts_output_names SET kind = 'artifact'
    WHERE kind = 'output' AND run_id = (SELECT run_id FROM jobs WHERE job_id = ?) AND agent_id IS ? AND name = ?`,
  insertArtifact: `INSERT INTO artifacts (run_id, job_id, artifact_id, agent_id, name, kind, title, is_primary, size,
      sha256, content_type, created_at)
    VALUES ((SELECT run_id FROM jobs WHERE job_id = ?), ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
} as const;

export function prepareAll(connection: DatabaseSync): Statements {
  const entries = Object.entries(STATEMENTS).map(([name, sql]) => [name, connection.prepare(sql)] as const);
  return Object.fromEntries(entries) as Statements;
}
