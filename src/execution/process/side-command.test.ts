// Side commands: bounded in time and output, and nothing is left of them.

import assert from "node:assert/strict";
import { existsSync, mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { holding, unmarkedSource } from "../../../test/support/execution.ts";
import { processesWith, runs, seesProcesses } from "../../../test/support/processes.ts";
import { until } from "../../../test/support/until.ts";
import { systemClock } from "../../app/clock.ts";
import type { Clock } from "../../engine/ports.ts";
import type { ProcessSource } from "./process-table.ts";
import { ProcessTrees } from "./process-trees.ts";
import { SideCommands } from "./side-command.ts";

const home = realpathSync(mkdtempSync(join(tmpdir(), "side-command-")));
after(() => rmSync(home, { recursive: true, force: true }));

function commands(clock: Clock = systemClock, source?: ProcessSource) {
  const trees = new ProcessTrees(home, clock, source);
  const side = new SideCommands({
    trees,
    clock,
    runtimeEnv: { PATH: process.env.PATH, SECRET: "x" },
  });
  const sh = (script: string, { timeoutMs = 30_000, environment = {} } = {}, signal?: AbortSignal) =>
    side.run({ command: ["/bin/sh", "-c", script], folder: home, environment, timeoutMs }, signal);
  return { side, sh };
}

/** How many processes of a command run, by a word that is in its environment: programs inherit that. */
const processesOf = (word: string) => processesWith(`WORD=${word}`).filter(runs).length;

test("it tells how the command ended and what it printed, in a folder and an environment of its own", async () => {
  const { sh } = commands();
  const ended = await sh('pwd; echo "$GIVEN-$SECRET-$HOME"; echo no >&2; exit 3', {
    environment: { GIVEN: "g" },
  });
  assert.deepEqual(ended, { kind: "exited", code: 3, stdout: `${home}\ng--\n`, stderr: "no\n" });
});

test("a program that is not there is told as such", async () => {
  const { side } = commands();
  const ended = await side.run({
    command: ["no-such-program-at-all"],
    folder: home,
    environment: {},
    timeoutMs: 1_000,
  });
  assert.deepEqual(ended, { kind: "not_started", reason: "ENOENT" });
});

test("where commands run in sandboxes only, nothing is started", async () => {
  const trees = new ProcessTrees(home, systemClock);
  const side = new SideCommands({ trees, clock: systemClock, runtimeEnv: {}, requireSandbox: () => true });
  const path = join(home, "started");
  const command = { command: ["/usr/bin/touch", path], folder: home, environment: {}, timeoutMs: 30_000 };
  const ended = await side.run(command);
  assert.match(ended.kind === "not_started" ? ended.reason : ended.kind, /^SVC_REQUIRE_SANDBOX is true/);
  assert.equal(existsSync(path), false);
});

test("output beyond the bound is read and dropped, and its end is kept", async () => {
  const { sh } = commands();
  const ended = await sh(
    "head -c 3000000 /dev/zero | tr '\\0' x; echo last; head -c 3000000 /dev/zero | tr '\\0' y >&2; echo last >&2",
  );
  assert.equal(ended.kind, "exited");
  if (ended.kind !== "exited") return;
  assert.equal(ended.stdout.length, 256 * 1024);
  assert.match(ended.stdout, /xlast\n$/);
  assert.equal(ended.stderr.length, 256 * 1024);
  assert.match(ended.stderr, /ylast\n$/);
});

test("when its time is over the whole tree goes, also what ignores SIGTERM and what left the group", {
  skip: !seesProcesses,
}, async () => {
  // What takes a second or more, as the time between SIGTERM and SIGKILL does, is over at once.
  const hasty: Clock = {
    ...systemClock,
    after: (delayMs, run) => systemClock.after(delayMs < 1_000 ? delayMs : 0, run),
  };
  const { clock, fire: timeOut } = holding(77_000, hasty);
  // The command may be there before its time has begun.
  const begun = Promise.withResolvers<void>();
  const after: Clock["after"] = (delayMs, run) => {
    if (delayMs === 77_000) begun.resolve();
    return clock.after(delayMs, run);
  };
  const { sh } = commands({ ...clock, after });
  const word = `${home} timeout`;
  const escaped = "setsid sh -c ': > up; read x < never' & until [ -e up ]; do sleep 0.01; done;";
  const command = sh(`trap '' TERM; mkfifo never; ${escaped} : > ready; read x < never`, {
    timeoutMs: 77_000,
    environment: { WORD: word },
  });
  await until("both wait", () => existsSync(join(home, "ready")));
  assert.equal(processesOf(word), 2);
  // Both ignore SIGTERM.
  await begun.promise;
  timeOut();
  assert.equal((await command).kind, "timed_out");
  assert.equal(processesOf(word), 0);
});

test("a descendant that stays behind neither holds the owner up nor outlives the command", {
  skip: !seesProcesses,
}, async () => {
  const { sh } = commands();
  const word = `${home} left`;
  const ended = await sh("sleep 300 & echo done", { environment: { WORD: word } });
  assert.equal(ended.kind === "exited" && ended.stdout, "done\n");
  assert.equal(processesOf(word), 0);
});

test("where limits cannot be set, what left the group and holds the output does not hold the owner up", {
  skip: !seesProcesses,
}, async () => {
  const { sh } = commands(systemClock, unmarkedSource);
  const word = `${home} holding`;
  const ended = await sh("setsid --fork sleep 300; echo done", { environment: { WORD: word } });
  assert.equal(ended.kind === "exited" && ended.stdout, "done\n");
  for (const pid of processesWith(`WORD=${word}`)) process.kill(pid, "SIGKILL");
});

test("closing ends what runs, and refuses what comes after", async () => {
  const { side, sh } = commands();
  const running = sh("sleep 300");
  await side.close();
  assert.deepEqual(await running, { kind: "aborted" });
  assert.deepEqual(await sh("true"), { kind: "aborted" });
});
