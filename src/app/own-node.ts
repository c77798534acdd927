// This program as a node: what it says of itself, and the nodes that it shows, itself among them.

import { availableParallelism, totalmem } from "node:os";
import { type ClusterNodes, type OwnNode, onlyNode, sharedNodes } from "../cluster/cluster-nodes.ts";
import type { Engine } from "../engine/engine.ts";
import type { PoolSlots } from "../execution/pools.ts";
import type { LocalTaskRunner } from "../execution/task-runner.ts";
import type { OpenStore } from "../store/store.ts";
import { systemClock } from "./clock.ts";
import type { Config } from "./config.ts";
import { programVersion } from "./version.ts";

export interface OwnNodeParts {
  readonly nodeId: string;
  readonly slots: PoolSlots;
  readonly runner: LocalTaskRunner;
  /** It is made later. */
  readonly engine: () => Engine;
}

export function describeOwnNode(
  { nodeName: name, nodeLabels: labels }: Config,
  { nodeId, slots, runner, engine }: OwnNodeParts,
): OwnNode {
  const pools = Object.entries(slots.snapshot()).map(([pool, { capacity }]) => [pool, capacity]);
  return {
    nodeId,
    name,
    version: programVersion(),
    labels,
    pools: Object.fromEntries(pools),
    totals: { cpu_cores: availableParallelism(), memory_bytes: totalmem() },
    load: () => ({
      reserved: slots.snapshot(),
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
