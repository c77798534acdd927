// The table run_ports: the run that each port of a node was assigned to last. A port is in use while that run is open, so
// the transaction that ends a run releases its ports.

import { type SqlBool, sql, type Transaction } from "kysely";
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

/** A run that was taken over listens at the port that it has, on the node that runs its job now. */
const inUse = query(
  (db, node: string, ownersOfNode: string) =>
    ports(db, 0).where(({ eb, or, exists, selectFrom }) =>
      or([
        eb("p.node", "=", node),
        exists(
          selectFrom("jobs as j")
            .select("j.job_id")
            .whereRef("j.job_id", "=", "r.runtime_job_id")
            .where(sql<SqlBool>`substr(j.owner, 1, length(${ownersOfNode})) = ${ownersOfNode}`),
        ),
      ]),
    ),
  ({ port }) => port,
);

const inUseAnywhere = query(
  (db) => ports(db, 0),
  ({ port }) => port,
);

const freedSince = query(
  (db, node: string, sinceMs: number) =>
    ports(db, 1).where("p.node", "=", node).where("r.finished_at", ">=", sinceMs),
  ({ port }) => port,
);

const ofEnded = query(
  (db, node: string, beforeMs: number) =>
    ports(db, 1).select("p.run_id").where("p.node", "=", node).where("r.finished_at", "<", beforeMs),
  ({ port, run_id: runId }) => ({ port, runId }),
);

const ofRun = query(
  (db, node: string, runId: string) =>
    db.selectFrom("run_ports").select(["label", "port"]).where("run_id", "=", runId).where("node", "=", node),
  ({ label, port }) => [label, port] as const,
);

/** The start of the names under which a node's programs own jobs. */
const ownersOf = (node: string) => `${node}/`;

/** @param node whose ports they are; "" of a program that has its database to itself */
export function sqlPortRecords(database: Database, node = ""): PortRecords {
  return {
    portsInUse: async () => new Set(await inUse.all(database, node, ownersOf(node))),
    portsInUseAnywhere: async () => new Set(await inUseAnywhere.all(database)),
    portsFreedSince: async (sinceMs) => new Set(await freedSince.all(database, node, sinceMs)),
    portsOfEnded: (beforeMs) => ofEnded.all(database, node, beforeMs),
    portsOf: async (runId) => new Map(await ofRun.all(database, node, runId)),
  };
}

const give = insertion("run_ports", ["node", "port"]);

export function portWrites(db: Transaction<Schema>, node: string): PortWrites {
  return {
    async reserve(runId, label, candidates) {
      const taken = new Set(await inUse.all(db, node, ownersOf(node)));
      const port = candidates.find((candidate) => !taken.has(candidate));
      if (port === undefined) return null;
      await give(db, { node, port, run_id: runId, label });
      return port;
    },
  };
}
