// The ring against a plain list of everything that was ever put into it.

import assert from "node:assert/strict";
import { test } from "node:test";
import { fc } from "../../../test/support/fast-check.ts";
import { ChangeRing } from "./change-ring.ts";

const TOPICS = ["runs", "human"];
const ALL = new Set(TOPICS);
const limits = { changesMax: 6, charsMax: 40, ageMaxMs: 100 };

const steps = fc.array(
  fc.oneof(
    {
      weight: 8,
      arbitrary: fc.record({
        kind: fc.constant("put" as const),
        topic: fc.constantFrom(...TOPICS),
        name: fc.integer({ min: 0, max: 8 }),
        chars: fc.integer({ min: 0, max: 12 }),
      }),
    },
    { weight: 2, arbitrary: fc.record({ kind: fc.constant("wait" as const), ms: fc.nat(60) }) },
    { weight: 1, arbitrary: fc.constant({ kind: "forget" as const }) },
  ),
  { maxLength: 80 },
);

test("a reader that comes back gets each key behind its position once, newest and in order, or learns that it cannot (R1, R2)", () => {
  fc.assert(
    fc.property(steps, fc.integer({ min: 1, max: 30 }), (all, charsMax) => {
      const ring = new ChangeRing(limits);
      const history: { position: number; topic: string; key: string; text: string; atMs: number }[] = [];
      let nowMs = 0;
      let forgotten = 0;
      for (const step of all) {
        if (step.kind === "wait") nowMs += step.ms;
        else if (step.kind === "forget") {
          ring.forget();
          forgotten = ring.head;
        } else {
          const key = `${step.topic} ${step.name}`;
          const text = `${history.length}`.padEnd(step.chars, ".");
          const position = ring.put({ topic: step.topic, key, text }, nowMs);
          assert.ok(position > (history.at(-1)?.position ?? 0));
          history.push({ position, topic: step.topic, key, text, atMs: nowMs });
        }
      }
      ring.trim(nowMs);
      assert.ok(ring.has(ring.head));
      assert.equal(ring.has(ring.head + 1), false);
      let kept = 0;
      for (let position = ring.head; position >= 0 && ring.has(position); position--) {
        for (const topics of [ALL, new Set(["human"])]) {
          const newest = new Map(
            history
              .filter((one) => one.position > position && topics.has(one.topic))
              .map((one) => [one.key, one]),
          );
          const wanted = [...newest.values()].sort((a, b) => a.position - b.position);
          const got: { position: number; text: string }[] = [];
          for (let at = position; ; ) {
            const page = ring.behind(at, topics, charsMax);
            got.push(...page.changes);
            at = page.position;
            if (page.changes.length === 0) break;
          }
          assert.deepEqual(
            got.map(({ position: at, text }) => [at, text]),
            wanted.map((one) => [one.position, one.text]),
          );
          if (topics === ALL) kept = Math.max(kept, wanted.length);
        }
        assert.ok(position >= forgotten);
      }
      assert.ok(kept <= limits.changesMax);
      assert.ok(
        history.every(
          (one) =>
            ring.has(one.position - 1) === false ||
            nowMs - one.atMs < limits.ageMaxMs ||
            isOlder(history, one),
        ),
      );
    }),
    { numRuns: 300 },
  );
});

/** Whether a newer change has taken the place of this one. */
const isOlder = (
  history: readonly { readonly key: string; readonly position: number }[],
  one: { readonly key: string; readonly position: number },
) => history.some(({ key, position }) => key === one.key && position > one.position);

test("what is kept is bounded by number, by size and by age (R3)", () => {
  const put = (ring: ChangeRing, name: string, text: string, nowMs = 0) =>
    ring.put({ topic: "runs", key: name, text }, nowMs);
  const many = new ChangeRing(limits);
  for (let i = 0; i < 7; i++) put(many, `${i}`, "");
  assert.deepEqual([many.has(0), many.has(1)], [false, true]);
  const large = new ChangeRing(limits);
  put(large, "a", "x".repeat(30));
  put(large, "b", "x".repeat(30));
  assert.deepEqual([large.has(0), large.has(1)], [false, true]);
  const old = new ChangeRing(limits);
  put(old, "a", "");
  put(old, "b", "", 50);
  old.trim(100);
  assert.deepEqual([old.has(0), old.has(1)], [false, true]);
  const same = new ChangeRing(limits);
  for (let i = 0; i < 1_000; i++) put(same, "a", "x".repeat(30));
  assert.equal(same.has(0), true);
});
