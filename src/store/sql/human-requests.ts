// The table human_requests: what workers asked people. Every filter has an index that ends in what a page is sorted by.

import type { HumanRequest, HumanResponse } from "../../engine/journal.ts";
import type { HumanRequestRecords } from "../../runs/human-answers.ts";
import type { Database } from "./database.ts";
import { atMost, type Db, jobIsThere, listQuery, query, rareStatus } from "./query.ts";
import type { Schema } from "./schema.ts";

export function toHumanRequest(row: Schema["human_requests"]): HumanRequest {
  return {
    requestId: row.request_id,
    eventSeq: row.event_seq,
    agentId: row.agent_id,
    taskSeq: row.task_seq,
    prompt: row.prompt,
    allowedDecisions: JSON.parse(row.allowed_json) as string[],
    defaultAction: row.default_action,
    status: row.status as HumanRequest["status"],
    createdAtMs: row.created_at,
    expiresAtMs: row.expires_at,
    response: row.response_json === null ? null : (JSON.parse(row.response_json) as HumanResponse),
  };
}

const ofJob = (db: Db, jobId: string) =>
  db
    .selectFrom("human_requests")
    .selectAll()
    .where("job_id", "=", jobId)
    .where(({ exists }) => exists(jobIsThere(db, jobId)));

const one = query(
  (db, jobId: string, requestId: string) => ofJob(db, jobId).where("request_id", "=", requestId),
  toHumanRequest,
);

const list = listQuery(
  (db, jobId: string, afterSeq: number, limit: number) =>
    ofJob(db, jobId).where("event_seq", ">", afterSeq).orderBy("event_seq").limit(atMost(limit)),
  { status: (requests, status) => requests.where(rareStatus(status)) },
  toHumanRequest,
);

export function sqlHumanRequestRecords(database: Database): HumanRequestRecords {
  return {
    humanRequests: (jobId, { status, limit, afterSeq }) => list(database, { status }, jobId, afterSeq, limit),
    humanRequest: (jobId, requestId) => one.first(database, jobId, requestId),
  };
}
