// What commands have of this machine for themselves, by the keys under which they asked for it.
//
// - What is reserved was granted to a key and is given back with it, once. Nothing of it is stored: after a restart no
//   command runs, and nothing is reserved.
// - Less may be allowed than is reserved: what runs keeps it, and so there is less than nothing free.
// - A GPU is one command's alone, as is a port.

import {
  type Amounts,
  amountsText,
  type Claim,
  claimText,
  type Demand,
  isThere,
  lacking,
  listText,
  portClaim,
  without,
} from "../engine/resources.ts";
import type { FreePorts } from "./free-ports.ts";
import { areFree, HeldNames, type Names, NamesLeft } from "./held-names.ts";
import { amountsOf, type MachineTotals, type Reserved } from "./machine-resources.ts";

/** What a command was given, beside amounts: GPUs by their indices, and the ports that were chosen for it. */
export interface Given {
  readonly gpus: readonly number[];
  readonly ports: readonly number[];
}

interface Held extends Given {
  readonly demand: Amounts;
  readonly claims: readonly Claim[];
}

/** What nobody has. */
export interface Free {
  readonly amounts: Amounts;
  readonly names: Names;
}

export function isFree(demand: Demand, { amounts, names }: Free): boolean {
  return isThere(demand, amounts) && (demand.named === undefined || areFree(demand.named, names));
}

/**
 * What is left when somebody who waits has got it. What was left before is not to be used any more.
 *
 * @param times how many of them; 0: its names alone are set aside
 */
export function freeBehind({ amounts, names }: Free, demand: Demand, times: number): Free {
  const left = without(amounts, demand, times);
  if (demand.named === undefined) return { amounts: left, names };
  // One for all that are set aside: there may be thousands.
  const namesLeft = names instanceof NamesLeft ? names : new NamesLeft(names);
  namesLeft.setAside(demand.named, Math.max(1, times));
  return { amounts: left, names: namesLeft };
}

/** What of it is not free, for people; null: nothing. */
export function missingText(demand: Demand, { amounts, names }: Free): string | null {
  const { claims = [], freePorts = 0 } = demand.named ?? {};
  const texts = [
    ...lacking(demand, amounts).map((kind) => amountsText(demand, [kind])),
    ...claims.filter((claim) => !names.isFree(claim)).map(claimText),
    ...(freePorts > names.freePorts ? ["free ports"] : []),
  ];
  return texts.length === 0 ? null : listText(texts);
}

/** A machine of which nothing can be had. */
export const noMachine: MachineTotals = { cpuCores: 0, memoryBytes: 0, diskBytes: 0, gpus: [] };

export class Allotment {
  readonly totals: Amounts;
  #effective: MachineTotals;
  #allowed: Amounts;
  readonly #held = new Map<string, Held>();
  readonly #gpusInUse = new Set<number>();
  readonly #names = new HeldNames();
  readonly #ports: FreePorts;
  readonly #reserved = { cpuMillis: 0, memoryBytes: 0, diskBytes: 0 };

  constructor(totals: MachineTotals, ports: FreePorts) {
    this.#ports = ports;
    this.totals = amountsOf(totals);
    this.#effective = totals;
    this.#allowed = this.totals;
  }

  /** What may be had of the machine, with nothing reserved. */
  get effective(): MachineTotals {
    return this.#effective;
  }

  get allowed(): Amounts {
    return this.#allowed;
  }

  limitTo(effective: MachineTotals): void {
    this.#effective = effective;
    this.#allowed = amountsOf(effective);
  }

  /** Whether nothing is reserved. */
  get isEmpty(): boolean {
    return this.#held.size === 0;
  }

  free(): Free {
    return { amounts: this.#freeAmounts(), names: this.#names };
  }

  #freeAmounts(): Amounts {
    const { cpuMillis, memoryBytes, diskBytes } = this.#allowed;
    const reserved = this.#reserved;
    return {
      cpuMillis: cpuMillis - reserved.cpuMillis,
      memoryBytes: memoryBytes - reserved.memoryBytes,
      diskBytes: diskBytes - reserved.diskBytes,
      gpus: this.#freeGpus().length,
    };
  }

  /** @param demand which is free */
  reserve(key: string, demand: Demand): Given {
    const gpus = this.#freeGpus().slice(0, demand.gpus);
    for (const index of gpus) this.#gpusInUse.add(index);
    const claims = [...(demand.named?.claims ?? [])];
    for (const claim of claims) this.#names.hold(claim);
    const ports = Array.from({ length: demand.named?.freePorts ?? 0 }, () => {
      const port = this.#ports.choose((one) => !this.#names.isFree(portClaim(one)));
      claims.push(portClaim(port));
      this.#names.hold(portClaim(port));
      return port;
    });
    const held = { demand, gpus, ports, claims };
    this.#held.set(key, held);
    this.#add(demand, 1);
    return held;
  }

  /** @returns whether the key had anything */
  release(key: string): boolean {
    const held = this.#held.get(key);
    if (held === undefined) return false;
    this.#held.delete(key);
    for (const index of held.gpus) this.#gpusInUse.delete(index);
    for (const claim of held.claims) this.#names.giveBack(claim);
    this.#add(held.demand, -1);
    return true;
  }

  get reserved(): Reserved {
    const { cpuMillis, memoryBytes, diskBytes } = this.#reserved;
    const amounts = { cpuCores: cpuMillis / 1_000, memoryBytes, diskBytes, gpus: this.#gpusInUse.size };
    return { ...amounts, claims: this.#names.claims };
  }

  #add({ cpuMillis, memoryBytes, diskBytes }: Amounts, times: 1 | -1): void {
    this.#reserved.cpuMillis += times * cpuMillis;
    this.#reserved.memoryBytes += times * memoryBytes;
    this.#reserved.diskBytes += times * diskBytes;
  }

  #freeGpus(): readonly number[] {
    return this.#effective.gpus.map(({ index }) => index).filter((index) => !this.#gpusInUse.has(index));
  }
}
