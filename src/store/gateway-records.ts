// GatewayRecords with Kysely. Reads are compiled once; writes go through the group commit.

import type { BundleRecord } from "../bundles/records.ts";
import type { Clock } from "../engine/ports.ts";
import type {
  DeadLetter,
  GatewayRecords,
  GatewayWrites,
  IdempotencyRecord,
  JobPage,
  JobView,
  KeysetPage,
  OpenRun,
  RunPage,
  RunRecord,
} from "../jobs/records.ts";
import { toBundle } from "./bundle-records.ts";
import { CommitGroup } from "./commit-group.ts";
import { forgetIdempotency, purgeDeleted } from "./gateway-purge.ts";
import { gatewayReads } from "./gateway-reads.ts";
import { toDeadLetter, toIdempotency, toJob, toOpenRun, toRun } from "./gateway-rows.ts";
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

  async jobs({ includeTerminal, limit, after }: JobPage): Promise<readonly JobView[]> {
    const query = includeTerminal ? this.#reads.jobs : this.#reads.openJobs;
    return (await query(after ?? BEHIND_ALL_IDS, limit)).map(toJob);
  }

  async run(runId: string): Promise<RunRecord | null> {
    const [row] = await this.#reads.run(runId);
    return row === undefined ? null : toRun(row);
  }

  async runs(page: RunPage): Promise<readonly RunRecord[]> {
    return (await this.#runRows(page)).map(toRun);
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

  async openRuns(jobId: string, { limit, after }: KeysetPage): Promise<readonly OpenRun[]> {
    return (await this.#reads.openRuns(after ?? "", limit, jobId)).map(toOpenRun);
  }

  async unsettledRuns({ limit, after }: KeysetPage): Promise<readonly OpenRun[]> {
    return (await this.#reads.unsettledRuns(after ?? "", limit)).map(toOpenRun);
  }

  async deadLetters(runId: string, { limit, after }: KeysetPage): Promise<readonly DeadLetter[]> {
    return (await this.#reads.deadLetters(after ?? BEHIND_ALL_IDS, limit, runId)).map(toDeadLetter);
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
