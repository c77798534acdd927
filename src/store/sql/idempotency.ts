// The table idempotency: the stored responses to requests with an Idempotency-Key.

import { sql, type Transaction } from "kysely";
import type { GatewayRecords, GatewayWrites, IdempotencyRecord } from "../../launch/records.ts";
import { columnsOf } from "./columns.ts";
import type { Database } from "./database.ts";
import { command, query } from "./query.ts";
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

/** Writes nothing while there is one of the key that was made after `expiredMs`. */
const save = command(
  (
    db,
    scope: string,
    key: string,
    request_hash: string,
    status: number,
    headers_json: string,
    body: string,
    created_at: number,
    expiredMs: number,
  ) =>
    db
      .insertInto("idempotency")
      .values({ scope, key, request_hash, status, headers_json, body, created_at })
      .onConflict((conflict) =>
        conflict
          .columns(["scope", "key"])
          .doUpdateSet((eb) => ({
            request_hash: eb.ref("excluded.request_hash"),
            status: eb.ref("excluded.status"),
            headers_json: eb.ref("excluded.headers_json"),
            body: eb.ref("excluded.body"),
            created_at: eb.ref("excluded.created_at"),
          }))
          .where("idempotency.created_at", "<=", expiredMs),
      ),
);

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
    saveIdempotency: async (record, expiredMs) => {
      const { scope, key, requestHash, status, headersJson, body, createdAtMs } = record;
      return (await save(db, scope, key, requestHash, status, headersJson, body, createdAtMs, expiredMs)) > 0;
    },
  } satisfies Partial<GatewayWrites>;
}
