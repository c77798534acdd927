// Side commands: bounded in time and output, and nothing is left of them.

import assert from "node:assert/strict";
import { mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { systemClock } from "../clock.ts";
import { procSource } from "./process-table.ts";
import { ProcessTrees } from "./process-trees.ts";
import { SideCommands } from "./side-command.ts";

const home = realpathSync(mkdtempSync(join(tmpdir(), "side-command-")));
after(() => rmSync(home, { recursive: true, force: true }));

function commands() {
  const trees = new ProcessTrees(home, systemClock);
  const side = new SideCommands({
    trees,
    clock: systemClock,
    runtimeEnv: { PATH: process.env.PATH, SECRET: "x" },
  });
  const sh = (script: string, { timeoutMs = 30_000, environment = {} } = {}, signal?: AbortSignal) =>
    side.run({ command: ["/bin/sh", "-c", script], folder: home, environment, timeoutMs }, signal);
  return { side, sh };
}

async function processesOf(word: string): Promise<number> {
  const { readdirSync, readFileSync } = await import("node:fs");
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .filter((pid) => {
      try {
        return readFileSync(`/proc/${pid}/cmdline`, "latin1").includes(word);
      } catch {
        return false;
      }
    }).length;
}

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
  skip: !procSource.seesMarks,
}, async () => {
  const { sh } = commands();
  const word = `marked-${process.pid}-timeout`;
  const ended = await sh(`trap '' TERM; setsid sh -c 'sleep 300 # ${word}' & sleep 300 # ${word}`, {
    timeoutMs: 300,
  });
  assert.equal(ended.kind, "timed_out");
  assert.equal(await processesOf(word), 0);
});

test("a descendant that stays behind neither holds the owner up nor outlives the command", async () => {
  const { sh } = commands();
  const word = `marked-${process.pid}-left`;
  const ended = await sh(`sh -c 'sleep 300 # ${word}' & echo done`);
  assert.equal(ended.kind === "exited" && ended.stdout, "done\n");
  assert.equal(await processesOf(word), 0);
});

test("closing ends what runs, and refuses what comes after", async () => {
  const { side, sh } = commands();
  const running = sh("sleep 300");
  await side.close();
  assert.deepEqual(await running, { kind: "aborted" });
  assert.deepEqual(await sh("true"), { kind: "aborted" });
});
