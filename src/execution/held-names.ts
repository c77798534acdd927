// Things of a machine that are had by name: by one alone, or by several that share it.

import { type Claim, claimText, type NamedDemand } from "../engine/resources.ts";
import { FREE_PORTS_MAX, isInRange } from "./free-ports.ts";

/** What nobody has of the named things. */
export interface Names {
  isFree(claim: Claim): boolean;
  /** How many ports may be chosen. */
  readonly freePorts: number;
}

export function areFree({ claims, freePorts }: NamedDemand, names: Names): boolean {
  return freePorts <= names.freePorts && claims.every((claim) => names.isFree(claim));
}

/** Names that are told to others. */
const TOLD_MAX = 1_000;

export class HeldNames implements Names {
  readonly #held = new Map<string, { readonly claim: Claim; holders: number }>();
  #freePorts = FREE_PORTS_MAX;

  constructor(claims: readonly Claim[] = []) {
    for (const claim of claims) this.hold(claim);
  }

  /** Whether nobody has it, or those who do share it with this one. */
  isFree(claim: Claim): boolean {
    const held = this.#held.get(claimText(claim));
    return held === undefined || (claim.isShared && held.claim.isShared);
  }

  /** Each name once. */
  get claims(): readonly Claim[] {
    return Array.from(this.#held.values().take(TOLD_MAX), ({ claim }) => claim);
  }

  get freePorts(): number {
    return this.#freePorts;
  }

  /** @param claim which is free */
  hold(claim: Claim): void {
    const held = this.#held.get(claimText(claim));
    if (held !== undefined) held.holders++;
    else this.#held.set(claimText(claim), { claim, holders: 1 });
    if (isOfRange(claim)) this.#freePorts--;
  }

  giveBack(claim: Claim): void {
    const held = this.#held.get(claimText(claim));
    if (held !== undefined && --held.holders === 0) this.#held.delete(claimText(claim));
    if (isOfRange(claim)) this.#freePorts++;
  }
}

const isOfRange = ({ kind, name }: Claim): boolean => kind === "port" && isInRange(Number(name));

/** What would be left of names if others had got what they wait for. */
export class NamesLeft implements Names {
  readonly #names: Names;
  readonly #setAside = new Map<string, Claim>();
  #freePorts = 0;

  constructor(names: Names) {
    this.#names = names;
  }

  setAside({ claims, freePorts }: NamedDemand, times: number): void {
    this.#freePorts += freePorts * times;
    for (const claim of claims) {
      const known = this.#setAside.get(claimText(claim));
      if (known === undefined || known.isShared) this.#setAside.set(claimText(claim), claim);
    }
  }

  isFree(claim: Claim): boolean {
    const other = this.#setAside.get(claimText(claim));
    return (other === undefined || (other.isShared && claim.isShared)) && this.#names.isFree(claim);
  }

  get freePorts(): number {
    return this.#names.freePorts - this.#freePorts;
  }
}
