// The journal on PostgreSQL: one transaction per batch, and a statement per table whatever the number of jobs. Its contract
// is the port's (J1 to J5); test/support/journal-contract.ts checks it.
//
// - The jobs' own rows come first: they say which parts are current. Everything else and the COMMIT follow in one go.
// - It has one connection, whose statements are sent without waiting for each other's answers (pipelining). Images are read on
//   those of the records: meanwhile others are claimed and written.

import { scheduler } from "node:timers/promises";
import type pg from "pg";
import {
  type CommitAnswer,
  type DamagedJob,
  type DamagedJobEnd,
  FREE_OWNER,
  isTerminal,
  type JobChanges,
  type JobImage,
  type Journal,
  JournalUnavailable,
} from "../../engine/journal.ts";
import { KeyedMutex } from "../../lib/async.ts";
import { briefColumns, briefValues } from "../sql/brief-jobs.ts";
import type { Stored } from "../sql/columns.ts";
import { failedValues, fixedColumns, progressValues, termColumns } from "../sql/job-columns.ts";
import { tallyOf, toTrace } from "../sql/jobs.ts";
import type { Schema } from "../sql/schema.generated.ts";
import { ANSWER_MS, BEGIN } from "./connection.ts";
import type { PostgresDatabase } from "./database.ts";
import { asUnavailable, scopeOf } from "./errors.ts";
import { JobImages, rowsOfJobs } from "./job-images.ts";
import { type JobParts, partsOf } from "./journal-parts.ts";
import { READS, type Statements, statementsFor, typesOf, WORK_TABLES } from "./journal-statements.ts";

interface ClaimedRow {
  readonly job_id: string;
  readonly submitted_at: number;
}

interface Written {
  readonly job_id: string;
  readonly definition_id: string | null;
}

/** Jobs that a claim took whose answer was lost, so that it is not known whether they are the owner's. */
interface Unsure {
  readonly owner: string;
  readonly jobIds: readonly string[];
}

const NONE: Unsure = { owner: "", jobIds: [] };
const NOT_BRIEF: Stored[] = briefColumns.map(() => null);
const MUTEX = "connection";
const FREE_JOBS = "UPDATE jobs SET owner = $1 WHERE job_id = ANY ($2)";

export class PostgresJournal implements Journal {
  readonly #config: PostgresDatabase["config"];
  readonly #server: string;
  readonly #turns = new KeyedMutex();
  #connection: { readonly client: pg.Client; readonly sql: Statements } | null = null;
  #unsure = NONE;
  readonly #images: JobImages;

  constructor({ config, server, read }: PostgresDatabase) {
    this.#config = config;
    this.#server = server;
    this.#images = new JobImages((jobIds) => rowsOfJobs(read, jobIds));
  }

  async commit(batch: readonly JobChanges[]): Promise<CommitAnswer> {
    try {
      return await this.#inTransaction(async (client, sql) => {
        const { current, lost } = await writeJobs(client, sql, batch);
        const pending = await sendParts(client, sql, current);
        return { value: { lost, unwritable: [] }, pending };
      });
    } catch (error) {
      if (error instanceof JournalUnavailable || batch.length === 0) throw error;
    }
    // One job's part is at fault: write the batch again, with a savepoint for each part.
    return this.#inTransaction((client, sql) => writeApart(client, sql, batch));
  }

  /** Most looks find nothing, and take one statement. What was taken is known before it is committed (`#unsure`). */
  async claim(owner: string, limit: number): Promise<readonly string[]> {
    const unsure = this.#unsure.owner === owner ? this.#unsure.jobIds : [];
    if (unsure.length === 0 && !(await this.#isSomethingFree(owner))) return [];
    const rows = await this.#inTransaction(async (client) => {
      const answers = await Promise.all([
        client.query<ClaimedRow>(READS.owned, [owner, unsure]),
        client.query<ClaimedRow>(READS.claim, [owner, limit]),
      ]);
      const rows = answers.flatMap((answer) => answer.rows);
      this.#unsure = { owner, jobIds: rows.map((row) => row.job_id) };
      return { value: rows, pending: [] };
    });
    this.#unsure = NONE;
    rows.sort((a, b) => a.submitted_at - b.submitted_at || (a.job_id < b.job_id ? -1 : 1));
    return rows.map((row) => row.job_id);
  }

  #isSomethingFree(owner: string): Promise<boolean> {
    return this.#turns.run(MUTEX, async () => {
      try {
        const { client } = await this.#connected();
        const query = { name: "claimable", text: READS.claimable, values: [owner] };
        return (await client.query(query)).rows.length > 0;
      } catch (error) {
        throw asUnavailable(error, this.#server, false);
      }
    });
  }

  load(jobId: string): Promise<JobImage | null> {
    return this.#images.load(jobId);
  }

  failDamaged(
    jobId: string,
    owner: string,
    render: (job: DamagedJob) => DamagedJobEnd,
  ): Promise<number | null> {
    return this.#inTransaction(async (client, sql) => {
      const { rows } = await client.query<Schema["jobs"]>(READS.damaged, [jobId, owner]);
      const [row] = rows;
      if (row === undefined) return { value: null, pending: [] };
      const job = {
        runId: row.run_id,
        eventSeq: row.event_seq,
        trace: toTrace(row),
        tally: tallyOf(row.tally_json),
      };
      const end = render(job);
      const eventSeq = job.eventSeq + 1;
      const status = {
        jobId,
        status: "failed",
        startedAtMs: row.started_at,
        updatedAtMs: end.nowMs,
      } as const;
      const pending = [
        client.query(sql.failDamaged([[jobId, ...failedValues(row, eventSeq, end)]])),
        client.query(sql.deleteEventsFrom([[jobId, eventSeq]])),
        client.query(sql.insertEvents([[jobId, eventSeq, 1, end.eventLine]])),
        ...clearWork(client, [jobId]),
        client.query(sql.followRuns([followed(status)])),
      ];
      return { value: eventSeq, pending };
    });
  }

  /** To be called when nothing is under way. */
  async close(): Promise<void> {
    await this.#turns.run(MUTEX, async () => this.#disconnect());
  }

  /**
   * Resolves once what was written is on disk.
   *
   * @param write sends statements; the COMMIT follows those that are `pending` without waiting for them
   */
  #inTransaction<T>(
    write: (
      client: pg.Client,
      sql: Statements,
    ) => Promise<{ readonly value: T; readonly pending: readonly Promise<unknown>[] }>,
  ): Promise<T> {
    return this.#turns.run(MUTEX, async () => {
      let isCommitting = false;
      try {
        const { client, sql } = await this.#connected();
        const begun = client.query(BEGIN);
        const [{ value, pending }] = await Promise.all([write(client, sql), begun]);
        isCommitting = true;
        await Promise.all([...pending, client.query("COMMIT")]);
        return value;
      } catch (error) {
        await this.#connection?.client.query("ROLLBACK").catch(() => this.#disconnect());
        throw asUnavailable(error, this.#server, isCommitting);
      }
    });
  }

  async #connected() {
    if (this.#connection !== null) return this.#connection;
    const client = new this.#config.Client({ ...this.#config, query_timeout: ANSWER_MS, pipeline: true });
    // Its queries reject; the next one connects again.
    client.on("error", () => {
      if (this.#connection?.client === client) this.#connection = null;
    });
    try {
      await client.connect();
      this.#connection = { client, sql: statementsFor(await typesOf(client)) };
    } catch (error) {
      await client.end().catch(() => {});
      throw error;
    }
    return this.#connection;
  }

  async #disconnect(): Promise<void> {
    const client = this.#connection?.client;
    this.#connection = null;
    await client?.end().catch(() => {});
  }
}

/** Writes the jobs' own rows, which are all of a brief job. @returns whose other parts are to be written, and which jobs are another's */
async function writeJobs(client: pg.Client, sql: Statements, batch: readonly JobChanges[]) {
  const briefs = new Set<JobChanges>();
  const news: Stored[][] = [];
  const newOfRuns: Stored[][] = [];
  const updates: Stored[][] = [];
  for (const changes of batch) {
    const { jobId, owner, epoch, revision, insert, progress } = changes;
    if (insert === null) updates.push([jobId, owner, epoch, revision, ...progressValues(progress)]);
    else {
      const fixed = fixedColumns.toValues({ ...insert, ...insert.trace, jobId });
      const brief = briefValues(changes) ?? NOT_BRIEF;
      if (brief !== NOT_BRIEF) briefs.add(changes);
      const row = [
        owner,
        epoch,
        1,
        ...fixed,
        ...progressValues(progress),
        ...brief,
        ...termColumns.toValues(insert),
      ];
      (insert.definitionId === null ? news : newOfRuns).push(row);
    }
  }
  const answers = await Promise.all([
    news.length > 0 && client.query<Written>(sql.insertJobs(news)),
    newOfRuns.length > 0 && client.query<Written>(sql.insertJobsOfRuns(newOfRuns)),
    updates.length > 0 && client.query<Written>(sql.updateJobs(updates)),
    // A batch without parts asks whether the store takes writes: only one that is made can tell.
    batch.length === 0 && client.query<Written>("UPDATE schema_migrations SET name = name"),
  ]);
  const written = new Map<string, Written>();
  for (const answer of answers) {
    if (answer !== false) for (const row of answer.rows) written.set(row.job_id, row);
  }
  const current: JobParts[] = [];
  const others: JobChanges[] = [];
  for (const changes of batch) {
    const row = written.get(changes.jobId);
    if (row === undefined) others.push(changes);
    else if (!briefs.has(changes)) current.push({ changes, hasDefinition: row.definition_id !== null });
  }
  return { current, lost: others.length === 0 ? [] : await lostOf(client, others) };
}

/** Their rows did not match: either this very part is already there (J3), or the job is another's (J2). */
async function lostOf(client: pg.Client, unmatched: readonly JobChanges[]): Promise<readonly string[]> {
  const ids = unmatched.map(({ jobId }) => jobId);
  const { rows } = await client.query<Pick<Schema["jobs"], "job_id" | "owner" | "epoch" | "revision">>(
    READS.claims,
    [ids],
  );
  const claims = new Map(rows.map((row) => [row.job_id, row]));
  const isLost = ({ jobId, owner, epoch, revision, isHandedOver }: JobChanges) => {
    const row = claims.get(jobId);
    return (
      row?.owner !== (isHandedOver ? FREE_OWNER : owner) ||
      row.epoch !== epoch ||
      row.revision !== revision + 1
    );
  };
  return unmatched.filter(isLost).map(({ jobId }) => jobId);
}

/** Sends the statements of the parts; between portions of a large batch everything else has its turn. */
async function sendParts(client: pg.Client, sql: Statements, jobs: readonly JobParts[]) {
  const sources = jobs.flatMap(({ changes: { jobId, insert } }) =>
    insert === null ? [] : [[jobId, insert.manifestJson, insert.configurationJson]],
  );
  let pending: Promise<unknown>[] = sources.length === 0 ? [] : [client.query(sql.insertSources(sources))];
  let isLarge = false;
  for (const portion of partsOf(jobs)) {
    if (isLarge) {
      await Promise.all(pending);
      await scheduler.yield();
      pending = [];
    }
    isLarge = true;
    const statements = Object.entries(portion.rows).map(([statement, rows]) =>
      client.query(sql[statement as keyof Statements](rows)),
    );
    pending.push(...statements);
    if (portion.ended.length > 0) pending.push(...clearWork(client, portion.ended));
  }
  const handedOver = jobs.flatMap(({ changes }) => (changes.isHandedOver ? [changes.jobId] : []));
  if (handedOver.length > 0)
    pending.push(client.query({ name: "free_jobs", text: FREE_JOBS, values: [FREE_OWNER, handedOver] }));
  const changed = jobs.filter(({ hasDefinition }) => hasDefinition);
  if (changed.length > 0) {
    const rows = changed.map(({ changes: { jobId, progress } }) => followed({ ...progress, jobId }));
    pending.push(client.query(sql.followRuns(rows)));
  }
  return pending;
}

/** J4, for the batch that has met an error: the hot path needs no savepoints. */
async function writeApart(client: pg.Client, sql: Statements, batch: readonly JobChanges[]) {
  const lost: string[] = [];
  const unwritable: { readonly jobId: string; readonly reason: string }[] = [];
  for (const changes of batch) {
    await client.query("SAVEPOINT part");
    try {
      const written = await writeJobs(client, sql, [changes]);
      await Promise.all(await sendParts(client, sql, written.current));
      lost.push(...written.lost);
    } catch (error) {
      if (scopeOf(error) !== "row") throw error;
      await client.query("ROLLBACK TO part");
      unwritable.push({ jobId: changes.jobId, reason: (error as Error).message });
    }
    await client.query("RELEASE part");
  }
  return { value: { lost, unwritable }, pending: [] };
}

const clearWork = (client: pg.Client, jobIds: readonly string[]) =>
  WORK_TABLES.map((table) =>
    client.query({
      name: `clear_${table}`,
      text: `DELETE FROM ${table} WHERE job_id = ANY ($1)`,
      values: [jobIds],
    }),
  );

function followed({
  jobId,
  status,
  startedAtMs,
  updatedAtMs,
}: {
  readonly jobId: string;
  readonly status: JobChanges["progress"]["status"];
  readonly startedAtMs: number | null;
  readonly updatedAtMs: number;
}): Stored[] {
  return [jobId, status, isTerminal(status) ? 1 : 0, startedAtMs, updatedAtMs];
}
