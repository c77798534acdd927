// What becomes of workers when the lease of their runtime is over, whatever the runtime does meanwhile.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtempSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import {
  eventually,
  executorConfig,
  isRunning,
  RunnerFixture,
  realClock,
  taskStart,
} from "../../../test/support/execution.ts";
import { LeaseGuard } from "./lease-guard.ts";
import { machineSource } from "./process-table.ts";

const linuxOnly = { skip: process.platform === "linux" ? false : "needs Linux" };
const ORPHANING = fileURLToPath(new URL("../../../test/support/orphaning.ts", import.meta.url));
const LEAVING = "sleep 1000 & echo $!; setsid sh -c 'echo $$; exec sleep 1000' & echo $$; wait";

/** A process that ends can have given its memory back and still be in the table, where it counts as one to be ended. */
async function hasLeft(pid: number): Promise<boolean> {
  const stat = await readFile(`/proc/${pid}/stat`, "latin1").catch(() => null);
  return stat === null || /^\) [ZX]/.test(stat.slice(stat.lastIndexOf(")")));
}

/** A runtime in a process of its own, whose worker has started others. */
async function runtimeWith(leaseMs: number) {
  const home = mkdtempSync(join(tmpdir(), "troupe-execution-"));
  const child = spawn(process.execPath, [ORPHANING, home, LEAVING, "3", String(leaseMs)], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  let said = "";
  child.stdout.on("data", (chunk: Buffer) => {
    said += chunk.toString();
  });
  await eventually(() => said.includes("\n") || child.exitCode !== null);
  const pids = JSON.parse(said.split("\n")[0]!) as number[];
  const areGone = async () => (await Promise.all(pids.map(isRunning))).every((runs) => !runs);
  return {
    home,
    child,
    pids,
    areGone,
    said: () => said.split("\n").slice(1).join(" ").trim(),
    async [Symbol.asyncDispose]() {
      child.kill("SIGKILL");
      await using successor = new RunnerFixture(home);
      await successor.runner.endPredecessors();
    },
  };
}

test(
  "the workers of a runtime that is stopped end with its lease, and it hears why when it goes on",
  linuxOnly,
  async () => {
    const { child, areGone, said } = await runtimeWith(5_000);
    try {
      child.kill("SIGSTOP");
      await eventually(areGone);
      assert.equal(said(), "");
      child.kill("SIGCONT");
      await eventually(() => said() === "over ended");
    } finally {
      child.kill("SIGKILL");
    }
  },
);

test(
  "the workers of a runtime that is killed end with it when others may take its jobs over",
  linuxOnly,
  async () => {
    await using runtime = await runtimeWith(3_600_000);
    const { home, child, pids } = runtime;
    child.kill("SIGKILL");
    await eventually(async () => (await Promise.all(pids.map(hasLeft))).every(Boolean));
    await using successor = new RunnerFixture(home);
    assert.equal(await successor.runner.endPredecessors(), 0);
  },
);

test("a process table that cannot be read is read again, and is not taken for an empty one", async () => {
  let reads = 0;
  const guard = new LeaseGuard(() => {}, {
    ...machineSource,
    async read() {
      reads++;
      if (reads < 3) throw Object.assign(new Error("too many open files"), { code: "EMFILE" });
      return [];
    },
  });
  await guard.endAll();
  assert.equal(reads, 3);
});

test("no attempt begins behind the lease, and the next lease lets them begin again", async () => {
  await using fixture = new RunnerFixture();
  const { runner, listener } = fixture;
  const config = executorConfig({ command: ["true"] });
  runner.mayRunUntil(realClock.steadyMs() - 1, () => {});
  runner.start(taskStart({ config }));
  await runner.ended();
  runner.mayRunUntil(realClock.steadyMs() + 3_600_000, () => assert.fail("it is not over"));
  const next = taskStart({ config, ref: { jobId: "next", taskSeq: 1, attempt: 1 } });
  runner.start(next);
  await runner.ended();
  const kinds = [...listener.outcomes.values()].flat().map(({ kind }) => kind);
  assert.deepEqual(kinds, ["interrupted", "succeeded"]);
});
