// The other nodes, as their rows say, read again and again while there are some; the renewals of this node's lease tell of the
// first. What is known of them is as old as one reading; nothing depends on its being newer: what a lease protects is decided by
// the database.

import { JournalUnavailable } from "../engine/journal.ts";
import type { Clock, EngineLog } from "../engine/ports.ts";
import { isLiving, type NodeRecord, type NodeRecords } from "./nodes.ts";

/** The database's clock is read in whole milliseconds. */
const BEHIND_END_MS = 5;

export interface NodeWatchParts {
  /** This node's. */
  readonly nodeId: string;
  readonly records: Pick<NodeRecords, "present">;
  readonly everyMs: number;
  /** The other nodes, those that are lost among them. */
  readonly onOthers: (others: readonly NodeRecord[]) => void;
  /** These owners were alive, and are not: nothing of them runs any more, and what they had may be taken over. */
  readonly onOver: (owners: readonly string[]) => void;
  readonly clock: Pick<Clock, "after">;
  readonly log: EngineLog;
}

export class NodeWatch {
  readonly #parts: NodeWatchParts;
  /** No reading is under way, nor will one follow by itself. */
  #isIdle = false;
  #others: readonly NodeRecord[] = [];
  #isStopped = false;
  #cancel = () => {};

  constructor(parts: NodeWatchParts) {
    this.#parts = parts;
  }

  /** The first reading; the others follow by themselves. */
  async start(): Promise<void> {
    await this.#look();
  }

  stop(): void {
    this.#isStopped = true;
    this.#cancel();
  }

  /** There are other nodes. */
  wake(): void {
    if (this.#isIdle && !this.#isStopped) void this.#look();
  }

  /** host:port; null for a node that is not known, or cannot be reached. */
  addressOf(nodeId: string): string | null {
    return this.#others.find((node) => node.nodeId === nodeId)?.address ?? null;
  }

  /** Null for a node that is not known, or has left. */
  nameOf(nodeId: string): string | null {
    return this.#others.find((node) => node.nodeId === nodeId)?.name ?? null;
  }

  async #look(): Promise<void> {
    const { nodeId, records, clock, log } = this.#parts;
    this.#isIdle = false;
    let isAlone = false;
    try {
      const rows = await records.present();
      const others = rows.filter((row) => row.nodeId !== nodeId);
      if (!this.#isStopped) this.#take(others);
      isAlone = others.length === 0;
    } catch (error) {
      if (!(error instanceof JournalUnavailable)) throw error;
      log.warn({ reason: error.message }, "the other nodes cannot be read");
    }
    if (isAlone) this.#isIdle = true;
    else if (!this.#isStopped) this.#cancel = clock.after(this.#untilNextMs(), () => void this.#look());
  }

  /** A lease that ends before the next reading is seen to end. */
  #untilNextMs(): number {
    const ends = this.#others.filter(isLiving).map(({ leaseLeftMs }) => leaseLeftMs + BEHIND_END_MS);
    return Math.min(this.#parts.everyMs, ...ends);
  }

  #take(others: readonly NodeRecord[]): void {
    const { onOthers, onOver } = this.#parts;
    const living = (rows: readonly NodeRecord[]) => rows.filter(isLiving).map(({ owner }) => owner);
    const now = new Set(living(others));
    const over = living(this.#others).filter((owner) => !now.has(owner));
    this.#others = others;
    onOthers(others);
    if (over.length > 0) onOver(over);
  }
}
