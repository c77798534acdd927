// Operations with Kysely: reads of what is committed, and writes inside a gateway transaction.

import { type Selectable, sql, type Transaction } from "kysely";
import type {
  Operation,
  OperationError,
  OperationKind,
  OperationPage,
  OperationRecords,
  OperationStatus,
  OperationStep,
  OperationWrites,
} from "../../operations/records.ts";
import type { EventPage } from "../../runs/job-records.ts";
import type { Portion } from "../../runs/portion.ts";
import { hole, limitHole, reusable, reusableWithin } from "./reusable-query.ts";
import type { Database, Schema } from "./schema.ts";

/** Sorts behind every id. */
const BEHIND_ALL_IDS = "\u{10ffff}";
/** Characters of the texts in one page. */
const PAGE_CHARS_MAX = 8 * 1024 * 1024;

export class SqlOperationRecords implements OperationRecords {
  readonly #database: Database;
  readonly #reads: ReturnType<typeof compileReads>;

  constructor(database: Database) {
    this.#database = database;
    this.#reads = compileReads(database);
  }

  async operation(operationId: string): Promise<Operation | null> {
    const [row] = await this.#reads.one(operationId);
    return row === undefined ? null : toOperation(row);
  }

  async operations({ target, status, limit, after }: OperationPage): Promise<Portion<Operation>> {
    const { page, pageOfTarget, pageOfStatus, pageOfBoth } = this.#reads;
    const from = after ?? BEHIND_ALL_IDS;
    const rows =
      target === null
        ? status === null
          ? page(from, limit)
          : pageOfStatus(from, limit, status)
        : status === null
          ? pageOfTarget(from, limit, target)
          : pageOfBoth(from, limit, target, status);
    const portion = await rows;
    return { rows: portion.rows.map(toOperation), isCut: portion.isCut };
  }

  async openOperations(): Promise<readonly Operation[]> {
    return (await this.#reads.open()).map(toOperation);
  }

  async operationEvents(operationId: string, afterSeq: number, limit: number): Promise<EventPage> {
    const rows = await this.#reads.events(operationId, afterSeq, limit);
    return { firstSeq: afterSeq + 1, lines: rows.map(({ line }) => line) };
  }

  forgetOperations(beforeMs: number, limit: number): Promise<number> {
    return this.#database.transaction(async (db) => {
      const old = await db
        .selectFrom("operations")
        .select("operation_id")
        .where("terminal", "=", sql.lit(1))
        .where("finished_at", "<", beforeMs)
        .orderBy("finished_at")
        .limit(limit)
        .execute();
      if (old.length === 0) return 0;
      const ids = old.map((row) => row.operation_id);
      await db.deleteFrom("operation_events").where("operation_id", "in", ids).execute();
      await db.deleteFrom("operations").where("operation_id", "in", ids).execute();
      return ids.length;
    });
  }
}

/** Arguments in the order of their holes. */
function compileReads(database: Database) {
  const all = database.kysely.selectFrom("operations").selectAll();
  const page = all
    .where("operation_id", "<", hole<string>(0))
    .orderBy("operation_id", "desc")
    .limit(limitHole(1));
  const pageOfTarget = page.where("target", "=", hole<string>(2));
  const events = database.kysely
    .selectFrom("operation_events")
    .select("line")
    .where("operation_id", "=", hole<string>(0))
    .where("seq", ">", hole<number>(1))
    .orderBy("seq")
    .limit(limitHole(2));
  const large = (query: typeof page) => reusableWithin(database, PAGE_CHARS_MAX, query);
  return {
    one: reusable(database, all.where("operation_id", "=", hole<string>(0))),
    page: large(page),
    pageOfTarget: large(pageOfTarget),
    pageOfStatus: large(page.where("status", "=", hole<string>(2))),
    pageOfBoth: large(pageOfTarget.where("status", "=", hole<string>(3))),
    open: reusable(database, all.where("terminal", "=", sql.lit(0)).orderBy("operation_id")),
    events: reusable(database, events),
  };
}

export class SqlOperationWrites implements OperationWrites {
  readonly #db: Transaction<Schema>;

  constructor(db: Transaction<Schema>) {
    this.#db = db;
  }

  async open(target: string): Promise<Operation | null> {
    const row = await this.#db
      .selectFrom("operations")
      .selectAll()
      .where("terminal", "=", sql.lit(0))
      .where("target", "=", target)
      .executeTakeFirst();
    return row === undefined ? null : toOperation(row);
  }

  async insert(operation: Operation, eventLine: string): Promise<void> {
    await this.#db.insertInto("operations").values(toRow(operation)).execute();
    await this.#insertEvent(operation, eventLine);
  }

  async save(operation: Operation, eventLine: string | null): Promise<void> {
    const { operation_id, ...changing } = toRow(operation);
    // O2: what has ended is not changed any more.
    const { numUpdatedRows } = await this.#db
      .updateTable("operations")
      .set(changing)
      .where("operation_id", "=", operation_id)
      .where("terminal", "=", 0)
      .executeTakeFirst();
    if (numUpdatedRows !== 1n) throw new Error(`Operation ${operation_id} has ended or is gone.`);
    if (eventLine !== null) await this.#insertEvent(operation, eventLine);
  }

  async #insertEvent({ operationId, eventSeq }: Operation, line: string): Promise<void> {
    await this.#db
      .insertInto("operation_events")
      .values({ operation_id: operationId, seq: eventSeq, line })
      .execute();
  }
}

type Row = Selectable<Schema["operations"]>;

function toRow(operation: Operation): Row {
  const { status, error, result } = operation;
  return {
    operation_id: operation.operationId,
    kind: operation.kind,
    target: operation.target,
    status,
    terminal: status === "completed" || status === "failed" ? 1 : 0,
    percent: operation.percent,
    label: operation.label,
    step: operation.step,
    event_seq: operation.eventSeq,
    created_at: operation.createdAtMs,
    updated_at: operation.updatedAtMs,
    finished_at: operation.finishedAtMs,
    steps_json: JSON.stringify(operation.steps),
    request_json: JSON.stringify(operation.request),
    error_json: error === null ? null : JSON.stringify(error),
    result_json: result === null ? null : JSON.stringify(result),
  };
}

function toOperation(row: Row): Operation {
  return {
    operationId: row.operation_id,
    kind: row.kind as OperationKind,
    target: row.target,
    status: row.status as OperationStatus,
    percent: row.percent,
    label: row.label,
    step: row.step,
    steps: JSON.parse(row.steps_json) as OperationStep[],
    request: JSON.parse(row.request_json) as Operation["request"],
    result: row.result_json === null ? null : (JSON.parse(row.result_json) as Operation["result"]),
    error: row.error_json === null ? null : (JSON.parse(row.error_json) as OperationError),
    eventSeq: row.event_seq,
    createdAtMs: row.created_at,
    updatedAtMs: row.updated_at,
    finishedAtMs: row.finished_at,
  };
}
