// The machine of a simulated program, of which some commands have a part for themselves:
//
// I23. What runs never has more of the machine than there is, no GPU and no port is two commands', and
// nobody else has a volume to which a command writes.
// I24. In the end nothing is reserved, and nobody waits.

import assert from "node:assert/strict";
import type { JsonObject } from "../../src/engine/json.ts";
import { lacking, portsByLabel, without } from "../../src/engine/resources.ts";
import type { TaskStart } from "../../src/engine/task-port.ts";
import { amountsOf } from "../../src/execution/machine-resources.ts";
import { PoolSlots } from "../../src/execution/pools.ts";
import { machine } from "../support/machine.ts";
import type { Counts } from "./kinds.ts";

const gpu = (index: number) => ({ index, name: "simulated", memoryBytes: 0 });
const MACHINE = machine({ cpuCores: 4, gpus: [gpu(0), gpu(2)] });

const demands: readonly (JsonObject | null)[] = [
  null,
  { cpu: 1, ports: [{ label: "web", port: "auto" }] },
  { cpu: 0.5, memory_mb: 6_000, volumes: [{ name: "v", path: "v" }] },
  { gpu: 1, ports: [{ label: "fixed", port: 8080 }] },
  { cpu: 4, gpu: 2, volumes: [{ name: "v", path: "v", read_only: true }] },
];

/** What a node of a random graph asks for: the same in every world, so that it changes nothing else there. */
export function resourcesOf(nodeId: string): JsonObject {
  const resources = demands[Number(/\d+$/.exec(nodeId)?.[0] ?? 0) % demands.length] ?? null;
  return resources === null ? {} : { resources };
}

export function simSlots(
  poolSlots: number,
  newId: () => string,
  { steadyMs, counts }: { readonly steadyMs: () => number; readonly counts: Counts },
): PoolSlots {
  const slots = new PoolSlots({ default: poolSlots }, newId, steadyMs, {}, MACHINE);
  const request = slots.request.bind(slots);
  slots.request = (...asked) => {
    const grant = request(...asked);
    if (grant.kind === "queued" && grant.hint !== undefined) counts.add("wait for resources");
    return grant;
  };
  return slots;
}

/** @param running what was not asked to end */
export function judgeMachine(running: readonly TaskStart[]): void {
  const gpus = running.flatMap(({ lease }) => lease?.gpus ?? []);
  assert.equal(new Set(gpus).size, gpus.length, `I23: GPUs ${gpus.join()}`);
  const commands = running.flatMap(({ kind, config, lease }) =>
    kind === "command" && config.kind === "executor" && config.demand !== null
      ? [{ ...config, demand: config.demand, lease }]
      : [],
  );
  const demandsNow = commands.map(({ demand }) => demand);
  const ports = commands.flatMap((one) => [...portsByLabel(one.ports, one.lease?.ports).values()]);
  assert.equal(new Set(ports).size, ports.length, `I23: ports ${ports.join()}`);
  assert.equal(
    ports.length,
    commands.reduce((sum, one) => sum + one.ports.length, 0),
    "I23: each has the ports that it asks for",
  );
  assert.equal(
    gpus.length,
    demandsNow.reduce((sum, one) => sum + one.gpus, 0),
    "I23: each has as many GPUs as it asks for",
  );
  const volumes = commands.flatMap((one) => one.volumes);
  assert.ok(volumes.length < 2 || volumes.every(({ isReadOnly }) => isReadOnly), "I23: volumes");
  let free = amountsOf(MACHINE);
  for (const demand of demandsNow) {
    assert.deepEqual(lacking(demand, free), [], "I23: more of the machine is used than there is");
    free = without(free, demand);
  }
}

export function judgeAllReleased(slots: PoolSlots): void {
  assert.deepEqual(slots.reserved, { cpuCores: 0, memoryBytes: 0, diskBytes: 0, gpus: 0, claims: [] }, "I24");
  const { capacity, available, queued, active } = slots.snapshot().default!;
  assert.deepEqual([available, queued, active], [capacity, 0, 0], "I24");
}
