// The rows of nodes on PostgreSQL. Leases are by the database's clock.
//
// - They have a connection of their own: a renewal waits for no other work of this program.
// - Every call settles within the time limit; a connection that did not answer in time is given up, and the next call has
//   another.

import type pg from "pg";
import type {
  NodeEntry,
  NodeLoad,
  NodeReads,
  NodeRecord,
  NodeRecords,
  NodeStatus,
  Replaceable,
} from "../../cluster/nodes.ts";
import type { Database } from "../sql/database.ts";
import type { ConnectionConfig } from "./connection.ts";
import { asUnavailable } from "./errors.ts";

/** Milliseconds since 1970, as the database has them now. */
export const NOW = "(extract(epoch FROM clock_timestamp()) * 1000)::bigint";

interface Row {
  readonly node_id: string;
  readonly owner: string;
  readonly name: string;
  readonly address: string | null;
  readonly version: string;
  readonly status: NodeStatus;
  readonly labels_json: string;
  readonly pools_json: string;
  readonly totals_json: string;
  readonly reserved_json: string;
  readonly jobs_owned: number;
  readonly tasks_running: number;
  readonly started_at: number;
  readonly heartbeat_at: number;
  readonly lease_until: number;
  readonly connected_json: string;
}

const READ = `SELECT *, CASE WHEN status <> 'left' AND lease_until <= ${NOW} THEN 'lost' ELSE status END AS status
  FROM nodes`;

const REGISTER = `
  INSERT INTO nodes (node_id, owner, name, address, version, status, labels_json, pools_json, totals_json,
      reserved_json, jobs_owned, tasks_running, started_at, heartbeat_at, lease_until)
    VALUES ($1, $2, $3, $4, $5, 'ready', $6, $7, $8, '{}', 0, 0, ${NOW}, ${NOW}, ${NOW} + $9)
  ON CONFLICT (node_id) DO UPDATE SET owner = excluded.owner, name = excluded.name, address = excluded.address,
      version = excluded.version, status = excluded.status, labels_json = excluded.labels_json,
      pools_json = excluded.pools_json, totals_json = excluded.totals_json, reserved_json = excluded.reserved_json,
      jobs_owned = excluded.jobs_owned, tasks_running = excluded.tasks_running, started_at = excluded.started_at,
      heartbeat_at = excluded.heartbeat_at, lease_until = excluded.lease_until, connected_json = excluded.connected_json
    WHERE nodes.lease_until <= ${NOW} OR nodes.owner = ANY ($10) OR $11
  RETURNING node_id`;

const RENEW = `
  UPDATE nodes SET heartbeat_at = ${NOW}, lease_until = ${NOW} + $3, reserved_json = $4, jobs_owned = $5, tasks_running = $6,
      connected_json = (SELECT coalesce(json_agg(node_id ORDER BY node_id), '[]')::text FROM nodes AS others
        WHERE address = ANY ($7) AND node_id <> $1 AND lease_until > ${NOW})
    WHERE node_id = $1 AND owner = $2 AND lease_until > ${NOW}
  RETURNING node_id`;

export class PostgresNodes implements NodeRecords {
  readonly #config: ConnectionConfig;
  readonly #server: string;
  #client: Promise<pg.Client> | null = null;

  /** @param limitMs how long a call may take */
  constructor(
    { config, server }: { readonly config: ConnectionConfig; readonly server: string },
    limitMs: number,
  ) {
    this.#config = { ...config, connectionTimeoutMillis: limitMs, query_timeout: limitMs };
    this.#server = server;
  }

  async register(entry: NodeEntry, leaseMs: number, replaced: Replaceable): Promise<NodeRecord | null> {
    const { nodeId, owner, name, address, version, labels, pools, totals } = entry;
    const isAny = replaced === "any";
    const json = [labels, pools, totals].map((value) => JSON.stringify(value));
    const given = [nodeId, owner, name, address, version, ...json, leaseMs, isAny ? [] : replaced, isAny];
    if ((await this.#run("register_node", REGISTER, given)).length > 0) return null;
    const [row] = await this.#run<Row>("find_node", `${READ} WHERE node_id = $1`, [nodeId]);
    return row === undefined ? null : recordOf(row);
  }

  async renew(node: Pick<NodeEntry, "nodeId" | "owner">, leaseMs: number, load: NodeLoad): Promise<boolean> {
    const { reserved, jobsOwned, tasksRunning, connectedTo } = load;
    const counts = [JSON.stringify(reserved), jobsOwned, tasksRunning];
    const given = [node.nodeId, node.owner, leaseMs, ...counts, connectedTo];
    return (await this.#run("renew_node", RENEW, given)).length > 0;
  }

  async leave({ nodeId, owner }: Pick<NodeEntry, "nodeId" | "owner">): Promise<void> {
    const text = `UPDATE nodes SET status = 'left', lease_until = least(lease_until, ${NOW})
      WHERE node_id = $1 AND owner = $2`;
    await this.#run("leave_nodes", text, [nodeId, owner]);
  }

  async all(): Promise<readonly NodeRecord[]> {
    const rows = await this.#run<Row>("all_nodes", `${READ} ORDER BY name, node_id`, []);
    return rows.map(recordOf);
  }

  async living(): Promise<ReadonlySet<string>> {
    const text = `SELECT owner FROM nodes WHERE lease_until > ${NOW}`;
    return new Set((await this.#run<Row>("living_owners", text, [])).map(({ owner }) => owner));
  }

  /** To be called when nothing is under way. */
  async close(): Promise<void> {
    const client = await this.#client?.catch(() => null);
    await client?.end().catch(() => {});
  }

  async #run<One>(name: string, text: string, values: readonly unknown[]): Promise<readonly One[]> {
    this.#client ??= this.#connect();
    const connecting = this.#client;
    try {
      const client = await connecting;
      return (await client.query({ name, text, values: [...values] })).rows as One[];
    } catch (error) {
      // What it still has under way must not hold up the next call.
      if (this.#client === connecting) this.#client = null;
      connecting.then((client) => client.end()).catch(() => {});
      throw asUnavailable(error, this.#server, true);
    }
  }

  async #connect(): Promise<pg.Client> {
    // A pipelining connection is given up when a query takes too long.
    const client = new this.#config.Client({ ...this.#config, pipeline: true });
    client.on("error", () => {});
    await client.connect();
    return client;
  }
}

/** On the connections of the records. */
export function nodeReads(database: Pick<Database, "read">): NodeReads {
  const read = async (text: string, values: readonly unknown[]) =>
    (await database.read<Row>(`${READ} ${text}`, values)).map(recordOf);
  return {
    page: (limit, after) =>
      after === null
        ? read("ORDER BY name, node_id LIMIT $1", [limit])
        : read("WHERE (name, node_id) > ($2, $3) ORDER BY name, node_id LIMIT $1", [
            limit,
            after.name,
            after.nodeId,
          ]),
    find: async (nodeId) => (await read("WHERE node_id = $1", [nodeId]))[0] ?? null,
    livingFirst: (limit) => read(`ORDER BY lease_until <= ${NOW}, name, node_id LIMIT $1`, [limit]),
  };
}

function recordOf(row: Row): NodeRecord {
  return {
    nodeId: row.node_id,
    owner: row.owner,
    name: row.name,
    address: row.address,
    version: row.version,
    status: row.status,
    labels: JSON.parse(row.labels_json) as NodeRecord["labels"],
    pools: JSON.parse(row.pools_json) as NodeRecord["pools"],
    totals: JSON.parse(row.totals_json) as NodeRecord["totals"],
    reserved: JSON.parse(row.reserved_json) as NodeRecord["reserved"],
    jobsOwned: row.jobs_owned,
    tasksRunning: row.tasks_running,
    startedAtMs: row.started_at,
    heartbeatAtMs: row.heartbeat_at,
    leaseUntilMs: row.lease_until,
    connectedNodes: JSON.parse(row.connected_json) as NodeRecord["connectedNodes"],
  };
}
