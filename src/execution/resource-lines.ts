// Who waits for resources of the machine, and who is next.
//
// - Requests of one pool and priority that ask for the same wait in one line, in the order of turns (turns.ts).
// - While the first of a line lacks something of the machine, those of other lines that fit and would come later may overtake
//   it, but only OVERTAKEN_MAX times at its expense: from then on what it asks for is set aside, and others
//   get what is left beside it. So a large request is not starved by small ones, and small ones seldom wait for nothing.
// - Who has a name may have it for days: while the first of a line lacks one, no amounts are set aside for it, but its names alone.
// - A first one that only waits for slots of its pool is overtaken by nobody in that pool (pools.ts).

import { claimText, type Demand, lacking, resourceKinds } from "../engine/resources.ts";
import { type Free, freeBehind, isFree } from "./allotment.ts";
import { areFree } from "./held-names.ts";
import { type Competition, compareHeads, type Head, headOf, Line, type Waiting } from "./turns.ts";

export const OVERTAKEN_MAX = 16;

export interface WaitingForResources extends Waiting {
  readonly pool: { readonly name: string };
  readonly demand: Demand;
}

class ResourceLine<Request extends WaitingForResources> extends Line<Request> {
  readonly pool: string;
  readonly demand: Demand;
  /** How often it was overtaken at its expense since it was last granted something. */
  overtaken = 0;

  constructor(competition: Competition, { pool, demand }: WaitingForResources) {
    super(competition);
    this.pool = pool.name;
    this.demand = demand;
  }
}

type ResourceHead<Request extends WaitingForResources> = Head<Request> & {
  readonly line: ResourceLine<Request>;
};

export class ResourceLines<Request extends WaitingForResources> {
  readonly #lines = new Map<string, ResourceLine<Request>>();
  readonly #nowMs: () => number;

  /** @param nowMs a clock that nobody can set */
  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
  }

  /** Whether nobody waits. */
  get isEmpty(): boolean {
    return this.#lines.size === 0;
  }

  add(request: Request, competition: Competition): void {
    const name = nameOf(request);
    let line = this.#lines.get(name);
    if (line === undefined) {
      line = new ResourceLine(competition, request);
      this.#lines.set(name, line);
    }
    line.add(request);
  }

  /** The request waits no more: it was taken back. */
  remove(request: Request): void {
    const line = this.#lineOf(request);
    line.remove(request);
    if (line.size === 0) this.#lines.delete(nameOf(request));
  }

  /**
   * The request is granted.
   *
   * @param free what is left behind that
   */
  granted(request: Request, free: Free): void {
    for (const { request: first, line } of this.#heads()) {
      if (first === request) break;
      if (isAtItsExpense(line.demand, request.demand, free)) line.overtaken++;
    }
    const line = this.#lineOf(request);
    line.granted(request);
    line.overtaken = 0;
    if (line.size === 0) this.#lines.delete(nameOf(request));
  }

  /** Something of this level is granted. @param pool in which; null: what all lines could have had */
  passedBy(level: number, pool: string | null): void {
    for (const line of this.#lines.values()) {
      if (pool === null || line.pool === pool) line.passedBy(level, this.#nowMs);
    }
  }

  /**
   * The next request of a pool for which there is enough of the machine.
   *
   * @param free what nobody has
   */
  ready(pool: string, free: Free): Head<Request> | null {
    let spare = free;
    for (const head of this.#heads()) {
      const { demand, overtaken } = head.line;
      if (head.line.pool === pool && isFree(demand, spare)) return head;
      if (overtaken >= OVERTAKEN_MAX) spare = freeBehind(spare, demand, lacksNames(demand, free) ? 0 : 1);
    }
    return null;
  }

  /** What would be free if all who wait had got what they asked for; less than 0 where there is not so much. */
  freeBehindAll(free: Free): Free {
    return [...this.#lines.values()].reduce((left, { demand, size }) => freeBehind(left, demand, size), free);
  }

  /** The first of each line, in the order in which they are to be granted. */
  #heads(): readonly ResourceHead<Request>[] {
    return [...this.#lines.values()]
      .map((line) => headOf(line, this.#nowMs) as ResourceHead<Request>)
      .sort(compareHeads);
  }

  #lineOf(request: Request): ResourceLine<Request> {
    return this.#lines.get(nameOf(request))!;
  }
}

function lacksNames({ named }: Demand, { names }: Free): boolean {
  return named !== undefined && !areFree(named, names);
}

/** Whether what another one was granted is what is lacking now. */
function isAtItsExpense(demand: Demand, granted: Demand, free: Free): boolean {
  const { named } = demand;
  if (named === undefined || areFree(named, free.names))
    return lacking(demand, free.amounts).some((kind) => granted[kind] > 0);
  if (granted.named === undefined) return false;
  const taken = new Set(granted.named.claims.map(claimText));
  const isTaken = named.claims.some((claim) => !free.names.isFree(claim) && taken.has(claimText(claim)));
  return isTaken || (named.freePorts > free.names.freePorts && granted.named.freePorts > 0);
}

function nameOf({ pool, slots, demand, share: { priority } }: WaitingForResources): string {
  const { claims = [], freePorts = 0 } = demand.named ?? {};
  const names = claims.map((claim) => `${claimText(claim)}${claim.isShared ? "+" : ""}`);
  const amounts = resourceKinds.map(({ name }) => demand[name]);
  return [slots, ...amounts, freePorts, ...names, priority, pool.name].join("\n");
}
