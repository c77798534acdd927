// This program as one node of those that share its database: its lease, the others, and the attempts that they run for each
// other. Loaded only where there can be other nodes: it brings gRPC and all of TLS along.

import type { OwnNode } from "../cluster/cluster-nodes.ts";
import { ClusterNotes } from "../cluster/cluster-notes.ts";
import { Membership, NodeRemoved, NodeTaken, type Work } from "../cluster/membership.ts";
import { nodeNames } from "../cluster/node-names.ts";
import { NodeWatch } from "../cluster/node-watch.ts";
import { isReady, type NodeOrders } from "../cluster/nodes.ts";
import { RemoteLaunches } from "../cluster/remote-launches.ts";
import { clusterTasks } from "../cluster/tasks/cluster-tasks.ts";
import { knownNode } from "../cluster/tasks/known-nodes.ts";
import { Peers } from "../cluster/wire/peers.ts";
import { openTaskStreams } from "../cluster/wire/task-stream.ts";
import type { Engine } from "../engine/engine.ts";
import { JournalUnavailable } from "../engine/journal.ts";
import { limits } from "../engine/limits.ts";
import type { EngineLog } from "../engine/ports.ts";
import type { PoolSlots } from "../execution/pools.ts";
import type { LocalTaskRunner } from "../execution/task-runner.ts";
import type { Ownership } from "../operations/ownership.ts";
import type { NoteSource } from "../runs/change-notes.ts";
import type { NodeIdentity } from "../store/node-identity.ts";
import type { SharedByNodes } from "../store/store.ts";
import { systemClock, systemRandomness } from "./clock.ts";
import type { Config } from "./config.ts";
import { StartFailed } from "./listen.ts";
import { credentialsOf, type NodeDoor, type NodeDoorParts, openNodeDoor } from "./node-door.ts";

/** What a request may grow by on its way: secrets in a message are encrypted, and what it is wrapped in is small. */
const MESSAGE_BYTES_MIN = 16 * 1024 * 1024;
const RENEWALS_PER_LEASE = 5;
/** Attempts on other nodes get five seconds to end by themselves. */
const STOP_MS = 8_000;
/** How long it may take behind the deadline of a drain that attempts end which were asked to, and that their jobs are gone. */
const END_MS_MAX = limits.killGraceMs + 5_000;

export interface NodeParts {
  readonly identity: NodeIdentity;
  readonly ownNode: OwnNode;
  readonly shared: SharedByNodes;
  readonly slots: PoolSlots;
  readonly runner: LocalTaskRunner;
  /** It is made with this node's slots and runner. */
  readonly engine: () => Engine;
  /** The node has left the cluster as it was asked to, or was removed: the program is to end. */
  readonly end: (reason: string) => void;
  readonly log: EngineLog;
}

/** How often a node that is drained for its end looks for others. */
const LOOK_MS = 1_000;

/** What a node tells the gateway of its program. */
export interface GatewayOfNode {
  /** Another program was lost, or this one has another name. */
  programLost(): void;
  /** Another node has given a run to this one. */
  launch(runId: string): void;
}

export type Node = Awaited<ReturnType<typeof openNode>>;

export async function openNode(config: Config, parts: NodeParts, undo: AsyncDisposableStack) {
  const { identity, ownNode, shared, slots: own, runner, engine, end, log } = parts;
  const { nodeId } = identity;
  const leaseMs = config.nodeLeaseSeconds * 1_000;
  const everyMs = leaseMs / RENEWALS_PER_LEASE;
  const records = shared.nodes(everyMs);
  undo.defer(() => records.close());
  const membership = new Membership({
    node: ownNode,
    records,
    leaseMs,
    load: () => ({ ...ownNode.load(), connectedTo: peers.connected }),
    newId: systemRandomness.id,
    onOthers: () => watch.wake(),
    onEnd: end,
    clock: systemClock,
    log,
  });
  const owner = () => membership.owner;
  const ownership: Ownership = { owner, living: () => records.living() };
  const credentials = credentialsOf(config, await shared.secret());
  const messageBytesMax = Math.max(MESSAGE_BYTES_MIN, 2 * config.bodyBytesMax);
  const peers = new Peers({ credentials, messageBytesMax, clock: systemClock });
  undo.defer(() => peers.close());
  let gateway: GatewayOfNode = { programLost: () => {}, launch: () => {} };
  const watch = new NodeWatch({
    nodeId,
    records,
    everyMs,
    onOthers: (others) => tasks.slots.nodesAre(others.map(knownNode)),
    onOver: (owners) => {
      for (const host of owners) tasks.peers.ended(host);
      membership.lookNow();
      gateway.programLost();
    },
    clock: systemClock,
    log,
  });
  const tasks = clusterTasks({
    nodeId,
    owner,
    leaseMs,
    ownLeaseLeftMs: () => membership.leftMs,
    connect: openTaskStreams(peers, (other) => watch.addressOf(other)),
    labels: ownNode.labels,
    own,
    hasVolume: (name) => runner.volumes.has(name),
    local: runner,
    engine,
    clock: systemClock,
    log,
  });
  const work: Work = {
    begin(next) {
      engine().takeUp(next);
      gateway.programLost();
    },
    async takeOver() {
      const jobs = await engine().recover();
      if (jobs > 0) gateway.programLost();
      return jobs;
    },
    giveUp(reason) {
      engine().giveUp(reason);
      tasks.leaseLost();
    },
    drain(order) {
      engine().drain(order);
      tasks.host.drain(order.deadlineMs);
    },
    undrain() {
      engine().undrain();
      tasks.host.undrain();
    },
    jobsLeft: () => engine().jobsLeft(),
    ended: () => runner.ended(),
    mayRunUntil: (steadyMs) => runner.mayRunUntil(steadyMs, () => membership.check()),
  };
  const { reads, expected } = shared;
  const orders: NodeOrders = {
    find: reads.find,
    async order(asked, order) {
      if (asked !== nodeId) return records.order(asked, order);
      await membership.order(order);
      return reads.find(asked);
    },
  };
  const launches = new RemoteLaunches({ peers, clock: systemClock, log });
  undo.defer(() => launches.stop());
  let address: string | null = null;
  return {
    nodeId,
    owner,
    ownership,
    orders,
    names: nodeNames(ownNode, (other) => watch.nameOf(other)),
    tasks,
    launches,
    /** What changes in lists on all nodes. @param here on this one */
    notes: (here: NoteSource): NoteSource =>
      new ClusterNotes({ own: here, nodes: reads, owner, peers, clock: systemClock }),
    /**
     * Listens for the other nodes.
     *
     * @param keys for programs that join
     * @returns what reaches jobs and nodes wherever they are
     * @throws StartFailed
     */
    async openDoor(
      door: Omit<
        NodeDoorParts,
        | "nodeId"
        | "owner"
        | "nodes"
        | "peers"
        | "host"
        | "launch"
        | "welcomes"
        | "credentials"
        | "messageBytesMax"
      >,
      keys: readonly string[],
    ): Promise<Pick<NodeDoor, "control" | "reconcileNode" | "removeVolume">> {
      const welcomes = { expected, shared: { databaseUrl: config.databaseUrl ?? "", keys } };
      const launch = (runId: string) => gateway.launch(runId);
      const own = { nodeId, owner, nodes: reads, peers, host: tasks.host, launch, welcomes };
      const opened = await openNodeDoor(config, { ...door, ...own, credentials, messageBytesMax }, undo);
      address = opened.address;
      return opened;
    },
    /**
     * Registers the node; from now on it works under its lease.
     *
     * @throws StartFailed
     */
    async join(of: GatewayOfNode): Promise<void> {
      gateway = of;
      try {
        await membership.join(work, address, identity.isInPlace ? "any" : []);
      } catch (error) {
        const isRemoved = error instanceof NodeRemoved;
        if (!(isRemoved || error instanceof NodeTaken || error instanceof JournalUnavailable)) throw error;
        throw new StartFailed(error.message, isRemoved);
      }
      await identity.settle();
    },
    /** Takes over what no living node has, now and from now on. */
    async start(): Promise<void> {
      await Promise.all([membership.start(), watch.start()]);
    },
    /**
     * Has the jobs leave before the program ends, while another node takes them. Attempts that run have some time for it.
     */
    async drain(seconds: number): Promise<void> {
      // Without a lease there is nothing to give away, and the row may be another program's.
      if (seconds === 0 || membership.leftMs === 0) return;
      const deadlineMs = seconds * 1_000;
      const hasReadyOthers = async () =>
        (await records.present()).some((other) => other.nodeId !== nodeId && isReady(other));
      try {
        if (!(await hasReadyOthers())) return;
        await membership.order({ kind: "drain", withinMs: deadlineMs, servicesLast: true });
      } catch (error) {
        log.warn(
          { reason: String(error) },
          "this node cannot be drained: its jobs are taken over when it has left",
        );
        return;
      }
      const over = new AbortController();
      // Behind the jobs those attempts that run for others.
      const drained = engine()
        .drained()
        .then(() => runner.ended());
      const late = waited(deadlineMs + END_MS_MAX, over.signal);
      await Promise.race([drained, late, untilAlone(hasReadyOthers, over.signal)]);
      over.abort();
    },
    /** To be called when nothing runs here any more: other nodes may take over at once what is left. */
    async leave(): Promise<void> {
      watch.stop();
      await membership.leave(await tasks.peers.stopAll(STOP_MS));
      // Else the process lives until the other nodes have missed this one for two leases.
      tasks.leaseLost();
      tasks.host.undrain();
    },
  };
}

/** Resolves after a time; never if `signal` is aborted before. */
function waited(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const cancel = systemClock.after(ms, resolve);
    signal.addEventListener("abort", cancel, { once: true });
  });
}

/** Resolves when no other node is ready any more: all of them are stopped, and none would take a job. */
async function untilAlone(hasReadyOthers: () => Promise<boolean>, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    await waited(LOOK_MS, signal);
    // A database that does not answer says nothing about the others.
    if (!(await hasReadyOthers().catch(() => true))) return;
  }
}
