// Queries that are built and compiled once. Kysely takes longer to compile a small query than SQLite to run it, so
// the reads on request paths are compiled at start and only get their arguments later.

import {
  type Compilable,
  type CompiledQuery,
  type Expression,
  type Kysely,
  type QueryResult,
  sql,
} from "kysely";
import type { Portion } from "../../launch/records.ts";
import type { Database, Schema } from "./schema.ts";

/** Stands for an argument while a query is built. */
class Hole {
  readonly index: number;

  constructor(index: number) {
    this.index = index;
  }
}

/** Marks where the n-th argument goes; typed as that argument. */
export function hole<T>(index: number): T {
  return new Hole(index) as unknown as T;
}

/**
 * The n-th argument as a limit. Never a bare hole: SQLite looks at such a value when it plans, and so would parse and
 * plan the query anew at each run.
 */
export function limitHole(index: number): Expression<number> {
  return sql<number>`${hole<number>(index)} + 0`;
}

/** A query with holes, on whatever connection or transaction it is asked of. */
export type Statement<Row> = (db: Kysely<Schema>, ...values: readonly unknown[]) => Promise<QueryResult<Row>>;

/**
 * Compiles a query with holes.
 *
 * @example
 * const byId = statement(db.selectFrom("jobs").select("status").where("job_id", "=", hole<string>(0)));
 * const { rows } = await byId(transaction, "a-1");
 */
export function statement<Row>(query: Compilable<Row>): Statement<Row> {
  const compiled: CompiledQuery<Row> = query.compile();
  return (db, ...values) =>
    db.executeQuery<Row>({ ...compiled, parameters: filled(compiled.parameters, values) });
}

export type ReusableQuery<Row> = (...values: readonly unknown[]) => Promise<readonly Row[]>;

/**
 * The same for reads that are never part of a transaction; they pass by Kysely's layers, which cost more than SQLite.
 *
 * @example
 * const byId = reusable(database, kysely.selectFrom("jobs").select("status").where("job_id", "=", hole<string>(0)));
 * const rows = await byId("a-1");
 */
export function reusable<Row>(database: Database, query: Compilable<Row>): ReusableQuery<Row> {
  const { sql, parameters } = query.compile();
  return (...values) => database.read<Row>(sql, filled(parameters, values));
}

/** The same for rows that may be large: they end early when their texts come to more than `charsMax` characters. */
export function reusableWithin<Row>(
  database: Database,
  charsMax: number,
  query: Compilable<Row>,
): (...values: readonly unknown[]) => Promise<Portion<Row>> {
  const { sql, parameters } = query.compile();
  return (...values) => database.readWithin<Row>(charsMax, sql, filled(parameters, values));
}

function filled(parameters: readonly unknown[], values: readonly unknown[]): readonly unknown[] {
  return parameters.map((one) => (one instanceof Hole ? values[one.index] : one));
}
