// The journal on SQLite: the engine's hot path, written by hand. One transaction per batch, a handful of prepared
// statements per job. Its contract is the port's (J1 to J3); test/support/journal-contract.ts checks it.

import { basename } from "node:path";
import type { DatabaseSync, StatementSync } from "node:sqlite";
import {
  isTerminal,
  type JobChanges,
  type JobImage,
  type JobInsert,
  type JobProgress,
  type Journal,
  terminalStatuses,
} from "../../engine/journal.ts";
import { asUnavailable, type SqliteDatabase } from "./database.ts";
import { imageReader } from "./journal-image.ts";
import { RunFollower } from "./run-follower.ts";
import type { WriteGate } from "./write-gate.ts";

/** Characters of one event segment; a batch with more is written as several. */
const SEGMENT_CHARS_MAX = 256 * 1024;

export class SqliteJournal implements Journal {
  readonly #connection: DatabaseSync;
  readonly #sql: Statements;
  readonly #file: string;
  readonly #readImage: (jobId: string) => JobImage | null;

  readonly #gate: WriteGate;
  readonly #runs: RunFollower;

  constructor({ connection, gate, file }: SqliteDatabase) {
    this.#connection = connection;
    this.#gate = gate;
    this.#runs = new RunFollower(connection);
    this.#sql = prepareAll(connection);
    this.#file = basename(file);
    this.#readImage = imageReader(connection);
  }

  async commit(batch: readonly JobChanges[]): Promise<{ readonly lost: readonly string[] }> {
    const lost: string[] = [];
    await this.#inTransaction(() => {
      // A batch without parts asks whether the store takes writes: only one that is made can tell.
      if (batch.length === 0) this.#sql.probe.run();
      for (const changes of batch) {
        const claim = changes.insert === null ? this.#update(changes) : this.#insert(changes, changes.insert);
        if (claim === "current") {
          this.#writeParts(changes);
          this.#runs.follow(changes);
        } else if (claim === "lost") lost.push(changes.jobId);
      }
    });
    return { lost };
  }

  async claim(owner: string, limit: number): Promise<readonly string[]> {
    let rows: { job_id: string; submitted_at: number }[] = [];
    await this.#inTransaction(() => {
      rows = this.#sql.claim.all(owner, owner, limit) as unknown as typeof rows;
    });
    rows.sort((a, b) => a.submitted_at - b.submitted_at || (a.job_id < b.job_id ? -1 : 1));
    return rows.map((row) => row.job_id);
  }

  async load(jobId: string): Promise<JobImage | null> {
    return this.#readImage(jobId);
  }

  #inTransaction(write: () => void): Promise<void> {
    return this.#gate.run(() => {
      try {
        this.#sql.begin.run();
        write();
        this.#sql.commit.run();
      } catch (error) {
        if (this.#connection.isTransaction) this.#sql.rollback.run();
        throw asUnavailable(error, this.#file);
      }
    });
  }

  #insert(changes: JobChanges, insert: JobInsert): Claim {
    const { jobId, owner, epoch } = changes;
    const { changes: rows } = this.#sql.insertJob.run(
      jobId,
      insert.runId,
      insert.graphId,
      insert.jobName,
      insert.type,
      owner,
      epoch,
      insert.submittedAtMs,
      insert.placementPolicy,
      insert.recoveryPolicy,
      insert.executorCount,
      insert.bundleFingerprint,
      insert.definitionId,
      insert.hasOwnPayload ? 1 : 0,
      insert.trace.traceId,
      insert.trace.parentSpanId,
      JSON.stringify(insert.rootAgentIds),
      ...progressValues(changes.progress),
    );
    if (rows === 0) return this.#whyNot(changes);
    this.#sql.insertSource.run(jobId, insert.manifestJson, insert.configurationJson);
    return "current";
  }

  #update(changes: JobChanges): Claim {
    const { jobId, owner, epoch, revision, progress } = changes;
    const { changes: rows } = this.#sql.updateJob.run(
      ...progressValues(progress),
      jobId,
      owner,
      epoch,
      revision,
    );
    return rows === 0 ? this.#whyNot(changes) : "current";
  }

  /** The row did not match: either this very part is already there (J3), or the job is another's (J2). */
  #whyNot({ jobId, owner, epoch, revision }: JobChanges): Claim {
    const row = this.#sql.selectClaim.get(jobId);
    const isApplied = row?.owner === owner && row.epoch === epoch && row.revision === revision + 1;
    return isApplied ? "applied" : "lost";
  }

  #writeParts(changes: JobChanges): void {
    const sql = this.#sql;
    const { jobId } = changes;
    this.#writeEvents(changes);
    for (const agent of changes.agents) {
      sql.upsertAgent.run(
        jobId,
        agent.index,
        agent.agentId,
        agent.status,
        agent.done ? 1 : 0,
        agent.processedMessages,
        agent.stateJson,
        agent.lastError,
        agent.unroutedJson,
        agent.lease === null ? null : JSON.stringify(agent.lease),
      );
    }
    for (const letter of changes.deadLetters) {
      sql.insertDeadLetter.run(
        letter.deadLetterId,
        jobId,
        letter.agentId,
        letter.reason,
        letter.attempts,
        JSON.stringify(letter.message),
        letter.createdAtMs,
      );
    }
    for (const { deadLetterId, retriedAtMs } of changes.deadLettersRetried) {
      sql.retryDeadLetter.run(retriedAtMs, jobId, deadLetterId);
    }
    for (const request of changes.humanRequests) {
      sql.upsertHumanRequest.run(
        jobId,
        request.eventSeq,
        request.requestId,
        request.agentId,
        request.taskSeq,
        request.prompt,
        JSON.stringify(request.allowedDecisions),
        request.defaultAction,
        request.status,
        request.createdAtMs,
        request.expiresAtMs,
        request.response === null ? null : JSON.stringify(request.response),
      );
    }
    for (const artifact of changes.artifacts) {
      sql.insertArtifact.run(
        jobId,
        jobId,
        artifact.artifactId,
        artifact.agentId,
        artifact.name,
        artifact.kind,
        artifact.title,
        artifact.primary ? 1 : 0,
        artifact.size,
        artifact.sha256,
        artifact.contentType,
        artifact.createdAtMs,
      );
    }
    if (isTerminal(changes.progress.status)) this.#clearWork(changes);
    else this.#writeWork(changes);
  }

  #writeEvents({ jobId, firstEventSeq, eventLines }: JobChanges): void {
    let from = 0;
    while (from < eventLines.length) {
      let to = from + 1;
      let chars = eventLines[from]!.length;
      while (to < eventLines.length && chars + eventLines[to]!.length <= SEGMENT_CHARS_MAX) {
        chars += eventLines[to++]!.length;
      }
      this.#sql.insertEvents.run(
        jobId,
        firstEventSeq + from,
        to - from,
        eventLines.slice(from, to).join("\n"),
      );
      from = to;
    }
  }

  /** Mailboxes, collections and tasks: what an open job still has to do. */
  #writeWork(changes: JobChanges): void {
    const sql = this.#sql;
    const { jobId } = changes;
    for (const { agentIndex, throughSeq } of changes.consumed) {
      sql.deleteMessages.run(jobId, agentIndex, throughSeq);
    }
    for (const message of changes.messages) {
      sql.insertMessage.run(jobId, message.to, message.seq, JSON.stringify(message));
    }
    for (const agentIndex of changes.itemsCleared) sql.deleteItems.run(jobId, agentIndex);
    for (const { agentIndex, firstSeq, bodiesJson } of changes.items) {
      sql.insertItems.run(jobId, agentIndex, firstSeq, bodiesJson.join("\n"));
    }
    for (const taskSeq of changes.tasksRemoved) sql.deleteTask.run(jobId, taskSeq);
    for (const task of changes.tasks) {
      sql.upsertTask.run(
        jobId,
        task.taskSeq,
        task.agentIndex,
        task.kind,
        task.attempt,
        task.failures,
        JSON.stringify(task.state),
        JSON.stringify(task.message),
      );
    }
  }

  /** A terminal job has no work left; one that was born and ended within this batch never stored any. */
  #clearWork({ jobId, insert }: JobChanges): void {
    if (insert !== null) return;
    this.#sql.clearMessages.run(jobId);
    this.#sql.clearItems.run(jobId);
    this.#sql.clearTasks.run(jobId);
  }
}

type Claim = "current" | "applied" | "lost";

/** In the order of PROGRESS_COLUMNS. */
function progressValues(progress: JobProgress) {
  return [
    progress.status,
    terminalStatuses.includes(progress.status) ? 1 : 0,
    progress.updatedAtMs,
    progress.startedAtMs,
    progress.pausedAtMs,
    progress.deadlineAtMs,
    progress.eventSeq,
    progress.messageSeq,
    progress.taskSeq,
    progress.logBytes,
    progress.activeExecutors,
    JSON.stringify(progress.sandboxNames),
    progress.lastEventJson,
    progress.partial ? 1 : 0,
    JSON.stringify(progress.tally),
    progress.humanPending,
    progress.tally.historyChars + progress.tally.artifactBytes,
    progress.failureJson,
    progress.resultJson,
  ];
}

const PROGRESS_COLUMNS = [
  "status",
  "terminal",
  "updated_at",
  "started_at",
  "paused_at",
  "deadline_at",
  "event_seq",
  "message_seq",
  "task_seq",
  "log_bytes",
  "active_executors",
  "sandboxes_json",
  "last_event_json",
  "partial",
  "tally_json",
  "human_pending",
  "stored_bytes",
  "failure_json",
  "result_json",
];

type Statements = Record<keyof typeof STATEMENTS, StatementSync>;

const STATEMENTS = {
  begin: "BEGIN IMMEDIATE",
  commit: "COMMIT",
  rollback: "ROLLBACK",
  probe: "UPDATE schema_migrations SET name = name",
  insertJob: `INSERT INTO jobs (job_id, run_id, graph_id, job_name, type, owner, epoch, revision, submitted_at,
      placement_policy, recovery_policy, executor_count, bundle_fingerprint, definition_id, own_payload,
      trace_id, parent_span_id, root_agents_json,
      ${PROGRESS_COLUMNS.join(", ")})
    VALUES (?, ?, ?, ?, ?, ?, ?, 1, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ${PROGRESS_COLUMNS.map(() => "?").join(", ")})
    ON CONFLICT (job_id) DO NOTHING`,
  insertSource: "INSERT INTO job_sources (job_id, manifest_json, configuration_json) VALUES (?, ?, ?)",
  updateJob: `UPDATE jobs SET revision = revision + 1, ${PROGRESS_COLUMNS.map((name) => `${name} = ?`).join(", ")}
    WHERE job_id = ? AND owner = ? AND epoch = ? AND revision = ?`,
  selectClaim: "SELECT owner, epoch, revision FROM jobs WHERE job_id = ?",
  claim: `UPDATE jobs SET owner = ?, epoch = epoch + 1 WHERE job_id IN (
      SELECT job_id FROM jobs WHERE terminal = 0 AND (owner IS NULL OR owner <> ?)
      ORDER BY submitted_at, job_id LIMIT ?)
    RETURNING job_id, submitted_at`,
  insertEvents: "INSERT INTO events (job_id, first_seq, event_count, lines) VALUES (?, ?, ?, ?)",
  upsertAgent: `INSERT INTO agents (job_id, agent_index, agent_id, status, done, processed_messages, state_json,
      last_error, unrouted_json, lease_json)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (job_id, agent_index) DO UPDATE SET status = excluded.status, done = excluded.done,
      processed_messages = excluded.processed_messages, state_json = excluded.state_json,
      last_error = excluded.last_error, unrouted_json = excluded.unrouted_json, lease_json = excluded.lease_json`,
  insertMessage: "INSERT INTO messages (job_id, agent_index, seq, message_json) VALUES (?, ?, ?, ?)",
  deleteMessages: "DELETE FROM messages WHERE job_id = ? AND agent_index = ? AND seq <= ?",
  clearMessages: "DELETE FROM messages WHERE job_id = ?",
  insertItems: "INSERT INTO items (job_id, agent_index, first_seq, lines) VALUES (?, ?, ?, ?)",
  deleteItems: "DELETE FROM items WHERE job_id = ? AND agent_index = ?",
  clearItems: "DELETE FROM items WHERE job_id = ?",
  upsertTask: `INSERT INTO tasks (job_id, task_seq, agent_index, kind, attempt, failures, state_json, message_json)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (job_id, task_seq) DO UPDATE SET attempt = excluded.attempt, failures = excluded.failures,
      state_json = excluded.state_json`,
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
  insertArtifact: `INSERT INTO artifacts (run_id, job_id, artifact_id, agent_id, name, kind, title, is_primary, size,
      sha256, content_type, created_at)
    VALUES ((SELECT run_id FROM jobs WHERE job_id = ?), ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
} as const;

function prepareAll(connection: DatabaseSync): Statements {
  const entries = Object.entries(STATEMENTS).map(([name, sql]) => [name, connection.prepare(sql)] as const);
  return Object.fromEntries(entries) as Statements;
}
