// How much of each machine commands may have: the limits that an operator sets, and what they leave of what a machine has.
//
// - Limits are one record for all programs of a database. A percentage is taken of what each machine has; an amount holds for
//   each machine, too. What has no limit may be had whole.
// - Memory and disk have one limit each: a percentage or an amount. Setting one of the two takes the other back.

import { isObject, type JsonObject, type JsonValue } from "../engine/json.ts";
import type { MachineTotals } from "../execution/machine-resources.ts";
import { DomainError, type DomainErrorEntry } from "../lib/domain-error.ts";

export interface ResourceLimits {
  readonly cpuPercent: number | null;
  readonly memoryPercent: number | null;
  readonly memoryBytes: number | null;
  readonly diskPercent: number | null;
  readonly diskBytes: number | null;
  /** Those that may be had. */
  readonly gpuIndices: readonly number[] | null;
}

export const noLimits: ResourceLimits = {
  cpuPercent: null,
  memoryPercent: null,
  memoryBytes: null,
  diskPercent: null,
  diskBytes: null,
  gpuIndices: null,
};

export const GPU_INDEX_MAX = 255;

interface Rule {
  readonly field: keyof ResourceLimits;
  readonly isRight: (value: JsonValue) => boolean;
  readonly expected: string;
}

const percentage = (field: Rule["field"]): Rule => ({
  field,
  isRight: (value) => typeof value === "number" && value >= 1 && value <= 100,
  expected: "must be a number from 1 to 100",
});
const bytes = (field: Rule["field"]): Rule => ({
  field,
  isRight: (value) => Number.isSafeInteger(value) && (value as number) > 0,
  expected: "must be a whole number of bytes, more than 0",
});

/** By the names that clients use. */
const rules: Readonly<Record<string, Rule>> = {
  cpu_percent: percentage("cpuPercent"),
  memory_percent: percentage("memoryPercent"),
  memory_bytes: bytes("memoryBytes"),
  disk_percent: percentage("diskPercent"),
  disk_bytes: bytes("diskBytes"),
  gpu_indices: {
    field: "gpuIndices",
    isRight: (value) =>
      Array.isArray(value) && value.every(isGpuIndex) && new Set(value).size === value.length,
    expected: `must be a list of different whole numbers from 0 to ${GPU_INDEX_MAX}`,
  },
};

const isGpuIndex = (value: JsonValue) =>
  Number.isInteger(value) && (value as number) >= 0 && (value as number) <= GPU_INDEX_MAX;

/** The two ways to limit one thing. */
const pairs = [
  ["memory_percent", "memory_bytes"],
  ["disk_percent", "disk_bytes"],
] as const;

/**
 * Reads limits, as clients name them; null is no limit.
 *
 * @param before what stays of what is not given
 * @throws DomainError `validation_failed` with every mistake
 */
export function readLimits(given: JsonValue | undefined, before: ResourceLimits): ResourceLimits {
  if (!isObject(given))
    throw refused([{ path: "/limits", code: "wrong_type", message: "must be a JSON object" }]);
  const errors = Object.entries(given).flatMap(([name, value]): DomainErrorEntry[] => {
    const path = `/limits/${name}`;
    if (!Object.hasOwn(rules, name))
      return [{ path, code: "unknown_field", message: "is not a known name here" }];
    const { isRight, expected } = rules[name]!;
    return value === null || isRight(value) ? [] : [{ path, code: "invalid_value", message: expected }];
  });
  for (const [one, other] of pairs) {
    if (given[one] == null || given[other] == null) continue;
    const message = `cannot be given together with ${one}: choose one of the two`;
    errors.push({ path: `/limits/${other}`, code: "conflict", message });
  }
  if (errors.length > 0) throw refused(errors);
  const changes = Object.entries(given).map(([name, value]) => [rules[name]!.field, value]);
  return { ...before, ...takenBack(given), ...Object.fromEntries(changes) };
}

/** One of a pair that is set replaces the other. */
function takenBack(given: JsonObject): Partial<ResourceLimits> {
  const replaced = pairs.flatMap(([one, other]) => [
    ...(given[one] == null ? [] : [rules[other]!.field]),
    ...(given[other] == null ? [] : [rules[one]!.field]),
  ]);
  return Object.fromEntries(replaced.map((field) => [field, null]));
}

function refused(errors: readonly DomainErrorEntry[]): DomainError {
  const text = errors.map(({ path, message }) => `${path} ${message}`).join("; ");
  return new DomainError("validation_failed", `Invalid limits: ${text}.`, errors);
}

/** Limits as clients name them; those that are not set are left out. */
export function limitsShown(limits: ResourceLimits): JsonObject {
  const set = Object.entries(rules).flatMap(([name, { field }]) => {
    const value = limits[field];
    return value === null ? [] : [[name, value] as const];
  });
  return Object.fromEntries(set) as JsonObject;
}

/** What commands may have of a machine. */
export function effectiveOf(totals: MachineTotals, limits: ResourceLimits): MachineTotals {
  const { cpuPercent, memoryPercent, memoryBytes, diskPercent, diskBytes, gpuIndices } = limits;
  const share = (total: number, percent: number | null) => (total * (percent ?? 100)) / 100;
  const bytesOf = (total: number, percent: number | null, amount: number | null) =>
    Math.min(Math.floor(share(total, percent)), amount ?? total);
  return {
    cpuCores: Math.floor(share(totals.cpuCores, cpuPercent) * 1_000) / 1_000,
    memoryBytes: bytesOf(totals.memoryBytes, memoryPercent, memoryBytes),
    diskBytes: bytesOf(totals.diskBytes, diskPercent, diskBytes),
    gpus: totals.gpus.filter(({ index }) => gpuIndices === null || gpuIndices.includes(index)),
  };
}
