import assert from "node:assert/strict";
import { chmod, mkdtemp, rm, writeFile } from "node:fs/promises";
import { availableParallelism, tmpdir, totalmem } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { machine } from "../../test/support/machine.ts";
import { MachineMeter, readMachineTotals } from "./machine-resources.ts";

let folder: string;
before(async () => {
  folder = await mkdtemp(join(tmpdir(), "troupe-machine-"));
});
after(() => rm(folder, { recursive: true }));

async function withProgram(script: string): Promise<string> {
  const path = join(folder, "nvidia-smi");
  await writeFile(path, `#!/bin/sh\n${script}\n`);
  await chmod(path, 0o755);
  return `/nowhere:${folder}`;
}

test("the machine has cores, memory and a disk, and without nvidia-smi no GPUs", async () => {
  const totals = await readMachineTotals(folder, "/nowhere");
  assert.equal(totals.cpuCores, availableParallelism());
  assert.ok(totals.memoryBytes > 0 && totals.memoryBytes <= totalmem());
  assert.ok(totals.diskBytes > 0);
  assert.deepEqual(totals.gpus, []);
});

test("GPUs are those that nvidia-smi names, with their memory in bytes", async () => {
  const path = await withProgram('printf "0, 24576, NVIDIA L4\\n3, 81920, NVIDIA A100, 80GB\\n"');
  const { gpus } = await readMachineTotals(folder, path);
  assert.deepEqual(gpus, [
    { index: 0, name: "NVIDIA L4", memoryBytes: 24_576 * 1024 ** 2 },
    { index: 3, name: "NVIDIA A100, 80GB", memoryBytes: 81_920 * 1024 ** 2 },
  ]);
});

test("an nvidia-smi that fails, or says something else, names no GPUs", async () => {
  for (const script of ["echo 0, 24576, NVIDIA L4; exit 9", "echo No devices were found", "exit 0"]) {
    assert.deepEqual((await readMachineTotals(folder, await withProgram(script))).gpus, []);
  }
});

test("what is used is measured at most once a second, processor time over the time since the reading before", async () => {
  let nowMs = 1_000;
  let busyMs = 50_000;
  let readings = 0;
  const meter = await MachineMeter.open({
    home: folder,
    totals: machine({ cpuCores: 4, memoryBytes: totalmem() }),
    clock: { steadyMs: () => nowMs },
    busyMs: async () => {
      readings++;
      return busyMs;
    },
  });
  const opened = readings;
  nowMs += 999;
  busyMs += 2_500;
  assert.equal((await meter.read()).cpuCores, 0);
  assert.equal(readings, opened);
  nowMs += 1;
  const [first, second] = await Promise.all([meter.read(), meter.read()]);
  assert.equal(readings, opened + 1, "one reading for all who ask meanwhile");
  assert.equal(first, second);
  assert.equal(first.cpuCores, 2.5);
  assert.ok(first.memoryBytes > 0 && first.diskBytes > 0);
  assert.equal(meter.latest, first);
  nowMs += 1_000;
  busyMs += 1_000_000;
  assert.equal((await meter.read()).cpuCores, 4, "never more than there is");
});
