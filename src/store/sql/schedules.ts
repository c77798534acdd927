// The tables schedules and schedule_runs.

import { sql, type Transaction } from "kysely";
import type {
  Schedule,
  ScheduledRun,
  ScheduledRunState,
  ScheduleRecords,
  ScheduleWrites,
} from "../../schedules/records.ts";
import { columnsOf, json } from "./columns.ts";
import type { Database } from "./database.ts";
import { atMost, BEHIND_ALL_IDS, command, type Db, insertion, listQuery, query } from "./query.ts";
import type { Schema } from "./schema.generated.ts";

const columns = columnsOf<Schema["schedules"], Schedule>({
  scheduleId: "schedule_id",
  name: "name",
  jobId: "job_id",
  blueprintId: "blueprint_id",
  rule: json("rule_json"),
  webhook: json("webhook_json"),
  inputs: json("inputs_json"),
  configOverrides: json("config_overrides_json"),
  priority: "priority",
  overlap: "overlap",
  missedPolicy: "missed_policy",
  catchupLimit: "catchup_limit",
  untilMs: "until",
  maxRuns: "max_runs",
  pauseAfterFailures: "pause_after_failures",
  status: "status",
  statusReason: "status_reason",
  dueAtMs: "due_at",
  nextRunAtMs: "next_run_at",
  queuedDueAtMs: "queued_due_at",
  waitingEvents: "waiting_events",
  waitingBytes: "waiting_bytes",
  throttledUntilMs: "throttled_until",
  lastDispatch: json("last_dispatch_json"),
  failuresInARow: "failures_in_a_row",
  dispatched: "dispatched",
  skipped: "skipped",
  missed: "missed",
  failed: "failed",
  revision: "revision",
  version: "version",
  createdAtMs: "created_at",
  updatedAtMs: "updated_at",
});

const toRow = (schedule: Schedule): Schema["schedules"] => ({
  ...columns.toRow(schedule),
  kind: schedule.rule.kind,
  event_type: schedule.rule.kind === "event" ? schedule.rule.type : null,
  webhook_hash: schedule.webhook?.tokenHash ?? null,
});

const schedules = (db: Db) => db.selectFrom("schedules").selectAll();

const byId = query(
  (db, scheduleId: string) => schedules(db).where("schedule_id", "=", scheduleId),
  columns.toRecord,
);

const byWebhook = query(
  (db, tokenHash: string) => schedules(db).where("webhook_hash", "=", tokenHash),
  columns.toRecord,
);

const list = listQuery(
  (db, after: string, limit: number) =>
    schedules(db).where("schedule_id", "<", after).orderBy("schedule_id", "desc").limit(atMost(limit)),
  {
    kind: (rows, kind) => rows.where("kind", "=", kind),
    status: (rows, status) => rows.where("status", "=", status),
    jobId: (rows, jobId) => rows.where("job_id", "=", jobId),
  },
  columns.toRecord,
);

const active = (db: Db) => db.selectFrom("schedules").where("status", "=", sql.lit("active"));

const due = query(
  (db, nowMs: number, limit: number) =>
    active(db)
      .select("schedule_id")
      .where("next_run_at", "<=", nowMs)
      .orderBy("next_run_at")
      .orderBy("schedule_id")
      .limit(atMost(limit)),
  (row) => row.schedule_id,
);

const dueAfter = query(
  (db, nowMs: number) =>
    active(db).select("next_run_at").where("next_run_at", ">", nowMs).orderBy("next_run_at").limit(1),
  (row) => row.next_run_at,
);

/** A run that was deleted is not there. */
const withRuns = (db: Db) =>
  db.selectFrom("schedule_runs as s").leftJoin("runs as r", "r.run_id", "s.run_id");

const openRuns = query(
  (db, scheduleId: string, limit: number) =>
    withRuns(db)
      .select("s.run_id")
      .where("s.schedule_id", "=", scheduleId)
      .where("r.terminal", "=", sql.lit(0))
      .orderBy("s.run_id")
      .limit(atMost(limit)),
  (row) => row.run_id,
);

const states = (db: Db) =>
  withRuns(db).select(["s.run_id", "s.schedule_id", "s.runtime_job_id", "r.terminal", "r.status"]);

interface StateRow {
  readonly run_id: string;
  readonly schedule_id: string;
  readonly runtime_job_id: string;
  readonly terminal: number | null;
  readonly status: string | null;
}

const toState = (row: StateRow): ScheduledRun & ScheduledRunState => ({
  runId: row.run_id,
  scheduleId: row.schedule_id,
  runtimeJobId: row.runtime_job_id,
  hasEnded: row.terminal !== 0,
  hasFailed: row.status === "failed",
});

const scheduledRuns = query(
  (db, after: string, limit: number) =>
    states(db).where("s.run_id", ">", after).orderBy("s.run_id").limit(atMost(limit)),
  toState,
);

const scheduledRun = query((db, runId: string) => states(db).where("s.run_id", "=", runId), toState);

export function scheduleReads(database: Database): ScheduleRecords {
  return {
    schedule: (scheduleId) => byId.first(database, scheduleId),
    scheduleOfWebhook: (tokenHash) => byWebhook.first(database, tokenHash),
    schedules: ({ kind, status, jobId, limit, after }) =>
      list(database, { kind, status, jobId }, after ?? BEHIND_ALL_IDS, limit),
    due: (nowMs, limit) => due.all(database, nowMs, limit),
    dueAfter: (nowMs) => dueAfter.first(database, nowMs),
    openRuns: (scheduleId, limit) => openRuns.all(database, scheduleId, limit),
    scheduledRuns: (after, limit) => scheduledRuns.all(database, after, limit),
  };
}

const insertSchedule = insertion("schedules");
const saveSchedule = insertion("schedules", ["schedule_id"]);
const insertRun = insertion("schedule_runs");
const removeSchedule = command((db, scheduleId: string) =>
  db.deleteFrom("schedules").where("schedule_id", "=", scheduleId),
);
const removeRuns = command((db, scheduleId: string) =>
  db.deleteFrom("schedule_runs").where("schedule_id", "=", scheduleId),
);
const removeRun = command((db, runId: string) => db.deleteFrom("schedule_runs").where("run_id", "=", runId));

/** @param written is told of each schedule that is written */
export function scheduleWrites(
  db: Transaction<Schema>,
  written: (scheduleId: string) => void,
): ScheduleWrites {
  return {
    schedule: (scheduleId) => byId.first(db, scheduleId),
    openRuns: (scheduleId, limit) => openRuns.all(db, scheduleId, limit),
    async insert(schedule) {
      await insertSchedule(db, toRow(schedule));
      written(schedule.scheduleId);
    },
    async save(schedule) {
      await saveSchedule(db, toRow(schedule));
      written(schedule.scheduleId);
    },
    async remove(scheduleId) {
      written(scheduleId);
      await removeSchedule(db, scheduleId);
      await removeRuns(db, scheduleId);
    },
    noteRun: ({ runId, scheduleId, runtimeJobId }) =>
      insertRun(db, { run_id: runId, schedule_id: scheduleId, runtime_job_id: runtimeJobId }),
    scheduledRun: (runId) => scheduledRun.first(db, runId),
    forgetRun: async (runId) => void (await removeRun(db, runId)),
  };
}
