// The slots of all executor pools, and the resources of the machine: who holds how many, and who waits.
//
// Owns: capacities, leases, and one queue per pool; with resource-lines.ts the order of those that ask for resources. Does not
// own processes or rows, and has no clock.
//
// - Granted slots never exceed a pool's capacity, nor what is reserved what may be had of the machine when it was granted.
// - A pool's queue is first in, first out: its head blocks those behind it, so that small requests never
//   starve a large one. A request for resources is in it from the moment the machine has them, at the place that it has by its
//   age: it holds neither slots nor resources while it waits for the other.
// - Nothing waits while it could be granted: whatever frees slots or resources serves the queues before it returns.
// - A key holds one lease or waits once; releasing it again changes nothing.

import { Fifo } from "../engine/fifo.ts";
import { hasLabels, type Labels, labelsText, noLabels } from "../engine/labels.ts";
import { type Grant, type NodeNeeds, noNeeds, type Slots } from "../engine/ports.ts";
import { type Amounts, amountsText, type Demand, lacking } from "../engine/resources.ts";
import type { Lease } from "../engine/task-port.ts";
import { Allotment, type Free, type Given, missingText, noMachine } from "./allotment.ts";
import { FreePorts } from "./free-ports.ts";
import type { MachineTotals, Reserved } from "./machine-resources.ts";
import { ResourceLines } from "./resource-lines.ts";

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
  /** Of requests that ask for slots alone. */
  readonly waiting: Map<string, Ticket>;
  /** Of those that ask for resources too. */
  readonly asking: Map<string, Asking>;
  /** The tickets of `waiting` in order. Those taken back stay in it until they reach the head, or outnumber the others. */
  queue: Fifo<Ticket>;
  /** True while the queue is being served, so that a release from within a grant does not recurse. */
  serving: boolean;
}

interface Ticket {
  readonly key: string;
  readonly pool: string;
  readonly slots: number;
  readonly demand: Demand | null;
  readonly order: number;
  takenBack: boolean;
}

type Asking = Ticket & { readonly demand: Demand };

const nothingGiven: Given = { gpus: [], ports: [] };

const OTHERS_FIRST =
  "It waits until requests are granted that have waited longer for resources of the machine.";

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
  readonly #machine: Allotment;
  readonly #lines = new ResourceLines<Asking>();
  #tickets = 0;
  #isServingAll = false;

  /**
   * @param capacities slots of each pool; whole numbers from 0
   * @param nextId makes the unique part of lease ids
   * @param labels of this node
   * @param machine what may be had of it; nothing when absent
   * @param ports where those are chosen that commands ask for without a number; absent: every port is free
   */
  constructor(
    capacities: Readonly<Record<string, number>>,
    nextId: () => string,
    labels: Labels = noLabels,
    machine: MachineTotals = noMachine,
    ports = new FreePorts(0, () => true),
  ) {
    this.#nextId = nextId;
    this.#labels = labels;
    this.#machine = new Allotment(machine, ports);
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
        asking: new Map(),
        queue: new Fifo(),
        serving: false,
      });
    }
  }

  /**
   * Asks for slots on behalf of `key`; asking again returns what the key has.
   *
   * @returns `granted`; `queued` (the lease comes through onGranted later); or `unsatisfiable`, when the pool
   *   does not exist or could not offer that many slots even if it were empty, or the machine not so much; or the node
   *   lacks a label
   */
  request(
    key: string,
    poolName: string,
    slots: number,
    _placement?: unknown,
    { nodeLabels, demand }: NodeNeeds = noNeeds,
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
    if (!hasLabels(this.#labels, nodeLabels)) {
      const reason = `It needs a node with ${labelsText(nodeLabels)}, and this one has ${labelsText(this.#labels)}.`;
      return { kind: "unsatisfiable", reason };
    }
    if (demand !== null) return this.#requestWith(pool, key, slots, demand);
    this.#poolOf.set(key, pool);
    if (pool.waiting.size > 0 || slots > pool.available || this.#readyIn(pool) !== null) {
      const ticket = this.#ticket(pool, key, slots, null);
      pool.waiting.set(key, ticket);
      pool.queue.push(ticket);
      return { kind: "queued" };
    }
    return { kind: "granted", lease: this.#grant(pool, key, slots) };
  }

  #requestWith(pool: Pool, key: string, slots: number, demand: Demand): Grant {
    const { totals, allowed } = this.#machine;
    const missing = lacking(demand, totals);
    if (missing.length > 0) {
      const reason = `It needs ${amountsText(demand, missing)}, and this machine has ${amountsText(totals, missing)}.`;
      return { kind: "unsatisfiable", reason };
    }
    this.#poolOf.set(key, pool);
    const ticket = { ...this.#ticket(pool, key, slots, demand), demand };
    const free = this.#machine.free();
    pool.asking.set(key, ticket);
    this.#lines.add(ticket);
    // All others that could be granted have been: only this one may be.
    if (this.#next(pool) === ticket && slots <= pool.available)
      return { kind: "granted", lease: this.#take(pool, ticket) };
    const hint = hintOf(demand, { free, allowed });
    if (hint !== null) return { kind: "queued", hint };
    const hasSlots = slots <= pool.available && pool.waiting.size === 0;
    return hasSlots ? { kind: "queued", hint: OTHERS_FIRST } : { kind: "queued" };
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
      if (!this.#machine.isEmpty) this.#machine.release(key);
    }
    const ticket = pool.waiting.get(key);
    if (ticket !== undefined) {
      ticket.takenBack = true;
      pool.waiting.delete(key);
      forgetDeadTickets(pool);
    }
    const asking = pool.asking.get(key);
    if (asking !== undefined) {
      pool.asking.delete(key);
      this.#lines.remove(asking);
    }
    this.#serve(pool);
    if (pool.waiting.size === 0 && pool.available > 0 && this.#readyIn(pool) === null) this.onFree(pool.name);
  }

  /** All commands of an earlier program of this node were ended before this one began. */
  endOfFormer(): number {
    return Number.NEGATIVE_INFINITY;
  }

  /** From now on so much may be had of the machine. What is reserved stays so. */
  limitTo(effective: MachineTotals): void {
    this.#machine.limitTo(effective);
    this.#serveAll();
  }

  /** What may be had of the machine, as amounts. */
  get allowed(): Amounts {
    return this.#machine.allowed;
  }

  /** What may be had of the machine. */
  get effective(): MachineTotals {
    return this.#machine.effective;
  }

  get reserved(): Reserved {
    return this.#machine.reserved;
  }

  /**
   * The slots of a pool that nobody waits for; less than 0: so many requests wait for slots alone.
   * @returns null when there is no such pool
   */
  spare(poolName: string): { readonly capacity: number; readonly free: number } | null {
    const pool = this.#pools.get(poolName);
    if (pool === undefined) return null;
    const waiting = pool.waiting.size + (this.#readyIn(pool) === null ? 0 : 1);
    return { capacity: pool.capacity, free: waiting > 0 ? -waiting : pool.available };
  }

  /** What would be free of the machine if all who wait for it had got what they asked for. */
  spareResources(): Free {
    return this.#lines.freeBehindAll(this.#machine.free());
  }

  /** Every pool as it stands now. */
  snapshot(): Record<string, PoolSnapshot> {
    const snapshot: Record<string, PoolSnapshot> = {};
    for (const pool of this.#pools.values()) {
      snapshot[pool.name] = {
        capacity: pool.capacity,
        available: pool.available,
        in_use: pool.capacity - pool.available,
        queued: pool.waiting.size + pool.asking.size,
        active: pool.leases.size,
      };
    }
    return snapshot;
  }

  /** Grants from the head of the queue for as long as the head fits. */
  #serve(pool: Pool): void {
    if (!this.#lines.isEmpty || this.#isServingAll) {
      this.#serveAll();
      return;
    }
    if (pool.serving) return;
    pool.serving = true;
    try {
      for (;;) {
        const next = this.#next(pool);
        if (next === null || next.slots > pool.available) return;
        this.onGranted(next.key, this.#take(pool, next));
      }
    } finally {
      pool.serving = false;
    }
  }

  /** What is granted to one may be what others of other pools wait for: of all heads that fit, the oldest goes first. */
  #serveAll(): void {
    if (this.#isServingAll) return;
    this.#isServingAll = true;
    try {
      for (;;) {
        let oldest: { readonly pool: Pool; readonly ticket: Ticket } | null = null;
        for (const pool of this.#pools.values()) {
          if (pool.waiting.size + pool.asking.size === 0) continue;
          const ticket = this.#next(pool);
          if (ticket === null || ticket.slots > pool.available) continue;
          if (oldest === null || ticket.order < oldest.ticket.order) oldest = { pool, ticket };
        }
        if (oldest === null) return;
        const { pool, ticket } = oldest;
        this.onGranted(ticket.key, this.#take(pool, ticket));
      }
    } finally {
      this.#isServingAll = false;
    }
  }

  /** The one to which the pool's slots are granted next, however many it needs. */
  #next(pool: Pool): Ticket | null {
    const plain = headOf(pool);
    const ready = this.#readyIn(pool);
    if (plain === null || ready === null) return plain ?? ready;
    return plain.order < ready.order ? plain : ready;
  }

  /** The oldest that asks for resources, and that waits for slots of the pool alone. */
  #readyIn(pool: Pool): Asking | null {
    return this.#lines.isEmpty ? null : this.#lines.ready(pool.name, this.#machine.free());
  }

  #ticket(pool: Pool, key: string, slots: number, demand: Demand | null): Ticket {
    return { key, pool: pool.name, slots, demand, order: ++this.#tickets, takenBack: false };
  }

  /** Grants what a ticket asks for that is next. */
  #take(pool: Pool, ticket: Ticket): Lease {
    const { key, slots, demand } = ticket;
    if (demand === null) {
      pool.queue.shift();
      pool.waiting.delete(key);
      return this.#grant(pool, key, slots);
    }
    pool.asking.delete(key);
    const given = this.#machine.reserve(key, demand);
    this.#lines.granted(ticket as Asking, this.#machine.free());
    return this.#grant(pool, key, slots, given);
  }

  #grant(pool: Pool, key: string, slots: number, given: Given = nothingGiven): Lease {
    const { gpus, ports } = given;
    const lease: Lease = {
      leaseId: `lease_${this.#nextId()}`,
      pool: pool.name,
      slots,
      ...(gpus.length > 0 && { gpus }),
      ...(ports.length > 0 && { ports }),
    };
    pool.available -= slots;
    pool.leases.set(key, lease);
    return lease;
  }

  #listed(): string {
    const pools = [...this.#pools.values()].map((pool) => `${pool.name} (${counted(pool.capacity)})`);
    return pools.length === 0 ? "no pool at all" : pools.join(", ");
  }
}

/** The first that was not taken back. */
function headOf({ queue }: Pool): Ticket | null {
  for (;;) {
    const head = queue.first();
    if (head === undefined) return null;
    if (!head.takenBack) return head;
    queue.shift();
  }
}

function forgetDeadTickets(pool: Pool): void {
  if (pool.queue.size <= 2 * pool.waiting.size + DEAD_TICKETS_MIN) return;
  pool.queue = new Fifo();
  for (const ticket of pool.waiting.values()) pool.queue.push(ticket);
}

/** @returns null for one that waits for slots alone */
function hintOf(
  demand: Demand,
  { free, allowed }: { readonly free: Free; readonly allowed: Amounts },
): string | null {
  const beyond = lacking(demand, allowed);
  if (beyond.length > 0)
    return `It waits until the limits allow ${amountsText(demand, beyond)} on this machine (GET /resource).`;
  const missing = missingText(demand, free);
  return missing === null ? null : `It waits for ${missing} of the machine.`;
}

function counted(slots: number): string {
  return slots === 1 ? "1 slot" : `${slots} slots`;
}
