// The rows of nodes in the simulated database, by its clock, and what they say of who may claim a job: a model of
// src/store/postgres/nodes.ts and of the journal's claim there.

import { crc32 } from "node:zlib";
import type {
  NodeEntry,
  NodeLoad,
  NodeOrder,
  NodeRecord,
  Outage,
  Registration,
  Renewal,
  Replaceable,
} from "../../src/cluster/nodes.ts";
import { nodeOf } from "../../src/cluster/nodes.ts";
import type { StoredJob } from "../support/memory-journal.ts";

/** How long others leave a job alone whose recovery mode is local_restart. */
const GRACE_MS = 60_000;
/** How long a lost job is left to the node that it falls to. */
const SHARING_MS = 1_500;
const MAINTENANCE_DRAIN_MS = 5_000;

export class SimNodes {
  readonly rows = new Map<string, NodeRecord>();
  readonly #outages = new Map<string, { readonly outage: Outage; readonly untilMs: number }>();
  /** The end of leases that were replaced. */
  readonly #formerUntilMs = new Map<string, number>();
  readonly #nowMs: () => number;

  /** @param nowMs the database's clock */
  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
  }

  register(entry: NodeEntry, leaseMs: number, replaced: Replaceable): Registration {
    const nowMs = this.#nowMs();
    const row = this.rows.get(entry.nodeId);
    const isMine = row === undefined || replaced === "any" || replaced.includes(row.owner);
    if (!isMine && row.leaseUntilMs > nowMs) return { taken: row };
    const isSameProgram = row !== undefined && replaced !== "any" && replaced.includes(row.owner);
    if (this.#outages.get(entry.nodeId)?.outage.kind === "draining" && !isSameProgram)
      this.#outages.delete(entry.nodeId);
    if (row !== undefined && row.owner !== entry.owner)
      this.#formerUntilMs.set(entry.nodeId, Math.max(this.#formerUntil(entry.nodeId), row.leaseUntilMs));
    this.rows.set(entry.nodeId, {
      ...entry,
      reserved: {},
      resources: null,
      jobsOwned: 0,
      tasksRunning: 0,
      servicesOwned: 0,
      jobsMoved: 0,
      drainUntilMs: null,
      maintenanceReason: null,
      status: "ready",
      startedAtMs: nowMs,
      heartbeatAtMs: nowMs,
      leaseUntilMs: nowMs + leaseMs,
      leaseLeftMs: leaseMs,
      connectedNodes: [],
    });
    return this.#renewalOf(entry.nodeId);
  }

  renew(
    { nodeId, owner }: Pick<NodeEntry, "nodeId" | "owner">,
    leaseMs: number,
    load: NodeLoad,
  ): Renewal | null {
    const nowMs = this.#nowMs();
    const row = this.rows.get(nodeId);
    if (row?.owner !== owner || row.leaseUntilMs <= nowMs) return null;
    this.rows.set(nodeId, { ...row, ...load, heartbeatAtMs: nowMs, leaseUntilMs: nowMs + leaseMs });
    return this.#renewalOf(nodeId);
  }

  #renewalOf(nodeId: string): Renewal {
    const hasOthers = this.present().some((row) => row.nodeId !== nodeId);
    return { outage: this.outageOf(nodeId), hasOthers };
  }

  outageOf(nodeId: string): Outage | null {
    const asked = this.#outages.get(nodeId);
    return asked === undefined ? null : { ...asked.outage, leftMs: asked.untilMs - this.#nowMs() };
  }

  order(nodeId: string, order: NodeOrder): NodeRecord | null {
    const requestedAtMs = this.#nowMs();
    const before = this.#outages.get(nodeId);
    switch (order.kind) {
      case "drain": {
        const kind = before?.outage.kind ?? "draining";
        const outage = { kind, requestedAtMs, leftMs: 0, servicesLast: order.servicesLast, isLast: false };
        this.#outages.set(nodeId, { outage, untilMs: requestedAtMs + order.withinMs });
        break;
      }
      case "undrain":
        if (before?.outage.kind === "draining") this.#outages.delete(nodeId);
        break;
      case "begin_maintenance": {
        const asked = { requestedAtMs, leftMs: 0, servicesLast: true, isLast: false, ...before?.outage };
        const untilMs = before?.untilMs ?? requestedAtMs + MAINTENANCE_DRAIN_MS;
        this.#outages.set(nodeId, { outage: { ...asked, kind: "maintenance" }, untilMs });
        break;
      }
      case "end_maintenance":
        this.#outages.delete(nodeId);
        break;
      default:
        order satisfies never;
    }
    return this.rows.get(nodeId) ?? null;
  }

  leave({ nodeId, owner }: Pick<NodeEntry, "nodeId" | "owner">): void {
    const row = this.rows.get(nodeId);
    if (row?.owner === owner) this.rows.set(nodeId, { ...row, status: "left", leaseUntilMs: this.#nowMs() });
  }

  present(): readonly NodeRecord[] {
    const nowMs = this.#nowMs();
    return Array.from(this.rows.values(), (row) => {
      const leaseLeftMs = row.leaseUntilMs - nowMs;
      return {
        ...row,
        leaseLeftMs,
        status: row.status === "ready" && leaseLeftMs <= 0 ? "lost" : row.status,
      } as const;
    }).filter(({ status }) => status !== "left");
  }

  isLiving(owner: string): boolean {
    return [...this.rows.values()].some((row) => row.owner === owner && row.leaseUntilMs > this.#nowMs());
  }

  living(): ReadonlySet<string> {
    return new Set([...this.rows.values()].map(({ owner }) => owner).filter((owner) => this.isLiving(owner)));
  }

  #formerUntil(nodeId: string): number {
    return this.#formerUntilMs.get(nodeId) ?? 0;
  }

  mayClaim({ owner, insert }: StoredJob, claimant: string): boolean {
    if (this.isLiving(owner)) return false;
    const nodeId = nodeOf(owner);
    const row = nodeId === null ? undefined : this.rows.get(nodeId);
    if (row === undefined || row.nodeId === nodeOf(claimant)) return true;
    const awaitedMs = insert.recoveryPolicy === "local_restart" && this.outageOf(row.nodeId) === null;
    const endedMs = awaitedMs
      ? row.leaseUntilMs + GRACE_MS
      : row.owner === owner
        ? row.leaseUntilMs
        : this.#formerUntil(row.nodeId);
    return endedMs + (this.#fallsTo(claimant, insert.runId) ? 0 : SHARING_MS) <= this.#nowMs();
  }

  /** Nodes that take work on have parts of the range from 0 to 1, as large as their free slots are many. */
  #fallsTo(claimant: string, runId: string): boolean {
    const takers = this.present().filter(
      ({ nodeId, leaseLeftMs }) => leaseLeftMs > 0 && this.outageOf(nodeId) === null,
    );
    if (!takers.some(({ nodeId }) => nodeId === nodeOf(claimant))) return true;
    const total = takers.reduce((sum, taker) => sum + weightOf(taker), 0);
    let upto = 0;
    const taker = takers.find((one) => {
      upto += weightOf(one);
      return (crc32(runId) / 2 ** 32) * total < upto;
    });
    return taker?.nodeId === nodeOf(claimant);
  }
}

function weightOf({ pools, reserved }: NodeRecord): number {
  const slots = Object.values(pools).reduce((sum, capacity) => sum + capacity, 0);
  return Object.values(reserved).reduce((free, pool) => free - pool.in_use, slots) || 1;
}
