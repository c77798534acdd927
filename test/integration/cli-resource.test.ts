// `troupe resource` against the real program.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { JsonObject } from "../../src/engine/json.ts";
import { startHere } from "../support/command-line.ts";
import { startGatewayHere } from "../support/in-process.ts";
import type { Program } from "../support/program.ts";

let program: Program;
before(async () => {
  program = await startGatewayHere();
});
after(() => program.stop());

const troupe = (...args: string[]) =>
  startHere(["resource", ...args, "--url", program.api], program.home).ended;

async function limitsAfter(...args: string[]): Promise<unknown> {
  const { code, out, err } = await troupe("set", ...args, "--json");
  assert.equal(code, 0, err);
  return (JSON.parse(out) as JsonObject).limits;
}

test("limits are changed one by one, or all at once, and shown with what the machine has", async () => {
  assert.deepEqual(await limitsAfter("--cpu", "50%", "--memory", "1.5GiB", "--gpus", "0,2"), {
    cpu_percent: 50,
    memory_bytes: 1.5 * 1024 ** 3,
    gpu_indices: [0, 2],
  });
  assert.deepEqual(await limitsAfter("--memory", "25%", "--disk", "1000", "--gpus", "none"), {
    cpu_percent: 50,
    memory_percent: 25,
    disk_bytes: 1_000,
    gpu_indices: [],
  });
  assert.deepEqual(
    await limitsAfter("--cpu", "none", "--memory", "none", "--disk", "none", "--gpus", "all"),
    {},
  );
  assert.deepEqual(await limitsAfter("--disk", "90%"), { disk_percent: 90 });
  const { code, out } = await troupe("set", "--cpu", "75%", "--only");
  assert.equal(code, 0);
  const lines = out.split("\n");
  assert.match(lines[0]!, /^NODE +CORES +MEMORY +DISK +GPUS$/);
  assert.match(lines[1]!, /^\S+ +has +[\d.]+ +\S+ [KMGT]iB +\S+ [KMGT]iB +-$/);
  for (const [i, word] of ["allowed", "reserved", "used"].entries())
    assert.match(lines[i + 2]!, new RegExp(`^ +${word} `));
  assert.match(out, /\nLimits of each machine: cpu_percent 75\.\n/);
  assert.equal((await troupe("show")).out.split("\n")[0], lines[0]);
  assert.match((await troupe("set", "--only")).out, /Limits of each machine: none\./);
});

test("what is no limit is refused, and changes nothing", async () => {
  for (const [args, told] of [
    [[], /Which limit\?/],
    [["--cpu", "2"], /--cpu is a percentage, such as 80%/],
    [["--memory", "8GB"], /--memory is a percentage, such as 50%, an amount, such as 8GiB/],
    [["--gpus", "first"], /--gpus is a list of indices/],
    [["--cpu", "101%"], /\/limits\/cpu_percent/],
  ] as const) {
    const { code, err } = await troupe("set", ...args);
    assert.equal(code, 2, err);
    assert.match(err, told);
  }
  assert.match((await troupe("show")).out, /Limits of each machine: none\./);
});
