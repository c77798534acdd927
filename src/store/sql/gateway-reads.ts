// The gateway's reads, compiled once. Arguments in the order of their holes.
//
// Pages go by id, newest first: ids are time-ordered texts, and every filter has an index that ends in the id. What a
// partial index asks for must be written out (`literal`), because SQLite chooses the index before it sees arguments.
// Pages of rows with inputs, results, configurations or messages in them are bounded by their size too.

import { type Compilable, type ExpressionBuilder, type Kysely, sql } from "kysely";
import { hole, limitHole, reusable, reusableWithin } from "./reusable-query.ts";
import type { Database, Schema } from "./schema.ts";

export function gatewayReads(database: Database) {
  return { ...jobReads(database), ...runLists(database), ...singleRuns(database), ...otherReads(database) };
}

/** Characters of the texts in one page. */
const PAGE_CHARS_MAX = 8 * 1024 * 1024;
/** Of a question, in what a run is told to wait for. */
const PROMPT_CHARS = 200;

const largeRows = <Row>(database: Database, query: Compilable<Row>) =>
  reusableWithin(database, PAGE_CHARS_MAX, query);

const literal = (value: 0 | 1) => sql.lit(value);

/** Jobs that are not deleted, each with its latest run. */
function jobs(db: Kysely<Schema>) {
  return db
    .selectFrom("job_definitions as d")
    .leftJoin("runs as r", "r.run_id", "d.latest_run_id")
    .leftJoin("jobs as j", "j.job_id", "r.runtime_job_id")
    .where("d.deleted", "=", literal(0))
    .select([
      "d.job_id",
      "d.name",
      "d.status",
      "d.bundle_id",
      "d.blueprint_id",
      "d.bundle_fingerprint",
      "d.graph_id",
      "d.configuration_json",
      "d.extensions_json",
      "d.revision",
      "d.created_at",
      "d.updated_at",
      "d.active_runs",
      "d.latest_run_id",
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
}

/** Arguments: job id. */
export function jobById(db: Kysely<Schema>) {
  return jobs(db).where("d.job_id", "=", hole<string>(0));
}

function jobReads(database: Database) {
  const page = jobs(database.kysely)
    .where("d.job_id", "<", hole<string>(0))
    .orderBy("d.job_id", "desc")
    .limit(limitHole(1));
  const ofBlueprint = page.where("d.blueprint_id", "=", hole<string>(2));
  return {
    job: reusable(database, jobById(database.kysely)),
    jobs: largeRows(database, page),
    openJobs: largeRows(database, page.where("d.latest_terminal", "=", literal(0))),
    jobsOfBlueprint: largeRows(database, ofBlueprint),
    openJobsOfBlueprint: largeRows(database, ofBlueprint.where("d.latest_terminal", "=", literal(0))),
  };
}

/** Whether the job of the run in `r` is there. */
function jobIsThere(eb: ExpressionBuilder<Schema & { r: Schema["runs"] }, "r">) {
  return eb.exists(
    eb
      .selectFrom("job_definitions as d")
      .select("d.job_id")
      .whereRef("d.job_id", "=", "r.job_id")
      .where("d.deleted", "=", literal(0)),
  );
}

/**
 * Agents that have done what there was for them so far: those that are done for good, and those that have processed
 * something, do nothing at the moment and have nothing in their mailbox. Failed ones are neither.
 */
function agentsDone(eb: ExpressionBuilder<Schema & { r: Schema["runs"] }, "r">) {
  return eb
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
        agent("a.status", "=", "ready"),
        agent("a.processed_messages", ">", 0),
        agent.not(agent.exists(mailbox)),
      ]);
      return agent.or([agent("a.status", "=", "done"), isIdle]);
    });
}

/** What the only open request to a person asks. */
function onlyPrompt(eb: ExpressionBuilder<Schema & { r: Schema["runs"] }, "r">) {
  return (
    eb
      .selectFrom("human_requests as h")
      .select(sql<string>`substr(h.prompt, 1, ${sql.lit(PROMPT_CHARS)})`.as("prompt"))
      .whereRef("h.job_id", "=", "r.runtime_job_id")
      // Not said to be rare, it would be looked for in the whole of what the run asked.
      .where(sql<boolean>`unlikely(h.status = 'pending')`)
      .limit(sql.lit(1))
  );
}

function runsWithProgress(db: Kysely<Schema>) {
  return db
    .selectFrom("runs as r")
    .leftJoin("jobs as j", "j.job_id", "r.runtime_job_id")
    .select([
      "r.run_id",
      "r.job_id",
      "r.runtime_job_id",
      "r.status",
      "r.desired_state",
      "r.launched",
      "r.label",
      "r.trigger_kind",
      "r.trigger_id",
      "r.trace_id",
      "r.parent_span_id",
      "r.agents_total",
      "r.created_at",
      "r.started_at",
      "r.finished_at",
      "r.updated_at",
      "r.failure_json",
      "r.config_overrides_json",
      "r.inputs_json",
      "j.event_seq",
      "j.message_seq",
      "j.active_executors",
      "j.human_pending",
      "j.tally_json",
      "j.result_json",
      "j.failure_json as job_failure_json",
      "j.updated_at as job_updated_at",
    ])
    .select((eb) =>
      eb
        .case()
        .when("r.status", "=", "completed")
        .then(eb.ref("r.agents_total"))
        .else(agentsDone(eb))
        .end()
        .as("agents_done"),
    )
    .select((eb) =>
      eb.case().when("j.human_pending", "=", sql.lit(1)).then(onlyPrompt(eb)).end().as("human_prompt"),
    );
}

/** Arguments: run id. */
export function runById(db: Kysely<Schema>) {
  return runsWithProgress(db).where(jobIsThere).where("r.run_id", "=", hole<string>(0));
}

function singleRuns(database: Database) {
  const latestId = database.kysely
    .selectFrom("job_definitions as d")
    .select("d.latest_run_id")
    .where("d.job_id", "=", hole<string>(0))
    .where("d.deleted", "=", literal(0));
  return {
    run: reusable(database, runById(database.kysely)),
    latestRun: reusable(database, runsWithProgress(database.kysely).where("r.run_id", "=", latestId)),
  };
}

/** Arguments: the id before the page, the limit, and what the list is of. */
function runLists(database: Database) {
  const all = runsWithProgress(database.kysely);
  const page = all
    .where(jobIsThere)
    .where("r.run_id", "<", hole<string>(0))
    .orderBy("r.run_id", "desc")
    .limit(limitHole(1));
  const pageOfJob = page.where("r.job_id", "=", hole<string>(2));
  const recent = database.kysely
    .selectFrom("runs as r")
    .leftJoin("jobs as j", "j.job_id", "r.runtime_job_id")
    .select([
      "r.run_id",
      "r.job_id",
      "r.status",
      "r.desired_state",
      "r.trigger_kind",
      "r.trigger_id",
      "r.created_at",
      "r.started_at",
      "r.finished_at",
      "r.updated_at",
      "j.updated_at as job_updated_at",
    ])
    .where("r.job_id", "=", hole<string>(0))
    .where(jobIsThere)
    .orderBy("r.run_id", "desc")
    .limit(limitHole(1));
  const completed = database.kysely
    .selectFrom("runs")
    .select(["started_at", "finished_at"])
    .where("job_id", "=", hole<string>(0))
    .where("status", "=", sql.lit("completed"))
    .orderBy("run_id", "desc")
    .limit(limitHole(1));
  const unsettled = openRuns(database.kysely)
    .where(isUnsettled)
    .where("r.run_id", ">", hole<string>(0))
    .orderBy("r.run_id")
    .limit(limitHole(1));
  return {
    runs: largeRows(database, page),
    runsOfJob: largeRows(database, pageOfJob),
    runsOfStatus: largeRows(database, page.where("r.status", "=", hole<string>(2))),
    runsOfJobAndStatus: largeRows(database, pageOfJob.where("r.status", "=", hole<string>(3))),
    recentRuns: reusable(database, recent),
    completedRuns: reusable(database, completed),
    openRun: reusable(database, openRuns(database.kysely).where("r.run_id", "=", hole<string>(0))),
    unsettledRuns: reusable(database, unsettled),
    unsettledRunsOfJob: reusable(database, unsettled.where("r.job_id", "=", hole<string>(2))),
  };
}

/** Runs that have not ended, without anything large of them. */
function openRuns(db: Kysely<Schema>) {
  return db
    .selectFrom("runs as r")
    .select(["r.run_id", "r.runtime_job_id", "r.status", "r.desired_state", "r.launched"])
    .where("r.terminal", "=", literal(0));
}

/** Oldest first. Arguments: job id. */
export function openRunsOfJob(db: Kysely<Schema>) {
  return openRuns(db).where("r.job_id", "=", hole<string>(0)).orderBy("r.run_id");
}

/** Whether the job of the run in `r` waits for its blueprint. */
function isBeingPrepared(eb: ExpressionBuilder<Schema & { r: Schema["runs"] }, "r">) {
  return eb.exists(
    eb
      .selectFrom("job_definitions as d")
      .select("d.job_id")
      .whereRef("d.job_id", "=", "r.job_id")
      .where("d.status", "=", sql.lit("preparing")),
  );
}

/** Of an open run: it is to be launched, or is not as it was asked to be. */
function isUnsettled(eb: ExpressionBuilder<Schema & { r: Schema["runs"] }, "r">) {
  const wantsPause = eb.parens("r.desired_state", "=", "paused");
  const isPaused = eb.parens("r.status", "=", "paused");
  return eb.or([
    eb.and([eb("r.launched", "=", 0), eb("r.status", "=", "pending"), eb.not(isBeingPrepared(eb))]),
    eb("r.desired_state", "=", "cancelled"),
    eb(wantsPause, "<>", isPaused),
  ]);
}

/** Arguments: scope, key. */
export function promiseByKey(db: Kysely<Schema>) {
  return db
    .selectFrom("idempotency")
    .selectAll()
    .where("scope", "=", hole<string>(0))
    .where("key", "=", hole<string>(1));
}

function otherReads(database: Database) {
  const db = database.kysely;
  const bundles = db
    .selectFrom("bundles")
    .selectAll()
    .where(sql<boolean>`(created_at, bundle_id) < (${hole<number>(0)}, ${hole<string>(1)})`)
    .orderBy("created_at", "desc")
    .orderBy("bundle_id", "desc")
    .limit(limitHole(2));
  return {
    idempotency: reusable(database, promiseByKey(db)),
    bundles: reusable(database, bundles),
  };
}
