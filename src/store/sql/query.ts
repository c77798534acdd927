// Queries that are compiled once, when they first run: Kysely takes longer to compile a small query than the database
// takes to run it.

import {
  type Compilable,
  type CompiledQuery,
  type Expression,
  type Insertable,
  type Kysely,
  SqliteAdapter,
  sql,
  type Transaction,
} from "kysely";
import type { Page } from "../../lib/page.ts";
import type { Database } from "./database.ts";
import type { Schema } from "./schema.generated.ts";

/** The tables, in a transaction or outside: queries are built on it. */
export type Db = Kysely<Schema>;

/** Where a query runs: on committed state, or inside a transaction, where it sees that transaction's writes. */
export type Session = Database | Transaction<Schema>;

/** Characters of the texts in one page of a list. */
export const PAGE_CHARS_MAX = 8 * 1024 * 1024;
/** Sorts after every id. */
export const BEHIND_ALL_IDS = "\u{10ffff}";

/**
 * Builds a query. Called once, with placeholders for the arguments, so it must not inspect them: they only become
 * parameters of the query.
 */
type Build<Args extends readonly unknown[], Row> = (db: Db, ...args: Args) => Compilable<Row>;

export interface Query<Args extends readonly unknown[], Value> {
  all(on: Session, ...args: Args): Promise<readonly Value[]>;
  /** The first row; null without one. */
  first(on: Session, ...args: Args): Promise<Value | null>;
}

/**
 * A query that is compiled once and run many times.
 *
 * @param toValue converts a row
 *
 * @example
 * const statusOf = query(
 *   (db, jobId: string) => db.selectFrom("jobs").select("status").where("job_id", "=", jobId),
 *   (row) => row.status,
 * );
 * const status = await statusOf.first(database, "a-1");
 */
export function query<Args extends readonly unknown[], Row, Value>(
  build: Build<Args, Row>,
  toValue: (row: Row) => Value,
): Query<Args, Value> {
  const compiled = compiledOnce(build);
  const rows = async (on: Session, args: Args): Promise<readonly Row[]> => {
    // Reads of committed state bypass Kysely's layers, which cost more than SQLite itself.
    if ("kysely" in on) {
      const { sql, parameters } = compiled(on.kysely);
      return on.read<Row>(sql, filled(parameters, args));
    }
    const known = compiled(on);
    return (await on.executeQuery<Row>({ ...known, parameters: filled(known.parameters, args) })).rows;
  };
  return {
    all: async (on, ...args) => (await rows(on, args)).map(toValue),
    async first(on, ...args) {
      const [row] = await rows(on, args);
      return row === undefined ? null : toValue(row);
    },
  };
}

/** The same for committed rows that may be large: a page ends early when its texts come to more than `charsMax`. */
export function pageQuery<Args extends readonly unknown[], Row, Value>(
  build: Build<Args, Row>,
  toValue: (row: Row) => Value,
  charsMax = PAGE_CHARS_MAX,
  argCount = build.length - 1,
): (database: Database, ...args: Args) => Promise<Page<Value>> {
  const compiled = compiledOnce(build, argCount);
  return async (database, ...args) => {
    const { sql, parameters } = compiled(database.kysely);
    const { rows, isCut } = await database.readWithin<Row>(charsMax, sql, filled(parameters, args));
    return { rows: rows.map(toValue), isCut };
  };
}

type RowOf<List> = List extends Compilable<infer Row> ? Row : never;

/**
 * The same for a list with optional filters: compiled once for each combination that is used.
 *
 * @param filters by name; each restricts the list to rows with the given value
 * @returns a function that takes the filters by name: null or false for those not used
 */
export function listQuery<Args extends readonly unknown[], List, Name extends string, Value>(
  build: (db: Db, ...args: Args) => List,
  filters: Readonly<Record<Name, (list: List, value: string) => List>>,
  toValue: (row: RowOf<List>) => Value,
  charsMax = PAGE_CHARS_MAX,
): (
  database: Database,
  asked: Readonly<Record<Name, string | boolean | null>>,
  ...args: Args
) => Promise<Page<Value>> {
  const pages = new Map<string, (database: Database, ...args: readonly unknown[]) => Promise<Page<Value>>>();
  return (database, asked, ...args) => {
    const names = (Object.keys(filters) as Name[]).filter(
      (name) => asked[name] !== null && asked[name] !== false,
    );
    const key = names.join();
    let page = pages.get(key);
    if (page === undefined) {
      const narrowed = (db: Db, ...all: readonly unknown[]) =>
        names.reduce(
          (list, name, i) => filters[name](list, all[args.length + i] as string),
          build(db, ...(all as unknown as Args)),
        ) as Compilable<RowOf<List>>;
      page = pageQuery(narrowed, toValue, charsMax, args.length + names.length);
      pages.set(key, page);
    }
    return page(database, ...args, ...names.map((name) => asked[name]));
  };
}

/** The same for a statement that changes rows. @returns how many it changed */
export function command<Args extends readonly unknown[]>(
  build: Build<Args, unknown>,
): (db: Transaction<Schema>, ...args: Args) => Promise<number> {
  const compiled = compiledOnce(build);
  return async (db, ...args) => {
    const known = compiled(db);
    const parameters = filled(known.parameters, args);
    return Number((await db.executeQuery({ ...known, parameters })).numAffectedRows);
  };
}

type Column<Table extends keyof Schema> = string & keyof Schema[Table];

/**
 * Inserts rows that all have the same columns.
 *
 * @param key identifies a row: an existing one is replaced, except for the columns in `kept`
 */
export function insertion<Table extends keyof Schema>(
  table: Table,
  key: readonly Column<Table>[] = [],
  kept: readonly Column<Table>[] = [],
): (db: Transaction<Schema>, row: Insertable<Schema[Table]>) => Promise<void> {
  const names = (columns: readonly string[]) => sql.join(columns.map((name) => sql.ref(name)));
  let columns: readonly string[] = [];
  const compiled = compiledByKind((db, row: Insertable<Schema[Table]>) => {
    columns = Object.keys(row);
    const stays = new Set<string>([...key, ...kept]);
    const changes = columns
      .filter((name) => !stays.has(name))
      .map((name) => sql`${sql.ref(name)} = ${sql.ref(`excluded.${name}`)}`);
    const orReplace = sql` ON CONFLICT (${names(key)}) DO UPDATE SET ${sql.join(changes)}`;
    return sql`INSERT INTO ${sql.table(table)} (${names(columns)}) VALUES (${sql.join(Object.values(row))})${
      key.length === 0 ? sql`` : orReplace
    }`.compile(db);
  });
  return async (db, row) => {
    const known = compiled(db, row);
    await db.executeQuery({ ...known, parameters: columns.map((name) => row[name as keyof typeof row]) });
  };
}

/**
 * An argument as a limit. Never the bare argument: SQLite uses such a value for planning, and would parse and plan the
 * query again at each run.
 */
export function atMost(limit: number): Expression<number> {
  return sql<number>`${limit} + 0`;
}

/** For what each kind of database spells in its own way. */
export function kindOf(db: Db): "sqlite" | "postgres" {
  return db.getExecutor().adapter instanceof SqliteAdapter ? "sqlite" : "postgres";
}

/** The items of a list that is given as JSON, of a number that may be different each time. */
export function listed<Item extends string | number>(db: Db, json: string, type: "text" | "bigint") {
  return kindOf(db) === "sqlite"
    ? sql<Item>`(SELECT value FROM json_each(${json}))`
    : sql<Item>`(SELECT value::${sql.raw(type)} FROM json_array_elements_text(${json}::json))`;
}

/** A removed job's row is deleted first and the rest in batches, which no reader may see. */
export function jobIsThere(db: Db, jobId: string) {
  return db.selectFrom("jobs as j").select("j.job_id").where("j.job_id", "=", jobId);
}

/** The durable job of the run in `r`, unless it was deleted. */
export function definitionOfRun(db: Db) {
  return db
    .selectFrom("job_definitions as d")
    .select("d.job_id")
    .where("d.job_id", "=", sql<string>`r.job_id`)
    .where("d.deleted", "=", sql.lit(0));
}

/** The runtime job of a run: for rows of many runs, of which one is wanted. */
export const jobOfRun = (runId: string) =>
  sql<string>`(SELECT runtime_job_id FROM runs WHERE run_id = ${runId})`;

/** Without the hint SQLite reads all rows of the job and compares the status, instead of using the index on it. */
export const rareStatus = (status: string) => sql<boolean>`unlikely(status = ${status})`;

/** A placeholder for an argument while a query is built. */
class Parameter {
  readonly index: number;

  constructor(index: number) {
    this.index = index;
  }
}

function compiledOnce<Args extends readonly unknown[], Row>(
  build: Build<Args, Row>,
  argCount = build.length - 1,
) {
  const placeholders = Array.from({ length: argCount }, (_, index) => new Parameter(index));
  return compiledByKind(
    (db): CompiledQuery<Row> => build(db, ...(placeholders as unknown as Args)).compile(),
  );
}

function filled(parameters: readonly unknown[], args: readonly unknown[]): readonly unknown[] {
  return parameters.map((one) => (one instanceof Parameter ? args[one.index] : one));
}

/** Compiles once for each kind of database. */
function compiledByKind<Row, Given extends readonly unknown[]>(
  compile: (db: Db, ...given: Given) => CompiledQuery<Row>,
) {
  const known = new Map<unknown, CompiledQuery<Row>>();
  return (db: Db, ...given: Given): CompiledQuery<Row> => {
    const kind = db.getExecutor().adapter.constructor;
    const compiled = known.get(kind) ?? compile(db, ...given);
    known.set(kind, compiled);
    return compiled;
  };
}
