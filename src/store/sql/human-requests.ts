// The table human_requests: requests of workers to people. Every filter has an index that ends in the sort key.

import type { HumanRequest } from "../../engine/journal.ts";
import type { HumanRequestRecords } from "../../runs/human-answers.ts";
import { columnsOf, json } from "./columns.ts";
import type { Database } from "./database.ts";
import { atMost, type Db, jobIsThere, listQuery, query, rareStatus } from "./query.ts";
import type { Schema } from "./schema.generated.ts";

export const humanRequests = columnsOf<Schema["human_requests"], HumanRequest>({
  eventSeq: "event_seq",
  requestId: "request_id",
  agentId: "agent_id",
  taskSeq: "task_seq",
  prompt: "prompt",
  allowedDecisions: json("allowed_json"),
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

export function sqlHumanRequestRecords(database: Database): HumanRequestRecords {
  return {
    humanRequests: (jobId, { status, limit, afterSeq }) => list(database, { status }, jobId, afterSeq, limit),
    humanRequest: (jobId, requestId) => one.first(database, jobId, requestId),
  };
}
