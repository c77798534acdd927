// Which limits a node goes by, while other nodes change them too.

import assert from "node:assert/strict";
import { test } from "node:test";
import { JournalUnavailable } from "../engine/journal.ts";
import { limitsShown, noLimits, type ResourceLimits } from "./limits.ts";
import type { StoredLimits } from "./records.ts";
import { Resources } from "./resources.ts";

const EVERY_MS = 3_000;
const limited = (revision: number, cpuPercent: number): StoredLimits => ({
  limits: { ...noLimits, cpuPercent },
  revision,
});

function setUp(everyMs: number | null) {
  let stored = limited(1, 100);
  let problem: Error | null = null;
  const applied: ResourceLimits[] = [];
  const timers: (() => void)[] = [];
  const warnings: string[] = [];
  const read = async () => {
    if (problem !== null) throw problem;
    return stored;
  };
  const resources = new Resources({
    records: {
      limits: read,
      changeLimits: async (change) => {
        stored = change(stored);
        return stored;
      },
    },
    apply: (limits) => void applied.push(limits),
    everyMs,
    clock: {
      after(_delayMs, run) {
        timers.push(run);
        return () => void timers.splice(timers.indexOf(run), 1);
      },
    },
    log: { warn: (_fields, text) => void warnings.push(text), error: () => assert.fail() },
  });
  return {
    resources,
    timers,
    warnings,
    percents: () => applied.map(({ cpuPercent }) => cpuPercent),
    store: (next: StoredLimits) => {
      stored = next;
    },
    fail: (error: Error | null) => {
      problem = error;
    },
    /** Lets the time until the next reading pass. */
    async pass() {
      timers.shift()?.();
      await new Promise(setImmediate);
    },
  };
}

const change = (resources: Resources, limits: object, isWhole = false) =>
  resources.change({ limits: { ...limits }, isWhole, requireCurrent: () => {} });

test("a program that has its database to itself goes by the stored limits and by its own changes, and reads no more", async () => {
  const s = setUp(null);
  s.store(limited(4, 70));
  await s.resources.start();
  const changed = await change(s.resources, { memory_percent: 50 });
  assert.deepEqual(limitsShown(changed.limits), { cpu_percent: 70, memory_percent: 50 });
  assert.equal(changed.revision, 5);
  const whole = await change(s.resources, { disk_percent: 50 }, true);
  assert.deepEqual(limitsShown(whole.limits), { disk_percent: 50 });
  assert.equal((await change(s.resources, { disk_percent: 50 })).revision, 6, "nothing has changed");
  assert.deepEqual(s.percents(), [70, 70, null, null]);
  assert.equal(s.timers.length, 0);
});

test("a node reads what another one has changed, goes by the last limits while it cannot, and stops when it ends", async () => {
  const s = setUp(EVERY_MS);
  await s.resources.start();
  s.store(limited(2, 50));
  await s.pass();
  s.fail(new JournalUnavailable("down", "not_written"));
  await s.pass();
  assert.deepEqual(s.warnings, ["the limits of resources cannot be read"]);
  s.fail(null);
  s.store(limited(3, 40));
  await s.pass();
  assert.deepEqual(s.percents(), [100, 50, 40]);
  s.resources.stop();
  assert.equal(s.timers.length, 0);
});

test("a reading from before the node's own change does not undo it", async () => {
  const s = setUp(EVERY_MS);
  await s.resources.start();
  await change(s.resources, { cpu_percent: 30 });
  s.store(limited(1, 100));
  await s.pass();
  assert.deepEqual(s.percents(), [100, 30]);
});
