// What of its machine an executor's command is to have for itself: `resources` of its node.

import { isObject } from "../json.ts";
import type { Amounts } from "../resources.ts";
import type { Fields, Range } from "./fields.ts";

const MiB = 1024 ** 2;

/** In thousandths at least. */
export const CPU_RANGE: Range = { min: 0.001, max: 100_000 };
export const MEBIBYTES_RANGE: Range = { min: 1, max: 2 ** 30 };
export const GPU_RANGE: Range = { min: 1, max: 256 };

const names = ["cpu", "memory_mb", "disk_mb", "gpu"] as const;

/** @returns null when it asks for nothing */
export function readDemand(node: Fields): Amounts | null {
  const given = node.raw("resources");
  // A list declares resources of another kind; what is neither is reported where ports are read.
  if (!isObject(given)) return null;
  const fields = node.object("resources");
  const asked = names.filter((name) => fields.raw(name) !== undefined);
  if (asked.length === 0) return null;
  if (node.raw("agent_type") !== "executor") {
    for (const name of asked)
      fields.report(name, "no_command", "needs a command that has it: only executors reserve resources");
  }
  return {
    cpuMillis: Math.ceil(fields.number("cpu", CPU_RANGE, 0) * 1_000),
    memoryBytes: fields.integer("memory_mb", MEBIBYTES_RANGE, 0) * MiB,
    diskBytes: fields.integer("disk_mb", MEBIBYTES_RANGE, 0) * MiB,
    gpus: fields.integer("gpu", GPU_RANGE, 0),
  };
}
