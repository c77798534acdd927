// Who waits for resources of the machine, and who is next.
//
// - Requests that ask for the same wait in one line: first in, first out.
// - Of lines the one goes first whose head has waited longest. While a head lacks something of the machine, younger heads that
//   fit may overtake it, but only OVERTAKEN_MAX times at its expense: from then on what it asks for is set aside, and others
//   get what is left beside it. So a large request is not starved by small ones, and small ones seldom wait for nothing.
// - Who has a name may have it for days: while a head lacks one, no amounts are set aside for it, but its names alone.
// - A head that only waits for slots of its pool is overtaken by nobody in that pool (pools.ts).

import { Fifo } from "../engine/fifo.ts";
import { claimText, type Demand, lacking, resourceKinds } from "../engine/resources.ts";
import { type Free, freeBehind, isFree } from "./allotment.ts";
import { areFree } from "./held-names.ts";

export const OVERTAKEN_MAX = 16;
/** Requests that were taken back, and that a line may hold before it is worth rebuilding. */
const DEAD_MIN = 64;

export interface Waiting {
  readonly pool: string;
  readonly slots: number;
  readonly demand: Demand | null;
  /** Those that were made later have larger numbers. */
  readonly order: number;
  takenBack: boolean;
}

interface Line<Request extends Waiting> {
  readonly demand: Demand;
  queue: Fifo<Request>;
  /** Those of the queue that were not taken back. */
  size: number;
  /** How often its head was overtaken at its expense. */
  overtaken: number;
}

export class ResourceLines<Request extends Waiting> {
  readonly #lines = new Map<string, Line<Request>>();

  /** Whether nobody waits. */
  get isEmpty(): boolean {
    return this.#lines.size === 0;
  }

  add(request: Request & { readonly demand: Demand }): void {
    const { demand } = request;
    const name = nameOf(request);
    const line = this.#lines.get(name);
    if (line === undefined) {
      const queue = new Fifo<Request>();
      queue.push(request);
      this.#lines.set(name, { demand, queue, size: 1, overtaken: 0 });
    } else {
      line.queue.push(request);
      line.size++;
    }
  }

  /** The request waits no more: it was taken back. */
  remove(request: Request): void {
    request.takenBack = true;
    const line = this.#left(request);
    if (line.queue.size <= 2 * line.size + DEAD_MIN) return;
    const left = line.queue.tailWhile(() => true).filter(({ takenBack }) => !takenBack);
    line.queue = new Fifo();
    for (const one of left) line.queue.push(one);
  }

  /**
   * The request is granted.
   *
   * @param free what is left behind that
   */
  granted(request: Request & { readonly demand: Demand }, free: Free): void {
    this.#lines.get(nameOf(request))!.queue.shift();
    this.#left(request);
    for (const [head, line] of this.#heads()) {
      if (head.order > request.order) break;
      if (isAtItsExpense(line.demand, request.demand, free)) line.overtaken++;
    }
  }

  /**
   * The oldest request of a pool for which there is enough of the machine.
   *
   * @param free what nobody has
   */
  ready(pool: string, free: Free): Request | null {
    let spare = free;
    for (const [head, { demand, overtaken }] of this.#heads()) {
      if (head.pool === pool && isFree(demand, spare)) return head;
      if (overtaken >= OVERTAKEN_MAX) spare = freeBehind(spare, demand, lacksNames(demand, free) ? 0 : 1);
    }
    return null;
  }

  /** What would be free if all who wait had got what they asked for; less than 0 where there is not so much. */
  freeBehindAll(free: Free): Free {
    return [...this.#lines.values()].reduce((left, { demand, size }) => freeBehind(left, demand, size), free);
  }

  /** The first of each line, those that have waited longest first. */
  #heads(): readonly (readonly [Request, Line<Request>])[] {
    return [...this.#lines.values()]
      .map((line) => [firstOf(line), line] as const)
      .sort(([one], [other]) => one.order - other.order);
  }

  #left(request: Request): Line<Request> {
    const name = nameOf(request);
    const line = this.#lines.get(name)!;
    line.size--;
    if (line.size === 0) this.#lines.delete(name);
    else if (firstOf(line).order > request.order) line.overtaken = 0;
    return line;
  }
}

/** Only lines of which one waits are kept. */
function firstOf<Request extends Waiting>({ queue }: Line<Request>): Request {
  for (;;) {
    const head = queue.first()!;
    if (!head.takenBack) return head;
    queue.shift();
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

function nameOf({ pool, slots, demand }: Waiting): string {
  const { claims = [], freePorts = 0 } = demand?.named ?? {};
  const names = claims.map((claim) => `${claimText(claim)}${claim.isShared ? "+" : ""}`);
  return [slots, ...resourceKinds.map(({ name }) => demand?.[name]), freePorts, ...names, pool].join("\n");
}
