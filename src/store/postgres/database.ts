// PostgreSQL: a pool of connections, brought to the newest schema before anyone sees it.
//
// - Writes of records go one after the other, also those of other programs: each transaction takes the same advisory lock
//   first, so that what one has read stays true until it commits. Works that wait share a transaction (sql/commit-group.ts).
//   The journal has a connection of its own and takes no lock (journal.ts).

import { CompiledQuery, Kysely, PostgresDialect, type PostgresPoolClient } from "kysely";
import pg from "pg";
import type { Page } from "../../lib/page.ts";
import { type Database, StoreUnusable } from "../sql/database.ts";
import type { Schema } from "../sql/schema.generated.ts";
import { ANSWER_MS, BEGIN, type ConnectionConfig, configOf, serverOf } from "./connection.ts";
import { asUnavailable, explain, isOutdatedPlan } from "./errors.ts";
import { LOCKS, migrate } from "./migrate.ts";
import { StatementNames } from "./statements.ts";
import { storable } from "./values.ts";

/** Connections for reads and for writes of records; the journal has one more. */
const CONNECTIONS_MAX = 8;
const RECORDS_LOCK = 2;
/** Of a text within a row as PostgreSQL spells it: UTF-8, with quotes doubled. */
const BYTES_PER_CHAR_MAX = 8;
const DURABLE = Promise.resolve();

export interface PostgresDatabase extends Database {
  readonly config: ConnectionConfig;
  /** Host and database, for texts: without user and password. */
  readonly server: string;
  close(): Promise<void>;
}

export interface PostgresOptions {
  /** Whether the connections are a pooler's, for one transaction each. */
  readonly isPooled?: boolean;
}

/**
 * Connects, and migrates.
 *
 * @param url postgres://user:password@host:port/database, with TLS as its parameters say
 * @throws StoreUnusable when the server cannot be reached, refuses, or has a schema for newer programs only
 */
export async function openPostgres(
  url: string,
  { isPooled = false }: PostgresOptions = {},
): Promise<PostgresDatabase> {
  const config = configOf(url, isPooled);
  const server = serverOf(url);
  await brought(config, server);
  // A pipelining connection is given up when it does not answer in time.
  const pool = new pg.Pool({ ...config, query_timeout: ANSWER_MS, pipeline: true, max: CONNECTIONS_MAX });
  // A connection that is lost while nobody uses it: the next one to ask gets another.
  pool.on("error", () => {});
  // One that is lost while it is used: its queries reject.
  pool.on("connect", (client) => client.on("error", () => {}));
  return handle(pool, { config, server });
}

/** Brings the schema to the newest one, which may take long. */
async function brought(config: ConnectionConfig, server: string): Promise<void> {
  const client = new config.Client(config);
  client.on("error", () => {});
  try {
    await client.connect();
    await migrate(client, server);
  } catch (error) {
    throw error instanceof StoreUnusable ? error : new StoreUnusable(explain(error, server));
  } finally {
    await client.end().catch(() => {});
  }
}

function handle(pool: pg.Pool, of: Pick<PostgresDatabase, "config" | "server">): PostgresDatabase {
  const { server } = of;
  const names = new StatementNames();
  const send = (on: pg.Pool | pg.PoolClient, text: string, parameters: readonly unknown[]) => {
    const name = names.of(text);
    const query = { text, values: parameters.map(storable) };
    return on.query(name === undefined ? query : { ...query, name });
  };
  const run = async (...[on, text, parameters]: Parameters<typeof send>) => {
    try {
      return await send(on, text, parameters);
    } catch (error) {
      if (!isOutdatedPlan(error)) throw error;
      names.renew();
      return send(on, text, parameters);
    }
  };
  const dialect = new PostgresDialect({
    pool: {
      connect: async (): Promise<PostgresPoolClient> => {
        const client = await pool.connect();
        return {
          // In a transaction an error is its end, and what is sent again fails: it has to begin again.
          query: (text: unknown, parameters?: readonly unknown[]) =>
            text === "begin" ? client.query(BEGIN) : run(client, text as string, parameters ?? []),
          release: () => client.release(),
        } as unknown as PostgresPoolClient;
      },
      end: () => pool.end(),
      options: {},
    },
  });
  const kysely = new Kysely<Schema>({ dialect });
  const explained = (error: unknown) => asUnavailable(error, server, false);
  const reading = async <Row>(text: string, parameters: readonly unknown[]) => {
    try {
      return (await run(pool, text, parameters)).rows as Row[];
    } catch (error) {
      throw explained(error);
    }
  };
  return {
    ...of,
    kysely,
    read: reading,
    readWithin: async <Row>(charsMax: number, text: string, parameters: readonly unknown[]) => {
      // The server sends no more than this, whatever the limit of rows; what is told of a page is exact (within).
      const bounded = `SELECT * FROM (
          SELECT page.*, row_number() OVER () AS page_row,
            sum(octet_length(page::text)) OVER (ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS bytes_before
          FROM (${text}) AS page
        ) AS rows WHERE page_row <= 2 OR bytes_before <= $${parameters.length + 1}`;
      const bytesMax = charsMax * BYTES_PER_CHAR_MAX;
      return within(await reading<Row & Measured>(bounded, [...parameters, bytesMax]), charsMax, bytesMax);
    },
    async transaction(work) {
      let isCommitting = false;
      try {
        return await kysely.transaction().execute(async (db) => {
          await db.executeQuery(LOCK_RECORDS);
          const value = await work(db);
          isCommitting = true;
          return value;
        });
      } catch (error) {
        throw asUnavailable(error, server, isCommitting);
      }
    },
    durable: () => DURABLE,
    durableJob: () => DURABLE,
    explained,
    damage: () => null,
    async close() {
      await kysely.destroy();
      // It closes only what it has used.
      if (!pool.ending) await pool.end();
    },
  };
}

const LOCK_RECORDS = CompiledQuery.raw("SELECT pg_advisory_xact_lock($1, $2)", [LOCKS, RECORDS_LOCK]);

interface Measured {
  page_row?: number;
  /** Of the rows before this one; null for the first. */
  bytes_before?: number | null;
}

/** Takes rows until their texts are too long; the row that exceeds the limit is dropped. */
function within<Row extends Measured>(rows: readonly Row[], charsMax: number, bytesMax: number): Page<Row> {
  const taken: Row[] = [];
  let chars = 0;
  for (const { page_row, bytes_before, ...row } of rows) {
    for (const value of Object.values(row)) if (typeof value === "string") chars += value.length;
    if (taken.length > 0 && (chars > charsMax || bytes_before! > bytesMax))
      return { rows: taken, isCut: true };
    taken.push(row as Row);
  }
  return { rows: taken, isCut: false };
}
