// The journal's statements. Each takes one array per column, and so writes the rows of a whole batch at once.

import type pg from "pg";
import { limits } from "../../engine/limits.ts";
import { agents } from "../sql/agents.ts";
import { artifacts } from "../sql/artifacts.ts";
import { briefColumns } from "../sql/brief-jobs.ts";
import type { Stored } from "../sql/columns.ts";
import { NOW } from "../sql/database-clock.ts";
import { letters } from "../sql/dead-letters.ts";
import { humanRequests } from "../sql/human-requests.ts";
import { fixedColumns, progressColumns, termColumns } from "../sql/job-columns.ts";
import { tasks } from "../sql/jobs.ts";
import type { Schema } from "../sql/schema.generated.ts";
import { storable } from "./values.ts";

type Types = (table: string, column: string) => string;

/** Writes rows given as lists of values, in the order of the statement's columns. */
export type RowStatement = (rows: readonly (readonly Stored[])[]) => pg.QueryConfig;

/** @returns what tells the type of a column, in an array of which its values are sent */
export async function typesOf(client: pg.ClientBase): Promise<Types> {
  const { rows } = await client.query<{ key: string; type: string }>(
    `SELECT c.relname || '.' || a.attname AS key, format_type(a.atttypid, NULL) AS type
     FROM pg_attribute AS a JOIN pg_class AS c ON c.oid = a.attrelid
     WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind = 'r' AND a.attnum > 0`,
  );
  const types = new Map(rows.map(({ key, type }) => [key, type]));
  return (table, column) => {
    const type = types.get(`${table}.${column}`);
    if (type === undefined) throw new Error(`the database has no column ${table}.${column}`);
    return type;
  };
}

export type Statements = ReturnType<typeof statementsFor>;

export function statementsFor(types: Types) {
  /** `given` as a table of the rows; `text` is around it. */
  const statement = (
    name: string,
    table: keyof Schema,
    columns: readonly string[],
    text: (given: string) => string,
  ): RowStatement => {
    const arrays = columns.map((column, i) => `$${i + 1}::${types(table, column)}[]`);
    const whole = text(`unnest(${arrays.join(", ")}) AS given (${columns.join(", ")})`);
    return (rows) => ({
      name,
      text: whole,
      values: columns.map((_, i) => rows.map((row) => storable(row[i]))),
    });
  };
  const insertion = (table: keyof Schema, columns: readonly string[], then = "") =>
    statement(
      `insert_${table}`,
      table,
      columns,
      (given) => `INSERT INTO ${table} (${columns.join(", ")}) SELECT * FROM ${given} ${then}`,
    );
  /** Replaces a row with the same values in the first two columns, which are the key. */
  const replacement = (table: keyof Schema, columns: readonly string[]) => {
    const changes = columns.slice(2).map((name) => `${name} = excluded.${name}`);
    const key = columns.slice(0, 2).join(", ");
    return insertion(table, columns, `ON CONFLICT (${key}) DO UPDATE SET ${changes.join(", ")}`);
  };
  const deletion = (
    name: string,
    table: keyof Schema,
    columns: readonly string[],
    where = columns.map((column) => `${table}.${column} = given.${column}`).join(" AND "),
  ) => statement(name, table, columns, (given) => `DELETE FROM ${table} USING ${given} WHERE ${where}`);

  const fixed = fixedColumns.names;
  const progress = progressColumns.names;
  const inserted = [
    "owner",
    "epoch",
    "revision",
    ...fixed,
    ...progress,
    ...briefColumns,
    ...termColumns.names,
  ];
  const setProgress = progress.map((name) => `${name} = given.${name}`).join(", ");
  return {
    insertJobs: insertion(
      "jobs",
      inserted,
      "ON CONFLICT (job_id) DO NOTHING RETURNING job_id, definition_id",
    ),
    /** Their runs are locked until the commit, so that none of them ends before its job is there. */
    insertJobsOfRuns: statement(
      "insert_jobs_of_runs",
      "jobs",
      inserted,
      (given) => `WITH open AS MATERIALIZED (
          SELECT runtime_job_id FROM runs WHERE terminal = 0 AND runtime_job_id = ANY ($${inserted.indexOf("job_id") + 1})
          ORDER BY run_id FOR NO KEY UPDATE
        )
        INSERT INTO jobs (${inserted.join(", ")}) SELECT given.* FROM ${given} JOIN open ON open.runtime_job_id = given.job_id
        ON CONFLICT (job_id) DO NOTHING RETURNING job_id, definition_id`,
    ),
    insertSources: insertion("job_sources", ["job_id", "manifest_json", "configuration_json"]),
    updateJobs: statement(
      "update_jobs",
      "jobs",
      ["job_id", "owner", "epoch", "revision", ...progress],
      (given) => `UPDATE jobs SET revision = jobs.revision + 1, ${setProgress} FROM ${given}
        WHERE jobs.job_id = given.job_id AND jobs.owner = given.owner AND jobs.epoch = given.epoch
          AND jobs.revision = given.revision
        RETURNING jobs.job_id, jobs.definition_id`,
    ),
    setPriorities: statement(
      "set_priorities",
      "jobs",
      ["job_id", "priority"],
      (given) => `UPDATE jobs SET priority = given.priority FROM ${given} WHERE jobs.job_id = given.job_id`,
    ),
    /** A new epoch: what is under way of the old one comes too late. */
    failDamaged: statement(
      "fail_damaged",
      "jobs",
      ["job_id", ...progress],
      (
        given,
      ) => `UPDATE jobs SET epoch = jobs.epoch + 1, revision = jobs.revision + 1, ${setProgress} FROM ${given}
        WHERE jobs.job_id = given.job_id`,
    ),
    insertEvents: insertion("events", ["job_id", "first_seq", "event_count", "lines"]),
    deleteEventsFrom: deletion(
      "delete_events_from",
      "events",
      ["job_id", "first_seq"],
      "events.job_id = given.job_id AND events.first_seq >= given.first_seq",
    ),
    upsertAgents: replacement("agents", ["job_id", ...agents.names]),
    insertMessages: insertion("messages", ["job_id", "agent_index", "seq", "message_json"]),
    deleteMessages: statement(
      "delete_messages",
      "messages",
      ["job_id", "agent_index", "seq"],
      (given) => `WITH consumed AS (
          DELETE FROM messages USING ${given}
          WHERE messages.job_id = given.job_id AND messages.agent_index = given.agent_index AND messages.seq <= given.seq
          RETURNING messages.job_id, messages.agent_index
        )
        UPDATE mailboxes SET depth = depth - gone.count
        FROM (SELECT job_id, agent_index, count(*) AS count FROM consumed GROUP BY job_id, agent_index) AS gone
        WHERE mailboxes.job_id = gone.job_id AND mailboxes.agent_index = gone.agent_index`,
    ),
    raiseDepths: statement(
      "raise_depths",
      "mailboxes",
      ["job_id", "agent_index", "depth"],
      (
        given,
      ) => `INSERT INTO mailboxes SELECT job_id, agent_index, sum(depth) FROM ${given} GROUP BY job_id, agent_index
        ON CONFLICT (job_id, agent_index) DO UPDATE SET depth = mailboxes.depth + excluded.depth`,
    ),
    insertItems: insertion("items", ["job_id", "agent_index", "first_seq", "lines"]),
    deleteItems: deletion("delete_items", "items", ["job_id", "agent_index"]),
    upsertTasks: replacement("tasks", ["job_id", ...tasks.names]),
    deleteTasks: deletion("delete_tasks", "tasks", ["job_id", "task_seq"]),
    insertDeadLetters: insertion("dead_letters", ["job_id", ...letters.names]),
    retryDeadLetters: statement(
      "retry_dead_letters",
      "dead_letters",
      ["job_id", "dead_letter_id", "retried_at", "change_json"],
      (
        given,
      ) => `UPDATE dead_letters SET status = 'retried', retried_at = given.retried_at, change_json = given.change_json FROM ${given}
        WHERE dead_letters.job_id = given.job_id AND dead_letters.dead_letter_id = given.dead_letter_id`,
    ),
    /** A request as it was, and a closed one of the same name. */
    deleteHumanRequests: deletion(
      "delete_human_requests",
      "human_requests",
      ["job_id", "event_seq", "request_id"],
      `human_requests.job_id = given.job_id
        AND (human_requests.event_seq = given.event_seq OR human_requests.request_id = given.request_id)`,
    ),
    insertHumanRequests: insertion("human_requests", ["job_id", ...humanRequests.names]),
    /** Of one producer and name the newest is the output; the others stay as artifacts. */
    replaceOutputs: statement(
      "replace_outputs",
      "artifacts",
      ["job_id", "agent_id", "name"],
      (given) => `UPDATE artifacts SET kind = 'artifact' FROM ${given} JOIN jobs ON jobs.job_id = given.job_id
        WHERE artifacts.kind = 'output' AND artifacts.run_id = jobs.run_id AND md5(artifacts.name) = md5(given.name)
          AND artifacts.agent_id IS NOT DISTINCT FROM given.agent_id AND artifacts.name = given.name`,
    ),
    insertArtifacts: statement(
      "insert_artifacts",
      "artifacts",
      ["job_id", ...artifacts.names],
      (given) => `INSERT INTO artifacts (run_id, job_id, ${artifacts.names.join(", ")})
        SELECT jobs.run_id, given.* FROM ${given} JOIN jobs ON jobs.job_id = given.job_id`,
    ),
    followRuns: statement(
      "follow_runs",
      "jobs",
      ["job_id", "status", "terminal", "started_at", "updated_at"],
      followRuns,
    ),
  };
}

/** What src/store/sqlite/run-follower.ts does, for the jobs of a batch. */
const followRuns = (given: string) => `
  WITH followed AS (
    UPDATE runs SET status = given.status, terminal = given.terminal, launched = 1, label = NULL,
      started_at = given.started_at,
      finished_at = CASE given.terminal WHEN 1 THEN given.updated_at END,
      updated_at = greatest(runs.updated_at, given.updated_at),
      desired_state = CASE
        WHEN given.status = 'paused' AND runs.status <> 'paused' AND runs.desired_state = 'running' THEN 'paused'
        WHEN given.status IN ('running', 'queued') AND runs.status = 'paused' AND runs.desired_state = 'paused'
          THEN 'running'
        ELSE runs.desired_state END
    FROM ${given}
    WHERE runs.runtime_job_id = given.job_id AND runs.terminal = 0
      AND (runs.status <> given.status OR runs.launched = 0 OR runs.started_at IS DISTINCT FROM given.started_at)
    RETURNING runs.job_id, runs.run_id, runs.terminal
  ), ended AS (
    SELECT job_id, count(*) AS count, array_agg(run_id) AS run_ids FROM followed WHERE terminal = 1 GROUP BY job_id
  ), locked AS (
    SELECT d.job_id FROM job_definitions AS d WHERE d.job_id IN (SELECT job_id FROM ended) ORDER BY d.job_id FOR UPDATE
  )
  UPDATE job_definitions AS d SET active_runs = d.active_runs - ended.count,
    latest_terminal = greatest(d.latest_terminal, (d.latest_run_id = ANY (ended.run_ids))::int)
  FROM ended JOIN locked USING (job_id) WHERE d.job_id = ended.job_id`;

/** How long others leave a job alone whose node is to carry it on (recovery_mode local_restart), and is not drained. */
const GRACE_MS = 60_000;
/** How long a lost job is left to the node that it falls to: each node looks once a second. */
const SHARING_MS = 1_500;

/**
 * Lost jobs fall to the nodes that take work on, to each as many as it has free slots, by a number between 0 and 1 that each
 * job has: `$1` has a part of that range, or all of it when it is no such node.
 */
const SHARE = `takers AS (
    SELECT node_id, greatest(1, slots - used)::float8 AS weight FROM nodes,
      LATERAL (SELECT coalesce(sum(value::bigint), 0) AS slots FROM json_each_text(pools_json::json)) AS pools,
      LATERAL (SELECT coalesce(sum((value->>'in_use')::bigint), 0) AS used FROM json_each(reserved_json::json)) AS uses
    WHERE status = 'ready' AND lease_until > ${NOW} AND maintenance = 0 AND drain_until IS NULL
  ), parts AS (
    SELECT node_id, weight, sum(weight) OVER (ORDER BY node_id) AS upto, sum(weight) OVER () AS total FROM takers
  ), share AS MATERIALIZED (
    SELECT coalesce(min((upto - weight) / total), 0) AS low, coalesce(min(upto / total), 1) AS high
    FROM parts WHERE node_id = split_part($1, '/', 1)
  )`;
const PLACE = "(hashtextextended(job_id, 0) & 4294967295) / 4294967296::float8";

/**
 * The owners of open jobs whose lease is over, found by the index alone, and since when. A lease that a later owner of the node
 * has replaced is over for that node, which waits for what its former owners had begun on others; for these it lasts to its end.
 */
const LOST = `owners AS (
    (SELECT owner FROM jobs WHERE terminal = 0 ORDER BY owner LIMIT 1)
    UNION ALL
    SELECT (SELECT jobs.owner FROM jobs WHERE terminal = 0 AND jobs.owner > owners.owner ORDER BY jobs.owner LIMIT 1)
      FROM owners WHERE owners.owner IS NOT NULL
  ), ended AS (
    SELECT owners.owner, nodes.node_id IS NULL OR nodes.node_id = split_part($1, '/', 1) AS is_own,
      CASE
        WHEN nodes.owner = owners.owner THEN nodes.lease_until
        WHEN nodes.node_id <> split_part($1, '/', 1) THEN nodes.former_until
        ELSE 0 END AS ended_at,
      CASE WHEN nodes.drain_until IS NULL THEN nodes.lease_until + ${GRACE_MS} END AS awaited_until
    FROM owners LEFT JOIN nodes ON nodes.node_id = split_part(owners.owner, '/', 1)
    WHERE owners.owner <> $1
  ), lost AS MATERIALIZED (SELECT * FROM ended WHERE ended_at <= ${NOW}), ${SHARE}`;

/** Open jobs of lost owners that may be taken over now, oldest first. */
const free = (limit: string, lock: string) => `
  SELECT job.job_id FROM share CROSS JOIN lost CROSS JOIN LATERAL (
      SELECT job_id, submitted_at FROM jobs
      WHERE terminal = 0 AND owner = lost.owner AND (lost.is_own
        OR CASE WHEN recovery_policy = 'local_restart' THEN coalesce(lost.awaited_until, lost.ended_at) ELSE lost.ended_at END
          + CASE WHEN ${PLACE} >= share.low AND ${PLACE} < share.high THEN 0 ELSE ${SHARING_MS} END <= ${NOW})
      ORDER BY submitted_at, job_id LIMIT ${limit} ${lock}) AS job
    ORDER BY submitted_at, job_id LIMIT ${limit}`;

export const READS = {
  claims: "SELECT job_id, owner, epoch, revision FROM jobs WHERE job_id = ANY ($1)",
  claimable: `WITH RECURSIVE ${LOST} ${free("1", "")}`,
  claim: `WITH RECURSIVE ${LOST}, taken AS MATERIALIZED (${free("$2", "FOR UPDATE SKIP LOCKED")})
    UPDATE jobs SET owner = $1, epoch = epoch + 1 FROM taken WHERE jobs.job_id = taken.job_id
    RETURNING jobs.job_id, jobs.submitted_at`,
  owned: "SELECT job_id, submitted_at FROM jobs WHERE job_id = ANY ($2) AND owner = $1 AND terminal = 0",
  damaged: "SELECT * FROM jobs WHERE job_id = $1 AND owner = $2 AND terminal = 0 FOR UPDATE",
} as const;

/** The rows of several jobs, each job's in the order of their key. */
export const IMAGES = {
  jobs: "SELECT * FROM jobs LEFT JOIN job_sources USING (job_id) WHERE job_id = ANY ($1)",
  agents: "SELECT * FROM agents WHERE job_id = ANY ($1) ORDER BY job_id, agent_index",
  messages:
    "SELECT job_id, message_json FROM messages WHERE job_id = ANY ($1) ORDER BY job_id, agent_index, seq",
  items: "SELECT * FROM items WHERE job_id = ANY ($1) ORDER BY job_id, agent_index, first_seq",
  tasks: "SELECT * FROM tasks WHERE job_id = ANY ($1) ORDER BY job_id, task_seq",
  // Of the closed ones no more than the engine remembers.
  humanRequests: `SELECT request.* FROM unnest($1::text[]) AS wanted CROSS JOIN LATERAL (
      SELECT * FROM human_requests WHERE job_id = wanted AND status = 'pending'
      UNION ALL
      (SELECT * FROM human_requests WHERE job_id = wanted AND status <> 'pending'
        ORDER BY event_seq DESC LIMIT ${limits.humanClosedKeptMax})) AS request
    ORDER BY job_id, event_seq`,
} as const;
/** A terminal job has no work left. */
export const WORK_TABLES = ["messages", "mailboxes", "items", "tasks"] as const;
