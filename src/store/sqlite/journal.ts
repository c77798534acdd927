// The journal on SQLite: the engine's hot path, without Kysely. One transaction per batch, a handful of prepared
// statements per job. Its contract is the port's (J1 to J5); test/support/journal-contract.ts checks it.

import type { DatabaseSync, StatementSync } from "node:sqlite";
import { scheduler } from "node:timers/promises";
import {
  type CommitAnswer,
  type DamagedJob,
  type DamagedJobEnd,
  FREE_OWNER,
  isTerminal,
  type JobChanges,
  type JobImage,
  type JobInsert,
  type Journal,
  JournalUnavailable,
} from "../../engine/journal.ts";
import { agents } from "../sql/agents.ts";
import { artifacts } from "../sql/artifacts.ts";
import { ROWS_AT_ONCE, rowsOf, segmentsOf, slicesOf } from "../sql/batch-slices.ts";
import { briefColumns, briefValues } from "../sql/brief-jobs.ts";
import type { Stored } from "../sql/columns.ts";
import { letters } from "../sql/dead-letters.ts";
import { humanRequests } from "../sql/human-requests.ts";
import { failedValues, fixedColumns, progressValues, termColumns } from "../sql/job-columns.ts";
import { tallyOf, tasks, toTrace } from "../sql/jobs.ts";
import { packLines } from "../sql/packed-lines.ts";
import type { Schema } from "../sql/schema.generated.ts";
import type { SqliteDatabase } from "./database.ts";
import { scopeOf } from "./errors.ts";
import { imageReader } from "./journal-image.ts";
import { prepareAll, type Statements } from "./journal-statements.ts";
import { type Row, rowChecksum } from "./row-checksum.ts";
import { RunFollower } from "./run-follower.ts";
import type { WriteGate } from "./write-gate.ts";

/** Characters of lines that are packed: a longer segment is stored as it is read, because a page of it is read again and again. */
const PACKED_CHARS_MAX = 16 * 1024;

interface ClaimedRow {
  readonly job_id: string;
  readonly submitted_at: number;
}

/** With the checksum. */
/** Of a manifest that takes milliseconds to write. */
const LARGE_MANIFEST_CHARS = 256 * 1024;

const NOT_BRIEF: readonly Stored[] = [...briefColumns.map(() => null), null];

const BEFORE_ALL: ClaimedRow = { job_id: "", submitted_at: -1 };

/** How far an owner has come with claiming open jobs. */
interface Claimed {
  readonly owner: string;
  readonly last: ClaimedRow;
}

export class SqliteJournal implements Journal {
  readonly #connection: DatabaseSync;
  readonly #sql: Statements;
  readonly #counter: SqliteDatabase["counter"];
  readonly #explained: SqliteDatabase["explained"];
  readonly #sync: SqliteDatabase["sync"];
  readonly #readImage: (jobId: string) => JobImage | null;

  readonly #gate: WriteGate;
  readonly #runs: RunFollower;
  #claimed: Claimed = { owner: "", last: BEFORE_ALL };

  constructor({ connection, gate, counter, explained, sync }: SqliteDatabase) {
    this.#connection = connection;
    this.#gate = gate;
    this.#runs = new RunFollower(connection);
    this.#sql = prepareAll(connection);
    this.#counter = counter;
    this.#explained = explained;
    this.#sync = sync;
    this.#readImage = imageReader(connection);
  }

  async commit(batch: readonly JobChanges[]): Promise<CommitAnswer> {
    const jobIds = batch.map(({ jobId }) => jobId);
    try {
      return await this.#inTransaction(jobIds, () =>
        this.#isLarge(batch) ? this.#writeInSlices(batch) : this.#write(batch),
      );
    } catch (error) {
      if (error instanceof JournalUnavailable || batch.length === 0) throw error;
    }
    // One job's part is at fault: write the batch again, with a savepoint for each part.
    return this.#inTransaction(jobIds, () => this.#writeApart(batch));
  }

  #write(batch: readonly JobChanges[]): CommitAnswer {
    // A batch without parts asks whether the store takes writes: only one that is made can tell.
    if (batch.length === 0) this.#sql.probe.run();
    const lost = batch.filter((changes) => this.#writeJob(changes) === "lost").map(({ jobId }) => jobId);
    return { lost, unwritable: [] };
  }

  /** Whether writing it at once would hold up everything else. */
  #isLarge(batch: readonly JobChanges[]): boolean {
    let rows = 0;
    for (const changes of batch) {
      rows += rowsOf(changes);
      if (hasLeftWork(changes)) rows += Number(this.#sql.selectWaiting.get(changes.jobId)?.messages);
      if (rows > ROWS_AT_ONCE) return true;
    }
    return false;
  }

  /** Like `#write`, with turns for everything else; what writes or reads committed state waits at the gate. */
  async #writeInSlices(batch: readonly JobChanges[]): Promise<CommitAnswer> {
    const lost: string[] = [];
    let rows = 0;
    // What has made so many changes has just taken its time.
    await scheduler.yield();
    for (const changes of batch) {
      const { jobId, progress, insert } = changes;
      const claim = this.#writeRow(changes);
      if (insert !== null && insert.manifestJson.length > LARGE_MANIFEST_CHARS) await scheduler.yield();
      if (claim === "lost") lost.push(jobId);
      if (claim !== "current") continue;
      for (const { agentIndex, throughSeq } of changes.consumed) {
        for (let removed = ROWS_AT_ONCE; removed === ROWS_AT_ONCE; ) {
          removed = this.#removeSomeConsumed(jobId, agentIndex, throughSeq);
          rows += 1 + removed;
          if (rows < ROWS_AT_ONCE) continue;
          await scheduler.yield();
          rows = 0;
        }
      }
      const rest = { ...changes, consumed: [] };
      for (const slice of rowsOf(rest) <= ROWS_AT_ONCE ? [rest] : slicesOf(rest)) {
        this.#writeParts(slice);
        rows += rowsOf(slice);
        if (rows < ROWS_AT_ONCE) continue;
        await scheduler.yield();
        rows = 0;
      }
      if (hasLeftWork(changes)) {
        while (this.#sql.clearSomeMessages.run(jobId, jobId, ROWS_AT_ONCE).changes === ROWS_AT_ONCE) {
          await scheduler.yield();
        }
        this.#clearWork(jobId);
      }
      if (mayHaveRun(changes)) this.#runs.follow(jobId, progress);
    }
    // Committing takes a turn of its own.
    await scheduler.yield();
    return { lost, unwritable: [] };
  }

  #removeSomeConsumed(jobId: string, agentIndex: number, throughSeq: number): number {
    const { changes } = this.#sql.deleteSomeMessages.run(jobId, agentIndex, throughSeq, ROWS_AT_ONCE);
    if (changes > 0) this.#sql.changeDepth.run(jobId, agentIndex, -Number(changes));
    return Number(changes);
  }

  /** J4, for the batch that has met an error: the hot path needs no savepoints. */
  #writeApart(batch: readonly JobChanges[]): CommitAnswer {
    const lost: string[] = [];
    const unwritable: { readonly jobId: string; readonly reason: string }[] = [];
    for (const changes of batch) {
      const { jobId } = changes;
      this.#sql.savepoint.run();
      try {
        if (this.#writeJob(changes) === "lost") lost.push(jobId);
      } catch (error) {
        if (scopeOf(error) !== "row") throw error;
        this.#sql.rollbackPart.run();
        unwritable.push({ jobId, reason: (error as Error).message });
      }
      this.#sql.release.run();
    }
    return { lost, unwritable };
  }

  #writeJob(changes: JobChanges): Claim {
    const claim = this.#writeRow(changes);
    if (claim === "current") {
      this.#writeParts(changes);
      if (hasLeftWork(changes)) this.#clearWork(changes.jobId);
      if (mayHaveRun(changes)) this.#runs.follow(changes.jobId, changes.progress);
    }
    return claim;
  }

  #writeRow(changes: JobChanges): Claim {
    const claim = changes.insert === null ? this.#update(changes) : this.#insert(changes, changes.insert);
    if (claim === "current" && changes.priority !== null)
      this.#sql.setPriority.run(changes.priority, changes.jobId);
    if (claim === "current" && changes.isHandedOver) this.#sql.freeJob.run(FREE_OWNER, changes.jobId);
    return claim;
  }

  /** Each claim of an owner looks behind the one before, so that all of them together look at an open job once. */
  async claim(owner: string, limit: number): Promise<readonly string[]> {
    const { submitted_at: submittedAt, job_id: jobId } =
      this.#claimed.owner === owner ? this.#claimed.last : BEFORE_ALL;
    const rows = await this.#inTransaction(
      [],
      () => this.#sql.claim.all(owner, owner, submittedAt, jobId, limit) as unknown as ClaimedRow[],
    );
    rows.sort((a, b) => a.submitted_at - b.submitted_at || (a.job_id < b.job_id ? -1 : 1));
    this.#claimed = { owner, last: rows.at(-1) ?? BEFORE_ALL };
    return rows.map((row) => row.job_id);
  }

  async load(jobId: string): Promise<JobImage | null> {
    try {
      return this.#readImage(jobId);
    } catch (error) {
      throw this.#explained(error);
    }
  }

  failDamaged(
    jobId: string,
    owner: string,
    render: (job: DamagedJob) => DamagedJobEnd,
  ): Promise<number | null> {
    const sql = this.#sql;
    return this.#inTransaction([jobId], () => {
      const row = sql.selectDamaged.get(jobId, owner) as (Schema["jobs"] & Row) | undefined;
      if (row === undefined) return null;
      const job = {
        runId: row.run_id,
        eventSeq: row.event_seq,
        trace: toTrace(row),
        tally: tallyOf(row.tally_json),
      };
      const end = render(job);
      const eventSeq = job.eventSeq + 1;
      sql.failDamaged.run(...withChecksum(failedValues(row, eventSeq, end)), jobId);
      sql.deleteEventsFrom.run(jobId, eventSeq);
      put(sql.insertEvents, [jobId, eventSeq, 1, end.eventLine]);
      this.#clearWork(jobId);
      this.#runs.follow(jobId, { status: "failed", startedAtMs: row.started_at, updatedAtMs: end.nowMs });
      return eventSeq;
    });
  }

  /** Resolves once what was written is on disk. @param jobIds the jobs whose histories it may continue */
  async #inTransaction<T>(jobIds: readonly string[], write: () => T | Promise<T>): Promise<T> {
    const value = await this.#gate.run(async () => {
      try {
        this.#sql.begin.run();
        const value = await write();
        this.#counter.raise();
        this.#sql.commit.run();
        this.#counter.committed();
        this.#sync.committed(jobIds);
        return value;
      } catch (error) {
        if (this.#connection.isTransaction) this.#sql.rollback.run();
        throw this.#explained(error);
      }
    });
    await this.#sync.durable();
    return value;
  }

  #insert(changes: JobChanges, insert: JobInsert): Claim {
    const { jobId, owner, epoch } = changes;
    if (insert.definitionId !== null && this.#sql.selectOpenRun.get(jobId) === undefined)
      return this.#whyNot(changes);
    const brief = briefValues(changes);
    const { changes: rows } = this.#sql.insertJob.run(
      owner,
      epoch,
      ...withChecksum(fixedColumns.toValues({ ...insert, ...insert.trace, jobId })),
      ...withChecksum(progressValues(changes.progress)),
      ...(brief === null ? NOT_BRIEF : withChecksum(brief)),
      ...termColumns.toValues(insert),
    );
    if (rows === 0) return this.#whyNot(changes);
    if (brief !== null) return "complete";
    put(this.#sql.insertSource, [jobId, insert.manifestJson, insert.configurationJson]);
    return "current";
  }

  #update(changes: JobChanges): Claim {
    const { jobId, owner, epoch, revision, progress } = changes;
    const { changes: rows } = this.#sql.updateJob.run(
      ...withChecksum(progressValues(progress)),
      jobId,
      owner,
      epoch,
      revision,
    );
    return rows === 0 ? this.#whyNot(changes) : "current";
  }

  /** The row did not match: either this very part is already there (J3), or the job is another's (J2). */
  #whyNot({ jobId, owner, epoch, revision, isHandedOver }: JobChanges): Claim {
    const row = this.#sql.selectClaim.get(jobId);
    const isOwned = row?.owner === (isHandedOver ? FREE_OWNER : owner);
    const isApplied = isOwned && row.epoch === epoch && row.revision === revision + 1;
    return isApplied ? "applied" : "lost";
  }

  #writeParts(changes: JobChanges): void {
    const sql = this.#sql;
    const { jobId } = changes;
    this.#writeEvents(changes);
    for (const agent of changes.agents) {
      put(sql.upsertAgent, agents.toValues(agent, jobId));
    }
    for (const letter of changes.deadLetters) {
      const messageJson = JSON.stringify(letter.message);
      const stored = { ...letter, messageJson, status: "open", retriedAtMs: null, changeJson: null } as const;
      sql.insertDeadLetter.run(...letters.toValues(stored, jobId));
    }
    for (const { deadLetterId, retriedAtMs, changeJson } of changes.deadLettersRetried) {
      sql.retryDeadLetter.run(retriedAtMs, changeJson, jobId, deadLetterId);
    }
    for (const request of changes.humanRequests) {
      sql.upsertHumanRequest.run(...humanRequests.toValues(request, jobId));
    }
    for (const artifact of changes.artifacts) {
      // Of one producer and name the newest is the output; the others stay as artifacts.
      if (artifact.kind === "output") sql.replaceOutput.run(jobId, artifact.agentId, artifact.name);
      sql.insertArtifact.run(...artifacts.toValues(artifact, jobId, jobId));
    }
    if (!isTerminal(changes.progress.status)) this.#writeWork(changes);
  }

  #writeEvents({ jobId, firstEventSeq, eventLines }: JobChanges): void {
    for (const { from, to, chars } of segmentsOf(eventLines)) {
      const lines = eventLines.slice(from, to).join("\n");
      const stored = chars <= PACKED_CHARS_MAX ? packLines(lines) : lines;
      put(this.#sql.insertEvents, [jobId, firstEventSeq + from, to - from, stored]);
    }
  }

  /** Mailboxes, collections and tasks: what an open job still has to do. */
  #writeWork(changes: JobChanges): void {
    const sql = this.#sql;
    const { jobId } = changes;
    this.#writeMailboxes(changes);
    for (const agentIndex of changes.itemsCleared) sql.deleteItems.run(jobId, agentIndex);
    for (const { agentIndex, firstSeq, bodiesJson } of changes.items) {
      put(sql.insertItems, [jobId, agentIndex, firstSeq, bodiesJson.join("\n")]);
    }
    for (const taskSeq of changes.tasksRemoved) sql.deleteTask.run(jobId, taskSeq);
    for (const task of changes.tasks) {
      put(sql.upsertTask, tasks.toValues(task, jobId));
    }
  }

  /** Messages, and how many of them wait for each agent. */
  #writeMailboxes({ jobId, consumed, messages }: JobChanges): void {
    const sql = this.#sql;
    const depthChanges = new Map<number, number>();
    for (const { agentIndex, throughSeq } of consumed) {
      const { changes: removed } = sql.deleteMessages.run(jobId, agentIndex, throughSeq);
      depthChanges.set(agentIndex, -Number(removed));
    }
    for (const message of messages) {
      put(sql.insertMessage, [jobId, message.to, message.seq, JSON.stringify(message)]);
      depthChanges.set(message.to, (depthChanges.get(message.to) ?? 0) + 1);
    }
    for (const [agentIndex, change] of depthChanges) {
      if (change !== 0) sql.changeDepth.run(jobId, agentIndex, change);
    }
  }

  /** A terminal job has no work left. */
  #clearWork(jobId: string): void {
    this.#sql.clearMessages.run(jobId);
    this.#sql.clearDepths.run(jobId);
    this.#sql.clearItems.run(jobId);
    this.#sql.clearTasks.run(jobId);
  }
}

/** What became of a job's row; with `complete` nothing else is to be written. */
type Claim = "current" | "complete" | "applied" | "lost";

/** Whether the job has ended, and may have stored work; one that was born and ended within this batch never did. */
const hasLeftWork = ({ insert, progress }: JobChanges): boolean =>
  insert === null && isTerminal(progress.status);

/** Of a job that is new it is known whether it is a run's; others are looked up. */
const mayHaveRun = ({ insert }: JobChanges): boolean => insert === null || insert.definitionId !== null;

/** Writes a row with its checksum, which is the last value. */
function put(statement: StatementSync, values: Stored[]): void {
  statement.run(...withChecksum(values));
}

function withChecksum(values: Stored[]): Stored[] {
  values.push(rowChecksum(values));
  return values;
}
