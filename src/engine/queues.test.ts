// The engine's small parts against plain models: queue, timers, ids.

import assert from "node:assert/strict";
import { test } from "node:test";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { fc } from "../../test/support/fast-check.ts";
import { Fifo } from "./fifo.ts";
import { idSource } from "./ids.ts";
import { TimerQueue } from "./timers.ts";

test("a queue gives back what was put in, in order, through any mix of pushes and shifts", () => {
  const operations = fc.array(fc.oneof(fc.nat({ max: 3_000 }), fc.constant("shift" as const)), {
    maxLength: 40,
  });
  fc.assert(
    fc.property(operations, (mix) => {
      const queue = new Fifo<number>();
      const model: number[] = [];
      let n = 0;
      for (const operation of mix) {
        // A number pushes that many at once, so that compaction happens; a shift takes as many as half.
        if (operation === "shift") {
          for (let i = Math.ceil(model.length / 2); i > 0; i--) assert.equal(queue.shift(), model.shift());
        } else {
          for (let i = 0; i < operation; i++) {
            queue.push(n);
            model.push(n++);
          }
        }
        assert.equal(queue.size, model.length);
        assert.equal(queue.first(), model[0]);
        const limit = n - 5;
        assert.deepEqual(
          queue.tailWhile((item) => item >= limit),
          model.filter((item) => item >= limit),
        );
      }
      assert.equal(new Fifo().shift(), undefined);
    }),
  );
});

test("the end of a long queue is found without looking at all of it", () => {
  const queue = new Fifo<number>();
  for (let n = 0; n < 10_000; n++) queue.push(n);
  let looks = 0;
  const end = queue.tailWhile((item) => {
    looks++;
    return item >= 2_000;
  });
  assert.deepEqual([end.length, end[0], end.at(-1)], [8_000, 2_000, 9_999]);
  assert.ok(looks < 20, `${looks} looks`);
});

test("timers come out in the order of their time, and never early", () => {
  fc.assert(
    fc.property(fc.array(fc.nat({ max: 50 })), fc.nat({ max: 50 }), (times, nowMs) => {
      const timers = new TimerQueue(() => true);
      for (const dueAtMs of times) timers.push({ dueAtMs, jobId: "j", what: { kind: "deadline" } });
      assert.equal(timers.nextDueMs, times.length === 0 ? null : Math.min(...times));
      const fired: number[] = [];
      for (let timer = timers.popDue(nowMs); timer !== undefined; timer = timers.popDue(nowMs)) {
        fired.push(timer.dueAtMs);
      }
      assert.deepEqual(
        fired,
        times.filter((time) => time <= nowMs).sort((a, b) => a - b),
      );
    }),
  );
});

test("timers of ended jobs do not pile up, and those of open jobs stay", () => {
  const timers = new TimerQueue(({ jobId }) => jobId === "open");
  for (let i = 0; i < 100_000; i++) {
    timers.push({
      dueAtMs: 1_000_000 + i,
      jobId: i % 1_000 === 0 ? "open" : `over-${i}`,
      what: { kind: "deadline" },
    });
  }
  assert.ok(timers.size < 25_000, `${timers.size} timers are kept`);
  let open = 0;
  for (let timer = timers.popDue(2_000_000); timer !== undefined; timer = timers.popDue(2_000_000)) {
    if (timer.jobId === "open") open++;
  }
  assert.equal(open, 100);
});

test("a queue lets go of what was taken out, also while it never empties", async () => {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void;
  const queue = new Fifo<{ n: number }>();
  const taken = Array.from({ length: 100 }, (_, n) => {
    const item = { n };
    queue.push(item);
    return new WeakRef(item);
  });
  queue.push({ n: -1 });
  for (const _ of taken) queue.shift();
  // A WeakRef keeps its target for the turn in which it was made.
  await new Promise((resolve) => setImmediate(resolve));
  collect();
  assert.equal(taken.filter((reference) => reference.deref() !== undefined).length, 0);
  assert.equal(queue.size, 1);
});

test("ids rise strictly, also within a millisecond and when the clock steps back", () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: -5, max: 5 }), { minLength: 1, maxLength: 50 }), (steps) => {
      let nowMs = 1_700_000_000_000;
      const id = idSource(
        () => nowMs,
        () => 0.999,
      );
      let last = "";
      for (const step of steps) {
        nowMs += step;
        const next = id();
        assert.match(next, /^[0-9a-hjkmnp-tv-z]{26}$/);
        assert.ok(next > last, `${next} sorts behind ${last}`);
        last = next;
      }
    }),
  );
});
