// The examination of a running server: shared, bounded in time, and never in the way.

import assert from "node:assert/strict";
import { test } from "node:test";
import { type Check, examinationOf } from "./examination.ts";

const fine = (name: string): Check => ({ name, run: async () => [{ name, state: "ok", text: "fine" }] });

test("findings come in the order of the checks, whichever ends first", async () => {
  const { promise, resolve } = Promise.withResolvers<void>();
  const slow: Check = { name: "slow", run: () => promise.then(() => fine("slow").run()) };
  const quick: Check = {
    name: "quick",
    async run() {
      resolve();
      return fine("quick").run();
    },
  };
  const examine = examinationOf({ checks: [slow, quick], nowMs: () => 7 });
  const { findings, checkedAtMs } = await examine();
  assert.deepEqual(
    findings.map(({ name }) => name),
    ["slow", "quick"],
  );
  assert.equal(checkedAtMs, 7);
});

test("one examination serves all who ask meanwhile, and those who ask within five seconds", async () => {
  let runs = 0;
  let nowMs = 1_000;
  const check: Check = {
    name: "counted",
    async run() {
      runs++;
      return fine("counted").run();
    },
  };
  const examine = examinationOf({ checks: [check], nowMs: () => nowMs });
  await Promise.all([examine(), examine()]);
  assert.equal(runs, 1);
  nowMs += 4_999;
  await examine();
  assert.equal(runs, 1);
  nowMs += 1;
  await examine();
  assert.equal(runs, 2);
  // A clock that steps back makes no result good for longer.
  nowMs = 0;
  await examine();
  assert.equal(runs, 3);
});

test("a check that hangs is reported, and not started again while it hangs", async () => {
  let nowMs = 0;
  let started = 0;
  const { promise, resolve } = Promise.withResolvers<void>();
  const hanging: Check = {
    name: "dead disk",
    async run() {
      started++;
      await promise;
      return fine("dead disk").run();
    },
  };
  const examine = examinationOf({ checks: [hanging, fine("x")], nowMs: () => nowMs, limitMs: 1 });
  for (const round of [1, 2]) {
    const { findings } = await examine();
    assert.deepEqual(
      findings.map(({ state }) => state),
      ["fail", "ok"],
      `round ${round}`,
    );
    assert.match(findings[0]?.text ?? "", /did not answer within/);
    assert.ok(findings[0]?.fix);
    nowMs += 10_000;
  }
  assert.equal(started, 1);
  resolve();
  await promise;
  await new Promise((done) => setImmediate(done));
  await examine();
  nowMs += 10_000;
  assert.equal(started, 2, "once it has come back it is asked again");
});

test("a check that breaks is a finding without its message, which may hold a path", async () => {
  const broken: Check = {
    name: "broken",
    async run() {
      throw Object.assign(new Error("EACCES: permission denied, open '/secret/place'"), { code: "EACCES" });
    },
  };
  const { findings } = await examinationOf({ checks: [broken], nowMs: () => 0 })();
  assert.equal(findings[0]?.state, "fail");
  assert.match(findings[0]?.text ?? "", /EACCES/);
  assert.doesNotMatch(JSON.stringify(findings), /secret/);
});
