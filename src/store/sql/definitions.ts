// The table job_definitions: the gateway's durable jobs, each with its latest run.
//
// Pages go by id, newest first: ids are time-ordered texts, and every filter has an index that ends in the id. The
// condition of a partial index is a literal (`sql.lit`), because SQLite chooses the index before it sees parameters.

import { type InferResult, type SelectQueryBuilder, sql, type Transaction } from "kysely";
import type { JobStatus } from "../../engine/journal.ts";
import type {
  DesiredState,
  GatewayRecords,
  GatewayWrites,
  JobDefinition,
  JobSource,
  JobView,
  RecordCounter,
  RunSummary,
  RunTrigger,
} from "../../launch/records.ts";
import { columnsOf, json } from "./columns.ts";
import type { Database } from "./database.ts";
import { atMost, BEHIND_ALL_IDS, type Db, insertion, listQuery, query } from "./query.ts";
import type { Schema } from "./schema.generated.ts";

/** Stored for a job that has no snapshot yet. */
const NO_FINGERPRINT = "";

const columns = columnsOf<Schema["job_definitions"], Omit<JobDefinition, "source" | "bundleFingerprint">>({
  jobId: "job_id",
  name: "name",
  status: "status",
  graphId: "graph_id",
  configurationJson: "configuration_json",
  weight: "weight",
  extensions: json("extensions_json"),
  revision: "revision",
  createdAtMs: "created_at",
  updatedAtMs: "updated_at",
});

/** Jobs that are not deleted. */
const jobs = (db: Db) =>
  db
    .selectFrom("job_definitions as d")
    .leftJoin("runs as r", "r.run_id", "d.latest_run_id")
    .leftJoin("jobs as j", "j.job_id", "r.runtime_job_id")
    .where("d.deleted", "=", sql.lit(0))
    .selectAll("d")
    .select([
      "r.status as latest_status",
      "r.desired_state as latest_desired_state",
      "r.trigger_kind as latest_trigger_kind",
      "r.trigger_id as latest_trigger_id",
      "r.created_at as latest_created_at",
      "r.started_at as latest_started_at",
      "r.finished_at as latest_finished_at",
      "r.updated_at as latest_updated_at",
      "j.updated_at as latest_job_updated_at",
    ]);

type JobRow = InferResult<ReturnType<typeof jobs>>[number];

function toJob(row: JobRow): JobView {
  return {
    ...columns.toRecord(row),
    source: sourceOf(row),
    bundleFingerprint: row.bundle_fingerprint === NO_FINGERPRINT ? null : row.bundle_fingerprint,
    latestRun: toLatestRun(row),
    activeRuns: row.active_runs,
  };
}

function sourceOf(row: JobRow): JobSource {
  if (row.bundle_id !== null) return { kind: "bundle", bundleId: row.bundle_id };
  if (row.blueprint_id !== null) return { kind: "blueprint", blueprintId: row.blueprint_id };
  throw new Error(`Job ${row.job_id} has neither a bundle nor a blueprint.`);
}

/** Without a run, all of its columns are null. */
function toLatestRun(row: JobRow): RunSummary | null {
  const { latest_run_id: runId, latest_updated_at: updatedAtMs } = row;
  if (runId === null || updatedAtMs === null) return null;
  return {
    runId,
    jobId: row.job_id,
    status: row.latest_status as JobStatus,
    desiredState: row.latest_desired_state as DesiredState,
    trigger: { kind: row.latest_trigger_kind as RunTrigger["kind"], id: row.latest_trigger_id },
    createdAtMs: row.latest_created_at!,
    startedAtMs: row.latest_started_at,
    finishedAtMs: row.latest_finished_at,
    updatedAtMs: Math.max(updatedAtMs, row.latest_job_updated_at ?? 0),
  };
}

const toRow = (job: JobDefinition) => ({
  ...columns.toRow(job),
  bundle_id: job.source.kind === "bundle" ? job.source.bundleId : null,
  blueprint_id: job.source.kind === "blueprint" ? job.source.blueprintId : null,
  bundle_fingerprint: job.bundleFingerprint ?? NO_FINGERPRINT,
});

const byId = query((db, jobId: string) => jobs(db).where("d.job_id", "=", jobId), toJob);

const list = listQuery(
  (db, after: string, limit: number) =>
    jobs(db).where("d.job_id", "<", after).orderBy("d.job_id", "desc").limit(atMost(limit)),
  {
    isOpen: (jobs) => jobs.where("d.latest_terminal", "=", sql.lit(0)),
    blueprintId: (jobs, blueprintId) => jobs.where("d.blueprint_id", "=", blueprintId),
  },
  toJob,
);

export function definitionReads(database: Database) {
  return {
    job: (jobId) => byId.first(database, jobId),
    jobs: ({ includeTerminal, blueprintId = null, limit, after }) =>
      list(database, { isOpen: !includeTerminal, blueprintId }, after ?? BEHIND_ALL_IDS, limit),
  } satisfies Partial<GatewayRecords>;
}

const insertJob = insertion("job_definitions");

export function definitionWrites(db: Transaction<Schema>) {
  const change = async (
    jobId: string,
    expectedRevision: number,
    values: Partial<Schema["job_definitions"]>,
  ) => {
    const { numUpdatedRows } = await db
      .updateTable("job_definitions")
      .set(values)
      .where("job_id", "=", jobId)
      .where("revision", "=", expectedRevision)
      .where("deleted", "=", 0)
      .executeTakeFirst();
    return numUpdatedRows > 0n;
  };
  return {
    job: (jobId) => byId.first(db, jobId),
    insertJob: (job) => insertJob(db, { ...toRow(job), latest_terminal: 0, active_runs: 0, deleted: 0 }),
    updateJob(job, expectedRevision) {
      // What is derived from the job's runs, or never changes, is not among the values.
      const { job_id, created_at, ...values } = toRow(job);
      return change(job_id, expectedRevision, values);
    },
    deleteJob: (jobId, expectedRevision) => change(jobId, expectedRevision, { deleted: 1 }),
  } satisfies Partial<GatewayWrites>;
}

const statuses = ["pending", "queued", "running", "paused", "completed", "failed", "cancelled"] as const;

/** Each count stops at its maximum, and reads an index only. */
const counts = query(
  (db, maximum: number) => {
    const one = sql.lit(1).as("one");
    const capped = <Table extends keyof Schema>(rows: SelectQueryBuilder<Schema, Table, { one: number }>) =>
      db
        .selectFrom(rows.limit(atMost(maximum)).as("some"))
        .select(({ fn }) => fn.countAll<number | string>().as("count"));
    const definitions = db.selectFrom("job_definitions").select(one).where("deleted", "=", sql.lit(0));
    const runs = db.selectFrom("runs").select(one);
    return db.selectNoFrom([
      capped(definitions).as("jobs"),
      capped(definitions.where("latest_terminal", "=", sql.lit(0))).as("jobs_open"),
      ...statuses.map((status) => capped(runs.where("status", "=", status)).as(status)),
    ]);
  },
  (row) => ({
    jobs: Number(row.jobs),
    jobsOpen: Number(row.jobs_open),
    runs: Object.fromEntries(statuses.map((status) => [status, Number(row[status])])) as Record<
      JobStatus,
      number
    >,
  }),
);

const ends = ["completed", "failed", "cancelled"] as const;

const endCounts = query(
  (db, fromMs: number, toMs: number, maximum: number) =>
    db.selectNoFrom(
      ends.map((status) =>
        db
          .selectFrom(
            db
              .selectFrom("runs")
              .select(sql.lit(1).as("one"))
              .where("terminal", "=", sql.lit(1))
              .where("status", "=", status)
              .where("finished_at", ">=", fromMs)
              .where("finished_at", "<", toMs)
              .limit(atMost(maximum))
              .as("some"),
          )
          .select(({ fn }) => fn.countAll<number | string>().as("count"))
          .as(status),
      ),
    ),
  ({ completed, failed, cancelled }) => ({
    completed: Number(completed),
    failed: Number(failed),
    cancelled: Number(cancelled),
  }),
);

export function sqlRecordCounter(database: Database): RecordCounter {
  // A query of counts has one row.
  return {
    count: async (maximum) => (await counts.first(database, maximum))!,
    countEnds: async (fromMs, toMs, maximum) => (await endCounts.first(database, fromMs, toMs, maximum))!,
  };
}
