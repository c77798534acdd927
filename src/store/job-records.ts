// JobRecords with Kysely: the reads of the edges, and the removal of finished jobs.

import { type ExpressionBuilder, type Selectable, sql } from "kysely";
import type { ArtifactRecord, JobStatus } from "../engine/ports.ts";
import type {
  EventPage,
  Garbage,
  JobDetail,
  JobPageRequest,
  JobRecord,
  JobRecords,
} from "../runs/job-records.ts";
import { hole, limitHole, reusable } from "./reusable-query.ts";
import { toAgentRecord, toTaskRecord } from "./rows.ts";
import { deleteRuntimeRows } from "./runtime-rows.ts";
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
  "definition_id",
  "root_agents_json",
  "sandboxes_json",
  "last_event_json",
] as const;

type JobRow = Pick<Selectable<Schema["jobs"]>, (typeof jobColumns)[number]>;

export class SqlJobRecords implements JobRecords {
  readonly #database: Database;
  readonly #queries: ReturnType<typeof compileQueries>;

  constructor(database: Database) {
    this.#database = database;
    this.#queries = compileQueries(database);
  }

  async page({ includeTerminal, limit, after }: JobPageRequest): Promise<readonly JobRecord[]> {
    const { submittedAtMs, jobId } = after ?? { submittedAtMs: Number.MAX_SAFE_INTEGER, jobId: "" };
    const query = includeTerminal ? this.#queries.page : this.#queries.openPage;
    return (await query(submittedAtMs, jobId, limit)).map(toJob);
  }

  async find(jobId: string): Promise<JobRecord | null> {
    const [row] = await this.#queries.job(jobId);
    return row === undefined ? null : toJob(row);
  }

  async findRun(runId: string): Promise<JobRecord | null> {
    const [row] = await this.#queries.jobOfRun(runId);
    return row === undefined ? null : toJob(row);
  }

  async detail(jobId: string, recentEvents: number): Promise<JobDetail | null> {
    const queries = this.#queries;
    const [row] = await queries.detail(jobId);
    if (row === undefined) return null;
    const isOpen = row.terminal === 0;
    const depths = isOpen ? await queries.mailboxDepths(jobId) : [];
    return {
      job: toJob(row),
      resultJson: row.result_json,
      failureJson: row.failure_json,
      manifestJson: row.manifest_json,
      agents: (await queries.agents(jobId)).map(toAgentRecord),
      mailboxDepths: new Map(depths.map(({ agent_index, depth }) => [agent_index, Number(depth)])),
      tasks: isOpen ? (await queries.tasks(jobId)).map(toTaskRecord) : [],
      recentEvents: await this.#newestEvents(jobId, recentEvents),
    };
  }

  async #newestEvents(jobId: string, count: number): Promise<string[]> {
    const newest: string[] = [];
    let before = Number.MAX_SAFE_INTEGER;
    while (newest.length < count) {
      const segments = await this.#queries.segmentsBefore(jobId, before);
      for (const segment of segments) {
        newest.push(
          ...segment.lines
            .split("\n")
            .reverse()
            .slice(0, count - newest.length),
        );
        before = segment.first_seq;
      }
      if (before <= 1 || segments.length === 0) break;
    }
    return newest;
  }

  async events(jobId: string, afterSeq: number): Promise<EventPage> {
    const wanted = afterSeq + 1;
    const segments = await this.#queries.segmentsFrom(jobId, wanted);
    const lines = segments.flatMap((segment) => segment.lines.split("\n"));
    const firstSeq = segments[0]?.first_seq ?? wanted;
    return { firstSeq: wanted, lines: lines.slice(wanted - firstSeq) };
  }

  async artifacts(runId: string): Promise<readonly ArtifactRecord[]> {
    return (await this.#queries.artifacts(runId)).map(toArtifact);
  }

  async artifactPage(runId: string, limit: number, after: string | null): Promise<readonly ArtifactRecord[]> {
    return (await this.#queries.artifactPage(runId, after ?? "", limit)).map(toArtifact);
  }

  async outputPage(
    runId: string,
    limit: number,
    after: { readonly primary: boolean; readonly artifactId: string } | null,
  ): Promise<readonly ArtifactRecord[]> {
    const { primary, artifactId } = after ?? { primary: true, artifactId: "" };
    return (await this.#queries.outputPage(runId, primary ? 1 : 0, artifactId, limit)).map(toArtifact);
  }

  async artifact(runId: string, artifactId: string): Promise<ArtifactRecord | null> {
    const [row] = await this.#queries.artifact(runId, artifactId);
    return row === undefined ? null : toArtifact(row);
  }

  async deleteTerminal(limit: number): Promise<readonly string[]> {
    return this.#database.transaction(async (db) => {
      const jobs = await db
        .selectFrom("jobs")
        .select(["job_id as jobId", "run_id as runId"])
        .where("terminal", "=", sql.lit(1))
        .where("definition_id", "is", null)
        .orderBy("submitted_at")
        .limit(limit)
        .execute();
      await deleteRuntimeRows(db, jobs);
      return jobs.map((job) => job.jobId);
    });
  }

  async garbage(limit: number, after: Garbage | null): Promise<readonly Garbage[]> {
    const isUsed = (db: ExpressionBuilder<Schema, "garbage">) =>
      db.exists(
        db
          .selectFrom("artifacts")
          .select("artifact_id")
          .whereRef("artifacts.sha256", "=", "garbage.name")
          .limit(1),
      );
    const { kind, name } = after ?? { kind: "", name: "" };
    return this.#database.kysely
      .selectFrom("garbage")
      .select(["kind", "name"])
      .where(sql<boolean>`(kind, name) > (${kind}, ${name})`)
      .where((eb) => eb.not(isUsed(eb)))
      .orderBy("kind")
      .orderBy("name")
      .limit(limit)
      .execute();
  }

  async forgetGarbage({ kind, name }: Garbage): Promise<void> {
    await this.#database.kysely
      .deleteFrom("garbage")
      .where("kind", "=", kind)
      .where("name", "=", name)
      .execute();
  }
}

/** The reads of the request paths; arguments in the order of their holes. */
function compileQueries(database: Database) {
  const db = database.kysely;
  const jobId = hole<string>(0);
  const page = db
    .selectFrom("jobs")
    .select(jobColumns)
    .where(sql<boolean>`(submitted_at, job_id) < (${hole<number>(0)}, ${hole<string>(1)})`)
    .orderBy("submitted_at", "desc")
    .orderBy("job_id", "desc")
    .limit(limitHole(2));
  const detail = db
    .selectFrom("jobs")
    .innerJoin("job_sources", "job_sources.job_id", "jobs.job_id")
    .select(jobColumns.map((name) => `jobs.${name}` as const))
    .select(["terminal", "result_json", "failure_json", "manifest_json"])
    .where("jobs.job_id", "=", jobId);
  const segments = db.selectFrom("events").select(["first_seq", "lines"]).where("job_id", "=", jobId);
  const lastSegmentUpTo = (seq: number) =>
    db
      .selectFrom("events")
      .select((eb) => eb.fn.coalesce(eb.fn.max("first_seq"), eb.lit(0)).as("from_seq"))
      .where("job_id", "=", jobId)
      .where("first_seq", "<=", seq);
  const artifacts = db.selectFrom("artifacts").selectAll().where("run_id", "=", hole<string>(0));
  return {
    page: reusable(database, page),
    openPage: reusable(database, page.where("terminal", "=", sql<number>`0`)),
    job: reusable(database, db.selectFrom("jobs").select(jobColumns).where("job_id", "=", jobId)),
    jobOfRun: reusable(
      database,
      db.selectFrom("jobs").select(jobColumns).where("run_id", "=", hole<string>(0)),
    ),
    detail: reusable(database, detail),
    agents: reusable(
      database,
      db.selectFrom("agents").selectAll().where("job_id", "=", jobId).orderBy("agent_index"),
    ),
    tasks: reusable(
      database,
      db.selectFrom("tasks").selectAll().where("job_id", "=", jobId).orderBy("task_seq"),
    ),
    mailboxDepths: reusable(
      database,
      db
        .selectFrom("messages")
        .select(["agent_index", (eb) => eb.fn.countAll<number | string>().as("depth")])
        .where("job_id", "=", jobId)
        .groupBy("agent_index"),
    ),
    segmentsBefore: reusable(
      database,
      segments
        .where("first_seq", "<", hole<number>(1))
        .orderBy("first_seq", "desc")
        .limit(sql.lit(SEGMENTS_PER_LOOK_BACK)),
    ),
    segmentsFrom: reusable(
      database,
      segments
        .where("first_seq", ">=", lastSegmentUpTo(hole<number>(1)))
        .orderBy("first_seq")
        .limit(sql.lit(SEGMENTS_PER_PAGE)),
    ),
    artifacts: reusable(database, artifacts.orderBy("artifact_id")),
    artifactPage: reusable(
      database,
      artifacts.where("artifact_id", ">", hole<string>(1)).orderBy("artifact_id").limit(limitHole(2)),
    ),
    outputPage: reusable(
      database,
      artifacts
        .where("kind", "=", sql.lit("output"))
        .where((eb) =>
          eb.or([
            eb("is_primary", "<", hole<number>(1)),
            eb.and([eb("is_primary", "=", hole<number>(1)), eb("artifact_id", ">", hole<string>(2))]),
          ]),
        )
        .orderBy("is_primary", "desc")
        .orderBy("artifact_id")
        .limit(limitHole(3)),
    ),
    artifact: reusable(database, artifacts.where("artifact_id", "=", hole<string>(1))),
  };
}

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
