// One node's part in running the cluster's attempts: it places those of its jobs, and runs those that are placed on it.

import type { DeclaredOutput } from "../../engine/graph.ts";
import type { Labels } from "../../engine/labels.ts";
import type { Clock, EngineLog } from "../../engine/ports.ts";
import type { TaskListener, TaskRunner } from "../../engine/task-port.ts";
import { FOREIGN, TaskHost } from "./host.ts";
import type { Connection, FromHost, FromOwner } from "./messages.ts";
import { TaskPeers } from "./peers.ts";
import { ClusterTaskRunner, LocalReports } from "./runner.ts";
import { ClusterSlots, type OwnSlots } from "./slots.ts";

export interface ClusterTasksParts {
  readonly nodeId: string;
  /** This node's name as an owner, `<node id>/<start id>`; another one after its lease was lost. */
  readonly owner: () => string;
  readonly leaseMs: number;
  /** How long this node's own lease lasts from now on; 0 when it has none. */
  readonly ownLeaseLeftMs: () => number;
  /** Opens a connection to a node's host. One that cannot be made is closed soon. */
  readonly connect: (nodeId: string) => Connection<FromOwner, FromHost>;
  /** The node's own labels and pools. */
  readonly labels: Labels;
  readonly own: OwnSlots & {
    onFree: (pool: string) => void;
  };
  /** Whether a volume is in this node's home. */
  readonly hasVolume: (name: string) => boolean;
  readonly local: TaskRunner;
  /** It is made with these tasks' slots and runner. */
  readonly engine: () => TaskListener & { declaredOutputs(jobId: string): readonly DeclaredOutput[] };
  readonly clock: Clock;
  readonly log: EngineLog;
}

/** Leases after which a host has ended the attempts of an owner that it does not reach, in any case (peers.ts). */
const FORMER_LEASES = 2;

export function clusterTasks(parts: ClusterTasksParts) {
  const { nodeId, labels, own, local, engine, clock, log, owner, leaseMs, ownLeaseLeftMs } = parts;
  const host = new TaskHost({
    nodeId,
    host: owner,
    leaseMs,
    ownLeaseLeftMs,
    runner: local,
    slots: own,
    clock,
    log,
  });
  const peers = new TaskPeers(
    {
      owner,
      leaseMs,
      ownLeaseLeftMs,
      connect: parts.connect,
      declaredOutputs: (jobId) => engine().declaredOutputs(jobId),
      listener: engine,
      clock,
      log,
    },
    {
      granted: (key, lease) => slots.granted(key, lease),
      refused: (nodeId, key) => slots.refused(nodeId, key),
      free: (nodeId, pools) => slots.free(nodeId, pools),
      lost: (nodeId, keys) => slots.lost(nodeId, keys),
    },
  );
  // Nothing is known of earlier sessions: they end as any do whose owner is not reached.
  let formerEndMs = clock.steadyMs() + FORMER_LEASES * leaseMs;
  const slots = new ClusterSlots({
    nodeId,
    labels,
    own,
    peers,
    hasVolume: parts.hasVolume,
    formerEndMs: () => formerEndMs,
  });
  own.onGranted = (key, lease) => {
    if (key.startsWith(FOREIGN)) host.granted(key, lease);
    else slots.granted(key, lease);
  };
  const freed = new Set<string>();
  own.onFree = (pool) => {
    slots.ownFree(pool);
    if (freed.size === 0) clock.soon(tellFree);
    freed.add(pool);
  };
  const tellFree = () => {
    host.tellFree(freed);
    freed.clear();
  };
  return {
    host,
    peers,
    slots,
    runner: new ClusterTaskRunner(local, peers),
    reports: new LocalReports(engine, host),
    /** This node's lease is lost: what it runs for others, and what others run for it, is over. */
    leaseLost() {
      formerEndMs = clock.steadyMs() + FORMER_LEASES * leaseMs;
      peers.close();
      host.endAll();
    },
  };
}
