// Runs' ports on a real SQLite file.

import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { portRecordsContract } from "../../../test/support/port-records-contract.ts";
import { systemClock } from "../../app/clock.ts";
import { openSqlite } from "../sqlite/database.ts";
import { SqliteJournal } from "../sqlite/journal.ts";
import { SqlGatewayRecords } from "./gateway-records.ts";
import { SqlPortRecords } from "./port-records.ts";

portRecordsContract("SQLite", async () => {
  const folder = await mkdtemp(join(tmpdir(), "troupe-ports-"));
  const database = openSqlite(join(folder, "troupe.db"));
  return {
    ports: new SqlPortRecords(database),
    records: new SqlGatewayRecords(database, systemClock.soon),
    journal: new SqliteJournal(database),
    async close() {
      await database.close();
      await rm(folder, { recursive: true, force: true });
    },
  };
});
