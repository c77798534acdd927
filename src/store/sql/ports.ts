// The table run_ports: the run that each port was assigned to last. A port is in use while that run is open, so the
// transaction that ends a run releases its ports.

import { sql, type Transaction } from "kysely";
import type { PortRecords, PortWrites } from "../../web/records.ts";
import type { Database } from "./database.ts";
import { type Db, insertion, query } from "./query.ts";
import type { Schema } from "./schema.generated.ts";

/**
 * There are as many rows as ports in the configured range, usually 50. A cross join starts with them; with another join
 * SQLite starts with the open runs, which may be many thousands.
 */
const ports = (db: Db, terminal: 0 | 1) =>
  db
    .selectFrom("run_ports as p")
    .crossJoin("runs as r")
    .whereRef("r.run_id", "=", "p.run_id")
    .select("p.port")
    .where("r.terminal", "=", sql.lit(terminal));

const inUse = query(
  (db) => ports(db, 0),
  ({ port }) => port,
);

const freedSince = query(
  (db, sinceMs: number) => ports(db, 1).where("r.finished_at", ">=", sinceMs),
  ({ port }) => port,
);

const ofRun = query(
  (db, runId: string) => db.selectFrom("run_ports").select(["label", "port"]).where("run_id", "=", runId),
  ({ label, port }) => [label, port] as const,
);

export function sqlPortRecords(database: Database): PortRecords {
  return {
    portsInUse: async () => new Set(await inUse.all(database)),
    portsFreedSince: async (sinceMs) => new Set(await freedSince.all(database, sinceMs)),
    portsOf: async (runId) => new Map(await ofRun.all(database, runId)),
  };
}

const give = insertion("run_ports", ["port"]);

export function portWrites(db: Transaction<Schema>): PortWrites {
  return {
    async reserve(runId, label, candidates) {
      const taken = new Set(await inUse.all(db));
      const port = candidates.find((candidate) => !taken.has(candidate));
      if (port === undefined) return null;
      await give(db, { port, run_id: runId, label });
      return port;
    },
  };
}
