// Queries that are built and compiled once. Kysely takes longer to compile a small query than SQLite to run it, so
// the reads on request paths are compiled at start and only get their arguments later.

import type { Compilable, CompiledQuery, Kysely } from "kysely";
import type { Schema } from "./schema.ts";

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

export type ReusableQuery<Row> = (...values: readonly unknown[]) => Promise<Row[]>;

/**
 * Compiles a query with holes.
 *
 * @example
 * const byId = reusable(db, db.selectFrom("jobs").select("status").where("job_id", "=", hole<string>(0)));
 * const rows = await byId("a-1");
 */
export function reusable<Row>(db: Kysely<Schema>, query: Compilable<Row>): ReusableQuery<Row> {
  const compiled: CompiledQuery<Row> = query.compile();
  return async (...values) => {
    const parameters = compiled.parameters.map((one) => (one instanceof Hole ? values[one.index] : one));
    return (await db.executeQuery<Row>({ ...compiled, parameters })).rows;
  };
}
