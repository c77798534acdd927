import assert from "node:assert/strict";
import { mock, test } from "node:test";
import pg from "pg";
import { returnPostgres, takePostgres } from "../../../test/support/postgres.ts";
import { openPostgres } from "./database.ts";
import { examineCluster } from "./examine.ts";

test("a look at a cluster ends when the database does not answer", async () => {
  const url = await takePostgres();
  await (await openPostgres(url)).close();
  const other = new pg.Client(url);
  await other.connect();
  await other.query("BEGIN; LOCK TABLE cluster");
  mock.timers.enable({ apis: ["setTimeout"] });
  try {
    const look = examineCluster(url, false);
    look.catch(() => {});
    const isWaiting = "SELECT FROM pg_locks WHERE NOT granted AND relation = 'cluster'::regclass";
    while ((await other.query(isWaiting)).rowCount === 0);
    mock.timers.tick(10_000);
    // Without a limit the look would come to its end now.
    await other.query("COMMIT");
    await assert.rejects(look, { name: "StoreUnusable", message: /cannot be used \(Query read timeout\)/ });
  } finally {
    mock.timers.reset();
    await other.end();
    await returnPostgres(url);
  }
});
