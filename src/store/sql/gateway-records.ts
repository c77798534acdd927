// GatewayRecords with Kysely. Reads are compiled once; writes go through the group commit.

import type { BundleRecord } from "../../bundles/records.ts";
import type { Clock } from "../../engine/ports.ts";
import type {
  GatewayRecords,
  GatewayWrites,
  IdempotencyRecord,
  JobPage,
  JobView,
  OpenRun,
  OpenRunPage,
  Portion,
  RunPage,
  RunRecord,
  RunSummary,
} from "../../launch/records.ts";
import { CommitGroup } from "../commit-group.ts";
import { toBundle } from "./bundle-records.ts";
import { forgetIdempotency, purgeDeleted } from "./gateway-purge.ts";
import { gatewayReads } from "./gateway-reads.ts";
import { toIdempotency, toJob, toOpenRun, toRun, toRunSummary } from "./gateway-rows.ts";
import { type GatewayStatements, gatewayStatements } from "./gateway-statements.ts";
import { SqlGatewayWrites } from "./gateway-writes.ts";
import type { Database } from "./schema.ts";

/** Sorts behind every id. */
const BEHIND_ALL_IDS = "\u{10ffff}";

export class SqlGatewayRecords implements GatewayRecords {
  readonly #database: Database;
  readonly #reads: ReturnType<typeof gatewayReads>;
  readonly #statements: GatewayStatements;
  readonly #group: CommitGroup;

  /** @param soon the clock's: when a group of writes is closed */
  constructor(database: Database, soon: Clock["soon"]) {
    this.#database = database;
    this.#reads = gatewayReads(database);
    this.#statements = gatewayStatements(database.kysely);
    this.#group = new CommitGroup(database, soon);
  }

  write<T>(work: (writes: GatewayWrites) => Promise<T>): Promise<T> {
    return this.#group.run((db) => work(new SqlGatewayWrites(db, this.#statements)));
  }

  async job(jobId: string): Promise<JobView | null> {
    const [row] = await this.#reads.job(jobId);
    return row === undefined ? null : toJob(row);
  }

  async jobs(page: JobPage): Promise<Portion<JobView>> {
    return mapped(await this.#jobRows(page), toJob);
  }

  #jobRows({ includeTerminal, blueprintId, limit, after }: JobPage) {
    const { jobs, openJobs, jobsOfBlueprint, openJobsOfBlueprint } = this.#reads;
    const from = after ?? BEHIND_ALL_IDS;
    if (blueprintId === undefined) return (includeTerminal ? jobs : openJobs)(from, limit);
    return (includeTerminal ? jobsOfBlueprint : openJobsOfBlueprint)(from, limit, blueprintId);
  }

  async run(runId: string): Promise<RunRecord | null> {
    const [row] = await this.#reads.run(runId);
    return row === undefined ? null : toRun(row);
  }

  async runs(page: RunPage): Promise<Portion<RunRecord>> {
    return mapped(await this.#runRows(page), toRun);
  }

  #runRows({ jobId, status, limit, after }: RunPage) {
    const { runs, runsOfJob, runsOfStatus, runsOfJobAndStatus } = this.#reads;
    const from = after ?? BEHIND_ALL_IDS;
    if (jobId !== null && status !== null) return runsOfJobAndStatus(from, limit, jobId, status);
    if (jobId !== null) return runsOfJob(from, limit, jobId);
    if (status !== null) return runsOfStatus(from, limit, status);
    return runs(from, limit);
  }

  async latestRun(jobId: string): Promise<RunRecord | null> {
    const [row] = await this.#reads.latestRun(jobId);
    return row === undefined ? null : toRun(row);
  }

  async completedDurations(jobId: string, limit: number): Promise<readonly number[]> {
    const rows = await this.#reads.completedRuns(jobId, limit);
    return rows.map(({ started_at, finished_at }) => (finished_at ?? 0) - (started_at ?? 0));
  }

  async recentRuns(jobId: string, limit: number): Promise<readonly RunSummary[]> {
    return (await this.#reads.recentRuns(jobId, limit)).map(toRunSummary);
  }

  async openRun(runId: string): Promise<OpenRun | null> {
    const [row] = await this.#reads.openRun(runId);
    return row === undefined ? null : toOpenRun(row);
  }

  async unsettledRuns({ jobId, limit, after }: OpenRunPage): Promise<readonly OpenRun[]> {
    const { unsettledRuns, unsettledRunsOfJob } = this.#reads;
    const rows =
      jobId === null ? unsettledRuns(after ?? "", limit) : unsettledRunsOfJob(after ?? "", limit, jobId);
    return (await rows).map(toOpenRun);
  }

  async idempotency(scope: string, key: string): Promise<IdempotencyRecord | null> {
    const [row] = await this.#reads.idempotency(scope, key);
    return row === undefined ? null : toIdempotency(row);
  }

  async bundles({
    limit,
    after,
  }: Parameters<GatewayRecords["bundles"]>[0]): Promise<readonly BundleRecord[]> {
    const { createdAtMs, bundleId } = after ?? { createdAtMs: Number.MAX_SAFE_INTEGER, bundleId: "" };
    return (await this.#reads.bundles(createdAtMs, bundleId, limit)).map(toBundle);
  }

  purgeDeleted(limit: number): Promise<boolean> {
    return this.#database.transaction((db) => purgeDeleted(db, limit));
  }

  forgetIdempotency(beforeMs: number, limit: number): Promise<number> {
    return this.#database.transaction((db) => forgetIdempotency(db, beforeMs, limit));
  }
}

function mapped<Row, Value>({ rows, isCut }: Portion<Row>, toValue: (row: Row) => Value): Portion<Value> {
  return { rows: rows.map(toValue), isCut };
}
