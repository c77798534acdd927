// Nodes that share the simulated database, each with the real membership (src/cluster/membership.ts): they are killed,
// stopped for longer than their lease, cut off from the database, or the database is down; their clocks run apart.
//
// I20. No two attempts of a task run at once, whichever node owns the job: the commands of a node end before others may take its
//      jobs over (checker.ts).
// I21. Every open job is carried on by a living node in the end.
// I22. A node that is drained ends with no jobs and no attempts, whenever it was asked; others have what it had, which nothing
//      was lost of or done twice, and attempts that were ended for it count as none (checker.ts).

import assert from "node:assert/strict";
import { Membership } from "../../src/cluster/membership.ts";
import type { NodeRecords } from "../../src/cluster/nodes.ts";
import type { DrainOrder } from "../../src/engine/drain.ts";
import type { Engine } from "../../src/engine/engine.ts";
import { isTerminal, JournalUnavailable } from "../../src/engine/journal.ts";
import type { Clock } from "../../src/engine/ports.ts";
import { machineResources } from "../support/machine.ts";
import { SimNodes } from "./sim-nodes.ts";
import type { Process, World } from "./world.ts";

/** Monotonic clocks of two machines differ by no more than this. */
const DRIFT_MAX = 1 / 10_000;
/** How far wall clocks are apart. */
const WALL_APART_MS_MAX = 3_000;

interface MachineClock {
  /** What its monotonic clock gains in a millisecond. */
  readonly drift: number;
  readonly wallAheadMs: number;
}

interface SimNode {
  readonly nodeId: string;
  readonly clock: MachineClock;
  /** Null while it is down. */
  life: Life | null;
  /** No way to the database before. */
  cutOffUntilMs: number;
}

/** One program of a node. */
interface Life {
  readonly process: Process;
  readonly membership: Membership;
}

export interface ClusterOptions {
  readonly nodes: number;
  readonly leaseMs: number;
  /** Whether the machines' clocks run apart. */
  readonly clocksDiffer: boolean;
}

export class Cluster {
  readonly table: SimNodes;
  readonly clocksDiffer: boolean;
  readonly #world: World;
  readonly #options: ClusterOptions;
  readonly #nodes: readonly SimNode[];
  #downUntilMs = 0;
  #isAtPeace = false;

  constructor(world: World, options: ClusterOptions) {
    this.#world = world;
    this.#options = options;
    this.clocksDiffer = options.clocksDiffer;
    const databaseDrift = this.#drift();
    this.table = new SimNodes(() => Math.floor(world.nowMs * (1 + databaseDrift)));
    this.#nodes = Array.from({ length: options.nodes }, (_, i) => ({
      nodeId: `node-${i + 1}`,
      clock: {
        drift: this.#drift(),
        wallAheadMs: options.clocksDiffer ? world.random.between(0, WALL_APART_MS_MAX) : 0,
      },
      life: null,
      cutOffUntilMs: 0,
    }));
    for (const node of this.#nodes) this.#start(node);
  }

  #drift(): number {
    const { random } = this.#world;
    return this.#options.clocksDiffer ? (random.fraction() * 2 - 1) * DRIFT_MAX : 0;
  }

  // ------------------------------------------------------------------------------------------------ clients

  /** Whom a client asks about a job: its owner, if that lives; about a new one, anyone. */
  engineOf(jobId: string | null): Engine {
    const owner = jobId === null ? undefined : this.#world.journal.jobs.get(jobId)?.owner;
    const lives = this.#lives();
    const its = lives.find(({ membership }) => membership.owner === owner);
    return (its ?? this.#world.random.pick(lives)).process.engine;
  }

  /** Somebody who may hold no lease, or not know that it holds none. */
  anyEngine(): Engine {
    return this.#world.random.pick(this.#lives()).process.engine;
  }

  #lives(): readonly Life[] {
    return this.#nodes.flatMap(({ life }) => life ?? []);
  }

  get processes(): readonly Process[] {
    return this.#lives().map(({ process }) => process);
  }

  /** Whether nothing is left to take over (I21). */
  get isSettled(): boolean {
    for (const [jobId, { owner, progress }] of this.#world.journal.jobs) {
      if (isTerminal(progress.status)) continue;
      const life = this.#lives().find(({ membership }) => membership.owner === owner);
      if (life === undefined || !this.table.isLiving(owner) || !life.process.engine.holds(jobId))
        return false;
    }
    return this.#drained().every(({ process }) => process.engine.openJobs === 0);
  }

  #drained(): readonly Life[] {
    return this.#nodes.flatMap(({ nodeId, life }) =>
      this.table.outageOf(nodeId) === null ? [] : (life ?? []),
    );
  }

  /** When nothing happens any more (I22). */
  judge(): void {
    for (const { process } of this.#drained()) {
      const { engine, runner } = process;
      this.#world.counts.add("node that ended without work");
      assert.equal(engine.openJobs, 0, "I22: a node that is drained has no jobs");
      assert.equal(runner.attempts, 0, "I22: a node that is drained has no attempts");
    }
  }

  /** Whether somebody would take work over. */
  get #hasReadyNode(): boolean {
    return this.#nodes.some(({ nodeId, life }) => life !== null && this.table.outageOf(nodeId) === null);
  }

  planDrain(delayMs: number): void {
    const { random } = this.#world;
    this.#world.plan(delayMs, null, () => this.#drain(random.pick(this.#nodes)));
  }

  /** Somebody asks for it, in the database. Sooner or later that is taken back, unless others can do the work. */
  #drain({ nodeId }: SimNode): void {
    const world = this.#world;
    const { random, counts } = world;
    const { leaseMs } = this.#options;
    const withinMs = random.pick([0, random.between(1, leaseMs), random.between(1, 5_000)]);
    this.table.order(nodeId, { kind: "drain", withinMs, servicesLast: random.chance(0.7) });
    counts.add("drain");
    const isMaintenance = random.chance(0.3);
    if (isMaintenance) {
      counts.add("maintenance");
      this.table.order(nodeId, { kind: "begin_maintenance", reason: null });
    }
    if (this.#hasReadyNode && random.chance(0.3)) return;
    world.plan(random.between(1, 2 * leaseMs), null, () => {
      if (this.table.outageOf(nodeId) !== null) counts.add("drain that was cancelled");
      this.table.order(nodeId, { kind: isMaintenance ? "end_maintenance" : "undrain" });
    });
  }

  // ----------------------------------------------------------------------------------------------- disasters

  planDisaster(delayMs: number): void {
    const world = this.#world;
    const { random } = world;
    const { leaseMs } = this.#options;
    const node = random.pick(this.#nodes);
    const longMs = random.between(1, 3 * leaseMs);
    const disaster = random.pick([
      () => this.kill(node.life?.process ?? null),
      () => this.#stop(node, longMs),
      () => this.#cutOff(node, longMs),
      () => this.#databaseDown(random.between(1, 2 * leaseMs)),
    ]);
    world.plan(delayMs, null, disaster);
  }

  /** kill -9; its guard ends its commands. The node is started again, now or never. */
  kill(process: Process | null): void {
    const world = this.#world;
    const node = this.#nodes.find(({ life }) => life !== null && life.process === process);
    if (node === undefined) return;
    world.counts.add("crash");
    world.end(process!);
    node.life = null;
    const isLast = !this.#hasReadyNode;
    if (isLast || this.#isAtPeace) this.#start(node);
    else if (world.random.chance(0.6)) {
      world.plan(world.random.between(0, 2 * this.#options.leaseMs), null, () => this.#start(node));
    } else world.counts.add("node that stays away");
  }

  /** Its commit is made, and it learns of that much later. */
  stopBehindCommit(process: Process): void {
    const node = this.#nodes.find(({ life }) => life?.process === process);
    if (node !== undefined) this.#stop(node, this.#world.random.between(1, 3 * this.#options.leaseMs));
  }

  /** SIGSTOP, and SIGCONT: only its guard goes on. */
  #stop({ life }: SimNode, forMs: number): void {
    if (life === null) return;
    const world = this.#world;
    world.counts.add(forMs > this.#options.leaseMs ? "stop beyond the lease" : "stop within the lease");
    life.process.stoppedUntilMs = world.nowMs + forMs;
    world.plan(forMs, null, () => {});
  }

  #cutOff(node: SimNode, forMs: number): void {
    const world = this.#world;
    world.counts.add("node that is cut off");
    node.cutOffUntilMs = world.nowMs + forMs;
    world.plan(forMs, null, () => {});
  }

  #databaseDown(forMs: number): void {
    const world = this.#world;
    world.counts.add("database that is down");
    this.#downUntilMs = world.nowMs + forMs;
    world.plan(forMs, null, () => {});
  }

  /** What becomes of something that this process asks of the database. */
  reach(process: Process): "answered" | "answer lost" | "not reached" {
    const { nowMs, random } = this.#world;
    const node = this.#nodes.find(({ life }) => life?.process === process);
    const isOpen = nowMs >= Math.max(this.#downUntilMs, node?.cutOffUntilMs ?? 0);
    if (isOpen) return "answered";
    // What was on its way when the way closed.
    return random.chance(0.1) ? "answer lost" : "not reached";
  }

  /** Everything can be reached, and every node runs: some were started once more. */
  makePeace(): void {
    this.#isAtPeace = true;
    // A renewal that is late already may still cost a lease.
    this.#world.plan(2 * this.#options.leaseMs, null, () => {});
    this.#downUntilMs = 0;
    // Some that are drained stay so, and one does the work.
    for (const [i, { nodeId }] of this.#nodes.entries())
      if (i === 0 || this.#world.random.chance(0.5)) this.table.order(nodeId, { kind: "end_maintenance" });
    for (const node of this.#nodes) {
      node.cutOffUntilMs = 0;
      if (node.life === null) this.#start(node);
      else {
        node.life.process.stoppedUntilMs = 0;
        if (this.#world.random.chance(0.5)) this.kill(node.life.process);
      }
    }
  }

  // ------------------------------------------------------------------------------------------------- one life

  #start(node: SimNode): void {
    const world = this.#world;
    if (node.life !== null) return;
    const lived = (): Life => life;
    const owned = () => lived().process;
    const baseMs = world.nowMs;
    const steadyAtStartMs = world.random.between(0, 10_000_000);
    const clock = this.#clockOf(node.clock, baseMs, steadyAtStartMs);
    const clockOf = (isBackground: boolean): Clock => ({
      nowMs: () => Math.floor(world.nowMs + node.clock.wallAheadMs),
      steadyMs: () => Math.floor(clock.steadyMs()),
      after: (delayMs, run) => world.plan(clock.realMs(delayMs), owned(), run, isBackground),
      soon: (run) => void world.plan(0, owned(), run, isBackground),
    });
    const membership = new Membership({
      node: {
        nodeId: node.nodeId,
        name: node.nodeId,
        version: "1",
        labels: {},
        pools: {},
        totals: {},
      },
      records: this.#recordsOf(owned),
      leaseMs: this.#options.leaseMs,
      load: () => ({
        resources: machineResources(),
        reserved: {},
        jobsOwned: owned().engine.openJobs,
        tasksRunning: 0,
        connectedTo: [],
      }),
      newId: () => world.newId(),
      onOthers: () => {},
      onEnd: () => {},
      clock: clockOf(true),
      log: { warn: () => {}, error: () => {} },
    });
    const process = world.startProcess(membership.owner, clockOf(false));
    const life: Life = { process, membership };
    node.life = life;
    const { engine, runner } = process;
    const work = {
      begin: (owner: string) => engine.takeUp(owner),
      takeOver: () => engine.recover(),
      giveUp: (reason: string) => {
        world.counts.add("lease that was lost");
        engine.giveUp(reason);
      },
      ended: () => runner.ended(),
      drain: (order: DrainOrder) => engine.drain(order),
      undrain: () => engine.undrain(),
      jobsLeft: () => engine.jobsLeft(),
      mayRunUntil: (steadyMs: number) =>
        runner.mayRunFor(clock.realMs(steadyMs - clock.steadyMs()), () => membership.check()),
    };
    // Nothing is served before.
    engine.giveUp("The node has no lease yet.");
    const join = async () => {
      // A program whose home was locked by nobody is the only one of its node.
      await membership.join(work, null, "any");
      engine.takeUp(membership.owner);
      await membership.start();
    };
    const failed = (error: unknown) => {
      if (!(error instanceof JournalUnavailable)) {
        world.broken(error);
        return;
      }
      // Its supervisor starts it again.
      world.plan(world.random.between(10, 1_000), process, () => this.kill(process));
    };
    world.plan(0, process, () => void join().catch(failed));
  }

  #clockOf({ drift }: MachineClock, baseMs: number, startMs: number) {
    return {
      steadyMs: () => startMs + (this.#world.nowMs - baseMs) * (1 + drift),
      /** The time that passes until this clock has moved by so much. */
      realMs: (ms: number) => Math.ceil(ms / (1 + drift)),
    };
  }

  #recordsOf(owned: () => Process): NodeRecords {
    const world = this.#world;
    const { table } = this;
    const ask = <T>(what: () => T): Promise<T> =>
      new Promise((resolve, reject) => {
        const isSlow = world.random.chance(world.faults.recoveryIsSlow / 5);
        const delayMs = isSlow ? world.random.between(50, this.#options.leaseMs) : world.random.between(0, 2);
        if (isSlow) world.counts.add("slow renewal");
        // The request is on its way first, and then the answer.
        const there = world.random.between(0, delayMs);
        const answered = (answer: () => void) => world.plan(delayMs - there, owned(), answer, true);
        world.plan(
          there,
          null,
          () => {
            const reach = this.reach(owned());
            const answer = reach === "not reached" ? null : { value: what() };
            if (reach === "answered") answered(() => resolve(answer!.value));
            else answered(() => reject(new JournalUnavailable("The database does not answer.", "unknown")));
          },
          true,
        );
      });
    return {
      register: (entry, leaseMs, replaced) => ask(() => table.register(entry, leaseMs, replaced)),
      renew: (node, leaseMs, load) => ask(() => table.renew(node, leaseMs, load)),
      leave: (node) => ask(() => table.leave(node)),
      present: () => ask(() => table.present()),
      living: () => ask(() => table.living()),
      order: (nodeId, order) => ask(() => table.order(nodeId, order)),
    };
  }
}
