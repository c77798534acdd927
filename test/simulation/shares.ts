// Jobs that want the same slots: the real engine and its pools, with one slot or a few. Commands take from a tenth of a second to
// 20 seconds, the program is killed, and people pause, cancel and change priorities. Who is granted slots is judged from outside, by
// what was asked for and what was granted:
//
// F1. Within a job and a priority: first in, first out.
// F2. While the first request of a job waits, no other job is granted more of the same priority than its turns of two rounds,
//     and of as many more as the job itself has to sit out.
// F3. A priority that higher ones are preferred to has risen to the highest after a minute for each above it: from then on none
//     is preferred to it.
// F4. Every run ends, with the priority that it was given last, and nobody has slots then.

import assert from "node:assert/strict";
import { isTerminal } from "../../src/engine/journal.ts";
import { type Priority, priorities, type Share, type Terms } from "../../src/engine/share.ts";
import type { Lease, TaskRef } from "../../src/engine/task-port.ts";
import type { PoolSlots } from "../../src/execution/pools.ts";
import { RISES_AFTER_MS } from "../../src/execution/turns.ts";
import { EngineHarness, succeeded } from "../support/engine-harness.ts";
import { executor, graph } from "../support/graphs.ts";
import { Counts } from "./kinds.ts";
import { Random } from "./random.ts";

/** The terms of a job: the same in every world, so that they change nothing else there. */
export function termsOf(jobId: string): Terms {
  const number = [...jobId].reduce((sum, character) => sum + character.charCodeAt(0), 0);
  return { priority: priorities[number % priorities.length]!, weight: 1 + (number % 5) };
}

export async function runSharesSeed(seed: number): Promise<Counts> {
  const world = new SharesWorld(new Random(seed));
  await world.run();
  return world.counts;
}

interface OpenRun {
  readonly jobId: string;
  priority: Priority;
  isPaused: boolean;
}

class SharesWorld {
  readonly counts = new Counts();
  readonly #random: Random;
  readonly #capacity: number;
  readonly #harness: EngineHarness;
  /** By the id of the job that they are runs of. */
  readonly #weights: ReadonlyMap<string, number>;
  readonly #runs = new Map<string, OpenRun>();
  /** Commands that run, and when they end. */
  #commands: { readonly ref: TaskRef; readonly endMs: number }[] = [];
  #left: number;

  constructor(random: Random) {
    this.#random = random;
    this.#capacity = random.between(1, 3);
    this.#weights = new Map([1, 2, 3].map((n) => [`job_${n}`, random.between(1, 5)]));
    this.#left = random.between(4, 10);
    const judge = (slots: PoolSlots, steadyMs: () => number) =>
      judgeShares(slots, this.#capacity, { steadyMs, counts: this.counts });
    this.#harness = new EngineHarness({ slots: this.#capacity, judge });
  }

  async run(): Promise<void> {
    while (this.#left > 0 || this.#runs.size > 0 || this.#commands.length > 0) {
      await this.#act();
      this.#begun();
      const next = this.#commands.sort((a, b) => a.endMs - b.endMs).shift();
      if (next === undefined) {
        await this.#resumeAll();
        continue;
      }
      await this.#harness.advance(Math.max(0, next.endMs - this.#harness.nowMs));
      this.#harness.engine.taskEnded(next.ref, succeeded());
      await this.#harness.advance();
      this.#forgetEnded();
      this.#begun();
    }
    const { capacity, available, queued } = this.#harness.slots.snapshot().default!;
    assert.deepEqual([available, queued], [capacity, 0], "F4");
  }

  async #act(): Promise<void> {
    const random = this.#random;
    const harness = this.#harness;
    if (this.#left > 0 && random.chance(0.1)) await this.#submit();
    if (random.chance(0.01)) {
      this.counts.add("crash");
      this.#commands = [];
      await harness.restart();
    }
    const run = this.#runs.size === 0 ? null : random.pick([...this.#runs.values()]);
    if (run === null) return;
    if (random.chance(0.02)) {
      this.counts.add("changed priority");
      run.priority = random.pick(priorities);
      await harness.do(harness.engine.prioritize(run.jobId, run.priority));
    }
    if (random.chance(0.02)) {
      this.counts.add("pause");
      const { engine } = harness;
      await harness.do(run.isPaused ? engine.resume(run.jobId) : engine.pause(run.jobId));
      run.isPaused = !run.isPaused;
    }
    if (random.chance(0.005)) {
      this.counts.add("cancelled run");
      await harness.do(harness.engine.cancel(run.jobId));
    }
    this.#forgetEnded();
  }

  async #submit(): Promise<void> {
    const random = this.#random;
    const number = this.#left--;
    const definitionId = random.pick([...this.#weights.keys()]);
    const priority = random.pick(priorities);
    const nodes = Array.from({ length: random.between(1, 40) }, (_, n) =>
      executor(`n${n}`, ["true"], random.chance(0.1) ? { pool_slots: this.#capacity } : {}),
    );
    const identity = { jobId: `run-${number}`, runId: `run_${number}`, definitionId };
    const entrypoints = nodes.map(({ node_id }) => String(node_id));
    const terms = { priority, weight: this.#weights.get(definitionId)! };
    const jobId = await this.#harness.submitWith(graph("g", nodes, [], { entrypoints }), {
      identity,
      ...terms,
    });
    this.#runs.set(jobId, { jobId, priority, isPaused: false });
  }

  /** Gives each command that has begun an end, and those an early one that were asked to end. */
  #begun(): void {
    const { starts, stops, nowMs } = this.#harness;
    for (const { ref } of starts.splice(0))
      this.#commands.push({ ref, endMs: nowMs + this.#random.between(100, 20_000) });
    for (const stopped of stops.splice(0)) {
      this.#commands = this.#commands.map((one) =>
        one.ref.jobId === stopped.jobId && one.ref.taskSeq === stopped.taskSeq
          ? { ...one, endMs: nowMs }
          : one,
      );
    }
  }

  async #resumeAll(): Promise<void> {
    for (const run of this.#runs.values()) {
      if (run.isPaused) await this.#harness.do(this.#harness.engine.resume(run.jobId));
      run.isPaused = false;
    }
    if (this.#left > 0) await this.#submit();
  }

  #forgetEnded(): void {
    for (const { jobId, priority } of [...this.#runs.values()]) {
      const { progress, insert } = this.#harness.job(jobId);
      if (!isTerminal(progress.status)) continue;
      assert.equal(insert.priority, priority, "F4");
      this.#runs.delete(jobId);
    }
  }
}

interface Waiting {
  readonly share: Share;
  readonly slots: number;
  /** Slots that other jobs were granted while it was the first of its job. */
  readonly granted: Map<string, number>;
}

/** @param capacity of the only pool */
function judgeShares(
  slots: PoolSlots,
  capacity: number,
  { steadyMs, counts }: { readonly steadyMs: () => number; readonly counts: Counts },
): void {
  /** In the order in which they were made. */
  const waiting = new Map<string, Waiting>();
  const passedAtMs = new Map<number, number>();
  const levelOf = ({ share }: Waiting) => priorities.indexOf(share.priority);

  const isGranted = (key: string) => {
    const granted = waiting.get(key);
    if (granted === undefined) return;
    const { share } = granted;
    const isSame = (one: Waiting) => one.share.job === share.job && one.share.priority === share.priority;
    assert.equal([...waiting.values()].find(isSame), granted, `F1: ${key}`);
    waiting.delete(key);
    mustBeNext(levelOf(granted));
    passOver(levelOf(granted));
    const seen = new Set<string>();
    for (const one of waiting.values()) {
      if (seen.has(`${one.share.job} ${one.share.priority}`)) continue;
      seen.add(`${one.share.job} ${one.share.priority}`);
      if (one.share.priority !== share.priority || one.share.job === share.job) continue;
      counts.add("turn of another job");
      const slotsSoFar: number = (one.granted.get(share.job) ?? 0) + granted.slots;
      one.granted.set(share.job, slotsSoFar);
      const rounds = 2 + Math.ceil(capacity / one.share.weight);
      assert.ok(
        slotsSoFar <= rounds * (share.weight + capacity),
        `F2: ${slotsSoFar} slots before ${one.share.job}`,
      );
    }
    forgetLevels();
  };

  const levels = () => new Set([...waiting.values()].map(levelOf));

  /** A lower priority is preferred to a higher one only once it has risen to it. */
  const mustBeNext = (level: number) => {
    const highest = Math.max(level, ...levels());
    if (highest === level) return;
    const sinceMs = passedAtMs.get(level) ?? Number.POSITIVE_INFINITY;
    assert.ok(
      steadyMs() - sinceMs >= (highest - level) * RISES_AFTER_MS,
      `F3: ${priorities[level]} went first`,
    );
    counts.add("priority that has risen");
  };

  const passOver = (granted: number) => {
    passedAtMs.delete(granted);
    for (const level of levels()) {
      if (level >= granted) continue;
      counts.add("higher priority that was preferred");
      const sinceMs = passedAtMs.get(level) ?? steadyMs();
      passedAtMs.set(level, sinceMs);
      const atMost = (priorities.length - 1 - level) * RISES_AFTER_MS;
      assert.ok(steadyMs() - sinceMs <= atMost, `F3: ${priorities[level]} since ${sinceMs}`);
    }
  };

  const forgetLevels = () => {
    for (const level of passedAtMs.keys()) if (!levels().has(level)) passedAtMs.delete(level);
  };

  const request = slots.request.bind(slots);
  slots.request = (key, pool, count, placement, needs, share) => {
    const grant = request(key, pool, count, placement, needs, share);
    if (waiting.has(key) || share === undefined) return grant;
    const asked = { share, slots: count, granted: new Map<string, number>() };
    if (grant.kind === "queued") waiting.set(key, asked);
    if (grant.kind === "granted" && waiting.size > 0) {
      mustBeNext(levelOf(asked));
      passOver(levelOf(asked));
    }
    return grant;
  };
  const release = slots.release.bind(slots);
  slots.release = (key) => {
    waiting.delete(key);
    forgetLevels();
    release(key);
  };
  let onGranted = slots.onGranted;
  Object.defineProperty(slots, "onGranted", {
    set: (given: typeof onGranted) => {
      onGranted = given;
    },
    get: () => (key: string, lease: Lease) => {
      isGranted(key);
      onGranted(key, lease);
    },
  });
}
