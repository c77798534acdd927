// AttentionRecords with Kysely. Every filter has an index that ends in what the page is sorted by.

import { sql } from "kysely";
import type { DeadLetterReason, HumanRequest } from "../../engine/journal.ts";
import type {
  AttentionRecords,
  DeadLetter,
  DeadLetterPage,
  HumanRequestPage,
} from "../../runs/attention-records.ts";
import type { Portion } from "../../runs/portion.ts";
import { hole, limitHole, reusable, reusableWithin } from "./reusable-query.ts";
import { toHumanRequest } from "./rows.ts";
import type { Database, Schema } from "./schema.ts";

/** Characters of the texts in one page of a list. */
const PAGE_CHARS_MAX = 8 * 1024 * 1024;
/** The same for letters that are parsed and sent again at once, while everything else waits. */
const WORK_CHARS_MAX = 256 * 1024;
/** Sorts behind every id. */
const BEHIND_ALL_IDS = "\u{10ffff}";

export class SqlAttentionRecords implements AttentionRecords {
  readonly #queries: ReturnType<typeof compileQueries>;

  constructor(database: Database) {
    this.#queries = compileQueries(database);
  }

  async humanRequests(
    jobId: string,
    { status, limit, afterSeq }: HumanRequestPage,
  ): Promise<Portion<HumanRequest>> {
    const { requests, requestsOfStatus } = this.#queries;
    const found =
      status === null
        ? await requests(jobId, afterSeq, limit)
        : await requestsOfStatus(jobId, afterSeq, limit, status);
    return { rows: found.rows.map(toHumanRequest), isCut: found.isCut };
  }

  async humanRequest(jobId: string, requestId: string): Promise<HumanRequest | null> {
    const [row] = await this.#queries.request(jobId, requestId);
    return row === undefined ? null : toHumanRequest(row);
  }

  async deadLetters(jobId: string, { status, limit, before }: DeadLetterPage): Promise<Portion<DeadLetter>> {
    const { letters, lettersOfStatus } = this.#queries;
    const from = before ?? BEHIND_ALL_IDS;
    const found =
      status === null ? await letters(jobId, from, limit) : await lettersOfStatus(jobId, from, limit, status);
    return { rows: found.rows.map(toDeadLetter), isCut: found.isCut };
  }

  async deadLetter(jobId: string, deadLetterId: string): Promise<DeadLetter | null> {
    const [row] = await this.#queries.letter(jobId, deadLetterId);
    return row === undefined ? null : toDeadLetter(row);
  }

  async newestOpenLetter(jobId: string): Promise<string | null> {
    const [row] = await this.#queries.newestOpenLetter(jobId);
    return row?.dead_letter_id ?? null;
  }

  async openLetters(
    jobId: string,
    { after, through, limit }: Parameters<AttentionRecords["openLetters"]>[1],
  ): Promise<readonly DeadLetter[]> {
    const { rows } = await this.#queries.openLetters(jobId, after, through, limit);
    return rows.map(toDeadLetter);
  }
}

/** Not said to be rare, a status would be looked for among everything that the job has. */
const hasStatus = (status: string) => sql<boolean>`unlikely(status = ${status})`;

function compileQueries(database: Database) {
  const db = database.kysely;
  const jobId = hole<string>(0);
  // What a removed job has left goes in pieces, and nobody may see them: its row went first.
  const isThere = db.selectFrom("jobs as j").select("j.job_id").where("j.job_id", "=", jobId);
  const ofJob = db
    .selectFrom("human_requests")
    .selectAll()
    .where("job_id", "=", jobId)
    .where(({ exists }) => exists(isThere));
  const requests = ofJob.where("event_seq", ">", hole<number>(1)).orderBy("event_seq").limit(limitHole(2));
  const lettersOfJob = db
    .selectFrom("dead_letters")
    .where("job_id", "=", jobId)
    .where(({ exists }) => exists(isThere));
  const letters = lettersOfJob
    .selectAll()
    .where("dead_letter_id", "<", hole<string>(1))
    .orderBy("dead_letter_id", "desc")
    .limit(limitHole(2));
  const open = lettersOfJob.where(hasStatus("open"));
  return {
    requests: reusableWithin(database, PAGE_CHARS_MAX, requests),
    requestsOfStatus: reusableWithin(database, PAGE_CHARS_MAX, requests.where(hasStatus(hole<string>(3)))),
    request: reusable(database, ofJob.where("request_id", "=", hole<string>(1))),
    letters: reusableWithin(database, PAGE_CHARS_MAX, letters),
    lettersOfStatus: reusableWithin(database, PAGE_CHARS_MAX, letters.where(hasStatus(hole<string>(3)))),
    letter: reusable(database, lettersOfJob.selectAll().where("dead_letter_id", "=", hole<string>(1))),
    newestOpenLetter: reusable(
      database,
      open.select("dead_letter_id").orderBy("dead_letter_id", "desc").limit(sql.lit(1)),
    ),
    openLetters: reusableWithin(
      database,
      WORK_CHARS_MAX,
      open
        .selectAll()
        .where("dead_letter_id", ">", hole<string>(1))
        .where("dead_letter_id", "<=", hole<string>(2))
        .orderBy("dead_letter_id")
        .limit(limitHole(3)),
    ),
  };
}

function toDeadLetter(row: Schema["dead_letters"]): DeadLetter {
  return {
    deadLetterId: row.dead_letter_id,
    agentId: row.agent_id,
    reason: row.reason as DeadLetterReason,
    attempts: row.attempts,
    status: row.status,
    createdAtMs: row.created_at,
    retriedAtMs: row.retried_at,
    messageJson: row.message_json,
  };
}
