// What counts as left behind by commands: nothing that an attempt has, or that is kept for the next one.

import assert from "node:assert/strict";
import { mkdirSync, readdirSync, symlinkSync, utimesSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { executorConfig, holding, RunnerFixture, taskStart } from "../../test/support/execution.ts";
import { agentFolders, attemptFolder } from "./runner/paths.ts";

const LATER_MS = 365 * 24 * 60 * 60 * 1_000;
/** How long folders are kept for the next command. */
const KEPT_MS = 1_000;
/** Which runs are there. */
const all = async (names: readonly string[]) => new Set(names);
const none = async () => new Set<string>();

test("folders of attempts under way, and those kept for the next one, are in use however old they are", async () => {
  const kept = holding(KEPT_MS);
  await using fixture = new RunnerFixture(undefined, kept.clock);
  const { runner, listener, home } = fixture;
  const { leftovers } = runner;
  const left = async () => (await leftovers.folders(Date.now() + LATER_MS, all)).attempts;
  const command = executorConfig({ command: ["sh", "-c", "echo runs; exec sleep 1000"] });
  const long = taskStart({ agentId: "long", config: command });
  runner.start(long);
  await listener.until(() => listener.logs("stdout").length === 1);
  const short = taskStart({ agentId: "short" });
  assert.equal(
    (await fixture.run({ ...short, config: executorConfig({ command: ["true"] }) })).kind,
    "succeeded",
  );
  const folderOf = ({ runId, agentId, ref }: typeof long) =>
    attemptFolder(agentFolders(home, runId, agentId), ref);
  const [inUse, spare] = [folderOf(long), agentFolders(home, short.runId, "short").attempts];
  assert.equal(readdirSync(spare).length, 1);
  assert.deepEqual(await left(), []);
  const planted = join(spare, "..", "..", "long", "attempts", "9-9");
  mkdirSync(planted);
  symlinkSync(home, join(planted, "..", "linked"));
  assert.deepEqual(await left(), [planted]);
  assert.equal(await leftovers.removeAttempt(inUse), false);
  const unknown = async () => (await leftovers.folders(Date.now() + LATER_MS, none)).runs;
  assert.deepEqual(await unknown(), []);
  assert.equal(await leftovers.removeRun(long.runId), false);
  assert.equal(await leftovers.removeAttempt(planted), true);
  assert.deepEqual(runner.attempts, [{ ref: long.ref, runId: long.runId }]);
  assert.ok(runner.has(long.ref) && !runner.has(short.ref));
  runner.stop(long.ref);
  assert.deepEqual(runner.attempts, [], "one that was asked to end");
  await listener.outcome(long.ref);
  assert.deepEqual(await left(), []);
});

test("folders are left a while before they count: a run's may be there before its row", async () => {
  await using fixture = new RunnerFixture();
  const { leftovers } = fixture.runner;
  const run = join(fixture.home, "runs", "run_x");
  const attempt = join(run, "agents", "a", "attempts", "1-1");
  mkdirSync(attempt, { recursive: true });
  const minutesAgo = (path: string, minutes: number) => {
    const at = Date.now() / 1_000 - minutes * 60;
    utimesSync(path, at, at);
  };
  const left = async (isThere: boolean) => {
    const { runs, attempts } = await leftovers.folders(Date.now(), isThere ? all : none);
    return [...runs, ...attempts];
  };
  assert.deepEqual([await left(true), await left(false)], [[], []]);
  minutesAgo(attempt, 2);
  minutesAgo(run, 59);
  assert.deepEqual([await left(true), await left(false)], [[attempt], []]);
  minutesAgo(run, 61);
  assert.deepEqual(await left(false), ["run_x"]);
  await leftovers.removeRun("run_x");
  assert.deepEqual(await left(false), []);
});

test("hundreds of folders are looked up at once", async () => {
  await using fixture = new RunnerFixture();
  for (let n = 0; n < 501; n++) mkdirSync(join(fixture.home, "runs", `run_${n}`), { recursive: true });
  const asked: number[] = [];
  const found = await fixture.runner.leftovers.folders(Date.now() + LATER_MS, async (names) => {
    asked.push(names.length);
    return new Set(names.filter((name) => name !== "run_7"));
  });
  assert.deepEqual(asked, [500, 1]);
  assert.deepEqual(found, { runs: ["run_7"], attempts: [], present: 501, isComplete: true });
});
