// The slots of all executor pools: who holds how many, and who waits.
//
// Owns: capacities, leases, and one queue per pool. Does not own processes or rows, and has no clock.
//
// - Granted slots never exceed a pool's capacity.
// - A pool's queue is first in, first out: its head blocks those behind it, so that small requests never
//   starve a large one.
// - Nothing waits while it could be granted: whatever frees slots serves the queue before it returns.
// - A key holds one lease or waits once; releasing it again changes nothing.

import { Fifo } from "../engine/fifo.ts";
import { hasLabels, type Labels, labelsText, noLabels } from "../engine/labels.ts";
import type { Grant, Slots } from "../engine/ports.ts";
import type { Lease } from "../engine/task-port.ts";

/** One pool as the system summary shows it. All are integers. */
export interface PoolSnapshot {
  readonly capacity: number;
  readonly available: number;
  readonly in_use: number;
  /** Requests that wait. */
  readonly queued: number;
  /** Leases that are held. */
  readonly active: number;
}

interface Pool {
  readonly name: string;
  readonly capacity: number;
  available: number;
  readonly leases: Map<string, Lease>;
  readonly waiting: Map<string, Ticket>;
  /** The tickets in order. Those taken back stay in it until they reach the head, or outnumber the others. */
  queue: Fifo<Ticket>;
  /** True while the queue is being served, so that a release from within a grant does not recurse. */
  serving: boolean;
}

interface Ticket {
  readonly key: string;
  readonly slots: number;
  takenBack: boolean;
}

/** Taken-back tickets that a queue may hold before it is worth rebuilding. */
const DEAD_TICKETS_MIN = 64;

export class PoolSlots implements Slots {
  onGranted: (key: string, lease: Lease) => void = () => {};
  /** Called when slots were given back for which nothing waits. */
  onFree: (pool: string) => void = () => {};
  readonly #pools = new Map<string, Pool>();
  /** The pool of every key that holds a lease or waits. */
  readonly #poolOf = new Map<string, Pool>();
  readonly #nextId: () => string;
  readonly #labels: Labels;

  /**
   * @param capacities slots of each pool; whole numbers from 0
   * @param nextId makes the unique part of lease ids
   * @param labels of this node
   */
  constructor(capacities: Readonly<Record<string, number>>, nextId: () => string, labels: Labels = noLabels) {
    this.#nextId = nextId;
    this.#labels = labels;
    for (const [name, capacity] of Object.entries(capacities)) {
      if (!Number.isSafeInteger(capacity) || capacity < 0) {
        throw new RangeError(
          `The capacity of pool "${name}" must be a whole number from 0, not ${capacity}.`,
        );
      }
      this.#pools.set(name, {
        name,
        capacity,
        available: capacity,
        leases: new Map(),
        waiting: new Map(),
        queue: new Fifo(),
        serving: false,
      });
    }
  }

  /**
   * Asks for slots on behalf of `key`; asking again returns what the key has.
   *
   * @param labels that this node must have
   * @returns `granted`; `queued` (the lease comes through onGranted later); or `unsatisfiable`, when the pool
   *   does not exist or could not offer that many slots even if it were empty, or the node lacks a label
   */
  request(
    key: string,
    poolName: string,
    slots: number,
    _placement?: unknown,
    labels: Labels = noLabels,
  ): Grant {
    const held = this.#poolOf.get(key);
    if (held !== undefined) {
      const lease = held.leases.get(key);
      return lease === undefined ? { kind: "queued" } : { kind: "granted", lease };
    }
    const pool = this.#pools.get(poolName);
    if (pool === undefined) {
      return { kind: "unsatisfiable", reason: `There is no pool "${poolName}"; there is ${this.#listed()}.` };
    }
    if (!Number.isSafeInteger(slots) || slots < 1) {
      return { kind: "unsatisfiable", reason: `Slots must be a whole number from 1, not ${slots}.` };
    }
    if (slots > pool.capacity) {
      const reason = `${counted(slots)} of pool "${poolName}" can never be had; there is ${this.#listed()}.`;
      return { kind: "unsatisfiable", reason };
    }
    if (!hasLabels(this.#labels, labels)) {
      const reason = `It needs a node with ${labelsText(labels)}, and this one has ${labelsText(this.#labels)}.`;
      return { kind: "unsatisfiable", reason };
    }
    this.#poolOf.set(key, pool);
    if (pool.waiting.size > 0 || slots > pool.available) {
      const ticket = { key, slots, takenBack: false };
      pool.waiting.set(key, ticket);
      pool.queue.push(ticket);
      return { kind: "queued" };
    }
    return { kind: "granted", lease: this.#grant(pool, key, slots) };
  }

  /** Gives a lease back, or takes a queued request back. May be called from within onGranted. */
  release(key: string): void {
    const pool = this.#poolOf.get(key);
    if (pool === undefined) return;
    this.#poolOf.delete(key);
    const lease = pool.leases.get(key);
    if (lease !== undefined) {
      pool.leases.delete(key);
      pool.available += lease.slots;
    }
    const ticket = pool.waiting.get(key);
    if (ticket !== undefined) {
      ticket.takenBack = true;
      pool.waiting.delete(key);
      forgetDeadTickets(pool);
    }
    this.#serve(pool);
    if (pool.waiting.size === 0 && pool.available > 0) this.onFree(pool.name);
  }

  /** All commands of an earlier program of this node were ended before this one began. */
  endOfFormer(): number {
    return Number.NEGATIVE_INFINITY;
  }

  /** Every pool as it stands now. */
  snapshot(): Record<string, PoolSnapshot> {
    const snapshot: Record<string, PoolSnapshot> = {};
    for (const pool of this.#pools.values()) {
      snapshot[pool.name] = {
        capacity: pool.capacity,
        available: pool.available,
        in_use: pool.capacity - pool.available,
        queued: pool.waiting.size,
        active: pool.leases.size,
      };
    }
    return snapshot;
  }

  /** Grants from the head of the queue for as long as the head fits. */
  #serve(pool: Pool): void {
    if (pool.serving) return;
    pool.serving = true;
    try {
      for (;;) {
        const head = pool.queue.first();
        if (head === undefined) return;
        if (!head.takenBack && head.slots > pool.available) return;
        pool.queue.shift();
        if (head.takenBack) continue;
        pool.waiting.delete(head.key);
        this.onGranted(head.key, this.#grant(pool, head.key, head.slots));
      }
    } finally {
      pool.serving = false;
    }
  }

  #grant(pool: Pool, key: string, slots: number): Lease {
    const lease: Lease = { leaseId: `lease_${this.#nextId()}`, pool: pool.name, slots };
    pool.available -= slots;
    pool.leases.set(key, lease);
    return lease;
  }

  #listed(): string {
    const pools = [...this.#pools.values()].map((pool) => `${pool.name} (${counted(pool.capacity)})`);
    return pools.length === 0 ? "no pool at all" : pools.join(", ");
  }
}

function forgetDeadTickets(pool: Pool): void {
  if (pool.queue.size <= 2 * pool.waiting.size + DEAD_TICKETS_MIN) return;
  pool.queue = new Fifo();
  for (const ticket of pool.waiting.values()) pool.queue.push(ticket);
}

function counted(slots: number): string {
  return slots === 1 ? "1 slot" : `${slots} slots`;
}
