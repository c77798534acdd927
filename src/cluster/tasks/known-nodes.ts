// Other nodes as their rows say: what a request may be placed by.

import type { Labels } from "../../engine/labels.ts";
import { type Amounts, type Demand, isThere, without } from "../../engine/resources.ts";
import type { Free } from "../../execution/allotment.ts";
import { hasDevices } from "../../execution/devices.ts";
import { HeldNames } from "../../execution/held-names.ts";
import { amountsOf } from "../../execution/machine-resources.ts";
import { isReady, type NodeRecord, type NodeResources } from "../nodes.ts";

/** A pool as a node last told of it. */
export interface KnownPool {
  readonly capacity: number;
  readonly free: number;
}

/** Another node that takes attempts, or that is lost and may come back. */
export interface KnownNode {
  readonly nodeId: string;
  readonly isReady: boolean;
  readonly labels: Labels;
  readonly pools: Readonly<Record<string, KnownPool>>;
  /** Null of a program that does not tell them: it reserves none. */
  readonly machine: KnownMachine | null;
  /** In its home; absent: none. */
  readonly volumes?: readonly string[];
}

/** The resources of a machine. */
export interface KnownMachine {
  /** What it has: so much may be allowed at any time. */
  readonly totals: Amounts;
  /** What commands may have of it. */
  readonly allowed: Amounts;
  readonly free: Free;
  /** By their paths. */
  readonly devices?: readonly string[];
  /** Whether its program gives things by name. */
  readonly givesNames: boolean;
}

/** What another node's row says of it. */
export function knownNode(node: NodeRecord): KnownNode {
  const { nodeId, labels, pools, reserved, resources } = node;
  const known = Object.entries(pools).map(([pool, capacity]) => {
    const free = Math.max(0, capacity - (reserved[pool]?.in_use ?? 0));
    return [pool, { capacity, free }] as const;
  });
  const machine = resources === null ? null : knownMachine(resources);
  const volumes = resources?.volumes ?? [];
  return { nodeId, isReady: isReady(node), labels, pools: Object.fromEntries(known), machine, volumes };
}

function knownMachine({ totals, effective, reserved, devices = [] }: NodeResources): KnownMachine {
  const allowed = amountsOf(effective);
  const { cpuCores, memoryBytes, diskBytes, gpus, claims } = reserved;
  const taken = { cpuMillis: Math.round(cpuCores * 1_000), memoryBytes, diskBytes, gpus };
  const free = { amounts: without(allowed, taken), names: new HeldNames(claims) };
  return { totals: amountsOf(totals), allowed, free, devices, givesNames: claims !== undefined };
}

/** Whether it could hold the demand within other limits. */
export function mayHold({ totals, devices = [] }: KnownMachine, demand: Demand): boolean {
  return isThere(demand, totals) && hasDevices(demand, (path) => devices.includes(path));
}
