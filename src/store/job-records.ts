// JobRecords with Kysely: the reads of the edges, and the removal of finished jobs.

import { type Kysely, type Selectable, sql } from "kysely";
import type { AgentRecord, ArtifactRecord, JobStatus, Lease, TaskRecord } from "../engine/ports.ts";
import type {
  DeletedJobs,
  EventPage,
  JobDetail,
  JobPageRequest,
  JobRecord,
  JobRecords,
} from "../runs/job-records.ts";
import type { Database, Schema } from "./schema.ts";

const SEGMENTS_PER_PAGE = 16;
const SEGMENTS_PER_LOOK_BACK = 4;

const jobColumns = [
  "job_id",
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
  "root_agents_json",
  "sandboxes_json",
  "last_event_json",
] as const;

type JobRow = Pick<Selectable<Schema["jobs"]>, (typeof jobColumns)[number]>;

export class SqlJobRecords implements JobRecords {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  get #db(): Kysely<Schema> {
    return this.#database.kysely;
  }

  async page({ includeTerminal, limit, after }: JobPageRequest): Promise<readonly JobRecord[]> {
    let query = this.#db.selectFrom("jobs").select(jobColumns);
    if (!includeTerminal) query = query.where("terminal", "=", sql<number>`0`);
    if (after !== null) {
      query = query.where(sql<boolean>`(submitted_at, job_id) < (${after.submittedAtMs}, ${after.jobId})`);
    }
    const rows = await query.orderBy("submitted_at", "desc").orderBy("job_id", "desc").limit(limit).execute();
    return rows.map(toJob);
  }

  async find(jobId: string): Promise<JobRecord | null> {
    const row = await this.#db
      .selectFrom("jobs")
      .select(jobColumns)
      .where("job_id", "=", jobId)
      .executeTakeFirst();
    return row === undefined ? null : toJob(row);
  }

  async findRun(runId: string): Promise<JobRecord | null> {
    const row = await this.#db
      .selectFrom("jobs")
      .select(jobColumns)
      .where("run_id", "=", runId)
      .executeTakeFirst();
    return row === undefined ? null : toJob(row);
  }

  async detail(jobId: string, recentEvents: number): Promise<JobDetail | null> {
    const row = await this.#db
      .selectFrom("jobs")
      .innerJoin("job_sources", "job_sources.job_id", "jobs.job_id")
      .select([...jobColumns.map((name) => `jobs.${name}` as const), "result_json", "failure_json", "manifest_json"])
      .select("terminal")
      .where("jobs.job_id", "=", jobId)
      .executeTakeFirst();
    if (row === undefined) return null;
    const isOpen = row.terminal === 0;
    return {
      job: toJob(row),
      resultJson: row.result_json,
      failureJson: row.failure_json,
      manifestJson: row.manifest_json,
      agents: await this.#agents(jobId),
      mailboxDepths: isOpen ? await this.#mailboxDepths(jobId) : new Map(),
      tasks: isOpen ? await this.#tasks(jobId) : [],
      recentEvents: await this.#newestEvents(jobId, recentEvents),
    };
  }

  async #agents(jobId: string): Promise<AgentRecord[]> {
    const rows = await this.#db
      .selectFrom("agents")
      .selectAll()
      .where("job_id", "=", jobId)
      .orderBy("agent_index")
      .execute();
    return rows.map((row) => ({
      agentId: row.agent_id,
      index: row.agent_index,
      status: row.status as AgentRecord["status"],
      done: row.done === 1,
      processedMessages: row.processed_messages,
      stateJson: row.state_json,
      lastError: row.last_error,
      unroutedJson: row.unrouted_json,
      lease: row.lease_json === null ? null : (JSON.parse(row.lease_json) as Lease),
    }));
  }

  async #mailboxDepths(jobId: string): Promise<Map<number, number>> {
    const rows = await this.#db
      .selectFrom("messages")
      .select(["agent_index", (eb) => eb.fn.countAll<number | string>().as("depth")])
      .where("job_id", "=", jobId)
      .groupBy("agent_index")
      .execute();
    return new Map(rows.map((row) => [row.agent_index, Number(row.depth)]));
  }

  async #tasks(jobId: string): Promise<TaskRecord[]> {
    const rows = await this.#db.selectFrom("tasks").selectAll().where("job_id", "=", jobId).orderBy("task_seq").execute();
    return rows.map((row) => ({
      taskSeq: row.task_seq,
      agentIndex: row.agent_index,
      kind: row.kind as TaskRecord["kind"],
      attempt: row.attempt,
      failures: row.failures,
      state: JSON.parse(row.state_json) as TaskRecord["state"],
      message: JSON.parse(row.message_json) as TaskRecord["message"],
    }));
  }

  async #newestEvents(jobId: string, count: number): Promise<string[]> {
    const newest: string[] = [];
    let before = Number.MAX_SAFE_INTEGER;
    while (newest.length < count) {
      const segments = await this.#db
        .selectFrom("events")
        .select(["first_seq", "lines"])
        .where("job_id", "=", jobId)
        .where("first_seq", "<", before)
        .orderBy("first_seq", "desc")
        .limit(SEGMENTS_PER_LOOK_BACK)
        .execute();
      if (segments.length === 0) break;
      for (const segment of segments) {
        newest.push(...segment.lines.split("\n").reverse().slice(0, count - newest.length));
        before = segment.first_seq;
      }
    }
    return newest;
  }

  async events(jobId: string, afterSeq: number): Promise<EventPage> {
    const wanted = afterSeq + 1;
    const segments = await this.#db
      .selectFrom("events")
      .select(["first_seq", "lines"])
      .where("job_id", "=", jobId)
      .where("first_seq", ">=", (eb) =>
        eb
          .selectFrom("events")
          .select((inner) => inner.fn.coalesce(inner.fn.max("first_seq"), inner.lit(0)).as("from_seq"))
          .where("job_id", "=", jobId)
          .where("first_seq", "<=", wanted),
      )
      .orderBy("first_seq")
      .limit(SEGMENTS_PER_PAGE)
      .execute();
    const lines = segments.flatMap((segment) => segment.lines.split("\n"));
    const firstSeq = segments[0]?.first_seq ?? wanted;
    return { firstSeq: wanted, lines: lines.slice(wanted - firstSeq) };
  }

  async artifacts(runId: string): Promise<readonly ArtifactRecord[]> {
    const rows = await this.#db
      .selectFrom("artifacts")
      .selectAll()
      .where("run_id", "=", runId)
      .orderBy("artifact_id")
      .execute();
    return rows.map(toArtifact);
  }

  async artifact(runId: string, artifactId: string): Promise<ArtifactRecord | null> {
    const row = await this.#db
      .selectFrom("artifacts")
      .selectAll()
      .where("run_id", "=", runId)
      .where("artifact_id", "=", artifactId)
      .executeTakeFirst();
    return row === undefined ? null : toArtifact(row);
  }

  async deleteTerminal(limit: number): Promise<DeletedJobs> {
    return this.#database.transaction(async (db) => {
      const jobs = await db
        .selectFrom("jobs")
        .select(["job_id", "run_id"])
        .where("terminal", "=", 1)
        .orderBy("submitted_at")
        .limit(limit)
        .execute();
      const ids = jobs.map((job) => job.job_id);
      if (ids.length === 0) return { jobs: [], orphanedSha256: [] };
      const contents = await db
        .selectFrom("artifacts")
        .select("sha256")
        .distinct()
        .where("job_id", "in", ids)
        .execute();
      for (const table of tablesOfAJob) await db.deleteFrom(table).where("job_id", "in", ids).execute();
      const orphanedSha256: string[] = [];
      for (const { sha256 } of contents) {
        const used = await db.selectFrom("artifacts").select("sha256").where("sha256", "=", sha256).executeTakeFirst();
        if (used === undefined) orphanedSha256.push(sha256);
      }
      return { jobs: jobs.map((job) => ({ jobId: job.job_id, runId: job.run_id })), orphanedSha256 };
    });
  }
}

const tablesOfAJob = [
  "artifacts",
  "dead_letters",
  "tasks",
  "items",
  "messages",
  "agents",
  "events",
  "job_sources",
  "jobs",
] as const;

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
    rootAgentIdsJson: row.root_agents_json,
    sandboxNamesJson: row.sandboxes_json,
    lastEventJson: row.last_event_json,
  };
}

function toArtifact(row: Selectable<Schema["artifacts"]>): ArtifactRecord {
  return {
    artifactId: row.artifact_id,
    agentId: row.agent_id,
    name: row.name,
    kind: row.kind as ArtifactRecord["kind"],
    title: row.title,
    primary: row.is_primary === 1,
    size: row.size,
    sha256: row.sha256,
    contentType: row.content_type,
    createdAtMs: row.created_at,
  };
}
