// JobRecords with Kysely: the reads of the edges.

import { type Selectable, sql } from "kysely";
import type { AgentRecord, JobStatus } from "../../engine/journal.ts";
import type { ArtifactRecord } from "../../engine/task-port.ts";
import type {
  EventPage,
  JobDetail,
  JobPageRequest,
  JobRecord,
  JobRecords,
  JobTexts,
  PlaceOfTime,
  WholeJob,
} from "../../runs/job-records.ts";
import type { Portion } from "../../runs/portion.ts";
import { hole, limitHole, reusable, reusableWithin } from "./reusable-query.ts";
import { tallyOf, toAgentRecord, toTaskRecord, toTrace } from "./rows.ts";
import type { Database, Schema } from "./schema.ts";

/** Segments of a page: a worker that prints now and then makes one of each line. */
const SEGMENTS_PER_PAGE = 128;
const SEGMENTS_PER_LOOK_BACK = 4;
/** Characters of a page of segments or jobs, unless one row alone has more: nothing else runs while they are read. */
const PAGE_CHARS_MAX = 512 * 1024;
/** Where an event's line has its time (src/engine/event.ts), counted from 1. */
const TIME_FROM = '{"timestamp":"'.length + 1;
const TIME_CHARS = "2026-11-21T09:30:00.000Z".length;

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
  "trace_id",
  "parent_span_id",
  "tally_json",
  "human_pending",
  "root_agents_json",
  "sandboxes_json",
  "last_event_json",
  "failure_json",
] as const;

type JobRow = Pick<Selectable<Schema["jobs"]>, (typeof jobColumns)[number]>;

export class SqlJobRecords implements JobRecords {
  readonly #queries: ReturnType<typeof compileQueries>;

  constructor(database: Database) {
    this.#queries = compileQueries(database);
  }

  async page({ includeTerminal, limit, after }: JobPageRequest): Promise<Portion<JobRecord>> {
    const { submittedAtMs, jobId } = after ?? { submittedAtMs: Number.MAX_SAFE_INTEGER, jobId: "" };
    const query = includeTerminal ? this.#queries.page : this.#queries.openPage;
    const { rows, isCut } = await query(submittedAtMs, jobId, limit);
    return { rows: rows.map(toJob), isCut };
  }

  async newestStatuses(limit: number): Promise<readonly Pick<JobRecord, "jobId" | "status">[]> {
    const rows = await this.#queries.newestStatuses(limit);
    return rows.map(({ job_id, status }) => ({ jobId: job_id, status: status as JobStatus }));
  }

  async find(jobId: string): Promise<JobRecord | null> {
    const [row] = await this.#queries.job(jobId);
    return row === undefined ? null : toJob(row);
  }

  async findRun(runId: string): Promise<JobRecord | null> {
    const [row] = await this.#queries.jobOfRun(runId);
    return row === undefined ? null : toJob(row);
  }

  async whole(jobId: string): Promise<WholeJob | null> {
    const [row] = await this.#queries.detail(jobId);
    return row === undefined ? null : toWhole(row);
  }

  async detail(jobId: string, recentEvents: number): Promise<JobDetail | null> {
    const queries = this.#queries;
    const [row] = await queries.detail(jobId);
    if (row === undefined) return null;
    const isOpen = row.terminal === 0;
    const depths = isOpen ? await queries.mailboxDepths(jobId) : [];
    return {
      ...toWhole(row),
      mailboxDepths: new Map(depths.map(({ agent_index, depth }) => [agent_index, Number(depth)])),
      tasks: isOpen ? (await queries.tasks(jobId)).map(toTaskRecord) : [],
      recentEvents: await this.#newestEvents(jobId, recentEvents),
    };
  }

  async agents(jobId: string, fromIndex: number, toIndex: number): Promise<readonly AgentRecord[]> {
    return (await this.#queries.agents(jobId, fromIndex, toIndex)).map(toAgentRecord);
  }

  async result(jobId: string): Promise<string | null> {
    const [row] = await this.#queries.result(jobId);
    return row?.result_json ?? null;
  }

  async #newestEvents(jobId: string, count: number): Promise<string[]> {
    const newest: string[] = [];
    let before = Number.MAX_SAFE_INTEGER;
    while (newest.length < count) {
      const { firstSeq, lines } = await this.#before(jobId, before, SEGMENTS_PER_LOOK_BACK);
      if (lines.length === 0) break;
      newest.push(...lines.slice(newest.length - count).reverse());
      before = firstSeq;
    }
    return newest;
  }

  async events(jobId: string, afterSeq: number): Promise<EventPage> {
    const wanted = afterSeq + 1;
    const { rows } = await this.#queries.segmentsFrom(jobId, wanted);
    const lines = rows.flatMap((segment) => segment.lines.split("\n"));
    const firstSeq = rows[0]?.first_seq ?? wanted;
    return { firstSeq: wanted, lines: lines.slice(wanted - firstSeq) };
  }

  eventsBefore(jobId: string, beforeSeq: number): Promise<EventPage> {
    return this.#before(jobId, beforeSeq, SEGMENTS_PER_PAGE);
  }

  async #before(jobId: string, beforeSeq: number, segmentsMax: number): Promise<EventPage> {
    const { rows } = await this.#queries.segmentsBefore(jobId, beforeSeq, segmentsMax);
    const lines = rows.toReversed().flatMap((segment) => segment.lines.split("\n"));
    const firstSeq = rows.at(-1)?.first_seq ?? beforeSeq;
    return { firstSeq, lines: lines.slice(0, beforeSeq - firstSeq) };
  }

  /** Halves what is left of the history, by the first event of the segment in the middle. */
  async placeOfTime(jobId: string, timeMs: number): Promise<PlaceOfTime> {
    let fromSeq = 1;
    let toSeq: number | null = null;
    // Segments that begin at `low` or before it are known to begin earlier than the time.
    let low = 0;
    let middle = Number.MAX_SAFE_INTEGER;
    for (;;) {
      const [segment] = await this.#queries.segmentAt(jobId, middle);
      if (segment === undefined) return { fromSeq, toSeq };
      if (Date.parse(segment.time) >= timeMs) {
        toSeq = segment.first_seq;
      } else {
        fromSeq = segment.first_seq;
        low = middle;
      }
      if (toSeq === null || toSeq - low <= 1) return { fromSeq, toSeq };
      middle = low + Math.floor((toSeq - low) / 2);
    }
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

  async finalArtifact(runId: string): Promise<ArtifactRecord | null> {
    const [final] = await this.#queries.finalArtifact(runId);
    if (final !== undefined) return toArtifact(final);
    const [first, second] = await this.outputPage(runId, 2, null);
    return first !== undefined && (first.primary || second === undefined) ? first : null;
  }

  async texts(jobId: string): Promise<JobTexts | null> {
    const [row] = await this.#queries.texts(jobId);
    if (row === undefined) return null;
    return {
      manifestJson: row.manifest_json,
      configurationJson: row.configuration_json,
      resultJson: row.result_json,
    };
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
    .select(["terminal", "result_json", "manifest_json"])
    .where("jobs.job_id", "=", jobId);
  // What a removed job has left goes in pieces, and nobody may see them: its row went first.
  const history = db
    .selectFrom("events")
    .where("job_id", "=", jobId)
    .where(({ exists, selectFrom }) =>
      exists(selectFrom("jobs as j").select("j.job_id").where("j.job_id", "=", jobId)),
    );
  const segments = history.select(["first_seq", "lines"]);
  const lastSegmentUpTo = (seq: number) =>
    db
      .selectFrom("events")
      .select((eb) => eb.fn.coalesce(eb.fn.max("first_seq"), eb.lit(0)).as("from_seq"))
      .where("job_id", "=", jobId)
      .where("first_seq", "<=", seq);
  const artifacts = db
    .selectFrom("artifacts")
    .selectAll()
    .where("run_id", "=", hole<string>(0))
    .where(({ exists, selectFrom }) =>
      exists(selectFrom("jobs as j").select("j.job_id").whereRef("j.job_id", "=", "artifacts.job_id")),
    );
  return {
    page: reusableWithin(database, PAGE_CHARS_MAX, page),
    openPage: reusableWithin(database, PAGE_CHARS_MAX, page.where("terminal", "=", sql<number>`0`)),
    newestStatuses: reusable(
      database,
      db
        .selectFrom("jobs")
        .select(["job_id", "status"])
        .orderBy("submitted_at", "desc")
        .orderBy("job_id", "desc")
        .limit(limitHole(0)),
    ),
    job: reusable(database, db.selectFrom("jobs").select(jobColumns).where("job_id", "=", jobId)),
    jobOfRun: reusable(
      database,
      db.selectFrom("jobs").select(jobColumns).where("run_id", "=", hole<string>(0)),
    ),
    detail: reusable(database, detail),
    result: reusable(database, db.selectFrom("jobs").select("result_json").where("job_id", "=", jobId)),
    agents: reusable(
      database,
      db
        .selectFrom("agents")
        .selectAll()
        .where("job_id", "=", jobId)
        .where("agent_index", ">=", hole<number>(1))
        .where("agent_index", "<", hole<number>(2))
        .orderBy("agent_index"),
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
    segmentAt: reusable(
      database,
      history
        .select([
          "first_seq",
          sql<string>`substr(lines, ${sql.lit(TIME_FROM)}, ${sql.lit(TIME_CHARS)})`.as("time"),
        ])
        .where("first_seq", "<=", hole<number>(1))
        .orderBy("first_seq", "desc")
        .limit(sql.lit(1)),
    ),
    segmentsBefore: reusableWithin(
      database,
      PAGE_CHARS_MAX,
      segments.where("first_seq", "<", hole<number>(1)).orderBy("first_seq", "desc").limit(limitHole(2)),
    ),
    segmentsFrom: reusableWithin(
      database,
      PAGE_CHARS_MAX,
      segments
        .where("first_seq", ">=", lastSegmentUpTo(hole<number>(1)))
        .orderBy("first_seq")
        .limit(sql.lit(SEGMENTS_PER_PAGE)),
    ),
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
    // The index is named: without it SQLite walks through all files of the run.
    finalArtifact: reusable(database, {
      compile: () =>
        sql<Selectable<Schema["artifacts"]>>`
          SELECT * FROM artifacts INDEXED BY artifacts_final
          WHERE run_id = ${hole<string>(0)} AND (name GLOB 'final_artifact.*' OR name GLOB '*/final_artifact.*')
          ORDER BY artifact_id DESC LIMIT 1`.compile(db),
    }),
    texts: reusable(
      database,
      db
        .selectFrom("jobs")
        .innerJoin("job_sources", "job_sources.job_id", "jobs.job_id")
        .select(["manifest_json", "configuration_json", "result_json"])
        .where("jobs.job_id", "=", jobId),
    ),
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
    trace: toTrace(row),
    tally: tallyOf(row.tally_json),
    humanPending: row.human_pending,
    failureJson: row.failure_json,
    rootAgentIdsJson: row.root_agents_json,
    sandboxNamesJson: row.sandboxes_json,
    lastEventJson: row.last_event_json,
  };
}

function toWhole(
  row: JobRow & { readonly result_json: string | null; readonly manifest_json: string },
): WholeJob {
  return { job: toJob(row), resultJson: row.result_json, manifestJson: row.manifest_json };
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
