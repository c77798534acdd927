// The records of operations and blueprints on real SQLite: the contract.

import { operationRecordsContract } from "../../../test/support/operation-records-contract.ts";
import { systemClock } from "../../app/clock.ts";
import { openSqlite } from "../sqlite/database.ts";
import { SqlBlueprintRecords } from "./blueprint-records.ts";
import { SqlGatewayRecords } from "./gateway-records.ts";
import { SqlOperationRecords } from "./operation-records.ts";
import { SqlRetentionRecords } from "./retention-records.ts";

operationRecordsContract("SQLite", async () => {
  const database = openSqlite(":memory:");
  const retention = new SqlRetentionRecords(database);
  return {
    gateway: new SqlGatewayRecords(database, systemClock.soon),
    operations: new SqlOperationRecords(database),
    blueprints: new SqlBlueprintRecords(database),
    isSnapshotNamed: (fingerprint) => retention.isSnapshotNamed(fingerprint, null),
    close: () => database.close(),
  };
});
