// The table idempotency: the stored responses to requests with an Idempotency-Key.

import { sql, type Transaction } from "kysely";
import type { GatewayRecords, GatewayWrites, IdempotencyRecord } from "../../launch/records.ts";
import { columnsOf } from "./columns.ts";
import type { Database } from "./database.ts";
import { insertion, query } from "./query.ts";
import type { Schema } from "./schema.generated.ts";

const columns = columnsOf<Schema["idempotency"], IdempotencyRecord>({
  scope: "scope",
  key: "key",
  requestHash: "request_hash",
  status: "status",
  headersJson: "headers_json",
  body: "body",
  createdAtMs: "created_at",
});

const byKey = query(
  (db, scope: string, key: string) =>
    db.selectFrom("idempotency").selectAll().where("scope", "=", scope).where("key", "=", key),
  columns.toRecord,
);

const save = insertion("idempotency", ["scope", "key"]);

export function idempotencyReads(database: Database) {
  return {
    idempotency: (scope, key) => byKey.first(database, scope, key),
    forgetIdempotency: (beforeMs, limit) =>
      database.transaction(async (db) => {
        const { numDeletedRows } = await db
          .deleteFrom("idempotency")
          .where(
            sql<boolean>`(scope, key) in (select scope, key from idempotency
              where created_at < ${beforeMs} order by created_at limit ${limit})`,
          )
          .executeTakeFirst();
        return Number(numDeletedRows);
      }),
  } satisfies Partial<GatewayRecords>;
}

export function idempotencyWrites(db: Transaction<Schema>) {
  return {
    idempotency: (scope, key) => byKey.first(db, scope, key),
    saveIdempotency: (record) => save(db, columns.toRow(record)),
  } satisfies Partial<GatewayWrites>;
}
