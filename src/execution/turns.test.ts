// Whose turn it is: shares by weights, priorities that rise, and the order within a job.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { fc } from "../../test/support/fast-check.ts";
import { machine } from "../../test/support/machine.ts";
import type { Priority, Share } from "../engine/share.ts";
import { PoolSlots } from "./pools.ts";
import { Competition, compareHeads, headOf, Line, RISES_AFTER_MS, type Waiting } from "./turns.ts";

const share = (job: string, weight = 1, priority: Priority = "normal"): Share => ({ job, priority, weight });
const low = (job: string) => share(job, 1, "low");
const high = (job: string) => share(job, 1, "high");

type TestRequest = Waiting;

function newCompetition(): Competition {
  let turn = 0;
  return new Competition(1, () => ++turn);
}

const newLine = () => new Line<TestRequest>(newCompetition());

function waiting(by: Share, slots: number, order: number): TestRequest {
  return { share: by, slots, order, previous: null, next: null };
}

/** A pool whose slots are all taken, and what is granted of it as soon as something is given back. */
function fullPool(capacity = 1) {
  const clock = { nowMs: 0 };
  let leases = 0;
  const slots = new PoolSlots(
    { default: capacity },
    () => String(++leases),
    () => clock.nowMs,
  );
  const held: string[] = [];
  const news: string[] = [];
  slots.onGranted = (key) => {
    held.push(key);
    news.push(key);
  };
  for (let n = 0; n < capacity; n++) {
    slots.request(`holder/${n}`, "default", 1);
    held.push(`holder/${n}`);
  }
  const counts = new Map<string, number>();
  const ask = (by: Share, count = 1, each = 1) => {
    for (let n = 0; n < count; n++) {
      const number = counts.get(by.job) ?? 0;
      counts.set(by.job, number + 1);
      slots.request(`${by.job}/${number}`, "default", each, "here", undefined, by);
    }
  };
  /** Gives back what was granted first, so many times. @returns what is granted for it */
  const next = (times: number) => {
    for (let n = 0; n < times; n++) slots.release(held.shift()!);
    return news.splice(0);
  };
  return { slots, clock, ask, next };
}

const jobsOf = (keys: readonly string[]) => keys.map((key) => key.split("/")[0]).join(" ");

describe("turns of jobs", () => {
  it("a job with one command waits for one of a job with 10,000", () => {
    const { ask, next } = fullPool();
    ask(share("many"), 10_000);
    ask(share("one"));
    assert.deepEqual(next(3), ["many/0", "one/0", "many/1"]);
  });

  it("a job is granted as many slots as its weight before it is another's turn", () => {
    const { ask, next } = fullPool();
    ask(share("a", 3), 100);
    ask(share("b"), 100);
    assert.equal(jobsOf(next(8)), "a a a b a a a b");
  });

  it("slots beyond the weight are taken off the job's next turns", () => {
    const { slots, ask, next } = fullPool(2);
    ask(share("pairs"), 10, 2);
    ask(share("ones"), 10, 1);
    next(2);
    slots.release("pairs/0");
    assert.equal(slots.snapshot().default?.available, 0, "both are given to ones");
  });

  it("a job that waits for nothing more owes nothing when it comes again", () => {
    const line = newLine();
    const grant = (count: number) =>
      Array.from({ length: count }, () => {
        const first = line.first()!;
        line.granted(first);
        return first.share.job;
      });
    line.add(waiting(share("large"), 5, 1));
    grant(1);
    for (let n = 0; n < 3; n++) line.add(waiting(share("small"), 1, 2 + n));
    line.add(waiting(share("large"), 5, 5));
    assert.deepEqual(grant(4), ["small", "large", "small", "small"]);
  });

  it("the latest weight of a job counts", () => {
    const { ask, next } = fullPool();
    ask(share("a"), 10);
    ask(share("b"), 10);
    ask(share("a", 2));
    assert.equal(jobsOf(next(7)), "a b a a b a a");
  });

  it("a job that comes while others wait is behind them once, whatever it was granted before", () => {
    const { ask, next } = fullPool();
    ask(share("a"), 3);
    ask(share("b"), 3);
    next(1);
    ask(share("c"), 2);
    assert.equal(jobsOf(next(5)), "b a c b a");
  });

  it("jobs that wait for one command each are granted in the order in which they came", () => {
    const { ask, next } = fullPool();
    const jobs = Array.from({ length: 50 }, (_, n) => `j${n}`);
    for (const [n, job] of jobs.entries()) ask(share(job, 1 + (n % 7)));
    assert.equal(jobsOf(next(50)), jobs.join(" "));
  });

  it("shares follow the weights of jobs that keep waiting, whatever each of their commands needs", () => {
    const jobs = fc.array(
      fc.record({ weight: fc.integer({ min: 1, max: 10 }), slots: fc.integer({ min: 1, max: 20 }) }),
      { minLength: 2, maxLength: 6 },
    );
    fc.assert(
      fc.property(jobs, fc.integer({ min: 1, max: 300 }), (given, grants) => {
        const line = newLine();
        for (const [n, { weight, slots }] of given.entries()) {
          for (let i = 0; i < 300; i++) line.add(waiting(share(`${n}`, weight), slots, i));
        }
        const granted = given.map(() => 0);
        for (let n = 0; n < grants; n++) {
          const first = line.first()!;
          line.granted(first);
          granted[Number(first.share.job)]! += first.slots;
        }
        const turns = given.map(({ weight }, n) => granted[n]! / weight);
        const beyond = given.map(({ weight, slots }) => 1 + slots / weight);
        const apart = Math.max(...turns) - Math.min(...turns);
        assert.ok(apart <= 2 * Math.max(...beyond), JSON.stringify({ given, granted }));
      }),
    );
  });

  it("every request is granted once or taken back, in the order of its job, and none waits for more than a round of turns", () => {
    const step = fc.record({
      kind: fc.constantFrom("ask" as const, "ask" as const, "grant" as const, "take back" as const),
      job: fc.nat(4),
      weight: fc.integer({ min: 1, max: 5 }),
      which: fc.nat(1_000),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
        const line = newLine();
        const open = new Map<number, { readonly job: string; grants: number; readonly most: number }>();
        const requests = new Map<number, TestRequest>();
        for (const [n, { kind, job, weight, which }] of steps.entries()) {
          if (kind === "ask") {
            const request = waiting(share(`${job}`, weight), 1, n);
            // A round: each other job's turn, which has 5 slots at most, and its own for those before it.
            const before = [...open.values()].filter((one) => one.job === `${job}`).length;
            requests.set(n, request);
            open.set(n, { job: `${job}`, grants: 0, most: (before + 1) * (4 * 5 + 5) });
            line.add(request);
          } else if (kind === "take back") {
            const numbers = [...open.keys()];
            const number = numbers[which % Math.max(1, numbers.length)];
            if (number === undefined) continue;
            open.delete(number);
            line.remove(requests.get(number)!);
          } else {
            const first = line.first();
            assert.equal(first === null, open.size === 0);
            if (first === null) continue;
            const own = [...open].filter(([, one]) => one.job === first.share.job);
            assert.equal(first.order, own[0]![0], "first in, first out");
            open.delete(first.order);
            line.granted(first);
            for (const one of open.values()) assert.ok(++one.grants <= one.most);
          }
          assert.equal(line.size, open.size);
        }
      }),
    );
  });

  it("what a job asks for in several lines is granted in its turns, as if it were one", () => {
    const competition = newCompetition();
    const [one, other] = [new Line<TestRequest>(competition), new Line<TestRequest>(competition)];
    for (let n = 0; n < 10; n++) {
      one.add(waiting(share("a"), 1, n));
      other.add(waiting(share("a"), 1, 100 + n));
      other.add(waiting(share("b"), 1, 200 + n));
    }
    const jobs = Array.from({ length: 6 }, () => {
      const heads = [one, other].map((line) => headOf(line, () => 0)!).sort(compareHeads);
      heads[0]!.line.granted(heads[0]!.request);
      return heads[0]!.request.share.job;
    });
    assert.equal(jobs.join(" "), "a b a b a b");
  });
});

describe("priorities", () => {
  it("a higher one goes first, within a job and between jobs", () => {
    const { ask, next } = fullPool();
    ask(low("a"), 1);
    ask(share("a"), 1);
    ask(share("b"), 1);
    ask(high("b"), 1);
    assert.deepEqual(next(4), ["b/1", "a/1", "b/0", "a/0"]);
  });

  it("a higher one is granted free slots that are too few for the one that is next", () => {
    const { slots, ask } = fullPool(2);
    ask(share("large"), 1, 2);
    slots.release("holder/0");
    assert.equal(slots.request("h/9", "default", 1, "here", undefined, share("h")).kind, "queued");
    assert.equal(slots.request("h/0", "default", 1, "here", undefined, high("h")).kind, "granted");
  });

  it("one that others are preferred to is granted something once a minute for each that is above it", () => {
    const { clock, ask, next } = fullPool();
    ask(low("low"), 10);
    ask(share("normal"), 10);
    ask(high("high"), 1_000);
    const grantedAt: string[] = [];
    for (let second = 0; second <= 250; second++) {
      clock.nowMs = second * 1_000;
      const job = jobsOf(next(1));
      if (job !== "high") grantedAt.push(`${job} ${second}`);
    }
    assert.equal(grantedAt.join(", "), "normal 60, low 120, normal 121, normal 182, low 241, normal 243");
  });

  it("one that has caught up with another goes before it, also in the middle of the other's turn", () => {
    const { clock, ask, next } = fullPool();
    ask(share("high", 100, "high"), 1_000);
    ask(share("normal"), 10);
    for (let second = 0; second < 60; second += 2) {
      clock.nowMs = second * 1_000;
      assert.equal(jobsOf(next(1)), "high");
    }
    clock.nowMs = 60_000;
    assert.equal(jobsOf(next(1)), "normal");
  });

  it("the minute begins with the first one that is preferred: waiting alone raises nothing", () => {
    const { clock, ask, next } = fullPool();
    ask(share("normal"), 10);
    clock.nowMs = 100 * RISES_AFTER_MS;
    ask(high("high"), 3);
    assert.equal(jobsOf(next(3)), "high high high");
  });

  it("nothing is granted later than in two minutes while it is first of its priority and slots become free", () => {
    const asks = fc.array(
      fc.record({
        atMs: fc.integer({ min: 0, max: 600_000 }),
        job: fc.nat(3),
        priority: fc.constantFrom<Priority>("low", "normal", "high", "high", "high"),
        count: fc.integer({ min: 1, max: 100 }),
      }),
      { minLength: 1, maxLength: 20 },
    );
    fc.assert(
      fc.property(asks, (given) => {
        const { slots, clock, ask, next } = fullPool();
        const firstSinceMs = { low: 0, normal: 0, high: 0 };
        const waitingOf = { low: 0, normal: 0, high: 0 };
        const priorityOf = new Map<string, Priority>();
        const counts = new Map<string, number>();
        const left = [...given].sort((a, b) => a.atMs - b.atMs);
        while (left.length > 0 || slots.snapshot().default!.queued > 0) {
          clock.nowMs += 1_000;
          while (left.length > 0 && left[0]!.atMs <= clock.nowMs) {
            const { job, priority, count } = left.shift()!;
            for (let n = 0; n < count; n++) {
              const number = counts.get(`${job}`) ?? 0;
              counts.set(`${job}`, number + 1);
              priorityOf.set(`${job}/${number}`, priority);
            }
            ask(share(`${job}`, 1 + job, priority), count);
            if (waitingOf[priority] === 0) firstSinceMs[priority] = clock.nowMs;
            waitingOf[priority] += count;
          }
          if (slots.snapshot().default!.queued === 0) continue;
          const [key] = next(1);
          const granted = priorityOf.get(key!)!;
          waitingOf[granted]--;
          firstSinceMs[granted] = clock.nowMs;
          for (const priority of ["low", "normal", "high"] as const) {
            const waitedMs = waitingOf[priority] === 0 ? 0 : clock.nowMs - firstSinceMs[priority];
            assert.ok(waitedMs <= 2 * RISES_AFTER_MS + 2_000, `${priority} waits for ${waitedMs} ms`);
          }
        }
      }),
      { numRuns: 30 },
    );
  });

  it("what asks for resources has them in the order of priorities and turns too", () => {
    const clock = { nowMs: 0 };
    let leases = 0;
    const cores = machine({ cpuCores: 1 });
    const slots = new PoolSlots(
      { default: 9, io: 9 },
      () => String(++leases),
      () => clock.nowMs,
      {},
      cores,
    );
    const granted: string[] = [];
    slots.onGranted = (key) => granted.push(key);
    const ask = (key: string, pool: string, by: Share, cpuMillis = 1_000) => {
      const demand = { cpuMillis, memoryBytes: 0, diskBytes: 0, gpus: 0 };
      const grant = slots.request(key, pool, 1, "here", { nodeLabels: {}, demand }, by);
      if (grant.kind === "granted") granted.push(key);
    };
    ask("a0", "default", share("a"));
    for (let n = 1; n <= 3; n++) ask(`a${n}`, "default", share("a"));
    ask("b0", "default", share("b"), 900);
    ask("c0", "io", share("c"));
    ask("d0", "io", high("d"));
    for (let n = 0; n < 6; n++) slots.release(granted.at(-1)!);
    assert.deepEqual(granted, ["a0", "d0", "a1", "b0", "c0", "a2", "a3"]);
  });
});
