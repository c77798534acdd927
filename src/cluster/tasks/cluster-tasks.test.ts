// Owners and hosts of attempts in a simulated cluster: connections that are slow, break and are cut off, programs that
// are killed and come back, commands that take a while to end when they are stopped, engines that have no room for
// reports for a while. From one seed each.
//
// - A node's slots in use never exceed its capacity.
// - What asks for a label runs on nodes that have it only.
// - No attempt runs longer than the last lease of its owner.
// - When an owner is told that an attempt has ended, it runs nowhere any more.
// - Reports of an attempt come in order, and before its end; all of them, unless it is lost.
// - Every attempt that was started is reported as ended to a living owner, once.
// - Once everything is healed, every request is granted.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Random } from "../../../test/simulation/random.ts";
import { type Living, Timeline } from "../../../test/simulation/timeline.ts";
import { sized } from "../../../test/support/long.ts";
import { machine } from "../../../test/support/machine.ts";
import type { PlacementPolicy } from "../../engine/graph.ts";
import type { Labels } from "../../engine/labels.ts";
import { type Clock, parseSlotsKey, slotsKey } from "../../engine/ports.ts";
import {
  noActions,
  type TaskListener,
  type TaskOutcome,
  type TaskRef,
  type TaskRunner,
  type TaskStart,
} from "../../engine/task-port.ts";
import { HeldNames } from "../../execution/held-names.ts";
import { PoolSlots } from "../../execution/pools.ts";
import { clusterTasks } from "./cluster-tasks.ts";
import type { KnownMachine } from "./known-nodes.ts";
import type { Connection, FromHost, FromOwner } from "./messages.ts";

const CORES = 3;
const MACHINE = machine({ cpuCores: CORES });

const LEASE_MS = 15_000;
const RENEW_EVERY_MS = LEASE_MS / 5;
const SEEDS = sized(40, 1_000);

describe("attempts that are placed on other nodes", () => {
  for (const placement of ["spread", "binpack", "local"] as const) {
    test(`run where they were granted, once, whatever breaks (${placement})`, async () => {
      const seen = { elsewhere: 0, lost: 0, withoutCores: 0 };
      for (let seed = 1; seed <= SEEDS; seed++) {
        const world = new World(seed, placement);
        await world.run();
        for (const kind of ["elsewhere", "lost", "withoutCores"] as const) seen[kind] += world.seen[kind];
      }
      assert.ok(seen.elsewhere > SEEDS, `${seen.elsewhere} attempts ran elsewhere`);
      assert.ok(seen.lost > SEEDS / 10, `${seen.lost} attempts were lost`);
      assert.ok(seen.withoutCores > SEEDS, `${seen.withoutCores} attempts waited for cores`);
    });
  }
});

class World {
  readonly time = new Timeline();
  readonly random: Random;
  readonly placement: PlacementPolicy;
  readonly nodes: SimNode[] = [];
  readonly seen = { elsewhere: 0, lost: 0, withoutCores: 0 };
  isHealed = false;
  attempts = 0;
  /** The start of a node that asked for each attempt. */
  readonly owners = new Map<string, Life>();
  /** How much each attempt has reported. */
  readonly reported = new Map<string, number>();

  constructor(seed: number, placement: PlacementPolicy) {
    this.random = new Random(seed);
    this.placement = placement;
    const nodes = [
      [1, "a"],
      [3, "b"],
      [4, "b"],
    ] as const;
    for (const [i, [capacity, zone]] of nodes.entries())
      this.nodes.push(new SimNode(this, { nodeId: `n${i}`, capacity, zone }));
  }

  async run(): Promise<void> {
    for (const node of this.nodes) node.begin();
    this.#tellNodes();
    this.#repeatedly(4_000, () => this.random.pick(this.nodes).work());
    this.#repeatedly(30_000, () => this.#fault());
    const end = this.time.nowMs + 180_000;
    while (this.time.nowMs < end) await this.#steps(1);
    this.isHealed = true;
    for (const node of this.nodes) node.heal();
    const last = this.time.nowMs + 10 * LEASE_MS;
    while (this.time.nowMs < last && this.nodes.some(({ isBusy }) => isBusy)) await this.#steps(20);
    for (const node of this.nodes) node.assertDone();
  }

  /** Until everything is healed. */
  #repeatedly(everyMsMax: number, run: () => void): void {
    this.time.plan(this.random.below(everyMsMax), null, () => {
      if (this.isHealed) return;
      run();
      this.#repeatedly(everyMsMax, run);
    });
  }

  async #steps(count: number): Promise<void> {
    for (let n = 0; n < count; n++) {
      if (!(await this.time.step())) return;
      for (const node of this.nodes) node.assertSlots();
    }
  }

  #fault(): void {
    const node = this.random.pick(this.nodes);
    if (this.random.chance(0.4)) node.cutOff(this.random.below(3 * LEASE_MS));
    else if (this.random.chance(0.5)) node.breakConnections();
    else node.restart();
  }

  /** The nodes look at each other's rows in the database every few seconds. */
  #tellNodes(): void {
    this.time.plan(3_000, null, () => this.#tellNodes());
    for (const node of this.nodes) {
      node.tasks.slots.nodesAre(
        this.nodes
          .filter((other) => other !== node)
          .map(({ nodeId, labels, pools, machine }) => ({
            nodeId,
            isReady: true,
            labels,
            pools: pools(),
            machine: machine(),
          })),
      );
    }
  }

  runsSomewhere(ref: TaskRef): boolean {
    return this.nodes.some((node) => node.running.has(slotsKey(ref)));
  }
}

interface Life {
  isAlive: boolean;
  leaseEndMs: number;
}

/** A program: a start of it is one owner. */
class SimNode implements Living {
  readonly #world: World;
  readonly nodeId: string;
  readonly #capacity: number;
  readonly labels: { readonly zone: string };
  isAlive = true;
  #start = 0;
  #cutUntilMs = 0;
  #life: Life = { isAlive: true, leaseEndMs: Number.POSITIVE_INFINITY };
  #ownLeaseLeftMs = () => LEASE_MS;
  #connections = new Set<SimConnection<FromOwner, FromHost> | SimConnection<FromHost, FromOwner>>();
  readonly running = new Set<string>();
  #own!: PoolSlots;
  tasks!: ReturnType<typeof clusterTasks>;
  /** The attempts of this node's engine. */
  #state = new Map<string, "asked" | "granted" | "running">();

  constructor(
    world: World,
    { nodeId, capacity, zone }: { readonly nodeId: string; readonly capacity: number; readonly zone: string },
  ) {
    this.#world = world;
    this.nodeId = nodeId;
    this.#capacity = capacity;
    this.labels = { zone };
  }

  get isBusy(): boolean {
    return this.#state.size + this.running.size + this.#own.snapshot().default!.in_use > 0;
  }

  get owner(): string {
    return `${this.nodeId}/${this.#start}`;
  }

  readonly pools = () => {
    const { default: pool } = this.#own.snapshot();
    return { default: { capacity: this.#capacity, free: pool!.queued > 0 ? 0 : pool!.available } };
  };

  /** As its row tells. */
  readonly machine = (): KnownMachine => {
    const { allowed, reserved } = this.#own;
    return {
      totals: allowed,
      allowed,
      free: {
        amounts: { ...allowed, cpuMillis: allowed.cpuMillis - reserved.cpuCores * 1_000 },
        names: new HeldNames(reserved.claims),
      },
      givesNames: true,
    };
  };

  begin(): void {
    const world = this.#world;
    const { time, random } = world;
    this.#start++;
    this.#life = { isAlive: true, leaseEndMs: Number.POSITIVE_INFINITY };
    const life = this.#life;
    const beganMs = time.nowMs;
    this.#ownLeaseLeftMs = () => LEASE_MS - ((time.nowMs - beganMs) % RENEW_EVERY_MS);
    const clock: Clock = {
      nowMs: () => time.nowMs,
      steadyMs: () => time.nowMs,
      after: (delayMs, run) => time.plan(delayMs, life, run),
      soon: (run) => void time.plan(0, life, run),
    };
    let lease = 0;
    this.#own = new PoolSlots(
      { default: this.#capacity },
      () => String(++lease),
      () => 0,
      this.labels,
      MACHINE,
    );
    const owner = this.owner;
    const engine = this.#engine(life);
    this.tasks = clusterTasks({
      nodeId: this.nodeId,
      owner: () => owner,
      leaseMs: LEASE_MS,
      ownLeaseLeftMs: this.#ownLeaseLeftMs,
      connect: (nodeId) => this.#connectTo(world.nodes.find((node) => node.nodeId === nodeId)!),
      labels: this.labels,
      own: this.#own,
      hasVolume: () => false,
      local: this.#runner(life),
      engine: () => engine,
      clock,
      log: { warn: () => {}, error: () => {} },
    });
    this.tasks.slots.onGranted = (key, lease) => {
      this.#state.set(key, "granted");
      if (lease.node !== undefined) world.seen.elsewhere++;
      // Once that is on disk.
      time.plan(random.below(5_000), life, () => {
        if (this.#state.get(key) !== "granted") return;
        this.#state.set(key, "running");
        this.tasks.runner.start({ ref: parseSlotsKey(key), lease } as TaskStart);
      });
    };
  }

  /** The engine asks for slots for an attempt, or takes one back that waits or runs. */
  work(): void {
    const { random } = this.#world;
    if (random.chance(0.15) && this.#state.size > 0) {
      const [key, state] = random.pick([...this.#state]);
      if (state === "running") this.tasks.runner.stop(parseSlotsKey(key));
      else {
        this.#state.delete(key);
        this.tasks.slots.release(key);
      }
      return;
    }
    const zone = random.chance(0.3) ? random.pick(["a", "b"]) : "any";
    const cores = random.chance(0.5) ? random.between(1, CORES) : 0;
    const key = `${this.nodeId}-${++this.#world.attempts}-${zone}-${cores}/1/1`;
    this.#state.set(key, "asked");
    this.#world.owners.set(key, this.#life);
    const labels: Labels = zone === "any" ? {} : { zone };
    const grant = this.tasks.slots.request(key, "default", 1, this.#world.placement, {
      nodeLabels: labels,
      demand: cores === 0 ? null : { cpuMillis: cores * 1_000, memoryBytes: 0, diskBytes: 0, gpus: 0 },
    });
    if (grant.kind === "queued" && grant.hint !== undefined) this.#world.seen.withoutCores++;
    if (grant.kind === "granted") this.tasks.slots.onGranted(key, grant.lease);
    else assert.equal(grant.kind, "queued");
  }

  #engine(life: Living) {
    const { time, random } = this.#world;
    const reports = new Map<string, number>();
    const ended = (ref: TaskRef, outcome: TaskOutcome) => {
      if (!life.isAlive) return;
      const key = slotsKey(ref);
      assert.equal(this.#state.get(key), "running", `${key} has ended twice, or was never started`);
      assert.ok(!this.#world.runsSomewhere(ref), `${key} is told to have ended, and runs`);
      this.#state.delete(key);
      if (outcome.kind === "succeeded") assert.equal(reports.get(key), this.#world.reported.get(key));
      if (outcome.kind === "interrupted" && outcome.reason.includes("lost")) this.#world.seen.lost++;
      this.tasks.slots.release(key);
    };
    const engine: TaskListener & { declaredOutputs(): [] } = {
      taskEvents: (ref, [event]) => {
        if (!life.isAlive) return;
        const key = slotsKey(ref);
        assert.equal(this.#state.get(key), "running", `${key} is reported behind its end`);
        const before = reports.get(key) ?? 0;
        assert.equal(event?.payload, before + 1, `${key} is reported out of order`);
        reports.set(key, before + 1);
      },
      taskActions: () => {},
      taskEnded: ended,
      backpressure: () => {
        if (!random.chance(0.1)) return null;
        return new Promise((resolve) => void time.plan(random.below(10_000), life, resolve));
      },
      declaredOutputs: () => [],
    };
    return engine;
  }

  /** Runs "commands" that end by themselves after a while, and some seconds after they are stopped. */
  #runner(life: Living): TaskRunner {
    const { time, random } = this.#world;
    const end = (ref: TaskRef, outcome: TaskOutcome) => {
      const key = slotsKey(ref);
      if (!this.running.delete(key)) return;
      if (life.isAlive) this.tasks.reports.taskEnded(ref, outcome);
    };
    return {
      start: ({ ref }) => {
        const key = slotsKey(ref);
        assert.ok(!this.#world.runsSomewhere(ref), `${key} runs twice`);
        const zone = ref.jobId.split("-")[2];
        assert.ok(zone === "any" || zone === this.labels.zone, `${key} runs in ${this.labels.zone}`);
        this.running.add(key);
        const coresOf = (one: string) => Number(one.split("/")[0]!.split("-")[3]);
        const inUse = [...this.running].reduce((sum, one) => sum + coresOf(one), 0);
        assert.ok(inUse <= CORES, `${inUse} cores are in use on ${this.nodeId}`);
        const succeeded: TaskOutcome = {
          kind: "succeeded",
          actions: noActions,
          command: null,
          artifacts: [],
          observation: null,
        };
        time.plan(random.below(20_000), life, () => end(ref, succeeded));
        this.#report(life, ref, 1);
      },
      stop: (ref, graceMs = 5_000) => {
        if (!this.running.has(slotsKey(ref))) return;
        time.plan(random.below(graceMs), life, () => end(ref, { kind: "interrupted", reason: "stopped" }));
      },
      send: () => {},
      respond: () => {},
    };
  }

  #report(life: Living, ref: TaskRef, n: number): void {
    const { time, random } = this.#world;
    time.plan(random.below(2_000), life, () => {
      if (!this.running.has(slotsKey(ref))) return;
      this.#world.reported.set(slotsKey(ref), n);
      this.tasks.reports.taskEvents(ref, [{ type: "log", payload: n }]);
      this.#report(life, ref, n + 1);
    });
  }

  get #isCut(): boolean {
    return this.#world.time.nowMs < this.#cutUntilMs;
  }

  #connectTo(other: SimNode): Connection<FromOwner, FromHost> {
    const near = new SimConnection<FromOwner, FromHost>(this.#world);
    if (other.#isCut || this.#isCut) {
      this.#world.time.plan(this.#world.random.below(3_000), null, () => near.closed());
      return near;
    }
    const far = new SimConnection<FromHost, FromOwner>(this.#world);
    near.other = far;
    far.other = near;
    this.#connections.add(near);
    other.#connections.add(far);
    other.tasks.host.accept(far);
    return near;
  }

  /** The network does not reach it for a while: nothing arrives, and nobody is told. */
  cutOff(forMs: number): void {
    if (this.#world.isHealed) return;
    this.#cutUntilMs = this.#world.time.nowMs + forMs;
    for (const connection of this.#connections) connection.silence();
    this.#connections.clear();
  }

  breakConnections(): void {
    for (const connection of this.#connections) connection.breaks();
    this.#connections.clear();
  }

  /** kill -9 and a new start, which first ends what the one before has left running. */
  restart(): void {
    if (this.#world.isHealed) return;
    this.#life.isAlive = false;
    this.#life.leaseEndMs = this.#world.time.nowMs + this.#ownLeaseLeftMs();
    for (const connection of this.#connections) connection.close();
    this.#connections.clear();
    this.#state.clear();
    this.running.clear();
    const before = this.owner;
    this.begin();
    for (const node of this.#world.nodes) if (node !== this) node.tasks.peers.ended(before);
  }

  heal(): void {
    this.#cutUntilMs = 0;
  }

  assertSlots(): void {
    const { time, owners } = this.#world;
    for (const key of this.running)
      assert.ok(time.nowMs <= owners.get(key)!.leaseEndMs, `${key} outlives its owner's lease`);
    assert.ok(this.running.size <= this.#capacity, `${this.running.size} of ${this.#capacity} slots`);
  }

  assertDone(): void {
    assert.deepEqual([...this.#state], [], "what is not granted");
    assert.equal(this.running.size, 0);
    assert.equal(this.#own.snapshot().default?.in_use, 0);
  }
}

class SimConnection<Out, In> implements Connection<Out, In> {
  onFrame: (frame: In) => void = () => {};
  onClose: () => void = () => {};
  other: SimConnection<In, Out> | null = null;
  readonly #world: World;
  #isOpen = true;
  #isSilent = false;
  #arrivesMs = 0;

  constructor(world: World) {
    this.#world = world;
  }

  write(frame: Out): void {
    const { other } = this;
    if (!this.#isOpen || this.#isSilent || other === null) return;
    const copy = JSON.parse(JSON.stringify(frame)) as Out;
    const { time, random } = this.#world;
    // In order, and late now and then.
    const delayMs = random.chance(0.02) ? random.below(4_000) : random.below(20);
    this.#arrivesMs = Math.max(this.#arrivesMs, time.nowMs + delayMs);
    time.plan(this.#arrivesMs - time.nowMs, null, () => {
      if (other.#isOpen && !this.#isSilent) other.onFrame(copy);
    });
  }

  close(): void {
    const { other } = this;
    this.#isOpen = false;
    this.other = null;
    if (other === null || this.#isSilent) return;
    this.#world.time.plan(this.#world.random.below(20), null, () => other.closed());
  }

  /** Both ends are told, sooner or later. */
  breaks(): void {
    const { other } = this;
    for (const end of [this, other]) {
      if (end !== null) this.#world.time.plan(this.#world.random.below(20), null, () => end.closed());
    }
  }

  /** The other end has closed it, or it was never made. */
  closed(): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    this.other = null;
    this.onClose();
  }

  silence(): void {
    this.#isSilent = true;
    if (this.other !== null) this.other.#isSilent = true;
  }
}
