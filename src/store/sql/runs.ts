// The table runs: the gateway's runs, joined with their runtime jobs. The journal writes a launched run in the batch that
// changes its runtime job.
//
// Pages go by id, newest first (run-list.ts): ids are time-ordered texts, and every filter has an index that ends in the id. The
// condition of a partial index is a literal (`sql.lit`), because SQLite chooses the index before it sees parameters.

import { type ExpressionBuilder, type InferResult, sql, type Transaction } from "kysely";
import type { Priority } from "../../engine/share.ts";
import type { AgentEnds } from "../../engine/tally.ts";
import {
  type GatewayRecords,
  type GatewayWrites,
  type GridRun,
  type NewRun,
  type OpenRun,
  openLettersMax,
  type RunRecord,
  type RunSummary,
  type RunTrigger,
  type UntoldEnd,
} from "../../launch/records.ts";
import { columnsOf, flag } from "./columns.ts";
import type { Database } from "./database.ts";
import { tallyOf } from "./jobs.ts";
import {
  atMost,
  BEHIND_ALL_IDS,
  command,
  type Db,
  definitionOfRun,
  insertion,
  listed,
  query,
} from "./query.ts";
import type { Schema } from "./schema.generated.ts";

const triggerColumns = columnsOf<Schema["runs"], RunTrigger>({ kind: "trigger_kind", id: "trigger_id" });

const newRunColumns = columnsOf<Schema["runs"], Omit<NewRun, "trigger" | "jobName">>({
  runId: "run_id",
  jobId: "job_id",
  blueprintId: "blueprint_id",
  rerunOf: "rerun_of",
  runtimeJobId: "runtime_job_id",
  inputsJson: "inputs_json",
  configOverridesJson: "config_overrides_json",
  priority: "priority",
  traceId: "trace_id",
  parentSpanId: "parent_span_id",
  agentsTotal: "agents_total",
  label: "label",
  owner: "owner",
  createdAtMs: "created_at",
});

const summaryColumns = columnsOf<Schema["runs"], Omit<RunSummary, "trigger" | "updatedAtMs">>({
  runId: "run_id",
  jobId: "job_id",
  status: "status",
  desiredState: "desired_state",
  createdAtMs: "created_at",
  startedAtMs: "started_at",
  finishedAtMs: "finished_at",
});

const openRunColumns = columnsOf<Schema["runs"], OpenRun>({
  runId: "run_id",
  runtimeJobId: "runtime_job_id",
  status: "status",
  desiredState: "desired_state",
  launched: flag("launched"),
  owner: "owner",
});

/** All that a list shows of a run's own row. */
const briefColumns = [
  ...newRunColumns.names.filter((name) => name !== "inputs_json" && name !== "config_overrides_json"),
  ...triggerColumns.names,
  ...summaryColumns.names,
  "launched",
  "failure_json",
  "updated_at",
] as const;

type RunExpression = ExpressionBuilder<Schema & { r: Schema["runs"] }, "r">;

/** Of the question shown in a run's progress. */
const PROMPT_CHARS = 200;

/**
 * Agents without work at the moment: those that are done, and idle ones that have processed a message and have an empty
 * mailbox. Failed agents are neither.
 */
const agentsDone = (eb: RunExpression) =>
  eb
    .selectFrom("agents as a")
    .select(({ fn }) => fn.countAll<number | string>().as("count"))
    .whereRef("a.job_id", "=", "r.runtime_job_id")
    .where((agent) => {
      const mailbox = agent
        .selectFrom("messages as m")
        .select("m.seq")
        .whereRef("m.job_id", "=", "a.job_id")
        .whereRef("m.agent_index", "=", "a.agent_index");
      const isIdle = agent.and([
        agent("a.status", "=", sql.lit("ready")),
        agent("a.processed_messages", ">", 0),
        agent.not(agent.exists(mailbox)),
      ]);
      return agent.or([agent("a.status", "=", sql.lit("done")), isIdle]);
    });

/** The prompt of the only open human request. */
const onlyPrompt = (eb: RunExpression) =>
  eb
    .selectFrom("human_requests as h")
    .select(sql<string>`substr(h.prompt, 1, ${sql.lit(PROMPT_CHARS)})`.as("prompt"))
    .whereRef("h.job_id", "=", "r.runtime_job_id")
    // As `rareStatus`.
    .where(sql<boolean>`unlikely(h.status = 'pending')`)
    .limit(sql.lit(1));

/** How many letters are open, up to `openLettersMax`. */
const openLetters = (eb: RunExpression) =>
  eb
    .selectFrom((inner) =>
      inner
        .selectFrom("dead_letters as l")
        .select("l.job_id")
        .whereRef("l.job_id", "=", "r.runtime_job_id")
        // As `rareStatus`.
        .where(sql<boolean>`unlikely(l.status = 'open')`)
        .limit(sql.lit(openLettersMax))
        .as("open"),
    )
    .select(({ fn }) => fn.countAll<number | string>().as("count"));

/** What a list shows of a run. The runtime job's columns are null until the journal has it. */
const shownRuns = (db: Db) =>
  db
    .selectFrom("runs as r")
    .innerJoin("job_definitions as d", "d.job_id", "r.job_id")
    .leftJoin("jobs as j", "j.job_id", "r.runtime_job_id")
    .select("d.name as job_name")
    .select([
      "j.event_seq",
      "j.message_seq",
      "j.active_executors",
      "j.human_pending",
      "j.tally_json",
      "j.failure_json as job_failure_json",
      "j.updated_at as job_updated_at",
      "j.priority as job_priority",
    ])
    .select((eb) => [
      eb
        .case()
        .when("r.status", "=", "completed")
        .then(eb.ref("r.agents_total"))
        .else(agentsDone(eb))
        .end()
        .as("agents_done"),
      openLetters(eb).as("open_letters"),
      eb.case().when("j.human_pending", "=", sql.lit(1)).then(onlyPrompt(eb)).end().as("human_prompt"),
    ]);

export const runs = (db: Db) => shownRuns(db).selectAll("r").select("j.result_json");

/** Without what may be large: inputs, overrides and the result are empty. */
const briefRuns = (db: Db) =>
  shownRuns(db)
    .select(briefColumns.map((name) => `r.${name}` as const))
    .select([
      sql.lit("{}").as("inputs_json"),
      sql.lit(null).as("config_overrides_json"),
      sql.lit(null).as("result_json"),
    ]);

type RunRow = InferResult<ReturnType<typeof runs>>[number];

export function toRun(row: RunRow): RunRecord {
  const launched = row.launched === 1;
  const agentEnds = endsOf(row, launched);
  return {
    ...newRunColumns.toRecord(row),
    jobName: row.job_name,
    priority: (row.job_priority ?? row.priority) as Priority,
    ...summaryColumns.toRecord(row),
    trigger: triggerColumns.toRecord(row),
    launched,
    updatedAtMs: Math.max(row.updated_at, row.job_updated_at ?? 0),
    resultJson: row.result_json,
    failureJson: row.failure_json ?? row.job_failure_json,
    tallyJson: launched ? row.tally_json : null,
    progress: {
      // An agent added to the run's graph, such as its dashboard, is not part of the total.
      agentsDone: agentEnds?.done ?? Math.min(Number(row.agents_done), row.agents_total),
      agentEnds,
      messages: row.message_seq ?? 0,
      tasksRunning: row.active_executors ?? 0,
      humanPending: row.human_pending ?? 0,
      humanPrompt: row.human_prompt,
      // A run that ended before its launch has one event: its end.
      eventCount: row.event_seq ?? (!launched && row.finished_at !== null ? 1 : 0),
    },
    openLetters: Number(row.open_letters),
  };
}

function endsOf(
  row: Pick<RunRow, "finished_at" | "agents_total" | "tally_json">,
  launched: boolean,
): AgentEnds | null {
  if (row.finished_at === null) return null;
  const { agents_total: total } = row;
  if (!launched) return { done: 0, failed: 0, cancelled: 0, skipped: total, not_reached: 0 };
  const ends = row.tally_json === null ? null : (tallyOf(row.tally_json).ends?.agents ?? null);
  if (ends === null) return null;
  const counted = Object.values(ends).reduce((sum, count) => sum + count, 0);
  // A dashboard ends with its run, so it is counted among those that are done.
  return { ...ends, done: Math.max(0, ends.done - Math.max(0, counted - total)) };
}

/** Runs whose jobs were not deleted. */
const existing = (db: Db) => runs(db).where("d.deleted", "=", sql.lit(0));

const idsOfJobs = query(
  (db, jobIdsJson: string) =>
    db
      .selectFrom("runs")
      .select("run_id")
      .where("runtime_job_id", "in", listed<string>(db, jobIdsJson, "text")),
  (row) => row.run_id,
);

const briefByIds = query(
  (db, idsJson: string) =>
    briefRuns(db)
      .where("d.deleted", "=", sql.lit(0))
      .where("r.run_id", "in", listed<string>(db, idsJson, "text")),
  toRun,
);

const byId = query((db, runId: string) => existing(db).where("r.run_id", "=", runId), toRun);

const latestOfJob = query(
  (db, jobId: string) =>
    runs(db).where("r.run_id", "=", (eb) =>
      eb
        .selectFrom("job_definitions as d")
        .select("d.latest_run_id")
        .where("d.job_id", "=", jobId)
        .where("d.deleted", "=", sql.lit(0)),
    ),
  toRun,
);

const summariesOfJob = (db: Db, jobId: string, limit: number) =>
  db
    .selectFrom("runs as r")
    .leftJoin("jobs as j", "j.job_id", "r.runtime_job_id")
    .select([...summaryColumns.names, ...triggerColumns.names].map((name) => `r.${name}` as const))
    .select("r.updated_at")
    .select("j.updated_at as job_updated_at")
    .where("r.job_id", "=", jobId)
    .where(({ exists }) => exists(definitionOfRun(db)))
    .orderBy("r.run_id", "desc")
    .limit(atMost(limit));

const toSummary = (row: InferResult<ReturnType<typeof summariesOfJob>>[number]): RunSummary => ({
  ...summaryColumns.toRecord(row),
  trigger: triggerColumns.toRecord(row),
  updatedAtMs: Math.max(row.updated_at, row.job_updated_at ?? 0),
});

const newestOfJob = query(summariesOfJob, toSummary);

const gridOfJob = query(
  (db, jobId: string, limit: number, newest: string) =>
    summariesOfJob(db, jobId, limit)
      .select(["r.runtime_job_id", "r.launched", "r.agents_total"])
      .select(["j.bundle_fingerprint", "j.tally_json"])
      .where("r.run_id", "<=", newest),
  (row): GridRun => ({
    ...toSummary(row),
    runtimeJobId: row.runtime_job_id,
    bundleFingerprint: row.bundle_fingerprint,
    agentEnds: endsOf(row, row.launched === 1),
  }),
);

const completedDurations = query(
  (db, jobId: string, limit: number) =>
    db
      .selectFrom("runs")
      .select(["started_at", "finished_at"])
      .where("job_id", "=", jobId)
      .where("status", "=", sql.lit("completed"))
      .orderBy("run_id", "desc")
      .limit(atMost(limit)),
  (row) => (row.finished_at ?? 0) - (row.started_at ?? 0),
);

/** Runs that have not ended, without their large columns. */
const openRuns = (db: Db) =>
  db
    .selectFrom("runs as r")
    .select(openRunColumns.names.map((name) => `r.${name}` as const))
    .where("r.terminal", "=", sql.lit(0));

const openRun = query(
  (db, runId: string) => openRuns(db).where("r.run_id", "=", runId),
  openRunColumns.toRecord,
);

const openRunsOfJob = query(
  (db, jobId: string) => openRuns(db).where("r.job_id", "=", jobId).orderBy("r.run_id"),
  openRunColumns.toRecord,
);

/** Whether the job of the run in `r` waits for its blueprint's preparation. */
const isBeingPrepared = (eb: RunExpression) =>
  eb.exists(
    eb
      .selectFrom("job_definitions as d")
      .select("d.job_id")
      .whereRef("d.job_id", "=", "r.job_id")
      .where("d.status", "=", sql.lit("preparing")),
  );

/** Whether the open run in `r` is to be brought to another state. */
const isAskedOtherwise = (eb: RunExpression) => [
  eb("r.desired_state", "=", "cancelled"),
  eb(eb.parens("r.desired_state", "=", "paused"), "<>", eb.parens("r.status", "=", "paused")),
];

/** Oldest first. */
const openPage = (db: Db, after: string, limit: number) =>
  openRuns(db).where("r.run_id", ">", after).orderBy("r.run_id").limit(atMost(limit));

/** Open runs that wait for their launch, or are not in their desired state. */
const unsettled = (db: Db, after: string, limit: number) =>
  openPage(db, after, limit).where((eb) =>
    eb.or([
      eb.and([eb("r.launched", "=", 0), eb("r.status", "=", "pending"), eb.not(isBeingPrepared(eb))]),
      ...isAskedOtherwise(eb),
    ]),
  );

const unsettledRuns = query(unsettled, openRunColumns.toRecord);

const unsettledRunsOfJob = query(
  (db, after: string, limit: number, jobId: string) =>
    unsettled(db, after, limit).where("r.job_id", "=", jobId),
  openRunColumns.toRecord,
);

const waitingRunsOf = query(
  (db, owner: string, after: string, limit: number) =>
    unsettled(db, after, limit).where("r.launched", "=", sql.lit(0)).where("r.owner", "=", owner),
  openRunColumns.toRecord,
);

const strayedRunsOf = query(
  (db, owner: string, beforeMs: number, after: string, limit: number) =>
    openPage(db, after, limit)
      .where("r.launched", "=", sql.lit(1))
      .where("r.updated_at", "<", beforeMs)
      .where((eb) => eb.or(isAskedOtherwise(eb)))
      .where(({ exists, selectFrom }) =>
        exists(
          selectFrom("jobs as j")
            .select("j.job_id")
            .whereRef("j.job_id", "=", "r.runtime_job_id")
            .where("j.owner", "=", owner),
        ),
      ),
  openRunColumns.toRecord,
);

/** Of the result of a run in an event. */
const TOLD_CHARS_MAX = 200_000;

const untoldEnds = query(
  (db, limit: number) =>
    db
      .selectFrom("runs as r")
      .leftJoin("jobs as j", "j.job_id", "r.runtime_job_id")
      .leftJoin("job_definitions as d", "d.job_id", "r.job_id")
      .select(["r.run_id", "r.job_id", "r.status", "r.trigger_kind", "r.failure_json", "d.blueprint_id"])
      .select("j.failure_json as job_failure_json")
      .select((eb) =>
        eb
          .case()
          .when(eb.fn<number>("length", ["j.result_json"]), "<=", sql.lit(TOLD_CHARS_MAX))
          .then(eb.ref("j.result_json"))
          .end()
          .as("result_json"),
      )
      .where("r.terminal", "=", sql.lit(1))
      .where("r.end_told", "=", sql.lit(0))
      .orderBy("r.run_id")
      .limit(atMost(limit)),
  (row): UntoldEnd => ({
    runId: row.run_id,
    jobId: row.job_id,
    blueprintId: row.blueprint_id,
    status: row.status as UntoldEnd["status"],
    isOfEvent: row.trigger_kind === "event",
    resultJson: row.result_json,
    failureJson: row.failure_json ?? row.job_failure_json,
  }),
);

const tellEnd = command((db, runId: string) =>
  db.updateTable("runs").set({ end_told: 1 }).where("run_id", "=", runId).where("end_told", "=", sql.lit(0)),
);

export function runReads(database: Database) {
  return {
    run: (runId) => byId.first(database, runId),
    changedRuns: async ({ runIds, jobIds }) => {
      const ofJobs = jobIds.length === 0 ? [] : await idsOfJobs.all(database, JSON.stringify(jobIds));
      return briefByIds.all(database, JSON.stringify([...runIds, ...ofJobs]));
    },
    recentRuns: (jobId, limit) => newestOfJob.all(database, jobId, limit),
    gridRuns: (jobId, limit, newest) => gridOfJob.all(database, jobId, limit, newest ?? BEHIND_ALL_IDS),
    latestRun: (jobId) => latestOfJob.first(database, jobId),
    completedDurations: (jobId, limit) => completedDurations.all(database, jobId, limit),
    openRun: (runId) => openRun.first(database, runId),
    unsettledRuns: ({ jobId, limit, after }) =>
      jobId === null
        ? unsettledRuns.all(database, after ?? "", limit)
        : unsettledRunsOfJob.all(database, after ?? "", limit, jobId),
    waitingRunsOf: (owner, { limit, after }) => waitingRunsOf.all(database, owner, after ?? "", limit),
    strayedRunsOf: (owner, beforeMs, { limit, after }) =>
      strayedRunsOf.all(database, owner, beforeMs, after ?? "", limit),
    untoldEnds: (limit) => untoldEnds.all(database, limit),
  } satisfies Partial<GatewayRecords>;
}

/** The run becomes the latest one of its job, unless the job was deleted. */
const countBegin = command((db, runId: string, jobId: string) =>
  db
    .updateTable("job_definitions")
    .set((eb) => ({ latest_run_id: runId, latest_terminal: 0, active_runs: eb("active_runs", "+", 1) }))
    .where("job_id", "=", jobId)
    .where("deleted", "=", sql.lit(0)),
);

/** src/store/sqlite/run-follower.ts does the same for launched runs. */
const countEnd = command((db, runId: string, jobId: string) =>
  db
    .updateTable("job_definitions")
    .set((eb) => ({
      active_runs: eb("active_runs", "-", 1),
      latest_terminal: eb
        .case()
        .when("latest_run_id", "=", runId)
        .then(1)
        .else(eb.ref("latest_terminal"))
        .end(),
    }))
    .where("job_id", "=", jobId),
);

const insertRun = insertion("runs");

/** @param written is told of each run whose row is written */
export function runWrites(db: Transaction<Schema>, written: (runId: string) => void) {
  const open = () => db.updateTable("runs").where("terminal", "=", sql.lit(0));
  const waiting = (runId: string) => open().where("run_id", "=", runId).where("launched", "=", 0);
  return {
    run: (runId) => byId.first(db, runId),

    async insertRun(run) {
      if ((await countBegin(db, run.runId, run.jobId)) === 0) return false;
      written(run.runId);
      await insertRun(db, {
        ...newRunColumns.toRow(run),
        ...triggerColumns.toRow(run.trigger),
        status: "pending",
        terminal: 0,
        desired_state: "running",
        launched: 0,
        end_told: 0,
        updated_at: run.createdAtMs,
      });
      return true;
    },

    openRuns: (jobId) => openRunsOfJob.all(db, jobId),

    async setPriority(runId, priority) {
      written(runId);
      await waiting(runId).set({ priority }).execute();
    },

    tellEnd: async (runId) => (await tellEnd(db, runId)) > 0,

    async setDesiredStates(jobId, desired, nowMs) {
      const changed = await open()
        .set({ desired_state: desired, updated_at: nowMs })
        .where("job_id", "=", jobId)
        .where("desired_state", "<>", desired)
        .returning("run_id")
        .execute();
      for (const { run_id: runId } of changed) written(runId);
    },

    async setDesiredState(runId, desired, nowMs) {
      written(runId);
      await open().set({ desired_state: desired, updated_at: nowMs }).where("run_id", "=", runId).execute();
    },

    async setWaiting(runId, { status, label, owner }, nowMs) {
      written(runId);
      await waiting(runId).set({ status, label, owner, updated_at: nowMs }).execute();
    },

    async adoptRuns(jobId, owner) {
      await open().set({ owner }).where("job_id", "=", jobId).where("launched", "=", 0).execute();
    },

    async setLabel(runId, label, nowMs) {
      written(runId);
      await waiting(runId).set({ label, updated_at: nowMs }).execute();
    },

    async endUnlaunched(runId, { status, failureJson }, nowMs) {
      written(runId);
      const end = { failure_json: failureJson, finished_at: nowMs, updated_at: nowMs };
      const ended = await waiting(runId)
        .set({ status, terminal: 1, label: null, ...end })
        .returning("job_id")
        .executeTakeFirst();
      if (ended !== undefined) await countEnd(db, runId, ended.job_id);
    },
  } satisfies Partial<GatewayWrites>;
}
