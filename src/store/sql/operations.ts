// The tables operations and operation_events.

import { sql, type Transaction } from "kysely";
import type { Operation, OperationRecords, OperationWrites } from "../../operations/records.ts";
import { columnsOf, json } from "./columns.ts";
import type { Database } from "./database.ts";
import { atMost, BEHIND_ALL_IDS, type Db, insertion, listQuery, query } from "./query.ts";
import type { Schema } from "./schema.generated.ts";

const columns = columnsOf<Schema["operations"], Operation>({
  operationId: "operation_id",
  kind: "kind",
  target: "target",
  status: "status",
  percent: "percent",
  label: "label",
  step: "step",
  owner: "owner",
  eventSeq: "event_seq",
  createdAtMs: "created_at",
  updatedAtMs: "updated_at",
  finishedAtMs: "finished_at",
  steps: json("steps_json"),
  request: json("request_json"),
  error: json("error_json"),
  result: json("result_json"),
});

const toRow = (operation: Operation): Schema["operations"] => ({
  ...columns.toRow(operation),
  terminal: operation.status === "completed" || operation.status === "failed" ? 1 : 0,
});

const operations = (db: Db) => db.selectFrom("operations").selectAll();

const byId = query(
  (db, operationId: string) => operations(db).where("operation_id", "=", operationId),
  columns.toRecord,
);

const open = query(
  (db) => operations(db).where("terminal", "=", sql.lit(0)).orderBy("operation_id"),
  columns.toRecord,
);

const openOf = query(
  (db, target: string) => operations(db).where("terminal", "=", sql.lit(0)).where("target", "=", target),
  columns.toRecord,
);

const list = listQuery(
  (db, after: string, limit: number) =>
    operations(db).where("operation_id", "<", after).orderBy("operation_id", "desc").limit(atMost(limit)),
  {
    target: (operations, target) => operations.where("target", "=", target),
    status: (operations, status) => operations.where("status", "=", status),
  },
  columns.toRecord,
);

const events = query(
  (db, operationId: string, afterSeq: number, limit: number) =>
    db
      .selectFrom("operation_events")
      .select("line")
      .where("operation_id", "=", operationId)
      .where("seq", ">", afterSeq)
      .orderBy("seq")
      .limit(atMost(limit)),
  (row) => row.line,
);

export function sqlOperationRecords(database: Database): OperationRecords {
  return {
    operation: (operationId) => byId.first(database, operationId),
    operations: ({ target, status, limit, after }) =>
      list(database, { target, status }, after ?? BEHIND_ALL_IDS, limit),
    openOperations: () => open.all(database),
    async operationEvents(operationId, afterSeq, limit) {
      const lines = await events.all(database, operationId, afterSeq, limit);
      // Who continues after the last one misses none after a power cut.
      await database.durable();
      return { firstSeq: afterSeq + 1, lines };
    },
    forgetOperations: (beforeMs, limit) =>
      database.transaction(async (db) => {
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
      }),
  };
}

const insertOperation = insertion("operations");
const insertEvent = insertion("operation_events");

export function operationWrites(db: Transaction<Schema>): OperationWrites {
  const addEvent = ({ operationId, eventSeq }: Operation, line: string) =>
    insertEvent(db, { operation_id: operationId, seq: eventSeq, line });
  return {
    open: (target) => openOf.first(db, target),

    async insert(operation, eventLine) {
      await insertOperation(db, toRow(operation));
      await addEvent(operation, eventLine);
    },

    async save(operation, eventLine) {
      const { operation_id, owner, ...changing } = toRow(operation);
      const { numUpdatedRows } = await db
        .updateTable("operations")
        .set(changing)
        .where("operation_id", "=", operation_id)
        .where("terminal", "=", 0)
        .where(({ eb }) => (owner === null ? eb("owner", "is", null) : eb("owner", "=", owner)))
        .executeTakeFirst();
      if (numUpdatedRows !== 1n) return false;
      if (eventLine !== null) await addEvent(operation, eventLine);
      return true;
    },
  };
}
