// The table resource_limits: one row, or none while nobody has set limits.

import { sql } from "kysely";
import { noLimits } from "../../resources/limits.ts";
import type { ResourceRecords, StoredLimits } from "../../resources/records.ts";
import { columnsOf, json } from "./columns.ts";
import type { Database } from "./database.ts";
import { insertion, query } from "./query.ts";
import type { Schema } from "./schema.generated.ts";

const THE_ROW = 1;

const columns = columnsOf<Omit<Schema["resource_limits"], "id">, StoredLimits>({
  limits: json("limits_json"),
  revision: "revision",
});

const stored = query(
  (db) => db.selectFrom("resource_limits").select(columns.names).where("id", "=", sql.lit(THE_ROW)),
  columns.toRecord,
);
const save = insertion("resource_limits", ["id"]);

const unlimited: StoredLimits = { limits: noLimits, revision: 1 };

export function sqlResourceRecords(database: Database): ResourceRecords {
  return {
    limits: async () => (await stored.first(database)) ?? unlimited,
    changeLimits: (change) =>
      database.transaction(async (db) => {
        const before = (await stored.first(db)) ?? unlimited;
        const after = change(before);
        if (after !== before) await save(db, { id: THE_ROW, ...columns.toRow(after) });
        return after;
      }),
  };
}
