// The slots of all executor pools, and the resources of the machine: who holds how many, and who waits.
//
// Owns: capacities, leases, and the lines of each pool. Whose turn it is, is turns.ts; resource-lines.ts has the lines of those
// that ask for resources. Does not own processes or rows.
//
// - Granted slots never exceed a pool's capacity, nor what is reserved what may be had of the machine when it was granted.
// - The request that is next in a pool blocks those behind it until it fits, so that small requests never
//   starve a large one. A request for resources is among them from the moment the machine has them, at its own place: it holds
//   neither slots nor resources while it waits for the other.
// - Nothing waits while it could be granted: whatever frees slots or resources serves the queues before it returns.
// - A key holds one lease or waits once; releasing it again changes nothing.

import { hasLabels, type Labels, labelsText, noLabels } from "../engine/labels.ts";
import { type Grant, type NodeNeeds, noNeeds, type Slots } from "../engine/ports.ts";
import {
  type Amounts,
  amountsText,
  type Claim,
  claimText,
  type Demand,
  deviceClaims,
  lacking,
  noAmounts,
} from "../engine/resources.ts";
import { plainShare, priorities, type Share } from "../engine/share.ts";
import type { Lease } from "../engine/task-port.ts";
import { Allotment, type Free, type Given, missingText, noMachine } from "./allotment.ts";
import { hasDevices } from "./devices.ts";
import { FreePorts } from "./free-ports.ts";
import type { MachineTotals, Reserved } from "./machine-resources.ts";
import { ResourceLines } from "./resource-lines.ts";
import { Competition, compareHeads, type Head, headOf, Line, levelOf } from "./turns.ts";

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
  /** All that wait. */
  readonly waiting: Map<string, Ticket>;
  /** The lowest priority first, like the lines. */
  readonly competitions: readonly Competition[];
  /** Of requests that ask for slots alone. */
  readonly plain: readonly Line<Ticket>[];
  /** True while the lines are being served, so that a release from within a grant does not recurse. */
  serving: boolean;
}

interface Ticket {
  readonly key: string;
  readonly pool: Pool;
  readonly slots: number;
  readonly demand: Demand | null;
  readonly share: Share;
  readonly order: number;
  previous: Ticket | null;
  next: Ticket | null;
}

type Asking = Ticket & { readonly demand: Demand };

const nothingGiven: Given = { gpus: [], ports: [] };

const OTHERS_FIRST = "It waits until others are granted resources of the machine that come before it.";

/** The ports and devices of a machine. */
export interface MachineNames {
  /** Where those are chosen that commands ask for without a number. */
  readonly ports: FreePorts;
  /** Whether there is a device at a path. */
  readonly hasDevice: (path: string) => boolean;
}

const everyName: MachineNames = { ports: new FreePorts(0, () => true), hasDevice: () => true };

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
  readonly #lines: ResourceLines<Asking>;
  readonly #hasDevice: (path: string) => boolean;
  readonly #steadyMs: () => number;
  #tickets = 0;
  #isServingAll = false;

  /**
   * @param capacities slots of each pool; whole numbers from 0
   * @param nextId makes the unique part of lease ids
   * @param steadyMs a clock that nobody can set
   * @param labels of this node
   * @param machine what may be had of it; nothing when absent
   * @param names its ports and devices; absent: every port is free, and every device there
   */
  constructor(
    capacities: Readonly<Record<string, number>>,
    nextId: () => string,
    steadyMs: () => number,
    labels: Labels = noLabels,
    machine: MachineTotals = noMachine,
    { ports, hasDevice }: MachineNames = everyName,
  ) {
    this.#nextId = nextId;
    this.#labels = labels;
    this.#machine = new Allotment(machine, ports);
    this.#hasDevice = hasDevice;
    this.#steadyMs = steadyMs;
    this.#lines = new ResourceLines(steadyMs);
    let turns = 0;
    const nextTurn = () => ++turns;
    for (const [name, capacity] of Object.entries(capacities)) {
      if (!Number.isSafeInteger(capacity) || capacity < 0) {
        throw new RangeError(
          `The capacity of pool "${name}" must be a whole number from 0, not ${capacity}.`,
        );
      }
      const competitions = priorities.map((_, level) => new Competition(level, nextTurn));
      this.#pools.set(name, {
        name,
        capacity,
        available: capacity,
        leases: new Map(),
        waiting: new Map(),
        competitions,
        plain: competitions.map((competition) => new Line<Ticket>(competition)),
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
    share: Share = plainShare(key),
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
    const refusal = demand === null ? null : this.#refusal(demand);
    if (refusal !== null) return { kind: "unsatisfiable", reason: refusal };
    this.#poolOf.set(key, pool);
    if (demand !== null) return this.#requestWith(this.#ticket(pool, key, { slots, demand, share }));
    if (pool.waiting.size === 0 && slots <= pool.available) {
      return { kind: "granted", lease: this.#grant(pool, key, slots) };
    }
    const ticket = this.#ticket(pool, key, { slots, demand, share });
    pool.plain[levelOf(share)]!.add(ticket);
    // All others that could be granted have been: only this one may be.
    if (slots <= pool.available && this.#next(pool)?.request === ticket) {
      return { kind: "granted", lease: this.#take(ticket) };
    }
    return { kind: "queued" };
  }

  /** @returns why the machine never has what is asked for; null when it may */
  #refusal(demand: Demand): string | null {
    const { totals } = this.#machine;
    const missing = lacking(demand, totals);
    if (missing.length > 0)
      return `It needs ${amountsText(demand, missing)}, and this machine has ${amountsText(totals, missing)}.`;
    const device = deviceClaims(demand).find(({ name }) => !this.#hasDevice(name));
    return device === undefined ? null : `It needs ${claimText(device)}, and this machine has none there.`;
  }

  #requestWith(ticket: Asking): Grant {
    const { pool, slots, demand } = ticket;
    const { allowed } = this.#machine;
    const free = this.#machine.free();
    this.#lines.add(ticket, pool.competitions[levelOf(ticket.share)]!);
    if (slots <= pool.available && this.#next(pool)?.request === ticket)
      return { kind: "granted", lease: this.#take(ticket) };
    const hint = hintOf(demand, { free, allowed });
    if (hint !== null) return { kind: "queued", hint };
    const hasSlots = slots <= pool.available && plainWaiting(pool) === 0;
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
      pool.waiting.delete(key);
      if (isAsking(ticket)) this.#lines.remove(ticket);
      else pool.plain[levelOf(ticket.share)]!.remove(ticket);
    }
    this.#serve(pool);
    if (plainWaiting(pool) === 0 && pool.available > 0 && this.#readyIn(pool) === null)
      this.onFree(pool.name);
  }

  /** All commands of an earlier program of this node were ended before this one began. */
  endOfFormer(): number {
    return Number.NEGATIVE_INFINITY;
  }

  /** Has no command get a named thing. @returns gives it back; null: a command has it */
  holdBack(claim: Claim): (() => void) | null {
    if (!this.#machine.free().names.isFree(claim)) return null;
    const key = `held back: ${claimText(claim)}`;
    this.#machine.reserve(key, { ...noAmounts, named: { claims: [claim], freePorts: 0 } });
    return () => {
      this.#machine.release(key);
      this.#serveAll();
    };
  }

  /** Whether all devices that it asks for are there. */
  hasDevices(demand: Demand): boolean {
    return hasDevices(demand, this.#hasDevice);
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
    const waiting = plainWaiting(pool) + (this.#readyIn(pool) === null ? 0 : 1);
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
        queued: pool.waiting.size,
        active: pool.leases.size,
      };
    }
    return snapshot;
  }

  /** Grants to the next one for as long as that one fits. */
  #serve(pool: Pool): void {
    if (!this.#lines.isEmpty || this.#isServingAll) {
      this.#serveAll();
      return;
    }
    if (pool.serving) return;
    pool.serving = true;
    try {
      for (;;) {
        const next = this.#next(pool)?.request;
        if (next === undefined || next.slots > pool.available) return;
        this.onGranted(next.key, this.#take(next));
      }
    } finally {
      pool.serving = false;
    }
  }

  /** What is granted to one may be what others of other pools wait for: they are served in one order. */
  #serveAll(): void {
    if (this.#isServingAll) return;
    this.#isServingAll = true;
    try {
      for (;;) {
        let first: Head<Ticket> | null = null;
        for (const pool of this.#pools.values()) {
          if (pool.waiting.size === 0) continue;
          const next = this.#next(pool);
          if (next !== null && next.request.slots <= pool.available) first = earlier(first, next);
        }
        if (first === null) return;
        this.onGranted(first.request.key, this.#take(first.request));
      }
    } finally {
      this.#isServingAll = false;
    }
  }

  /** The one to which the pool's slots are granted next, however many it needs. */
  #next(pool: Pool): Head<Ticket> | null {
    let next: Head<Ticket> | null = this.#readyIn(pool);
    for (const line of pool.plain) {
      if (line.size > 0) next = earlier(next, headOf(line, this.#steadyMs));
    }
    return next;
  }

  /** The next that asks for resources, and that waits for slots of the pool alone. */
  #readyIn(pool: Pool): Head<Asking> | null {
    return this.#lines.isEmpty ? null : this.#lines.ready(pool.name, this.#machine.free());
  }

  #ticket<Asked extends Demand | null>(
    pool: Pool,
    key: string,
    asked: { readonly slots: number; readonly demand: Asked; readonly share: Share },
  ): Ticket & { readonly demand: Asked } {
    const { slots, demand, share } = asked;
    const order = ++this.#tickets;
    const ticket = { key, pool, slots, demand, share, order, previous: null, next: null };
    pool.waiting.set(key, ticket);
    return ticket;
  }

  /** Grants what a ticket asks for that is next. */
  #take(ticket: Ticket): Lease {
    const { key, pool, slots, share } = ticket;
    const level = levelOf(share);
    pool.waiting.delete(key);
    let given: Given | undefined;
    if (isAsking(ticket)) {
      given = this.#machine.reserve(key, ticket.demand);
      this.#lines.granted(ticket, this.#machine.free());
    } else pool.plain[level]!.granted(ticket);
    for (const line of pool.plain) line.passedBy(level, this.#steadyMs);
    if (!this.#lines.isEmpty) this.#lines.passedBy(level, given === undefined ? pool.name : null);
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

function isAsking(ticket: Ticket): ticket is Asking {
  return ticket.demand !== null;
}

function earlier(one: Head<Ticket> | null, other: Head<Ticket> | null): Head<Ticket> | null {
  if (one === null || other === null) return one ?? other;
  return compareHeads(one, other) <= 0 ? one : other;
}

/** How many wait for slots alone. */
function plainWaiting({ plain }: Pool): number {
  return plain.reduce((sum, { size }) => sum + size, 0);
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
