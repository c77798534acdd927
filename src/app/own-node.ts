// This program as a node: what it says of itself, and the nodes that it shows, itself among them.

import { type ClusterNodes, type OwnNode, onlyNode, sharedNodes } from "../cluster/cluster-nodes.ts";
import { totalsShown } from "../cluster/nodes.ts";
import type { Engine } from "../engine/engine.ts";
import type { Labels } from "../engine/labels.ts";
import { Devices } from "../execution/devices.ts";
import {
  MachineMeter,
  type MachineTotals,
  type MachineUse,
  readMachineTotals,
} from "../execution/machine-resources.ts";
import type { PoolSlots } from "../execution/pools.ts";
import type { LocalTaskRunner } from "../execution/task-runner.ts";
import { programVersion } from "../lib/version.ts";
import type { OpenStore } from "../store/store.ts";
import { systemClock } from "./clock.ts";
import type { Config } from "./config.ts";

/** The machine of this program. */
export class OwnMachine {
  readonly totals: MachineTotals;
  readonly #meter: MachineMeter;
  readonly #devices = new Devices(systemClock);

  private constructor(totals: MachineTotals, meter: MachineMeter) {
    this.totals = totals;
    this.#meter = meter;
  }

  /** @param searchPath where programs are looked for, as in PATH */
  static async open(home: string, searchPath: string | undefined): Promise<OwnMachine> {
    const totals = await readMachineTotals(home, searchPath);
    return new OwnMachine(totals, await MachineMeter.open({ home, totals, clock: systemClock }));
  }

  /** From now on for a second, `used` is not older than this. */
  async measure(): Promise<void> {
    await this.#meter.read();
  }

  get devices(): readonly string[] {
    return this.#devices.told;
  }

  get used(): MachineUse {
    return this.#meter.latest;
  }
}

export interface OwnNodeParts {
  readonly nodeId: string;
  readonly labels: Labels;
  readonly machine: OwnMachine;
  readonly slots: PoolSlots;
  readonly runner: LocalTaskRunner;
  /** It is made later. */
  readonly engine: () => Engine;
}

export function describeOwnNode(
  { nodeName: name }: Config,
  { nodeId, labels, machine, slots, runner, engine }: OwnNodeParts,
): OwnNode {
  const pools = Object.entries(slots.snapshot()).map(([pool, { capacity }]) => [pool, capacity]);
  return {
    nodeId,
    name,
    version: programVersion(),
    labels,
    pools: Object.fromEntries(pools),
    totals: totalsShown(machine.totals),
    load: () => ({
      reserved: slots.snapshot(),
      resources: {
        totals: machine.totals,
        effective: slots.effective,
        reserved: slots.reserved,
        used: machine.used,
        volumes: runner.volumes.names,
        devices: machine.devices,
      },
      jobsOwned: engine().openJobs,
      tasksRunning: runner.running,
    }),
  };
}

export function nodesShown(
  ownNode: OwnNode,
  { sharedByNodes }: Pick<OpenStore, "sharedByNodes">,
  { startedAtMs, stopping }: { readonly startedAtMs: number; readonly stopping: AbortSignal },
): ClusterNodes {
  if (sharedByNodes !== null) return sharedNodes(sharedByNodes.reads, ownNode);
  return onlyNode(ownNode, startedAtMs, { isStopping: () => stopping.aborted, nowMs: systemClock.nowMs });
}
