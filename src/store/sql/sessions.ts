// The table sessions.

import type { Transaction } from "kysely";
import type { SessionReads, SessionRecord, SessionWrites } from "../../security/session-records.ts";
import { columnsOf } from "./columns.ts";
import type { Database } from "./database.ts";
import { atMost, BEHIND_ALL_IDS, command, type Db, insertion, listQuery, query } from "./query.ts";
import type { Schema } from "./schema.generated.ts";

const columns = columnsOf<Schema["sessions"], SessionRecord>({
  sessionId: "session_id",
  kind: "kind",
  secretHash: "secret_hash",
  keyHash: "key_hash",
  runId: "run_id",
  openedBy: "opened_by",
  tokensMark: "tokens_mark",
  createdAtMs: "created_at",
  expiresAtMs: "expires_at",
});

const sessions = (db: Db) => db.selectFrom("sessions").selectAll();

const byId = query(
  (db, sessionId: string) => sessions(db).where("session_id", "=", sessionId),
  columns.toRecord,
);

const ofSecret = query(
  (db, secretHash: string) => sessions(db).where("secret_hash", "=", secretHash),
  columns.toRecord,
);

const list = listQuery(
  (db, nowMs: number, after: string, limit: number) =>
    sessions(db)
      .where("expires_at", ">", nowMs)
      .where("session_id", "<", after)
      .orderBy("session_id", "desc")
      .limit(atMost(limit)),
  {
    kind: (sessions, kind) => sessions.where("kind", "=", kind),
    runId: (sessions, runId) => sessions.where("run_id", "=", runId),
  },
  columns.toRecord,
);

export function sessionReads(database: Database): SessionReads {
  return {
    session: (sessionId) => byId.first(database, sessionId),
    ofSecret: (secretHash) => ofSecret.first(database, secretHash),
    list: ({ kind, runId, nowMs, after, limit }) =>
      list(database, { kind, runId }, nowMs, after ?? BEHIND_ALL_IDS, limit),
  };
}

const insert = insertion("sessions");
const extend = command((db, sessionId: string, expiresAtMs: number) =>
  db.updateTable("sessions").set({ expires_at: expiresAtMs }).where("session_id", "=", sessionId),
);
const endOne = command((db, sessionId: string) =>
  db.deleteFrom("sessions").where("session_id", "=", sessionId),
);
const endOpened = command((db, sessionId: string) =>
  db.deleteFrom("sessions").where("opened_by", "=", sessionId),
);
const forget = command((db, beforeMs: number) =>
  db.deleteFrom("sessions").where("expires_at", "<=", beforeMs),
);

export function sessionWrites(db: Transaction<Schema>): SessionWrites {
  return {
    insert: (session) => insert(db, columns.toRow(session)),
    extend: async (sessionId, expiresAtMs) => {
      await extend(db, sessionId, expiresAtMs);
    },
    async end(sessionId) {
      await endOpened(db, sessionId);
      return (await endOne(db, sessionId)) > 0;
    },
    forget: async (beforeMs) => {
      await forget(db, beforeMs);
    },
  };
}
