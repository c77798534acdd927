// What commands have of this machine for themselves, by the keys under which they asked for it.
//
// - What is reserved was granted to a key and is given back with it, once. Nothing of it is stored: after a restart no
//   command runs, and nothing is reserved.
// - Less may be allowed than is reserved: what runs keeps it, and so there is less than nothing free.
// - A GPU is one command's alone.

import type { Amounts } from "../engine/resources.ts";
import { amountsOf, type MachineTotals, type Reserved } from "./machine-resources.ts";

interface Held {
  readonly demand: Amounts;
  readonly gpus: readonly number[];
}

/** A machine of which nothing can be had. */
export const noMachine: MachineTotals = { cpuCores: 0, memoryBytes: 0, diskBytes: 0, gpus: [] };

export class Allotment {
  readonly totals: Amounts;
  #effective: MachineTotals;
  #allowed: Amounts;
  readonly #held = new Map<string, Held>();
  readonly #gpusInUse = new Set<number>();
  readonly #reserved = { cpuMillis: 0, memoryBytes: 0, diskBytes: 0 };

  constructor(totals: MachineTotals) {
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

  free(): Amounts {
    const { cpuMillis, memoryBytes, diskBytes } = this.#allowed;
    const reserved = this.#reserved;
    return {
      cpuMillis: cpuMillis - reserved.cpuMillis,
      memoryBytes: memoryBytes - reserved.memoryBytes,
      diskBytes: diskBytes - reserved.diskBytes,
      gpus: this.#freeGpus().length,
    };
  }

  /** @returns the GPUs, by their indices */
  reserve(key: string, demand: Amounts): readonly number[] {
    const gpus = this.#freeGpus().slice(0, demand.gpus);
    this.#held.set(key, { demand, gpus });
    for (const index of gpus) this.#gpusInUse.add(index);
    this.#add(demand, 1);
    return gpus;
  }

  /** @returns whether the key had anything */
  release(key: string): boolean {
    const held = this.#held.get(key);
    if (held === undefined) return false;
    this.#held.delete(key);
    for (const index of held.gpus) this.#gpusInUse.delete(index);
    this.#add(held.demand, -1);
    return true;
  }

  get reserved(): Reserved {
    const { cpuMillis, memoryBytes, diskBytes } = this.#reserved;
    return { cpuCores: cpuMillis / 1_000, memoryBytes, diskBytes, gpus: this.#gpusInUse.size };
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
