// The rows of nodes on PostgreSQL. Leases are by the database's clock.
//
// - They have a connection of their own: a renewal waits for no other work of this program.
// - Every call settles within the time limit; a connection that did not answer in time is given up, and the next call has
//   another. Whatever goes wrong is a JournalUnavailable: a lease depends on its being tried again.

import { sql } from "kysely";
import type pg from "pg";
import type {
  NodeEntry,
  NodeLoad,
  NodeOrder,
  NodeReads,
  NodeRecord,
  NodeRecords,
  NodeStatus,
  Registration,
  Renewal,
  Replaceable,
} from "../../cluster/nodes.ts";
import { type Admits, checkAdmitted } from "../sql/admitted.ts";
import { type Database, StoreUnusable } from "../sql/database.ts";
import { NOW } from "../sql/database-clock.ts";
import { OTHER_KEY } from "./cluster.ts";
import type { ConnectionConfig } from "./connection.ts";
import { scopeOf, unavailable } from "./errors.ts";
import { newestStep } from "./migrate.ts";
import { storable } from "./values.ts";

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
  readonly resources_json: string | null;
  readonly jobs_owned: number;
  readonly tasks_running: number;
  readonly started_at: number;
  readonly heartbeat_at: number;
  readonly lease_until: number;
  readonly lease_left: number;
  readonly connected_json: string;
  readonly drain_until: number | null;
  readonly maintenance_reason: string | null;
  readonly services_owned: number;
  readonly jobs_moved: number;
  readonly removed_at: number | null;
}

interface OutageRow {
  readonly drain_left: number | null;
  readonly drain_services_last: number;
  readonly drain_requested_at: number | null;
  readonly maintenance: number;
  readonly leaves: number;
  readonly has_others: boolean;
}

const STATUS = `CASE
    WHEN nodes.status = 'left' THEN 'left'
    WHEN lease_until <= ${NOW} THEN 'lost'
    WHEN maintenance = 1 THEN 'maintenance'
    WHEN drain_until IS NOT NULL THEN 'draining'
    ELSE nodes.status END AS status`;

/** A row as it is now. Not "*": the statements stay good when a newer program adds columns. */
const ROW = `node_id, owner, name, address, version, labels_json, pools_json, totals_json, reserved_json, resources_json,
  jobs_owned, tasks_running, started_at, heartbeat_at, lease_until, connected_json, drain_until, maintenance_reason,
  services_owned, jobs_moved, removed_at, lease_until - ${NOW} AS lease_left, ${STATUS}`;

const READ = `SELECT ${ROW} FROM nodes`;
const PRESENT = "WHERE nodes.status <> 'left' ORDER BY name, node_id";

/** NodeReads.page */
const NAMED = `SELECT node_id FROM nodes WHERE name = $4
  ORDER BY status = 'left', removed_at DESC NULLS FIRST FETCH FIRST ROW WITH TIES`;

const OUTAGE = `RETURNING drain_until - ${NOW} AS drain_left, drain_services_last, drain_requested_at, maintenance, leaves,
    EXISTS (SELECT FROM nodes AS others WHERE others.node_id <> $1 AND others.status <> 'left') AS has_others`;

/** Is kept in maintenance, and when the same program has another lease. */
const isAsked = (what: string) =>
  `CASE WHEN nodes.maintenance = 1 OR nodes.owner = ANY ($10) THEN ${what} END`;

const REGISTER = `
  INSERT INTO nodes (node_id, owner, name, address, version, status, labels_json, pools_json, totals_json,
      reserved_json, jobs_owned, tasks_running, started_at, heartbeat_at, lease_until)
    SELECT $1, $2, $3, $4, $5, 'ready', $6, $7, $8, '{}', 0, 0, ${NOW}, ${NOW}, ${NOW} + $9
    WHERE NOT EXISTS (SELECT FROM cluster WHERE sealing_key_id <> $12)
      AND NOT EXISTS (SELECT FROM schema_admits WHERE oldest > $13)
  ON CONFLICT (node_id) DO UPDATE SET owner = excluded.owner, name = excluded.name, address = excluded.address,
      version = excluded.version, status = excluded.status, labels_json = excluded.labels_json,
      pools_json = excluded.pools_json, totals_json = excluded.totals_json, reserved_json = excluded.reserved_json,
      jobs_owned = excluded.jobs_owned, tasks_running = excluded.tasks_running, started_at = excluded.started_at,
      heartbeat_at = excluded.heartbeat_at, lease_until = excluded.lease_until, connected_json = excluded.connected_json,
      former_until = CASE WHEN nodes.owner = excluded.owner THEN nodes.former_until
        ELSE greatest(nodes.former_until, nodes.lease_until) END,
      drain_until = ${isAsked("nodes.drain_until")}, drain_requested_at = ${isAsked("nodes.drain_requested_at")},
      leaves = CASE WHEN nodes.owner = ANY ($10) THEN nodes.leaves ELSE 0 END
    WHERE (nodes.lease_until <= ${NOW} OR nodes.owner = ANY ($10) OR $11) AND nodes.removed_at IS NULL
  ${OUTAGE}`;

const RENEW = `
  UPDATE nodes SET heartbeat_at = ${NOW}, lease_until = ${NOW} + $3, reserved_json = $4, jobs_owned = $5, tasks_running = $6,
      connected_json = (SELECT coalesce(json_agg(node_id ORDER BY node_id), '[]')::text FROM nodes AS others
        WHERE address = ANY ($7) AND node_id <> $1 AND lease_until > ${NOW}),
      services_owned = $8, jobs_moved = $9, resources_json = $10
    WHERE node_id = $1 AND owner = $2 AND lease_until > ${NOW} AND removed_at IS NULL
  ${OUTAGE}`;

/** How long what runs has when maintenance begins of a node that is not drained. */
const MAINTENANCE_DRAIN_MS = 300_000;

const ORDERS: Readonly<Record<NodeOrder["kind"], string>> = {
  drain: `drain_until = ${NOW} + $2, drain_services_last = $3, drain_requested_at = ${NOW}`,
  undrain: ["drain_until", "drain_requested_at"]
    .map((column) => `${column} = CASE WHEN maintenance = 1 THEN ${column} END, `)
    .concat("leaves = 0")
    .join(""),
  begin_maintenance: `maintenance = 1, maintenance_reason = $2,
    drain_until = coalesce(drain_until, ${NOW} + ${MAINTENANCE_DRAIN_MS}), drain_requested_at = coalesce(drain_requested_at, ${NOW})`,
  end_maintenance:
    "maintenance = 0, maintenance_reason = NULL, drain_until = NULL, drain_requested_at = NULL, leaves = 0",
};

export class PostgresNodes implements NodeRecords {
  readonly #config: ConnectionConfig;
  readonly #server: string;
  readonly #keyId: () => string | null;
  #client: Promise<pg.Client> | null = null;

  /**
   * @param limitMs how long a call may take
   * @param keyId of the key that this program encrypts with; null: with none
   */
  constructor(
    { config, server }: { readonly config: ConnectionConfig; readonly server: string },
    limitMs: number,
    keyId: () => string | null,
  ) {
    this.#config = { ...config, connectionTimeoutMillis: limitMs, query_timeout: limitMs };
    this.#server = server;
    this.#keyId = keyId;
  }

  async register(entry: NodeEntry, leaseMs: number, replaced: Replaceable): Promise<Registration> {
    const { nodeId, owner, name, address, version, labels, pools, totals } = entry;
    const isAny = replaced === "any";
    const json = [labels, pools, totals].map((value) => JSON.stringify(value));
    const keyId = this.#keyId();
    const owners = isAny ? [] : replaced;
    const given = [
      nodeId,
      owner,
      name,
      address,
      version,
      ...json,
      leaseMs,
      owners,
      isAny,
      keyId,
      newestStep(),
    ];
    const [registered] = await this.#run<OutageRow>("register_node", REGISTER, given);
    if (registered !== undefined) return renewalOf(registered);
    // The key was replaced while this node had no lease: what it encrypts could not be decrypted by any other.
    const [other] = await this.#run("other_key", "SELECT FROM cluster WHERE sealing_key_id <> $1", [keyId]);
    if (other !== undefined) throw new StoreUnusable(OTHER_KEY);
    // So was the schema, by a program that admits only newer ones than this.
    const [admits] = await this.#run<Admits>(
      "schema_admits",
      "SELECT oldest, version FROM schema_admits",
      [],
    );
    checkAdmitted(this.#server, admits, [newestStep()]);
    const [row] = await this.#run<Row>("find_node", `${READ} WHERE node_id = $1`, [nodeId]);
    // It was forgotten meanwhile.
    if (row === undefined) return this.register(entry, leaseMs, replaced);
    return row.removed_at === null ? { taken: recordOf(row) } : { removed: true };
  }

  async renew(
    node: Pick<NodeEntry, "nodeId" | "owner">,
    leaseMs: number,
    load: NodeLoad,
  ): Promise<Renewal | null> {
    const { reserved, resources, jobsOwned, tasksRunning, connectedTo, servicesOwned, jobsMoved } = load;
    const counts = [jobsOwned, tasksRunning, connectedTo, servicesOwned, jobsMoved];
    const given = [
      node.nodeId,
      node.owner,
      leaseMs,
      JSON.stringify(reserved),
      ...counts,
      JSON.stringify(resources),
    ];
    const [row] = await this.#run<OutageRow>("renew_node", RENEW, given);
    return row === undefined ? null : renewalOf(row);
  }

  async order(nodeId: string, order: NodeOrder): Promise<NodeRecord | null> {
    const { kind } = order;
    const given: unknown[] = [nodeId];
    if (kind === "drain") given.push(order.withinMs, Number(order.servicesLast));
    if (kind === "begin_maintenance") given.push(order.reason);
    const text = `UPDATE nodes SET ${ORDERS[kind]} WHERE node_id = $1 RETURNING ${ROW}`;
    const [row] = await this.#run<Row>(`order_${kind}`, text, given);
    return row === undefined ? null : recordOf(row);
  }

  async leave({ nodeId, owner }: Pick<NodeEntry, "nodeId" | "owner">): Promise<void> {
    const text = `UPDATE nodes SET status = 'left', lease_until = least(lease_until, ${NOW})
      WHERE node_id = $1 AND owner = $2`;
    await this.#run("leave_nodes", text, [nodeId, owner]);
  }

  async present(): Promise<readonly NodeRecord[]> {
    return (await this.#run<Row>("present_nodes", `${READ} ${PRESENT}`, [])).map(recordOf);
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
    let client: pg.Client | null = null;
    try {
      client = await connecting;
      return (await client.query({ name, text, values: values.map(storable) })).rows as One[];
    } catch (error) {
      // What it still has under way must not hold up the next call; a refused statement leaves it as it was.
      if (client === null || scopeOf(error) === "passing") this.#drop(connecting);
      throw unavailable(error, this.#server, true);
    }
  }

  #connect(): Promise<pg.Client> {
    // A pipelining connection is given up when a query takes too long.
    const client = new this.#config.Client({ ...this.#config, pipeline: true });
    client.on("error", () => {});
    const connecting = client.connect().then(() => client);
    client.on("end", () => this.#drop(connecting));
    return connecting;
  }

  #drop(connecting: Promise<pg.Client>): void {
    if (this.#client === connecting) this.#client = null;
    connecting.then((client) => client.end()).catch(() => {});
  }
}

/** On the connections of the records. */
export function nodeReads(database: Pick<Database, "read">): NodeReads {
  const read = async (text: string, values: readonly unknown[]) =>
    (await database.read<Row>(`${READ} ${text}`, values)).map(recordOf);
  return {
    present: () => read(PRESENT, []),
    page: (limit, after, name) =>
      read(
        `WHERE ($2::text IS NULL OR (name, node_id) > ($2, $3)) AND ($4::text IS NULL OR node_id IN (${NAMED}))
          ORDER BY name, node_id LIMIT $1`,
        [limit, after?.name ?? null, after?.nodeId ?? null, name ?? null],
      ),
    find: async (nodeId) => (await read("WHERE node_id = $1", [nodeId]))[0] ?? null,
    livingFirst: (limit) => read(`ORDER BY lease_until <= ${NOW}, name, node_id LIMIT $1`, [limit]),
  };
}

/** Since when a node that has left, or is lost, is taken to be gone for good. */
export const AWAY_MS_MAX = 30 * 24 * 60 * 60 * 1_000;

/**
 * Removes the rows of nodes that are gone for good and have no open job. Those in maintenance stay, and those that were
 * removed: they are to be known when they come back.
 */
export async function forgetNodes({ transaction }: Pick<Database, "transaction">): Promise<void> {
  // "0" is behind "/": the names of a node's owners are between the two.
  const text =
    sql.raw(`DELETE FROM nodes WHERE lease_until <= ${NOW} - ${AWAY_MS_MAX} AND maintenance = 0 AND removed_at IS NULL
    AND NOT EXISTS (SELECT FROM jobs WHERE terminal = 0 AND jobs.owner > node_id || '/' AND jobs.owner < node_id || '0')`);
  await transaction((db) => sql`${text}`.execute(db));
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
    resources: JSON.parse(row.resources_json ?? "null") as NodeRecord["resources"],
    jobsOwned: row.jobs_owned,
    tasksRunning: row.tasks_running,
    startedAtMs: row.started_at,
    heartbeatAtMs: row.heartbeat_at,
    leaseUntilMs: row.lease_until,
    leaseLeftMs: row.lease_left,
    connectedNodes: JSON.parse(row.connected_json) as NodeRecord["connectedNodes"],
    drainUntilMs: row.drain_until,
    maintenanceReason: row.maintenance_reason,
    servicesOwned: row.services_owned,
    jobsMoved: row.jobs_moved,
  };
}

function renewalOf(row: OutageRow): Renewal {
  if (row.drain_left === null || row.drain_requested_at === null)
    return { outage: null, hasOthers: row.has_others };
  return {
    hasOthers: row.has_others,
    outage: {
      kind: row.maintenance === 1 ? "maintenance" : "draining",
      requestedAtMs: row.drain_requested_at,
      leftMs: row.drain_left,
      servicesLast: row.drain_services_last === 1,
      isLast: row.leaves === 1,
    },
  };
}
