// Who is next among those that wait for a pool: by priority, by turns of their jobs, and by age.
//
// - Jobs of one priority take turns. In its turn a job is granted as many slots as its weight; what a request needs beyond
//   that is taken off the job's next turns. So the shares of those that keep waiting follow their weights, and a job waits for
//   one round of the others' turns, however much these ask for. Turns count slots, not how long they are kept: nobody
//   knows that beforehand.
// - Within a job and a priority: first in, first out.
// - A higher priority goes first. One that others were preferred to rises by one for each RISES_AFTER_MS since, until it is
//   granted something: so nothing starves. To wait is not enough to rise, or where commands take long all would be equal.
// - A request costs the same whatever else waits, but for turns that are skipped for what was taken before.

import { priorities, type Share } from "../engine/share.ts";
import { Chain, type Linked } from "../lib/chain.ts";

export const RISES_AFTER_MS = 60_000;

export interface Waiting extends Linked<Waiting> {
  readonly share: Share;
  readonly slots: number;
  /** Those that were made later have larger numbers. */
  readonly order: number;
}

/** A job that waits. */
interface Competitor {
  weight: number;
  /** Slots that it may be granted in its turn; not more than 0 after it was granted more than that. */
  credit: number;
  /** The order of turns. */
  turn: number;
  readonly queues: Queue[];
}

/** What a job waits for in one line. */
interface Queue extends Linked<Queue> {
  readonly competitor: Competitor;
  readonly line: Pick<Line<Waiting>, "toEnd">;
  readonly requests: Chain<Waiting>;
}

/** The jobs that wait for a pool with one priority, in whichever of its lines. */
export class Competition {
  /** 0 for the lowest priority. */
  readonly level: number;
  readonly #nextTurn: () => number;
  readonly #competitors = new Map<string, Competitor>();

  /** @param nextTurn gives numbers that rise, over all pools */
  constructor(level: number, nextTurn: () => number) {
    this.level = level;
    this.#nextTurn = nextTurn;
  }

  /** The job, of which the latest weight counts. */
  join({ job, weight }: Share): Competitor {
    const known = this.#competitors.get(job);
    if (known !== undefined) {
      known.weight = weight;
      return known;
    }
    const competitor = { weight, credit: weight, turn: this.#nextTurn(), queues: [] };
    this.#competitors.set(job, competitor);
    return competitor;
  }

  of({ job }: Share): Competitor {
    return this.#competitors.get(job)!;
  }

  /** A job that waits for nothing more in a line. */
  leave({ job }: Share, { competitor: { queues }, line }: Queue): void {
    const at = queues.findIndex((queue) => queue.line === line);
    queues.splice(at, 1);
    if (queues.length === 0) this.#competitors.delete(job);
  }

  endTurn(competitor: Competitor): void {
    competitor.credit += competitor.weight;
    competitor.turn = this.#nextTurn();
    for (const queue of competitor.queues) queue.line.toEnd(queue);
  }
}

/** Requests of one competition, any of which could be granted instead of any other. */
export class Line<Request extends Waiting> {
  readonly #competition: Competition;
  /** In the order of their turns. */
  readonly #queues = new Chain<Queue>();
  size = 0;
  /** When a higher priority was first preferred to it, since it was last granted something. */
  #passedAtMs: number | null = null;

  constructor(competition: Competition) {
    this.#competition = competition;
  }

  get level(): number {
    return this.#competition.level;
  }

  add(request: Request): void {
    this.size++;
    const competitor = this.#competition.join(request.share);
    let queue = this.#queueOf(competitor);
    if (queue === undefined) {
      queue = { competitor, line: this, requests: new Chain(), previous: null, next: null };
      competitor.queues.push(queue);
      this.#queues.push(queue);
    }
    queue.requests.push(request);
  }

  /** The next one; null when none waits. */
  first(): Request | null {
    for (;;) {
      const queue = this.#queues.first;
      if (queue === null) return null;
      if (queue.competitor.credit > 0) return queue.requests.first as Request;
      this.#competition.endTurn(queue.competitor);
    }
  }

  /** The first one, in the order of turns, that satisfies `test`. */
  find(test: (request: Request) => boolean): Request | null {
    for (let queue = this.#queues.first; queue !== null; queue = queue.next) {
      for (let one = queue.requests.first; one !== null; one = one.next) {
        if (test(one as Request)) return one as Request;
      }
    }
    return null;
  }

  /** The request, which waits here, is granted. */
  granted(request: Request): void {
    this.charge(request);
    this.remove(request);
    this.#passedAtMs = null;
  }

  /** Takes the slots that the request, which waits here, asks for off what its job may be granted in its turn. */
  charge({ share, slots }: Request): void {
    const competitor = this.#competition.of(share);
    competitor.credit -= slots;
    if (competitor.credit <= 0) this.#competition.endTurn(competitor);
  }

  /** The request, which waits here, does so no more. */
  remove(request: Request): void {
    this.size--;
    if (this.size === 0) this.#passedAtMs = null;
    const queue = this.#queueOf(this.#competition.of(request.share))!;
    queue.requests.remove(request);
    if (queue.requests.first !== null) return;
    this.#queues.remove(queue);
    this.#competition.leave(request.share, queue);
  }

  toEnd(queue: Queue): void {
    this.#queues.remove(queue);
    this.#queues.push(queue);
  }

  /** One of this level is granted slots that this line's could have had. */
  passedBy(level: number, nowMs: () => number): void {
    if (level > this.level && this.size > 0) this.#passedAtMs ??= nowMs();
  }

  /** Its priority as it stands now. */
  rank(nowMs: () => number): number {
    if (this.#passedAtMs === null) return this.level;
    return this.level + Math.floor((nowMs() - this.#passedAtMs) / RISES_AFTER_MS);
  }

  /** The turn of its first one's job. */
  get turn(): number {
    return this.#queues.first?.competitor.turn ?? Number.POSITIVE_INFINITY;
  }

  #queueOf(competitor: Competitor): Queue | undefined {
    return competitor.queues.find(({ line }) => line === this);
  }
}

/** The first one of a line, and what decides when it is granted. */
export interface Head<Request extends Waiting> {
  readonly request: Request;
  readonly line: Line<Request>;
  readonly rank: number;
}

/** @returns null when none waits in the line */
export function headOf<Request extends Waiting>(
  line: Line<Request>,
  nowMs: () => number,
): Head<Request> | null {
  const request = line.first();
  return request === null ? null : { request, line, rank: line.rank(nowMs) };
}

/** Less than 0 when the one goes before the other. Of two with one rank, one that has risen to it goes first. */
export function compareHeads<Request extends Waiting>(one: Head<Request>, other: Head<Request>): number {
  return (
    other.rank - one.rank ||
    one.line.level - other.line.level ||
    one.line.turn - other.line.turn ||
    one.request.order - other.request.order
  );
}

export const levelOf = ({ priority }: Share): number => priorities.indexOf(priority);
