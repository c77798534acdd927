// Who has taken on what is not done yet: the column owner of runs that are not launched and of open operations.

import { sql } from "kysely";
import type { WorkOwners } from "../../operations/takeover.ts";
import type { Database } from "./database.ts";
import { query } from "./query.ts";

const owners = query(
  (db) =>
    db
      .selectFrom("runs")
      .select("owner")
      .where("terminal", "=", sql.lit(0))
      .where("launched", "=", sql.lit(0))
      .union(db.selectFrom("operations").select("owner").where("terminal", "=", sql.lit(0))),
  (row) => row.owner,
);

export function sqlWorkOwners(database: Database): WorkOwners {
  return {
    owners: () => owners.all(database),
    leaveRuns: (owner) =>
      database.transaction(async (db) => {
        await db
          .updateTable("runs")
          .set({ owner: null })
          .where("owner", "=", owner)
          .where("terminal", "=", sql.lit(0))
          .where("launched", "=", sql.lit(0))
          .execute();
      }),

    takeOver: (lost, owner) =>
      database.transaction(async (db) => {
        const names = lost.filter((one) => one !== null);
        const runs = db
          .updateTable("runs")
          .set({ owner })
          .where("terminal", "=", sql.lit(0))
          .where("launched", "=", sql.lit(0));
        const operations = db.updateTable("operations").set({ owner }).where("terminal", "=", sql.lit(0));
        if (names.length > 0) {
          await runs.where("owner", "in", names).execute();
          await operations.where("owner", "in", names).execute();
        }
        if (lost.includes(null)) {
          await runs.where("owner", "is", null).execute();
          await operations.where("owner", "is", null).execute();
        }
      }),
  };
}
