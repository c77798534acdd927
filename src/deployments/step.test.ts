// The state machine of deployments, with instances that become healthy, fail and end at random.

import assert from "node:assert/strict";
import { test } from "node:test";
import { deployment as sample } from "../../test/support/deployment-samples.ts";
import { fc } from "../../test/support/fast-check.ts";
import { fail, pause, promote, removed, resume, rollBack, withSettings, withVersion } from "./changes.ts";
import { isLive, type Observed } from "./health.ts";
import type { Deployment, Health, Instance, Strategy } from "./records.ts";
import { restarted, step } from "./step.ts";

const SECOND = 1_000;

/** Runs that do what the test wants, and the deployment that is brought on by steps. */
class World {
  deployment: Deployment;
  nowMs = 1_000_000;
  /** How the runs are; those that are missing have ended. */
  readonly runs = new Map<string, Health>();
  readonly stopping = new Set<string>();
  healthOfNew: (version: number) => Health | "ends" = () => "passing";
  #ended = new Map<string, string>();

  constructor(given: Partial<Deployment>) {
    this.deployment = sample(given);
  }

  end(runId: string): void {
    if (this.runs.delete(runId)) this.#ended.set(runId, "exit code 1");
  }

  #observed(): Observed {
    const health = new Map([...this.runs].map(([runId, one]) => [runId, { health: one, node: "n" }]));
    return { health, ended: this.#ended, refused: new Map() };
  }

  /** Takes steps until there is nothing to do. */
  settle(): void {
    for (let n = 0; n < 1_000; n++) {
      const before = this.deployment;
      const { next, starts, stops } = step(before, this.#observed(), this.nowMs);
      checkStep(before, next, starts.length);
      this.#ended = new Map();
      for (const runId of stops) this.stopping.add(runId);
      const started = starts.map(({ number, version }) => this.#start(number, version));
      this.deployment = {
        ...next,
        instances: [...next.instances, ...started],
        started: next.started + started.length,
      };
      if (next === before && starts.length === 0) return;
    }
    assert.fail("it never comes to rest");
  }

  #start(number: number, version: number): Instance {
    const runId = `run_${number}`;
    assert.ok(!this.runs.has(runId), "an instance is started twice");
    const health = this.healthOfNew(version);
    this.runs.set(runId, health === "ends" ? "unknown" : health);
    const { nowMs } = this;
    return {
      runId,
      runtimeJobId: `g-${number}`,
      number,
      version,
      phase: "starting",
      health: "unknown",
      healthSinceMs: nowMs,
      node: null,
      startedAtMs: nowMs,
      waitsSinceMs: nowMs,
      servesSinceMs: null,
      stopAtMs: null,
    };
  }

  /** Time goes by, in which stopped runs end. */
  pass(seconds: number): void {
    for (let n = 0; n < seconds; n++) {
      this.nowMs += SECOND;
      for (const runId of this.stopping) this.end(runId);
      this.stopping.clear();
      for (const { runId, version, phase } of this.deployment.instances)
        if (phase === "starting" && this.healthOfNew(version) === "ends") this.end(runId);
      this.settle();
    }
  }

  serving(version?: number): number {
    const { instances } = this.deployment;
    return instances.filter((one) => one.phase === "serving" && (version ?? one.version) === one.version)
      .length;
  }

  change(to: (deployment: Deployment) => Deployment): void {
    this.deployment = to(this.deployment);
    this.settle();
  }

  deploy(): void {
    const made = {
      jobId: "job_x",
      source: { kind: "bundle", bundleId: "b" },
      config: {},
      services: 1,
    } as const;
    this.change((now) => withVersion(now, made, this.nowMs));
  }
}

const healthyOf = ({ instances }: Deployment) =>
  instances.filter(({ phase, health }) => phase === "serving" && health === "passing").length;

/** What holds of every step. */
function checkStep(before: Deployment, next: Deployment, starts: number): void {
  const { count, strategy } = next;
  const most = count + (strategy.kind === "blue_green" ? count : strategy.maxParallel);
  assert.ok(starts === 0 || next.instances.length + starts <= most, "too many instances");
  const was = new Map(before.instances.map((one) => [one.runId, one]));
  const drained = next.instances.filter(
    ({ runId, phase }) => phase !== "serving" && was.get(runId)?.phase === "serving",
  );
  for (const one of next.instances) {
    const phase = was.get(one.runId)?.phase;
    if (phase === "starting" && one.phase === "serving") assert.equal(one.health, "passing");
    if (phase === "serving" && strategy.drainSeconds > 0)
      assert.ok(one.phase !== "stopping", "one that serves is stopped without a drain");
    if (phase === "draining") assert.ok(one.phase !== "serving" && one.phase !== "starting");
  }
  if (drained.length === 0 || next.isDeleted) return;
  const healthy = healthyOf(next);
  if (drained.some(({ health }) => health === "passing"))
    assert.ok(healthy >= count, `${healthy} of ${count} healthy ones remain`);
  if (drained.length > 0) assert.ok(healthy >= Math.min(1, count), "no healthy one remains");
}

const quick: Partial<Strategy> = {
  minHealthySeconds: 2,
  healthyDeadlineSeconds: 20,
  progressDeadlineSeconds: 60,
  drainSeconds: 3,
};

function deployed(count: number, strategy: Partial<Strategy> = {}): World {
  const world = new World({ count, strategy: { ...sample({}).strategy, ...quick, ...strategy } });
  world.settle();
  world.pass(10);
  assert.equal(world.deployment.status, "succeeded");
  assert.equal(world.serving(), count);
  return world;
}

test("a first version serves once all instances have been healthy for long enough", () => {
  const world = new World({ count: 3, strategy: { ...sample({}).strategy, ...quick } });
  world.settle();
  assert.equal(world.deployment.status, "running");
  world.pass(1);
  assert.equal(world.serving(), 0);
  world.pass(1);
  assert.equal(world.serving(), 3);
  assert.equal(world.deployment.status, "succeeded");
});

test("a new version replaces instance after instance, and the old ones stop once they are drained", () => {
  const world = deployed(3);
  world.deploy();
  world.pass(1);
  assert.equal(world.deployment.instances.length, 4);
  world.pass(40);
  assert.equal(world.deployment.status, "succeeded");
  assert.equal(world.serving(2), 3);
  assert.equal(world.runs.size, 3);
});

test("an instance that is drained goes on for drain_seconds", () => {
  const world = deployed(1);
  world.deploy();
  world.pass(2);
  const [old] = world.deployment.instances;
  assert.equal(old?.phase, "draining");
  world.pass(2);
  assert.equal(world.deployment.instances[0]?.phase, "draining");
  world.pass(1);
  assert.equal(world.deployment.instances[0]?.phase, "stopping");
});

test("canaries serve beside the others until they are promoted", () => {
  const world = deployed(5, { kind: "canary", canaries: 2, maxParallel: 2 });
  world.deploy();
  world.pass(20);
  assert.equal(world.deployment.status, "awaiting_promotion");
  assert.deepEqual([world.serving(1), world.serving(2)], [3, 2]);
  world.change((now) => promote(now, world.nowMs));
  world.pass(40);
  assert.equal(world.deployment.status, "succeeded");
  assert.deepEqual([world.serving(1), world.serving(2)], [0, 5]);
});

test("as many canaries as instances wait for their promotion, too, beside one of the others", () => {
  const world = deployed(2, { kind: "canary", canaries: 3 });
  world.deploy();
  world.pass(20);
  assert.equal(world.deployment.status, "awaiting_promotion");
  assert.deepEqual([world.serving(1), world.serving(2)], [1, 2]);
  world.change((now) => promote(now, world.nowMs));
  assert.deepEqual([world.serving(1), world.serving(2)], [0, 2]);
});

test("a whole second set takes over in one step (blue_green)", () => {
  const world = deployed(3, { kind: "blue_green" });
  world.deploy();
  world.pass(10);
  assert.equal(world.deployment.status, "awaiting_promotion");
  assert.deepEqual([world.serving(1), world.serving(2), world.runs.size], [3, 0, 6]);
  world.change((now) => promote(now, world.nowMs));
  assert.deepEqual([world.serving(1), world.serving(2)], [0, 3]);
  assert.equal(world.deployment.status, "succeeded");
});

test("stages are passed without a promotion when they are to be", () => {
  for (const kind of ["canary", "blue_green"] as const) {
    const world = deployed(3, { kind, autoPromote: true });
    world.deploy();
    world.pass(60);
    assert.equal(world.deployment.status, "succeeded");
    assert.equal(world.serving(2), 3);
  }
});

test("a rollout that awaits its promotion goes on when its strategy asks for none any more", () => {
  for (const strategy of [{ autoPromote: true }, { kind: "rolling" }] as const) {
    const world = deployed(3, { kind: "canary" });
    world.deploy();
    world.pass(10);
    assert.equal(world.deployment.status, "awaiting_promotion");
    world.change((now) => withSettings(now, { strategy: { ...now.strategy, ...strategy } }));
    assert.equal(world.deployment.status, "running");
    world.pass(60);
    assert.deepEqual([world.deployment.status, world.serving(2)], ["succeeded", 3]);
  }
});

test("a version whose instances end fails, and the one before comes back", () => {
  const world = deployed(4, { kind: "canary" });
  world.healthOfNew = (version) => (version === 2 ? "ends" : "passing");
  world.deploy();
  world.pass(30);
  assert.equal(world.deployment.status, "rolled_back");
  assert.equal(world.serving(1), 4);
  assert.equal(world.deployment.started, 4 + 3, "three instances of the bad version, one after the other");
  assert.match(world.deployment.lastFailure?.reason ?? "", /3 instances of version 2 failed in a row/);
});

test("a version that is never healthy fails at its deadline, and its instances never serve", () => {
  const world = deployed(2, { autoRollback: false });
  world.healthOfNew = () => "critical";
  world.deploy();
  world.pass(19);
  assert.equal(world.deployment.status, "running");
  world.pass(1);
  assert.equal(world.deployment.status, "failed");
  world.pass(5);
  assert.deepEqual([world.serving(1), world.serving(2), world.runs.size], [2, 0, 2]);
});

test("a canary that becomes critical while it waits for its promotion fails the rollout", () => {
  const world = deployed(2, { kind: "canary" });
  world.deploy();
  world.pass(10);
  assert.equal(world.deployment.status, "awaiting_promotion");
  for (const { runId, version } of world.deployment.instances)
    if (version === 2) world.runs.set(runId, "critical");
  world.pass(21);
  world.healthOfNew = () => "passing";
  world.pass(30);
  assert.equal(world.deployment.status, "rolled_back");
  assert.equal(world.serving(1), 2);
});

test("a rollout without progress fails", () => {
  const world = deployed(1, { healthyDeadlineSeconds: 1_000 });
  world.healthOfNew = () => "critical";
  world.deploy();
  world.pass(60);
  assert.match(world.deployment.lastFailure?.reason ?? "", /came no further within 60 s/);
});

test("an instance that ends is replaced, at once after a long time, and later and later when it crashes", () => {
  const world = deployed(1);
  world.pass(60);
  world.end("run_1");
  world.settle();
  assert.equal(world.deployment.started, 2, "at once");
  world.healthOfNew = () => "ends";
  world.end("run_2");
  world.settle();
  assert.equal(world.deployment.started, 2);
  world.pass(1);
  assert.equal(world.deployment.started, 3);
  world.pass(60);
  assert.equal(world.deployment.started, 7, "after 1, 2, 4, 8 and 16 s");
  world.healthOfNew = () => "passing";
  world.pass(70);
  assert.equal(world.serving(), 1);
  assert.equal(world.deployment.status, "succeeded");
});

test("instances that end during a rollout that stands still are replaced by the version before", () => {
  const world = deployed(3, { kind: "canary" });
  world.deploy();
  world.pass(10);
  world.end(world.deployment.instances.find(({ version }) => version === 1)?.runId ?? "");
  world.pass(10);
  assert.equal(world.deployment.status, "awaiting_promotion");
  assert.deepEqual([world.serving(1), world.serving(2)], [2, 1]);
});

test("a paused rollout starts nothing and takes nothing out until it is resumed", () => {
  const world = deployed(3);
  world.deploy();
  world.pass(1);
  world.change(pause);
  world.pass(100);
  assert.deepEqual([world.serving(1), world.serving(2), world.deployment.instances.length], [3, 0, 4]);
  world.change((now) => resume(now, world.nowMs));
  world.pass(40);
  assert.equal(world.serving(2), 3);
});

test("a rollback by hand goes to the version before, or to one that is named", () => {
  const world = deployed(2);
  for (let n = 0; n < 2; n++) {
    world.deploy();
    world.pass(30);
  }
  world.change((now) => rollBack(now, null, world.nowMs));
  world.pass(30);
  assert.deepEqual([world.deployment.status, world.serving(2)], ["rolled_back", 2]);
  world.change((now) => rollBack(now, 3, world.nowMs));
  world.pass(30);
  assert.deepEqual([world.deployment.status, world.serving(3)], ["rolled_back", 2]);
  assert.throws(() => rollBack(world.deployment, 3, 0), { code: "invalid_transition" });
  assert.throws(() => rollBack(world.deployment, 9, 0), { code: "validation_failed" });
});

test("a rollback waits for no promotion", () => {
  for (const kind of ["canary", "blue_green"] as const) {
    const world = deployed(3, { kind, autoPromote: true });
    world.deploy();
    world.pass(60);
    world.change((now) =>
      rollBack({ ...now, strategy: { ...now.strategy, autoPromote: false } }, null, world.nowMs),
    );
    world.pass(60);
    assert.deepEqual([world.deployment.status, world.serving(1)], ["rolled_back", 3]);
  }
});

test("a rollout that is failed by hand stays where it is, or goes back", () => {
  const world = deployed(2);
  world.deploy();
  world.pass(2);
  world.change((now) => fail(now, false, world.nowMs));
  world.pass(10);
  assert.deepEqual([world.deployment.status, world.serving(1), world.serving(2)], ["failed", 1, 1]);
  world.deploy();
  world.pass(2);
  world.change((now) => fail(now, true, world.nowMs));
  world.pass(30);
  assert.deepEqual([world.deployment.status, world.serving(1)], ["rolled_back", 2]);
});

test("more or fewer instances are no new version", () => {
  const world = deployed(2);
  world.change((now) => withSettings(now, { count: 5 }));
  world.pass(5);
  assert.deepEqual([world.serving(1), world.deployment.status], [5, "succeeded"]);
  world.change((now) => withSettings(now, { count: 1 }));
  world.pass(10);
  assert.deepEqual([world.serving(1), world.runs.size], [1, 1]);
});

test("where a rollout has failed, more or fewer instances are of the version before", () => {
  const world = deployed(2);
  world.deploy();
  world.pass(2);
  world.change((now) => fail(now, false, world.nowMs));
  world.change((now) => withSettings(now, { count: 4 }));
  world.pass(10);
  assert.deepEqual([world.deployment.status, world.serving(1), world.serving(2)], ["failed", 3, 1]);
  world.change((now) => withSettings(now, { count: 3 }));
  world.pass(10);
  assert.deepEqual([world.deployment.status, world.serving(1), world.serving(2)], ["failed", 3, 0]);
  assert.equal(world.runs.size, 3);
});

test("while no instance is healthy, none leaves when fewer are asked for", () => {
  const world = deployed(2);
  for (const { runId } of world.deployment.instances) world.runs.set(runId, "critical");
  world.settle();
  world.change((now) => withSettings(now, { count: 1 }));
  world.pass(5);
  assert.equal(world.serving(), 2);
});

test("a second set that lost an instance serves once all of it is healthy again", () => {
  const world = deployed(2, { kind: "blue_green" });
  world.deploy();
  world.pass(10);
  world.end(world.deployment.instances.findLast(({ version }) => version === 2)?.runId ?? "");
  world.change((now) => promote(now, world.nowMs));
  assert.deepEqual([world.serving(1), world.serving(2)], [2, 0]);
  world.pass(10);
  assert.deepEqual([world.serving(1), world.serving(2)], [0, 2]);
});

test("an instance of a version that was replaced before it served never serves", () => {
  const world = deployed(1);
  world.deploy();
  world.pass(1);
  // It is healthy for long enough at the very moment of the next version.
  world.nowMs += SECOND;
  world.deploy();
  assert.equal(world.serving(2), 0);
});

test("twenty versions are kept, and those that are used", () => {
  const world = deployed(1);
  for (let n = 0; n < 30; n++) {
    world.deploy();
    if (n % 10 === 0) world.pass(30);
  }
  const { versions, stable } = world.deployment;
  assert.equal(versions.length, 20);
  assert.ok(versions.some(({ version }) => version === stable?.version));
});

test("a deleted deployment drains and stops everything", () => {
  const world = deployed(2);
  world.change(removed);
  assert.equal(world.serving(), 0);
  assert.equal(world.runs.size, 2);
  world.pass(6);
  assert.equal(world.deployment.instances.length, 0);
});

test("a program that was away for long counts no deadline by that time", () => {
  const world = deployed(1);
  world.deploy();
  world.nowMs += 3_600_000;
  world.deployment = restarted(world.deployment, world.nowMs);
  world.pass(30);
  assert.deepEqual([world.deployment.status, world.serving(2)], ["succeeded", 1]);
});

const strategies = fc.record({
  kind: fc.constantFrom("rolling", "canary", "blue_green"),
  maxParallel: fc.integer({ min: 1, max: 3 }),
  canaries: fc.integer({ min: 1, max: 3 }),
  autoPromote: fc.boolean(),
  autoRollback: fc.boolean(),
  drainSeconds: fc.integer({ min: 0, max: 4 }),
} as const);
const acts = fc.array(
  fc.oneof(
    fc.record({ kind: fc.constant("pass"), seconds: fc.integer({ min: 1, max: 9 }) } as const),
    fc.record({
      kind: fc.constant("health"),
      nth: fc.nat(9),
      health: fc.constantFrom("passing", "critical", "unknown", "ends"),
    } as const),
    fc.record({
      kind: fc.constantFrom("deploy", "promote", "pause", "resume", "fail", "rollback", "restart"),
    } as const),
    fc.record({ kind: fc.constant("count"), count: fc.integer({ min: 0, max: 5 }) } as const),
    fc.record({ kind: fc.constant("new"), health: fc.constantFrom("passing", "critical", "ends") } as const),
  ),
  { maxLength: 40 },
);

test("whatever happens, every step is sound, and each rollout ends", () => {
  fc.assert(
    fc.property(strategies, fc.integer({ min: 0, max: 4 }), acts, (strategy, count, what) => {
      const world = new World({ count, strategy: { ...sample({}).strategy, ...quick, ...strategy } });
      world.settle();
      for (const act of what) play(world, act);
      // From now on nothing happens by itself.
      world.pass(400);
      const { status, instances } = world.deployment;
      assert.ok(
        ["paused", "awaiting_promotion", "succeeded", "failed", "rolled_back"].includes(status),
        status,
      );
      assert.ok(instances.every(isLive), "all that was to stop has stopped");
      world.healthOfNew = () => "passing";
      for (const { runId } of instances) if (world.runs.has(runId)) world.runs.set(runId, "passing");
      world.deploy();
      world.pass(400);
      if (world.deployment.status === "awaiting_promotion") world.change((now) => promote(now, world.nowMs));
      world.pass(400);
      assert.equal(world.deployment.status, "succeeded");
      assert.equal(world.serving(world.deployment.version), world.deployment.count);
      assert.equal(world.runs.size, world.deployment.count);
    }),
    { numRuns: 100 },
  );
});

type Act = NonNullable<typeof acts extends fc.Arbitrary<(infer One)[]> ? One : never>;

function play(world: World, act: Act): void {
  const { nowMs, deployment } = world;
  if (act.kind === "pass") world.pass(act.seconds);
  else if (act.kind === "new") world.healthOfNew = () => act.health;
  else if (act.kind === "count") world.change((now) => withSettings(now, { count: act.count }));
  else if (act.kind === "deploy") world.deploy();
  else if (act.kind === "restart") world.change((now) => restarted(now, nowMs));
  else if (act.kind === "health") {
    const { runId = "" } = deployment.instances[act.nth] ?? {};
    if (!world.runs.has(runId)) return;
    if (act.health === "ends") world.end(runId);
    else world.runs.set(runId, act.health);
    world.settle();
  } else mayRefuse(world, act.kind);
}

type Asked = "promote" | "pause" | "resume" | "fail" | "rollback";

function mayRefuse(world: World, kind: Asked): void {
  const { nowMs } = world;
  try {
    world.change((now) => {
      if (kind === "promote") return promote(now, nowMs);
      if (kind === "pause") return pause(now);
      if (kind === "resume") return resume(now, nowMs);
      return kind === "fail" ? fail(now, false, nowMs) : rollBack(now, null, nowMs);
    });
  } catch (error) {
    if ((error as { code?: string }).code !== "invalid_transition") throw error;
  }
}
