// A machine for tests: what it has, and what is told of it.

import type { NodeResources } from "../../src/cluster/nodes.ts";
import type { MachineTotals } from "../../src/execution/machine-resources.ts";

const GiB = 1024 ** 3;

export const machine = (more: Partial<MachineTotals> = {}): MachineTotals => ({
  cpuCores: 4,
  memoryBytes: 8 * GiB,
  diskBytes: 100 * GiB,
  gpus: [],
  ...more,
});

/** Nothing of it is reserved or used. */
export function machineResources(totals = machine()): NodeResources {
  const none = { cpuCores: 0, memoryBytes: 0, diskBytes: 0 };
  return { totals, effective: totals, reserved: { ...none, gpus: 0 }, used: none };
}
