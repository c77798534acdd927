// Ports of runs with Kysely. A row says who was given a port last; whether it is in use says that run's own row, so that
// the transaction which ends a run gives its ports back (P1).

import { type Kysely, sql, type Transaction } from "kysely";
import type { PortRecords, PortWrites } from "../../web/records.ts";
import { hole, reusable, statement } from "./reusable-query.ts";
import type { Database, Schema } from "./schema.ts";

/**
 * Rows are as many as the ports that were ever given: the range of the settings, usually 50. A cross join begins with
 * them; of another one SQLite begins with the open runs, which may be many thousands.
 */
function givenPorts(db: Kysely<Schema>, terminal: 0 | 1) {
  return db
    .selectFrom("run_ports as p")
    .crossJoin("runs as r")
    .whereRef("r.run_id", "=", "p.run_id")
    .select("p.port")
    .where("r.terminal", "=", sql.lit(terminal));
}

function portsOfRun(db: Kysely<Schema>) {
  return db.selectFrom("run_ports").select(["label", "port"]).where("run_id", "=", hole<string>(0));
}

export class SqlPortRecords implements PortRecords {
  readonly #queries: ReturnType<typeof compileReads>;

  constructor(database: Database) {
    this.#queries = compileReads(database);
  }

  async portsInUse(): Promise<ReadonlySet<number>> {
    return portsIn(await this.#queries.inUse());
  }

  async portsFreedSince(sinceMs: number): Promise<ReadonlySet<number>> {
    return portsIn(await this.#queries.freedSince(sinceMs));
  }

  async portsOf(runId: string): Promise<ReadonlyMap<string, number>> {
    const rows = await this.#queries.ofRun(runId);
    return new Map(rows.map(({ label, port }) => [label, port]));
  }
}

function compileReads(database: Database) {
  const { kysely } = database;
  return {
    inUse: reusable(database, givenPorts(kysely, 0)),
    freedSince: reusable(database, givenPorts(kysely, 1).where("r.finished_at", ">=", hole<number>(0))),
    ofRun: reusable(database, portsOfRun(kysely)),
  };
}

export type PortStatements = ReturnType<typeof portStatements>;

/** What transactions do with ports, compiled once. */
export function portStatements(db: Kysely<Schema>) {
  return {
    portsInUse: statement(givenPorts(db, 0)),
    /** Arguments: port, run id, label. */
    givePort: statement(
      db
        .insertInto("run_ports")
        .values({ port: hole(0), run_id: hole(1), label: hole(2) })
        .onConflict((conflict) =>
          conflict
            .column("port")
            .doUpdateSet(({ ref }) => ({ run_id: ref("excluded.run_id"), label: ref("excluded.label") })),
        ),
    ),
  };
}

export class SqlPortWrites implements PortWrites {
  readonly #db: Transaction<Schema>;
  readonly #statements: PortStatements;

  constructor(db: Transaction<Schema>, statements: PortStatements) {
    this.#db = db;
    this.#statements = statements;
  }

  async reserve(runId: string, label: string, candidates: readonly number[]): Promise<number | null> {
    const inUse = portsIn((await this.#statements.portsInUse(this.#db)).rows);
    const port = candidates.find((candidate) => !inUse.has(candidate));
    if (port === undefined) return null;
    await this.#statements.givePort(this.#db, port, runId, label);
    return port;
  }
}

function portsIn(rows: readonly { readonly port: number }[]): ReadonlySet<number> {
  return new Set(rows.map(({ port }) => port));
}
