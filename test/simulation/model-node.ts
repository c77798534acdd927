// One node of the model: the real engine, membership and task placement on simulated time; its commands only take time.

import assert from "node:assert/strict";
import { Membership } from "../../src/cluster/membership.ts";
import { NodeWatch } from "../../src/cluster/node-watch.ts";
import type { NodeRecords } from "../../src/cluster/nodes.ts";
import { clusterTasks } from "../../src/cluster/tasks/cluster-tasks.ts";
import { knownNode } from "../../src/cluster/tasks/known-nodes.ts";
import type { Connection, FromHost, FromOwner } from "../../src/cluster/tasks/messages.ts";
import { Engine } from "../../src/engine/engine.ts";
import type { Journal } from "../../src/engine/journal.ts";
import { type Clock, slotsKey } from "../../src/engine/ports.ts";
import { noServiceBoard } from "../../src/engine/service-port.ts";
import { noActions, type TaskOutcome, type TaskRef, type TaskRunner } from "../../src/engine/task-port.ts";
import { PoolSlots } from "../../src/execution/pools.ts";
import { machineResources } from "../support/machine.ts";
import type { MemoryJournal } from "../support/memory-journal.ts";
import type { Living, ModelTime } from "./model-time.ts";
import type { Random } from "./random.ts";
import type { SimNodes } from "./sim-nodes.ts";

export const LEASE_MS = 15_000;
export const RENEW_EVERY_MS = LEASE_MS / 5;
export const SLOTS = 8;
/** Of a command, evenly spread. */
export const COMMAND_MS = { from: 20, to: 180 } as const;

/** What the nodes share. */
export interface Cluster {
  readonly time: ModelTime;
  readonly random: Random;
  readonly id: () => string;
  readonly journal: MemoryJournal;
  readonly table: SimNodes;
  readonly nodes: readonly ModelNode[];
  /** Something that a program asks of the database, and learns the answer of. */
  ask<T>(by: Living, what: () => T | Promise<T>): Promise<T>;
  /** Carries a message to another node. */
  carry(arrive: () => void): void;
}

export class ModelNode implements Living {
  readonly nodeId: string;
  isAlive = true;
  isReady = false;
  /** Attempts that were begun on this node, and those of them that are of other nodes' jobs. */
  attempts = 0;
  elsewhere = 0;
  /** What becomes of submissions that are not acknowledged, when the node is lost. */
  readonly lostSubmissions = new Map<string, () => void>();
  readonly engine: Engine;
  readonly tasks: ReturnType<typeof clusterTasks>;
  readonly #cluster: Cluster;
  readonly #own: PoolSlots;
  readonly #membership: Membership;
  readonly #watch: NodeWatch;
  readonly #running = new Set<string>();
  readonly #connections = new Set<
    ModelConnection<FromOwner, FromHost> | ModelConnection<FromHost, FromOwner>
  >();

  constructor(cluster: Cluster, nodeId: string) {
    this.#cluster = cluster;
    this.nodeId = nodeId;
    const { time } = cluster;
    const clock: Clock = {
      nowMs: () => time.nowMs,
      steadyMs: () => time.nowMs,
      after: (delayMs, run) => time.plan(delayMs, this, run),
      soon: (run) => void time.plan(0, this, run),
    };
    const log = { warn: () => {}, error: () => {} };
    const records = this.#records();
    this.#own = new PoolSlots({ default: SLOTS }, cluster.id, () => 0);
    this.#membership = new Membership({
      node: { nodeId, name: nodeId, version: "1", labels: {}, pools: { default: SLOTS }, totals: {} },
      records,
      leaseMs: LEASE_MS,
      load: () => ({
        reserved: this.#own.snapshot(),
        resources: machineResources(),
        jobsOwned: this.engine.openJobs,
        tasksRunning: this.#running.size,
        connectedTo: [],
      }),
      newId: cluster.id,
      onOthers: () => this.#watch.wake(),
      onEnd: () => {},
      clock,
      log,
    });
    this.#watch = new NodeWatch({
      nodeId,
      records,
      everyMs: RENEW_EVERY_MS,
      onOthers: (others) => this.tasks.slots.nodesAre(others.map(knownNode)),
      onOver: (owners) => {
        for (const host of owners) this.tasks.peers.ended(host);
        this.#membership.lookNow();
      },
      clock,
      log,
    });
    this.tasks = clusterTasks({
      nodeId,
      owner: () => this.#membership.owner,
      leaseMs: LEASE_MS,
      ownLeaseLeftMs: () => this.#membership.leftMs,
      connect: (other) => this.#connectTo(cluster.nodes.find((node) => node.nodeId === other)!),
      labels: {},
      own: this.#own,
      hasVolume: () => false,
      local: this.#runner(),
      engine: () => this.engine,
      clock,
      log,
    });
    this.engine = new Engine({
      owner: this.#membership.owner,
      clock,
      randomness: { id: cluster.id, fraction: () => cluster.random.fraction() },
      journal: this.#journal(),
      runner: this.tasks.runner,
      slots: this.tasks.slots,
      feed: { published: () => {} },
      schemaProblem: () => null,
      services: noServiceBoard,
      log,
    });
  }

  async start(): Promise<void> {
    const work = {
      begin: (owner: string) => this.engine.takeUp(owner),
      takeOver: () => this.engine.recover(),
      giveUp: (reason: string) => assert.fail(reason),
      ended: async () => {},
      mayRunUntil: () => {},
      drain: () => {},
      undrain: () => {},
      jobsLeft: () => null,
    };
    await this.#membership.join(work, `${this.nodeId}:1`, []);
    await Promise.all([this.#membership.start(), this.#watch.start()]);
    this.isReady = true;
  }

  /** The machine is lost. */
  kill(): void {
    this.isAlive = false;
    this.#running.clear();
    for (const connection of this.#connections) connection.breaks();
    for (const [jobId, submitAgain] of this.lostSubmissions)
      if (!this.#cluster.journal.jobs.has(jobId)) submitAgain();
  }

  #journal(): Journal {
    const { journal } = this.#cluster;
    const ask = <T>(what: () => Promise<T>) => this.#cluster.ask(this, what);
    return {
      commit: (batch) => ask(() => journal.commit(batch)),
      claim: (owner, limit) => ask(() => journal.claim(owner, limit)),
      load: (jobId) => ask(() => journal.load(jobId)),
      failDamaged: () => assert.fail("nothing is damaged"),
    };
  }

  #records(): NodeRecords {
    const { table } = this.#cluster;
    const ask = <T>(what: () => T) => this.#cluster.ask(this, what);
    return {
      register: (entry, leaseMs, replaced) => ask(() => table.register(entry, leaseMs, replaced)),
      renew: (node, leaseMs, load) => ask(() => table.renew(node, leaseMs, load)),
      leave: (node) => ask(() => table.leave(node)),
      present: () => ask(() => table.present()),
      living: () => ask(() => table.living()),
      order: (nodeId, order) => ask(() => table.order(nodeId, order)),
    };
  }

  #runner(): TaskRunner {
    const { time, random } = this.#cluster;
    return {
      start: ({ ref }) => {
        this.attempts++;
        if (this.tasks.host.has(ref)) this.elsewhere++;
        this.#running.add(slotsKey(ref));
        assert.ok(this.#running.size <= SLOTS, `${this.#running.size} attempts on ${SLOTS} slots`);
        time.plan(random.between(COMMAND_MS.from, COMMAND_MS.to), this, () => this.#end(ref, done));
      },
      stop: (ref) =>
        void time.plan(0, this, () => this.#end(ref, { kind: "interrupted", reason: "stopped" })),
      send: () => {},
      respond: () => {},
    };
  }

  #end(ref: TaskRef, outcome: TaskOutcome): void {
    if (this.#running.delete(slotsKey(ref))) this.tasks.reports.taskEnded(ref, outcome);
  }

  #connectTo(other: ModelNode): Connection<FromOwner, FromHost> {
    const near = new ModelConnection<FromOwner, FromHost>(this.#cluster);
    if (!other.isAlive) {
      near.breaks();
      return near;
    }
    const far = new ModelConnection<FromHost, FromOwner>(this.#cluster);
    near.other = far;
    far.other = near;
    this.#connections.add(near);
    other.#connections.add(far);
    other.tasks.host.accept(far);
    return near;
  }
}

const done: TaskOutcome = {
  kind: "succeeded",
  actions: noActions,
  command: { exitCode: 0, signal: null, stdout: "", stderr: "", durationMs: 1, usage: null },
  artifacts: [],
  observation: null,
};

class ModelConnection<Out, In> implements Connection<Out, In> {
  onFrame: (frame: In) => void = () => {};
  onClose: () => void = () => {};
  other: ModelConnection<In, Out> | null = null;
  readonly #cluster: Cluster;
  #isOpen = true;

  constructor(cluster: Cluster) {
    this.#cluster = cluster;
  }

  write(frame: Out): void {
    const { other } = this;
    if (other === null) return;
    this.#cluster.carry(() => {
      if (other.#isOpen) other.onFrame(frame);
    });
  }

  close(): void {
    this.#isOpen = false;
    this.other?.breaks();
    this.other = null;
  }

  breaks(): void {
    for (const end of [this, this.other]) this.#cluster.time.plan(1, null, () => end?.closed());
  }

  /** The other end is gone, or was never there. */
  closed(): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    this.other = null;
    this.onClose();
  }
}
