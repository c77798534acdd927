// Nodes: the programs that share one database. Each has a row, and with it a lease by the database's clock.
//
// - A node is a home: its id is made once, and kept there. An owner is one start of a node, or one stretch of work under
//   one lease, `<node id>/<id>`: what it has taken on carries this name, and no other stretch ever has it.
// - An owner is alive while its lease is valid. What others have taken on may be taken over.

import type { JsonObject } from "../engine/json.ts";
import type { MachineTotals, MachineUse, Reserved } from "../execution/machine-resources.ts";
import type { PoolSnapshot } from "../execution/pools.ts";

export const nodeStates = ["ready", "draining", "maintenance", "lost", "left"] as const;

export type NodeStatus = (typeof nodeStates)[number];

/** What a node says of itself when it begins. */
export interface NodeEntry {
  readonly nodeId: string;
  readonly owner: string;
  readonly name: string;
  /** Where other nodes reach it, as host:port; null: nowhere. */
  readonly address: string | null;
  readonly version: string;
  readonly labels: Readonly<Record<string, string>>;
  /** Slots of each executor pool. */
  readonly pools: Readonly<Record<string, number>>;
  /** What the machine has. */
  readonly totals: JsonObject;
}

export type PoolUse = Pick<PoolSnapshot, "in_use" | "queued" | "active">;

/** The resources of a node's machine. */
export interface NodeResources {
  readonly totals: MachineTotals;
  /** What commands may have of it, within the limits. */
  readonly effective: MachineTotals;
  readonly reserved: Reserved;
  readonly used: MachineUse;
  /** Those in its home; absent of a program that has none. */
  readonly volumes?: readonly string[];
  /** By their paths; absent of a program that gives out none. */
  readonly devices?: readonly string[];
}

/** What a machine has, by the names that clients see. */
export function totalsShown({ cpuCores, memoryBytes, diskBytes, gpus }: MachineTotals): JsonObject {
  const cards = gpus.map((gpu) => ({ index: gpu.index, name: gpu.name, memory_bytes: gpu.memoryBytes }));
  return { cpu_cores: cpuCores, memory_bytes: memoryBytes, disk_bytes: diskBytes, gpus: cards };
}

/** What a node says of itself with each renewal. */
export interface NodeLoad {
  readonly resources: NodeResources;
  /** Of each executor pool. */
  readonly reserved: Readonly<Record<string, PoolUse>>;
  readonly jobsOwned: number;
  readonly tasksRunning: number;
  /** The addresses to which it has connections. */
  readonly connectedTo: readonly string[];
  /** While its jobs leave it: services that are still there, and jobs that are gone. */
  readonly servicesOwned: number;
  readonly jobsMoved: number;
}

/** Why a node takes nothing on: its jobs leave it, and attempts that still run at its deadline are ended. */
export interface Outage {
  /** Maintenance goes on when the node's program starts again. */
  readonly kind: "draining" | "maintenance";
  /** By the database's clock: another request has another time. */
  readonly requestedAtMs: number;
  /** From now to the deadline, as the database has them; less than 0 behind it. */
  readonly leftMs: number;
  /** Whether services stay until no other job is left. */
  readonly servicesLast: boolean;
  /** Whether nothing is left, and the node's program is to end. */
  readonly isLast: boolean;
}

/** What is asked of a node. */
export type NodeOrder =
  | { readonly kind: "drain"; readonly withinMs: number; readonly servicesLast: boolean }
  /** Changes nothing in maintenance. */
  | { readonly kind: "undrain" }
  | { readonly kind: "begin_maintenance"; readonly reason: string | null }
  | { readonly kind: "end_maintenance" };

/** A node as its row has it. Times are the database's. */
export interface NodeRecord extends NodeEntry, Omit<NodeLoad, "connectedTo" | "resources"> {
  /** Null of a program that does not tell them. */
  readonly resources: NodeResources | null;
  /** The ids of the living nodes that it had connections to when its lease was renewed last. */
  readonly connectedNodes: readonly string[];
  /** `lost` once the lease is over of a node that has not left. */
  readonly status: NodeStatus;
  readonly startedAtMs: number;
  readonly heartbeatAtMs: number;
  readonly leaseUntilMs: number;
  /** When the row was read; not more than 0 once the lease is over. */
  readonly leaseLeftMs: number;
  /** Null while its jobs stay. */
  readonly drainUntilMs: number | null;
  readonly maintenanceReason: string | null;
}

/** Which valid lease of the node's own a registration may put an end to: that of these owners, or whosever it is. */
export type Replaceable = readonly string[] | "any";

/**
 * The rows of all nodes. Every call settles, also when the database does not answer.
 *
 * All throw JournalUnavailable.
 */
export interface NodeRecords {
  /**
   * Gives the node a lease of `leaseMs` from now on, under a new owner or once more under the same.
   *
   * @param replaced which valid lease of this node ends by that
   * @returns the row that has a valid lease and is not replaced, or that the node was removed; else, it has got its lease
   * @throws StoreUnusable when this program's secret key is not that of the others any more
   */
  register(entry: NodeEntry, leaseMs: number, replaced: Replaceable): Promise<Registration>;
  /**
   * Prolongs a lease that is still valid to `leaseMs` from now on.
   * @returns null when it was not valid, or is another owner's
   */
  renew(node: Pick<NodeEntry, "nodeId" | "owner">, leaseMs: number, load: NodeLoad): Promise<Renewal | null>;
  /** Ends the lease: what the owner has left may be taken over. */
  leave(node: Pick<NodeEntry, "nodeId" | "owner">): Promise<void>;
  /** Those that have not left, by name. */
  present(): Promise<readonly NodeRecord[]>;
  living(): Promise<ReadonlySet<string>>;
  /**
   * Asks something of a node, which learns of it with its next renewal. Asking again changes nothing but the deadline.
   * @returns its row behind that; null when there is no such node
   */
  order(nodeId: string, order: NodeOrder): Promise<NodeRecord | null>;
}

/** For those who ask nodes for something. */
export interface NodeOrders extends Pick<NodeRecords, "order"> {
  find(nodeId: string): Promise<NodeRecord | null>;
}

/** What is asked of the node; null: to work. */
export interface Renewal {
  readonly outage: Outage | null;
  /** Whether there are rows of other nodes that have not left. */
  readonly hasOthers: boolean;
}

export type Registration = Renewal | { readonly taken: NodeRecord } | { readonly removed: true };

/** In the order of a list of nodes. */
export type NodePosition = Pick<NodeEntry, "name" | "nodeId">;

/**
 * The rows of all nodes for who looks at the cluster; nobody's lease waits for it.
 *
 * All throw JournalUnavailable.
 */
export interface NodeReads {
  /** Those that have not left, by name. */
  present(): Promise<readonly NodeRecord[]>;
  /**
   * By name.
   *
   * @param name of this name only those that have not left; else those that have; else the one that was removed last
   */
  page(limit: number, after: NodePosition | null, name?: string): Promise<readonly NodeRecord[]>;
  find(nodeId: string): Promise<NodeRecord | null>;
  /** Living ones first, by name. */
  livingFirst(limit: number): Promise<readonly NodeRecord[]>;
}

/** Whether it takes new work on. */
export function isReady({ status }: Pick<NodeRecord, "status">): boolean {
  return status === "ready";
}

export function isLiving({ status }: Pick<NodeRecord, "status">): boolean {
  return status !== "lost" && status !== "left";
}

export function ownerOf(nodeId: string, id: string): string {
  return `${nodeId}/${id}`;
}

/** The host of a node's address. */
export function hostOf(address: string): string {
  return address.slice(0, address.lastIndexOf(":")).replace(/^\[(.*)\]$/, "$1");
}

/** The node that works, or has worked, under this name; null of what no node has taken on (FREE_OWNER). */
export function nodeOf(owner: string): string | null {
  const end = owner.lastIndexOf("/");
  return end < 0 ? null : owner.slice(0, end);
}
