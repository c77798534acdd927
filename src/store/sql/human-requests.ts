// The table human_requests: requests of workers to people. Every filter has an index that ends in the sort key.

import { sql } from "kysely";
import type { HumanRequest } from "../../engine/journal.ts";
import type { HumanRequestRecords, RequestOfRun } from "../../runs/human-answers.ts";
import { columnsOf, json } from "./columns.ts";
import type { Database } from "./database.ts";
import {
  atMost,
  type Db,
  definitionOfRun,
  jobIsThere,
  jobOfRun,
  listQuery,
  query,
  rareStatus,
} from "./query.ts";
import type { Schema } from "./schema.generated.ts";

export const humanRequests = columnsOf<Schema["human_requests"], HumanRequest>({
  eventSeq: "event_seq",
  requestId: "request_id",
  agentId: "agent_id",
  taskSeq: "task_seq",
  prompt: "prompt",
  allowedDecisions: json("allowed_json"),
  dataSchemaJson: "data_schema_json",
  defaultAction: "default_action",
  status: "status",
  createdAtMs: "created_at",
  expiresAtMs: "expires_at",
  response: json("response_json"),
});

const ofJob = (db: Db, jobId: string) =>
  db
    .selectFrom("human_requests")
    .selectAll()
    .where("job_id", "=", jobId)
    .where(({ exists }) => exists(jobIsThere(db, jobId)));

const one = query(
  (db, jobId: string, requestId: string) => ofJob(db, jobId).where("request_id", "=", requestId),
  humanRequests.toRecord,
);

const list = listQuery(
  (db, jobId: string, afterSeq: number, limit: number) =>
    ofJob(db, jobId).where("event_seq", ">", afterSeq).orderBy("event_seq").limit(atMost(limit)),
  { status: (requests, status) => requests.where(rareStatus(status)) },
  humanRequests.toRecord,
);

/** The page of a list over all runs, oldest first. */
const pageOfRuns = (
  db: Db,
  asked: ReturnType<typeof ofAskingJobs>,
  [createdAtMs, runId, eventSeq, limit]: readonly [number, string, number, number],
) =>
  asked
    .innerJoin("runs as r", "r.runtime_job_id", "j.job_id")
    .selectAll("h")
    .select("r.run_id")
    .where(({ exists }) => exists(definitionOfRun(db)))
    .where(({ eb, refTuple, tuple }) =>
      eb(refTuple("h.created_at", "r.run_id", "h.event_seq"), ">", tuple(createdAtMs, runId, eventSeq)),
    )
    .orderBy("h.created_at")
    .orderBy("r.run_id")
    .orderBy("h.event_seq")
    .limit(atMost(limit));

/** Found from the jobs, which are few: a cross join keeps SQLite to this order. */
const ofAskingJobs = (db: Db) =>
  db
    .selectFrom("jobs as j")
    .crossJoin("human_requests as h")
    .whereRef("h.job_id", "=", "j.job_id")
    .where("j.terminal", "=", sql.lit(0))
    .where("j.human_pending", ">", sql.lit(0))
    .where("h.status", "=", sql.lit("pending"));

const filtersOfRuns = {
  runId: (list: ReturnType<typeof pageOfRuns>, runId: string) => list.where("h.job_id", "=", jobOfRun(runId)),
  jobId: (list: ReturnType<typeof pageOfRuns>, jobId: string) => list.where("r.job_id", "=", jobId),
};

type RowOfRuns = Parameters<typeof humanRequests.toRecord>[0] & { readonly run_id: string };
const toRequestOfRun = (row: RowOfRuns): RequestOfRun => ({
  runId: row.run_id,
  request: humanRequests.toRecord(row),
});

const pendingOfRuns = listQuery(
  (db, createdAtMs: number, runId: string, eventSeq: number, limit: number) =>
    pageOfRuns(db, ofAskingJobs(db), [createdAtMs, runId, eventSeq, limit]),
  filtersOfRuns,
  toRequestOfRun,
);

const closedOfRuns = listQuery(
  (db, createdAtMs: number, runId: string, eventSeq: number, limit: number, status: string) => {
    const closed = db
      .selectFrom("human_requests as h")
      .innerJoin("jobs as j", "j.job_id", "h.job_id")
      .where("h.status", "=", status)
      // The condition of the index, and what it begins with beside the whole sort key.
      .where("h.status", "<>", sql.lit("pending"))
      .where("h.created_at", ">=", createdAtMs);
    return pageOfRuns(db, closed, [createdAtMs, runId, eventSeq, limit]);
  },
  filtersOfRuns,
  toRequestOfRun,
);

export function sqlHumanRequestRecords(database: Database): HumanRequestRecords {
  return {
    humanRequests: (jobId, { status, limit, afterSeq }) => list(database, { status }, jobId, afterSeq, limit),
    humanRequest: (jobId, requestId) => one.first(database, jobId, requestId),
    requestsOfRuns({ status, runId, jobId, limit, after }) {
      const { createdAtMs = 0, runId: lastRunId = "", eventSeq = 0 } = after ?? {};
      const filters = { runId, jobId };
      return status === "pending"
        ? pendingOfRuns(database, filters, createdAtMs, lastRunId, eventSeq, limit)
        : closedOfRuns(database, filters, createdAtMs, lastRunId, eventSeq, limit, status);
    },
  };
}
