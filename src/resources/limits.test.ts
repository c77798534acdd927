import assert from "node:assert/strict";
import { test } from "node:test";
import { machine } from "../../test/support/machine.ts";
import type { JsonValue } from "../engine/json.ts";
import { DomainError } from "../lib/domain-error.ts";
import { effectiveOf, limitsShown, noLimits, readLimits } from "./limits.ts";

const GiB = 1024 ** 3;
const gpu = (index: number) => ({ index, name: "L4", memoryBytes: 24 * GiB });

const mistakesIn = (given: JsonValue): readonly string[] => {
  try {
    readLimits(given, noLimits);
    return [];
  } catch (error) {
    assert.ok(error instanceof DomainError);
    assert.equal(error.code, "validation_failed");
    return error.errors.map(({ path, code }) => `${path} ${code}`);
  }
};

test("what has no limit may be had whole, a percentage is of what the machine has, an amount at most of that", () => {
  const totals = machine({ cpuCores: 3, memoryBytes: 1_001, diskBytes: 1_000, gpus: [gpu(0), gpu(1)] });
  assert.deepEqual(effectiveOf(totals, noLimits), totals);
  const limits = { ...noLimits, cpuPercent: 33.33, memoryPercent: 50, diskBytes: 400, gpuIndices: [1, 7] };
  assert.deepEqual(effectiveOf(totals, limits), {
    cpuCores: 0.999,
    memoryBytes: 500,
    diskBytes: 400,
    gpus: [gpu(1)],
  });
  assert.equal(effectiveOf(totals, { ...noLimits, memoryBytes: 10 * GiB }).memoryBytes, 1_001);
  assert.deepEqual(effectiveOf(totals, { ...noLimits, gpuIndices: [] }).gpus, []);
});

test("limits that are not given stay, null takes one back, and an amount replaces a percentage of the same", () => {
  const first = readLimits({ cpu_percent: 50, memory_percent: 25, gpu_indices: [0] }, noLimits);
  assert.deepEqual(limitsShown(first), { cpu_percent: 50, memory_percent: 25, gpu_indices: [0] });
  const second = readLimits({ cpu_percent: null, memory_bytes: GiB, disk_percent: 90 }, first);
  assert.deepEqual(limitsShown(second), { memory_bytes: GiB, disk_percent: 90, gpu_indices: [0] });
  assert.deepEqual(limitsShown(readLimits({ memory_percent: 10, disk_bytes: 5 }, second)), {
    memory_percent: 10,
    disk_bytes: 5,
    gpu_indices: [0],
  });
  assert.deepEqual(readLimits({}, second), second);
});

test("every mistake is named by its place", () => {
  for (const given of [null, [], "x", 5, true]) assert.deepEqual(mistakesIn(given), ["/limits wrong_type"]);
  assert.deepEqual(
    mistakesIn({ cpu_percent: 0, memory_percent: 101, disk_bytes: 1.5, gpu_indices: [1, 1], x: 1 }),
    [
      "/limits/cpu_percent invalid_value",
      "/limits/memory_percent invalid_value",
      "/limits/disk_bytes invalid_value",
      "/limits/gpu_indices invalid_value",
      "/limits/x unknown_field",
    ],
  );
  for (const indices of [[-1], [256], [0.5], ["0"], 0])
    assert.deepEqual(mistakesIn({ gpu_indices: indices }), ["/limits/gpu_indices invalid_value"]);
  assert.deepEqual(mistakesIn({ memory_percent: 5, memory_bytes: 5 }), ["/limits/memory_bytes conflict"]);
  assert.deepEqual(mistakesIn({ memory_percent: null, memory_bytes: 5 }), []);
  assert.deepEqual(mistakesIn({ toString: 1 }), ["/limits/toString unknown_field"]);
});
