// The tables jobs, job_sources, agents, messages and tasks: what the edges read of the runtime's jobs. The journal writes
// them. Its histories are in events.ts, their files in artifacts.ts.

import { type Selectable, sql } from "kysely";
import type { AgentRecord, JobStatus, TaskRecord } from "../../engine/journal.ts";
import { newTally, readTally, type Tally } from "../../engine/tally.ts";
import type { Lease } from "../../engine/task-port.ts";
import { ownTrace, type TraceContext } from "../../engine/trace.ts";
import type { JobPageRequest, JobRecord, JobRecords, WholeJob } from "../../runs/job-records.ts";
import { artifactReads } from "./artifacts.ts";
import type { Database } from "./database.ts";
import { eventReads, newestEvents } from "./events.ts";
import { atMost, type Db, listQuery, query } from "./query.ts";
import type { Schema } from "./schema.ts";

/** Characters of a page of jobs, unless one alone has more: nothing else runs while they are read. */
const PAGE_CHARS_MAX = 512 * 1024;

const jobColumns = [
  "jobs.job_id",
  "run_id",
  "graph_id",
  "job_name",
  "type",
  "status",
  "submitted_at",
  "updated_at",
  "started_at",
  "placement_policy",
  "recovery_policy",
  "executor_count",
  "active_executors",
  "event_seq",
  "partial",
  "bundle_fingerprint",
  "definition_id",
  "trace_id",
  "parent_span_id",
  "tally_json",
  "human_pending",
  "root_agents_json",
  "sandboxes_json",
  "last_event_json",
  "failure_json",
] as const;

type JobRow = Pick<
  Selectable<Schema["jobs"]>,
  "job_id" | Exclude<(typeof jobColumns)[number], "jobs.job_id">
>;

function toJob(row: JobRow): JobRecord {
  return {
    jobId: row.job_id,
    runId: row.run_id,
    graphId: row.graph_id,
    jobName: row.job_name,
    type: row.type,
    status: row.status as JobStatus,
    submittedAtMs: row.submitted_at,
    updatedAtMs: row.updated_at,
    startedAtMs: row.started_at,
    placementPolicy: row.placement_policy,
    recoveryPolicy: row.recovery_policy,
    executorCount: row.executor_count,
    activeExecutors: row.active_executors,
    eventCount: row.event_seq,
    partial: row.partial === 1,
    bundleFingerprint: row.bundle_fingerprint,
    definitionId: row.definition_id,
    trace: toTrace(row),
    tally: tallyOf(row.tally_json),
    humanPending: row.human_pending,
    failureJson: row.failure_json,
    rootAgentIdsJson: row.root_agents_json,
    sandboxNamesJson: row.sandboxes_json,
    lastEventJson: row.last_event_json,
  };
}

/** The trace of a runtime job; one from before traces were kept has its own. */
export function toTrace(row: Pick<Schema["jobs"], "run_id" | "trace_id" | "parent_span_id">): TraceContext {
  if (row.trace_id === "") return ownTrace(row.run_id);
  return { traceId: row.trace_id, parentSpanId: row.parent_span_id };
}

/** The counts of a job; zeros where they are damaged, so that one row does not fail a whole list. */
export function tallyOf(json: string): Tally {
  try {
    return readTally(json);
  } catch {
    return newTally();
  }
}

export function toAgentRecord(row: Schema["agents"]): AgentRecord {
  return {
    agentId: row.agent_id,
    index: row.agent_index,
    status: row.status as AgentRecord["status"],
    done: row.done === 1,
    processedMessages: row.processed_messages,
    stateJson: row.state_json,
    lastError: row.last_error,
    unroutedJson: row.unrouted_json,
    lease: row.lease_json === null ? null : (JSON.parse(row.lease_json) as Lease),
  };
}

export function toTaskRecord(row: Schema["tasks"]): TaskRecord {
  return {
    taskSeq: row.task_seq,
    agentIndex: row.agent_index,
    kind: row.kind as TaskRecord["kind"],
    attempt: row.attempt,
    failures: row.failures,
    state: JSON.parse(row.state_json) as TaskRecord["state"],
    message: JSON.parse(row.message_json) as TaskRecord["message"],
  };
}

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

const withSources = query(
  (db, jobId: string) =>
    db
      .selectFrom("jobs")
      .innerJoin("job_sources", "job_sources.job_id", "jobs.job_id")
      .select(jobColumns)
      .select(["terminal", "result_json", "manifest_json"])
      .where("jobs.job_id", "=", jobId),
  (row) => ({
    isOpen: row.terminal === 0,
    whole: { job: toJob(row), resultJson: row.result_json, manifestJson: row.manifest_json } as WholeJob,
  }),
);

const texts = query(
  (db, jobId: string) =>
    db
      .selectFrom("jobs")
      .innerJoin("job_sources", "job_sources.job_id", "jobs.job_id")
      .select(["manifest_json", "configuration_json", "result_json"])
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

const agents = query(
  (db, jobId: string, fromIndex: number, toIndex: number) =>
    db
      .selectFrom("agents")
      .selectAll()
      .where("job_id", "=", jobId)
      .where("agent_index", ">=", fromIndex)
      .where("agent_index", "<", toIndex)
      .orderBy("agent_index"),
  toAgentRecord,
);

const tasks = query(
  (db, jobId: string) => db.selectFrom("tasks").selectAll().where("job_id", "=", jobId).orderBy("task_seq"),
  toTaskRecord,
);

const mailboxDepths = query(
  (db, jobId: string) =>
    db
      .selectFrom("messages")
      .select(["agent_index", ({ fn }) => fn.countAll<number | string>().as("depth")])
      .where("job_id", "=", jobId)
      .groupBy("agent_index"),
  ({ agent_index, depth }) => [agent_index, Number(depth)] as const,
);

export function sqlJobRecords(database: Database): JobRecords {
  return {
    ...eventReads(database),
    ...artifactReads(database),

    page({ includeTerminal, limit, after }: JobPageRequest) {
      const { submittedAtMs, jobId } = after ?? { submittedAtMs: Number.MAX_SAFE_INTEGER, jobId: "" };
      return list(database, { isOpen: !includeTerminal }, submittedAtMs, jobId, limit);
    },
    newestStatuses: (limit) => newestStatuses.all(database, limit),
    find: (jobId) => byId.first(database, jobId),
    findRun: (runId) => byRun.first(database, runId),
    whole: async (jobId) => (await withSources.first(database, jobId))?.whole ?? null,

    async detail(jobId, recentEvents) {
      const found = await withSources.first(database, jobId);
      if (found === null) return null;
      return {
        ...found.whole,
        mailboxDepths: new Map(found.isOpen ? await mailboxDepths.all(database, jobId) : []),
        tasks: found.isOpen ? await tasks.all(database, jobId) : [],
        recentEvents: await newestEvents(database, jobId, recentEvents),
      };
    },

    agents: (jobId, fromIndex, toIndex) => agents.all(database, jobId, fromIndex, toIndex),
    result: (jobId) => result.first(database, jobId),
    texts: (jobId) => texts.first(database, jobId),
  };
}
