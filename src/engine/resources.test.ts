import assert from "node:assert/strict";
import { test } from "node:test";
import { amountsText, askedKinds, lacking, weaker, without } from "./resources.ts";

const MiB = 1024 ** 2;
const amounts = { cpuMillis: 1_500, memoryBytes: 512 * MiB, diskBytes: 0, gpus: 1 };
const nothing = { cpuMillis: 0, memoryBytes: 0, diskBytes: 0, gpus: 0 };

test("what is not asked for is never lacking, also where there is less than nothing", () => {
  assert.deepEqual(lacking(amounts, amounts), []);
  assert.deepEqual(lacking(amounts, { ...amounts, cpuMillis: 1_499, gpus: 0 }), ["cpuMillis", "gpus"]);
  assert.deepEqual(lacking(nothing, without(nothing, amounts, 3)), []);
  assert.deepEqual(without(amounts, amounts), nothing);
});

test("amounts are told in words, rounded down", () => {
  assert.equal(amountsText(amounts, askedKinds(amounts)), "1.5 cores, 512 MiB of memory and 1 GPU");
  const one = { ...nothing, cpuMillis: 1_000, diskBytes: 2 * 1024 * MiB - 1 };
  assert.equal(amountsText(one, ["cpuMillis", "diskBytes", "gpus"]), "1 core, 1.9 GiB of disk and 0 GPUs");
  assert.equal(amountsText(nothing, []), "nothing");
});

test("of two nodes counts the one that enforces less", () => {
  assert.equal(weaker("cgroup2", "none"), "none");
  assert.equal(weaker("cgroup1", "cgroup2"), "cgroup1");
  assert.equal(weaker("none", "none"), "none");
});
