// A look at a PostgreSQL server, for `troupe doctor` and programs that join a cluster: it writes no table.

import { StoreUnusable } from "../sql/database.ts";
import { NOW } from "../sql/database-clock.ts";
import { BEGIN, configOf, serverOf } from "./connection.ts";
import { explain } from "./errors.ts";
import { checkSchema, checkServer } from "./migrate.ts";

const COMMITS = 5;
/** How long the server may take for an answer. */
const ANSWER_MS = 10_000;

export interface ExaminedServer {
  readonly server: string;
  readonly version: string;
  /** Of the server's clock before this machine's, in ms; less than 0 when it is behind. */
  readonly clockAheadMs: number;
  /** How long a commit took, the answer included: the median. */
  readonly commitMs: number;
}

/**
 * @param clocks wall time and monotonic time, in ms
 * @throws StoreUnusable when the program could not use it
 */
export async function examinePostgres(
  url: string,
  isPooled: boolean,
  clocks: { readonly nowMs: () => number; readonly stopwatch: () => number },
): Promise<ExaminedServer> {
  const server = serverOf(url);
  const config = { ...configOf(url, isPooled), query_timeout: ANSWER_MS };
  const client = new config.Client(config);
  client.on("error", () => {});
  try {
    await client.connect();
    await checkServer(client, server);
    const beforeMs = clocks.nowMs();
    const { rows } = await client.query<{ version: string; nowMs: number }>(
      `SELECT current_setting('server_version') AS version,
         ${NOW} AS "nowMs"`,
    );
    const [found] = rows;
    const clockAheadMs = Math.round((found?.nowMs ?? 0) - (beforeMs + clocks.nowMs()) / 2);
    const took: number[] = [];
    for (let i = 0; i < COMMITS; i++) {
      const fromMs = clocks.stopwatch();
      // Something for the log, or the commit would sync nothing.
      await client.query(`${BEGIN}; SELECT pg_logical_emit_message(true, 'troupe doctor', ''); COMMIT`);
      took.push(clocks.stopwatch() - fromMs);
    }
    took.sort((a, b) => a - b);
    return { server, version: found?.version ?? "", clockAheadMs, commitMs: took[COMMITS >> 1]! };
  } catch (error) {
    throw error instanceof StoreUnusable ? error : new StoreUnusable(explain(error, server));
  } finally {
    await client.end().catch(() => {});
  }
}

export interface ExaminedCluster {
  readonly sealingKeyId: string;
  /** Of the living nodes that others reach. */
  readonly addresses: readonly string[];
}

/**
 * Looks at the database of a cluster.
 *
 * @throws StoreUnusable when the program could not use it; the message does not name it
 */
export async function examineCluster(url: string, isPooled: boolean): Promise<ExaminedCluster> {
  const server = "of the cluster";
  const config = { ...configOf(url, isPooled), query_timeout: ANSWER_MS };
  const client = new config.Client(config);
  client.on("error", () => {});
  try {
    await client.connect();
    await checkServer(client, server);
    const { rows: tables } = await client.query("SELECT WHERE to_regclass('expected_nodes') IS NOT NULL");
    if (tables.length === 0)
      throw new StoreUnusable(
        "No cluster of this version uses the database: start its first node with SVC_DATABASE_URL.",
      );
    await checkSchema(client, server);
    const { rows } = await client.query<{ sealing_key_id: string }>("SELECT sealing_key_id FROM cluster");
    const nodes = await client.query<{ address: string }>(
      `SELECT address FROM nodes WHERE lease_until > ${NOW} AND address IS NOT NULL ORDER BY name`,
    );
    return {
      sealingKeyId: rows[0]?.sealing_key_id ?? "",
      addresses: nodes.rows.map(({ address }) => address),
    };
  } catch (error) {
    if (error instanceof StoreUnusable) throw error;
    throw new StoreUnusable(explain(error, server).replaceAll(new URL(url).hostname, "its host"));
  } finally {
    await client.end().catch(() => {});
  }
}
