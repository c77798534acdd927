// The nodes as each of them shows them: their rows, with what the node that is asked knows of itself at this moment. A
// program that shares its database with nobody is its only node.

import type { PoolSnapshot } from "../execution/pools.ts";
import {
  isLiving,
  type NodeEntry,
  type NodeLoad,
  type NodePosition,
  type NodeReads,
  type NodeRecord,
  type NodeStatus,
  type PoolUse,
} from "./nodes.ts";

/** Nodes that an overview is made of; the list has all. */
const OVERVIEW_NODES_MAX = 1_000;

type Row = Omit<
  NodeRecord,
  | "owner"
  | "leaseUntilMs"
  | "leaseLeftMs"
  | "servicesOwned"
  | "jobsMoved"
  | "drainUntilMs"
  | "maintenanceReason"
>;

/** A node as it is shown. */
export interface NodeView extends Omit<Row, "pools" | "reserved"> {
  readonly pools: Readonly<Record<string, PoolSnapshot>>;
  readonly isSelf: boolean;
}

/** The living nodes together, and how many nodes there are of each status. */
export interface ClusterTotals {
  readonly nodes: Readonly<Record<NodeStatus, number>>;
  readonly pools: Readonly<Record<string, PoolSnapshot>>;
  readonly jobsOwned: number;
  readonly tasksRunning: number;
}

/** The node that is asked. */
export interface OwnNode extends Omit<NodeEntry, "owner" | "address"> {
  load(): Omit<NodeLoad, "connectedTo" | "servicesOwned" | "jobsMoved">;
}

/** All of it throws JournalUnavailable when the rows cannot be read. */
export interface ClusterNodes {
  /** NodeReads.page */
  page(limit: number, after: NodePosition | null, name?: string): Promise<readonly NodeView[]>;
  find(nodeId: string): Promise<NodeView | null>;
  /** At most 1,000, the living ones first, by name. */
  overview(): Promise<readonly NodeView[]>;
}

/** The nodes of a database that several programs share. */
export function sharedNodes(reads: NodeReads, own: OwnNode): ClusterNodes {
  const viewed = (record: NodeRecord) => {
    const isSelf = record.nodeId === own.nodeId;
    return viewOf(isSelf ? { ...record, ...own.load() } : record, isSelf);
  };
  const all = async (records: Promise<readonly NodeRecord[]>) => (await records).map(viewed);
  return {
    page: (limit, after, name) => all(reads.page(limit, after, name)),
    async find(nodeId) {
      const record = await reads.find(nodeId);
      return record === null ? null : viewed(record);
    },
    overview: () => all(reads.livingFirst(OVERVIEW_NODES_MAX)),
  };
}

/** The one node of a database that is its own. */
export function onlyNode(
  own: OwnNode,
  startedAtMs: number,
  { isStopping, nowMs }: { readonly isStopping: () => boolean; readonly nowMs: () => number },
): ClusterNodes {
  const view = () => {
    const status = isStopping() ? ("draining" as const) : ("ready" as const);
    const now = { ...own.load(), status, startedAtMs, heartbeatAtMs: nowMs() };
    return viewOf({ ...own, ...now, address: null, connectedNodes: [] }, true);
  };
  return {
    page: async (_limit, after, name = own.name) => (after === null && name === own.name ? [view()] : []),
    find: async (nodeId) => (nodeId === own.nodeId ? view() : null),
    overview: async () => [view()],
  };
}

const UNUSED: PoolUse = { in_use: 0, queued: 0, active: 0 };

function viewOf({ pools: capacities, reserved, ...node }: Row, isSelf: boolean): NodeView {
  const pools = Object.entries(capacities).map(([name, capacity]): [string, PoolSnapshot] => {
    const { in_use, queued, active } = reserved[name] ?? UNUSED;
    return [name, { capacity, available: capacity - in_use, in_use, queued, active }];
  });
  return { ...node, pools: Object.fromEntries(pools), isSelf };
}

export function totalsOf(nodes: readonly NodeView[]): ClusterTotals {
  const byStatus: Record<NodeStatus, number> = { ready: 0, draining: 0, maintenance: 0, lost: 0, left: 0 };
  for (const { status } of nodes) byStatus[status]++;
  const living = nodes.filter(isLiving);
  const pools: Record<string, PoolSnapshot> = {};
  for (const [name, pool] of living.flatMap((node) => Object.entries(node.pools)))
    pools[name] = added(pools[name], pool);
  return {
    nodes: byStatus,
    pools,
    jobsOwned: living.reduce((sum, { jobsOwned }) => sum + jobsOwned, 0),
    tasksRunning: living.reduce((sum, { tasksRunning }) => sum + tasksRunning, 0),
  };
}

function added(one: PoolSnapshot | undefined, other: PoolSnapshot): PoolSnapshot {
  if (one === undefined) return other;
  return {
    capacity: one.capacity + other.capacity,
    available: one.available + other.available,
    in_use: one.in_use + other.in_use,
    queued: one.queued + other.queued,
    active: one.active + other.active,
  };
}
