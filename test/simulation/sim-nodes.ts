// The rows of nodes in the simulated database, by its clock, and what they say of who may claim a job: a model of
// src/store/postgres/nodes.ts and of the journal's claim there.

import type { NodeEntry, NodeLoad, NodeRecord, Replaceable } from "../../src/cluster/nodes.ts";
import { nodeOf } from "../../src/cluster/nodes.ts";
import type { StoredJob } from "../support/memory-journal.ts";

/** How long others leave a job alone whose recovery mode is local_restart. */
const GRACE_MS = 60_000;

export class SimNodes {
  readonly rows = new Map<string, NodeRecord>();
  readonly #nowMs: () => number;

  /** @param nowMs the database's clock */
  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
  }

  register(entry: NodeEntry, leaseMs: number, replaced: Replaceable): NodeRecord | null {
    const nowMs = this.#nowMs();
    const row = this.rows.get(entry.nodeId);
    const isMine = row === undefined || replaced === "any" || replaced.includes(row.owner);
    if (!isMine && row.leaseUntilMs > nowMs) return row;
    this.rows.set(entry.nodeId, {
      ...entry,
      reserved: {},
      jobsOwned: 0,
      tasksRunning: 0,
      status: "ready",
      startedAtMs: nowMs,
      heartbeatAtMs: nowMs,
      leaseUntilMs: nowMs + leaseMs,
      connectedNodes: [],
    });
    return null;
  }

  renew({ nodeId, owner }: Pick<NodeEntry, "nodeId" | "owner">, leaseMs: number, load: NodeLoad): boolean {
    const nowMs = this.#nowMs();
    const row = this.rows.get(nodeId);
    if (row?.owner !== owner || row.leaseUntilMs <= nowMs) return false;
    this.rows.set(nodeId, { ...row, ...load, heartbeatAtMs: nowMs, leaseUntilMs: nowMs + leaseMs });
    return true;
  }

  leave({ nodeId, owner }: Pick<NodeEntry, "nodeId" | "owner">): void {
    const row = this.rows.get(nodeId);
    if (row?.owner === owner) this.rows.set(nodeId, { ...row, status: "left", leaseUntilMs: this.#nowMs() });
  }

  isLiving(owner: string): boolean {
    const row = this.rows.get(nodeOf(owner));
    return row !== undefined && row.owner === owner && row.leaseUntilMs > this.#nowMs();
  }

  living(): ReadonlySet<string> {
    return new Set([...this.rows.values()].map(({ owner }) => owner).filter((owner) => this.isLiving(owner)));
  }

  mayClaim({ owner, insert }: StoredJob, claimant: string): boolean {
    if (this.isLiving(owner)) return false;
    if (insert.recoveryPolicy !== "local_restart" || nodeOf(owner) === nodeOf(claimant)) return true;
    const row = this.rows.get(nodeOf(owner));
    return row === undefined || row.leaseUntilMs + GRACE_MS <= this.#nowMs();
  }
}
