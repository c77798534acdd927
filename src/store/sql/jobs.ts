// The tables jobs, job_sources, mailboxes and tasks: what the edges read of the runtime's jobs. The journal writes
// them. Their histories are in events.ts, their agents in agents.ts, their files in artifacts.ts.

import { sql } from "kysely";
import { isTerminal, type JobStatus, type TaskRecord } from "../../engine/journal.ts";
import { newTally, readTally, type Tally } from "../../engine/tally.ts";
import { ownTrace, type TraceContext } from "../../engine/trace.ts";
import type { JobPageRequest, JobRecord, JobRecords, WholeJob } from "../../runs/job-records.ts";
import { agentReads } from "./agents.ts";
import { artifactReads } from "./artifacts.ts";
import { columnsOf, flag, json } from "./columns.ts";
import type { Database } from "./database.ts";
import { eventReads, newestEvents } from "./events.ts";
import { atMost, type Db, listQuery, query } from "./query.ts";
import type { Schema } from "./schema.generated.ts";

/** Characters of a page of jobs, unless a single one has more: reading them blocks the event loop. */
const PAGE_CHARS_MAX = 512 * 1024;

const columns = columnsOf<Schema["jobs"], Omit<JobRecord, "trace" | "tally">>({
  jobId: "job_id",
  runId: "run_id",
  owner: "owner",
  graphId: "graph_id",
  jobName: "job_name",
  type: "type",
  status: "status",
  submittedAtMs: "submitted_at",
  updatedAtMs: "updated_at",
  startedAtMs: "started_at",
  placementPolicy: "placement_policy",
  recoveryPolicy: "recovery_policy",
  priority: "priority",
  weight: "weight",
  executorCount: "executor_count",
  activeExecutors: "active_executors",
  eventCount: "event_seq",
  partial: flag("partial"),
  bundleFingerprint: "bundle_fingerprint",
  definitionId: "definition_id",
  humanPending: "human_pending",
  failureJson: "failure_json",
  rootAgentIdsJson: "root_agents_json",
  sandboxNamesJson: "sandboxes_json",
  lastEventJson: "last_event_json",
});

const selected = [...columns.names, "trace_id", "parent_span_id", "tally_json"] as const;
const jobColumns = selected.map((name) => `jobs.${name}` as const);

const toJob = (row: Pick<Schema["jobs"], (typeof selected)[number]>): JobRecord => ({
  ...columns.toRecord(row),
  trace: toTrace(row),
  tally: tallyOf(row.tally_json),
});

/** The trace of a runtime job; one from before traces were stored has a trace of its own. */
export function toTrace(row: Pick<Schema["jobs"], "run_id" | "trace_id" | "parent_span_id">): TraceContext {
  if (row.trace_id === "") return ownTrace(row.run_id);
  return { traceId: row.trace_id, parentSpanId: row.parent_span_id };
}

/** The counts of a job; zeros if they are damaged, so that one row does not fail a whole list. */
export function tallyOf(json: string): Tally {
  try {
    return readTally(json);
  } catch {
    return newTally();
  }
}

export const tasks = columnsOf<Schema["tasks"], TaskRecord>({
  taskSeq: "task_seq",
  agentIndex: "agent_index",
  kind: "kind",
  attempt: "attempt",
  failures: "failures",
  state: json("state_json"),
  message: json("message_json"),
});

const jobs = (db: Db) => db.selectFrom("jobs").select(jobColumns);

const byId = query((db, jobId: string) => jobs(db).where("job_id", "=", jobId), toJob);

const byRun = query((db, runId: string) => jobs(db).where("run_id", "=", runId), toJob);

const list = listQuery(
  (db, submittedAtMs: number, jobId: string, limit: number) =>
    jobs(db)
      .where(sql<boolean>`(submitted_at, job_id) < (${submittedAtMs}, ${jobId})`)
      .orderBy("submitted_at", "desc")
      .orderBy("job_id", "desc")
      .limit(atMost(limit)),
  { isOpen: (jobs) => jobs.where("terminal", "=", sql.lit(0)) },
  toJob,
  PAGE_CHARS_MAX,
);

const newestStatuses = query(
  (db, limit: number) =>
    db
      .selectFrom("jobs")
      .select(["job_id", "status"])
      .orderBy("submitted_at", "desc")
      .orderBy("job_id", "desc")
      .limit(atMost(limit)),
  ({ job_id, status }) => ({ jobId: job_id, status: status as JobStatus }),
);

const manifestJson = sql<string>`coalesce(jobs.brief_manifest_json, job_sources.manifest_json)`.as(
  "manifest_json",
);

const withResult = query(
  (db, jobId: string) => jobs(db).select("result_json").where("job_id", "=", jobId),
  (row): WholeJob => ({ job: toJob(row), resultJson: row.result_json }),
);

const manifest = query(
  (db, jobId: string) =>
    db
      .selectFrom("jobs")
      .leftJoin("job_sources", "job_sources.job_id", "jobs.job_id")
      .select(manifestJson)
      .where("jobs.job_id", "=", jobId),
  (row) => row.manifest_json,
);

const texts = query(
  (db, jobId: string) =>
    db
      .selectFrom("jobs")
      .leftJoin("job_sources", "job_sources.job_id", "jobs.job_id")
      .select([manifestJson, "configuration_json", "result_json"])
      .where("jobs.job_id", "=", jobId),
  (row) => ({
    manifestJson: row.manifest_json,
    configurationJson: row.configuration_json,
    resultJson: row.result_json,
  }),
);

const result = query(
  (db, jobId: string) => db.selectFrom("jobs").select("result_json").where("job_id", "=", jobId),
  (row) => row.result_json,
);

const openTasks = query(
  (db, jobId: string) => db.selectFrom("tasks").selectAll().where("job_id", "=", jobId).orderBy("task_seq"),
  tasks.toRecord,
);

const mailboxDepths = query(
  (db, jobId: string) =>
    db
      .selectFrom("mailboxes")
      .select(["agent_index", "depth"])
      .where("job_id", "=", jobId)
      .where("depth", ">", 0),
  ({ agent_index, depth }) => [agent_index, depth] as const,
);

export function sqlJobRecords(database: Database): JobRecords {
  return {
    ...eventReads(database),
    ...agentReads(database),
    ...artifactReads(database),

    page({ includeTerminal, limit, after }: JobPageRequest) {
      const { submittedAtMs, jobId } = after ?? { submittedAtMs: Number.MAX_SAFE_INTEGER, jobId: "" };
      return list(database, { isOpen: !includeTerminal }, submittedAtMs, jobId, limit);
    },
    newestStatuses: (limit) => newestStatuses.all(database, limit),
    find: (jobId) => byId.first(database, jobId),
    findRun: (runId) => byRun.first(database, runId),
    whole: (jobId) => withResult.first(database, jobId),

    async detail(jobId, recentEvents) {
      const found = await withResult.first(database, jobId);
      if (found === null) return null;
      const isOpen = !isTerminal(found.job.status);
      return {
        ...found,
        mailboxDepths: new Map(isOpen ? await mailboxDepths.all(database, jobId) : []),
        tasks: isOpen ? await openTasks.all(database, jobId) : [],
        recentEvents: await newestEvents(database, jobId, recentEvents),
      };
    },

    manifest: (jobId) => manifest.first(database, jobId),
    result: (jobId) => result.first(database, jobId),
    texts: (jobId) => texts.first(database, jobId),
  };
}
