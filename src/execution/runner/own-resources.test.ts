// Commands that take more than is their own, on the real kernel; skipped where it gives this program no groups.

import assert from "node:assert/strict";
import { chmodSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { before, test } from "node:test";
import { commandOf, executorConfig, RunnerFixture } from "../../../test/support/execution.ts";
import { ControlGroups } from "../process/control-groups.ts";

const MiB = 1024 ** 2;
const demandOf = (mebibytes: number, cpuMillis = 0) => ({
  cpuMillis,
  memoryBytes: mebibytes * MiB,
  diskBytes: 0,
  gpus: 0,
});

let skip: string | false = "not looked at yet";
before(async () => {
  const groups = new ControlGroups();
  await groups.open();
  await using group = await groups.make(demandOf(64));
  skip = group === null && "this program may make no control groups here";
});

async function fixture(): Promise<RunnerFixture> {
  const made = new RunnerFixture();
  await made.runner.endPredecessors();
  return made;
}

const holding = (mebibytes: number) => [
  "python3",
  "-c",
  `x = bytearray(${mebibytes} << 20); print(len(x) >> 20)`,
];

test("a command that needs more memory than its own is ended, and fails for that reason", async (t) => {
  if (skip !== false) return t.skip(skip);
  await using runner = await fixture();
  const demand = demandOf(64);
  const fits = await runner.run({ config: executorConfig({ command: holding(16), demand }) });
  assert.equal(commandOf(fits).stdout, "16\n");
  assert.match(commandOf(fits).enforcement ?? "", /^cgroup[12]$/);
  const tooLarge = await runner.run({ config: executorConfig({ command: holding(512), demand }) });
  assert.ok(tooLarge.kind === "failed");
  assert.equal(tooLarge.code, "resource.memory_exceeded");
  assert.match(
    tooLarge.message,
    /^The command "python3" needed more than the 64 MiB of memory that are its own, and was ended by the system\./,
  );
});

test("what a command starts has no more memory than the command itself", async (t) => {
  if (skip !== false) return t.skip(skip);
  await using runner = await fixture();
  const command = `python3 -c "x = bytearray(512 << 20)" & wait $!`;
  const outcome = await runner.run({ config: executorConfig({ command, demand: demandOf(64) }) });
  assert.ok(outcome.kind === "failed");
  assert.equal(outcome.code, "resource.memory_exceeded");
});

test("a command with resources of its own starts and fails as any other", async (t) => {
  if (skip !== false) return t.skip(skip);
  await using runner = await fixture();
  const demand = demandOf(64, 500);
  const words = ["sh", "-c", 'printf "%s|" "$0" "$@"', "a b", "$HOME", "--", ""];
  const said = await runner.run({ config: executorConfig({ command: words, demand }) });
  assert.equal(commandOf(said).stdout, "a b|$HOME|--||");
  const failing = await runner.run({ config: executorConfig({ command: ["sh", "-c", "exit 7"], demand }) });
  assert.equal(commandOf(failing).exitCode, 7);
  const missing = await runner.run({ config: executorConfig({ command: ["no-such-program"], demand }) });
  assert.ok(missing.kind === "failed");
  assert.equal(missing.code, "executor.spawn_failed");
  assert.match(missing.message, /no such program/);
  const path = join(runner.payload, "locked.sh");
  writeFileSync(path, "#!/bin/sh\n");
  chmodSync(path, 0o644);
  const locked = await runner.run({ config: executorConfig({ command: [path], demand }) });
  assert.match(locked.kind === "failed" ? locked.message : "", /may not be executed/);
});

test("a command without memory or cores of its own is in no group, and nothing is told of that", async () => {
  await using runner = await fixture();
  for (const demand of [null, { ...demandOf(0), gpus: 1, diskBytes: MiB }]) {
    const outcome = await runner.run({ config: executorConfig({ command: ["true"], demand }) });
    assert.equal(commandOf(outcome).enforcement, undefined);
  }
});
