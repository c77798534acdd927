// The simulated world of deployments: the real controller of two programs over one real database, in simulated time. Programs
// are killed at any moment, the store fails before a write or behind it, clocks jump by hours, instances fail, end and flap,
// and not every program hears of it; owners change, promote, roll back, pause and delete. Everything comes from one seed.

import assert from "node:assert/strict";
import type { Action } from "../../src/deployments/deployments.ts";
import type { Place } from "../../src/deployments/places.ts";
import {
  type Deployment,
  defaultStrategy,
  type Strategy,
  strategyKinds,
} from "../../src/deployments/records.ts";
import { DomainError } from "../../src/lib/domain-error.ts";
import type { ServiceStatus, ServiceView } from "../../src/services/service-view.ts";
import { DeploymentProgram } from "./deployment-program.ts";
import type { Counts } from "./kinds.ts";
import { type Faults, ProgramsWorld } from "./programs-world.ts";

const SECOND_MS = 1_000;
const HOUR_MS = 3_600 * SECOND_MS;
const FAULTY_MS = 10 * 60 * SECOND_MS;
/** Longer than all deadlines, backoffs and rounds together. */
const QUIET_MS = 10 * 60 * SECOND_MS;
const NAMES = ["a", "b"];

/** An instance's run, as the world has it. */
interface WorldRun {
  readonly runId: string;
  readonly runtimeJobId: string;
  readonly jobId: string;
  status: ServiceStatus | null;
  hasPassed: boolean;
}

interface RunRow {
  readonly run_id: string;
  readonly runtime_job_id: string;
  readonly job_id: string;
  readonly status: string;
  readonly desired_state: string;
}

const faults: Faults = {
  who: "controller",
  fails: 0.02,
  crashes: 0.03,
  awayMs: [100, 5_000, 90_000],
  explained: /JournalUnavailable|The disk is full/,
};

export class DeploymentWorld extends ProgramsWorld<DeploymentProgram> {
  readonly #runs = new Map<string, WorldRun>();
  /** As they were seen last. */
  readonly #seen = new Map<string, Deployment>();

  constructor(seed: number) {
    super(seed, faults);
  }

  protected make(name: string): DeploymentProgram {
    return new DeploymentProgram(this, name);
  }

  mayRefuse(): void {
    if (!this.isFaulty || !this.random.chance(0.03)) return;
    this.counts.add("instance that was refused");
    throw new DomainError("requirements_not_met", "Not now.");
  }

  // ---------------------------------------------------------------------------------------- the course of a seed

  async play(): Promise<void> {
    for (const name of NAMES) this.start(name);
    for (let n = 0; n < 3; n++)
      this.timeline.plan(this.random.below(30_000), null, () => void this.#create());
    this.timeline.plan(500, null, () => void this.#liveOn());
    this.timeline.plan(20_000, null, () => void this.#trouble());
    await this.#until(this.timeline.nowMs + FAULTY_MS);
    this.isFaulty = false;
    for (const name of NAMES) this.start(name);
    await this.#until(this.timeline.nowMs + QUIET_MS);
    await this.#checkEnd();
    for (const { controller } of this.programs.values()) void controller.stop();
  }

  async #until(endMs: number): Promise<void> {
    while (this.timeline.nowMs < endMs && (await this.timeline.step())) {
      if (this.hasWritten) await this.#checkNow();
      this.hasWritten = false;
    }
  }

  async #create(): Promise<void> {
    const { random } = this;
    const strategy: Strategy = {
      ...defaultStrategy,
      kind: random.pick(strategyKinds),
      maxParallel: random.between(1, 2),
      minHealthySeconds: random.pick([0, 2]),
      healthyDeadlineSeconds: 30,
      progressDeadlineSeconds: 90,
      drainSeconds: random.pick([0, 3]),
      autoPromote: random.chance(0.5),
      autoRollback: random.chance(0.7),
    };
    await this.ask(async ({ deployments, records, controller }) => {
      const source = { kind: "bundle", bundleId: "bundle_1" } as const;
      const given = { name: "n", count: random.between(1, 4), strategy, source, config: {} };
      const draft = await deployments.prepareCreate(given);
      const { deployment, lines } = await records.write((writes) => draft.insert(writes));
      controller.changed(deployment, lines);
    });
  }

  async #trouble(): Promise<void> {
    if (!this.isFaulty) return;
    const { random } = this;
    const kind = random.below(10);
    if (kind < 2) {
      this.counts.add("controller killed");
      this.crash(random.pick(NAMES));
    } else if (kind === 2) {
      this.counts.add("jump of a controller's clock");
      this.jumpedMs += random.pick([-3, 4]) * HOUR_MS;
    } else if (kind === 3) {
      for (const name of NAMES) this.crash(name);
      this.counts.add("outage of all controllers");
    } else await this.#touch();
    this.timeline.plan(random.between(5_000, 40_000), null, () => void this.#trouble());
  }

  async #touch(): Promise<void> {
    const { random } = this;
    const { rows } = await this.records.deployments.deployments({ status: null, limit: 9, after: null });
    if (rows.length === 0) return;
    const { deploymentId } = random.pick(rows);
    await this.ask(async ({ deployments, records, controller }) => {
      const kind = random.below(10);
      if (kind < 5) {
        const before = await deployments.find(deploymentId);
        const patch = kind < 4 ? { config: { n: random.below(1_000) } } : { count: random.between(0, 4) };
        const { deployment, lines } = await deployments.update(before, patch);
        controller.changed(deployment, lines);
        this.counts.add(kind < 4 ? "new version of a deployment" : "other count of a deployment");
        return;
      }
      if (kind === 5 && random.chance(0.3)) {
        const { deployment, lines } = await deployments.remove(await deployments.find(deploymentId));
        controller.changed(deployment, lines);
        this.counts.add("deletion of a deployment");
        return;
      }
      const action = this.#action();
      const { deployment, lines } = await records.write((writes) =>
        deployments.act(writes, deploymentId, action),
      );
      controller.changed(deployment, lines);
      this.counts.add(`${action.kind} of a deployment`);
    });
  }

  #action(): Action {
    const kind = this.random.pick([
      "promote",
      "promote",
      "pause",
      "resume",
      "resume",
      "rollback",
      "fail",
    ] as const);
    if (kind === "rollback") return { kind, version: null };
    return kind === "fail" ? { kind, rollback: false } : { kind };
  }

  // -------------------------------------------------------------------------------------- what instances do

  /** Runs begin, become healthy or not, and end: by themselves, or because they were cancelled. */
  async #liveOn(): Promise<void> {
    const rows = await this.database.read<RunRow>(
      "SELECT run_id, runtime_job_id, job_id, status, desired_state FROM runs WHERE terminal = 0",
      [],
    );
    for (const row of rows) await this.#live(row);
    this.timeline.plan(SECOND_MS, null, () => void this.#liveOn());
  }

  async #live({
    run_id: runId,
    runtime_job_id: runtimeJobId,
    job_id: jobId,
    status,
    desired_state: desired,
  }: RunRow) {
    const { random } = this;
    const known = this.#runs.get(runId) ?? { runId, runtimeJobId, jobId, status: null, hasPassed: false };
    this.#runs.set(runId, known);
    if (desired === "cancelled") {
      if (random.chance(0.7)) await this.#end(known, "cancelled");
      return;
    }
    // The same for all instances of a version: of some, none is ever healthy.
    const isBad = this.isFaulty && jobId.charCodeAt(jobId.length - 1) % 5 === 0;
    if (status === "pending") {
      if (random.chance(0.6))
        await this.database.transaction(
          async (db) =>
            void (await db
              .updateTable("runs")
              .set({ status: "running" })
              .where("run_id", "=", runId)
              .execute()),
        );
      return;
    }
    if (this.isFaulty && random.chance(isBad ? 0.05 : 0.004)) {
      this.counts.add("instance that died");
      await this.#end(known, "failed");
    } else if (isBad) {
      if (known.status === null && random.chance(0.3)) this.#becomes(known, "critical");
    } else if (known.status !== "passing" && random.chance(this.isFaulty ? 0.4 : 0.9)) {
      this.#becomes(known, "passing");
    } else if (this.isFaulty && random.chance(0.01)) {
      this.counts.add("instance that became critical");
      this.#becomes(known, "critical");
    }
  }

  #becomes(run: WorldRun, status: ServiceStatus): void {
    run.status = status;
    run.hasPassed ||= status === "passing";
    this.#tell(run, `{"type":"service_${status}"}`, false);
  }

  async #end(run: WorldRun, status: "cancelled" | "failed"): Promise<void> {
    run.status = null;
    await this.records.write((writes) =>
      writes.endUnlaunched(run.runId, { status, failureJson: null }, this.nowMs),
    );
    this.#tell(run, `{"type":"job_${status}"}`, true);
  }

  #tell({ runtimeJobId }: WorldRun, line: string, isEnd: boolean): void {
    for (const { feed } of this.programs.values()) {
      if (this.random.chance(0.8)) feed.published(runtimeJobId, 1, [line], isEnd);
      else this.counts.add("event of an instance that nobody saw");
    }
  }

  /** What the nodes' registries say. */
  /** Where an instance may run: what the rows of the nodes tell is not always true. */
  places(): readonly Place[] {
    return this.random.chance(0.1)
      ? []
      : ["a", "b", "c"].map((node) => ({
          owner: `${node}/1`,
          node,
          address: null,
          room: this.random.below(4),
        }));
  }

  servicesOf(jobId: string): readonly ServiceView[] {
    return [...this.#runs.values()]
      .filter((run) => run.jobId === jobId && run.status !== null)
      .map(
        ({ runId, status }) =>
          ({
            serviceId: `svc_${runId}`,
            name: "n",
            runId,
            status,
            definitionId: jobId,
            node: "a",
          }) as ServiceView,
      );
  }

  // ----------------------------------------------------------------------------------------------- what must hold

  async #checkNow(): Promise<void> {
    const changes = await this.records.deployments.deploymentChanges("", 100);
    for (const { deploymentId } of changes) {
      const now = await this.records.deployments.deployment(deploymentId);
      const before = this.#seen.get(deploymentId);
      if (now === null || now.changes === before?.changes) continue;
      this.#seen.set(deploymentId, now);
      await this.#checkInstances(now);
      if (before !== undefined) this.#checkChange(before, now);
    }
  }

  /** Each instance has one run, each run that is not cancelled has an instance, and none was started twice. */
  async #checkInstances({ deploymentId, instances, started }: Deployment): Promise<void> {
    const runs = await this.database.read<RunRow & { terminal: number }>(
      "SELECT run_id, desired_state, terminal FROM runs WHERE trigger_id = ?",
      [deploymentId],
    );
    assert.equal(runs.length, started, `${deploymentId}: runs that were started`);
    const noted = new Set(instances.map(({ runId }) => runId));
    const lost = runs.filter((run) => run.terminal === 0 && !noted.has(run.run_id));
    assert.deepEqual(lost, [], "runs without an instance");
    const ids = new Set(runs.map((run) => run.run_id));
    assert.ok(
      instances.every(({ runId }) => ids.has(runId)),
      "instances without a run",
    );
    const wrong = runs.filter((run) => run.terminal === 0 && run.desired_state === "cancelled").length;
    assert.equal(
      wrong,
      instances.filter(
        ({ phase, runId }) =>
          phase === "stopping" && runs.some((run) => run.run_id === runId && run.terminal === 0),
      ).length,
      "runs are cancelled when their instances stop, and at no other time",
    );
  }

  #checkChange(before: Deployment, now: Deployment): void {
    const { count, strategy, instances } = now;
    const most = count + (strategy.kind === "blue_green" ? count : strategy.maxParallel);
    if (now.started > before.started) assert.ok(instances.length <= most, "too many instances");
    const was = new Map(before.instances.map((one) => [one.runId, one]));
    for (const { runId, phase } of instances)
      if (phase === "serving" && was.get(runId)?.phase !== "serving")
        assert.ok(this.#runs.get(runId)?.hasPassed, `${runId} serves and was never healthy`);
    const isServing = ({ phase, health }: Deployment["instances"][number]) =>
      phase === "serving" && health === "passing";
    const drained = instances.some(
      ({ runId, phase, health }) =>
        phase !== "serving" && health === "passing" && was.get(runId)?.phase === "serving",
    );
    if (drained && !now.isDeleted)
      assert.ok(instances.filter(isServing).length >= count, "a healthy instance was drained too early");
    if (now.status !== before.status && now.status !== "pending")
      this.counts.add(`deployment that is ${now.status}`);
  }

  async #checkEnd(): Promise<void> {
    assert.deepEqual(this.errors, [], "errors that nothing explains");
    const { rows } = await this.records.deployments.deployments({ status: null, limit: 20, after: null });
    for (const one of rows) {
      const { status, instances, count, version } = one;
      const name = JSON.stringify(one);
      assert.ok(status !== "running" && status !== "pending", `it has not ended: ${name}`);
      assert.ok(
        instances.every(({ phase }) => phase === "serving" || phase === "starting"),
        `it still stops some: ${name}`,
      );
      if (status !== "succeeded" && status !== "rolled_back") continue;
      assert.equal(instances.length, count, `it has not what it is to have: ${name}`);
      assert.ok(
        instances.every((each) => each.phase === "serving" && each.version === version),
        name,
      );
    }
    const noted = new Set(rows.flatMap(({ instances }) => instances.map(({ runId }) => runId)));
    const open = await this.database.read<RunRow>("SELECT run_id FROM runs WHERE terminal = 0", []);
    assert.deepEqual(
      open.filter((run) => !noted.has(run.run_id)),
      [],
      "runs of nobody",
    );
    const hidden = rows.flatMap(({ instances }) => instances).filter(({ phase }) => phase !== "serving");
    assert.deepEqual(
      await this.records.deployments.outOfService(),
      new Set(hidden.map(({ runId }) => runId)),
    );
  }
}

/** Plays a seed. @returns what has happened in it */
export async function runDeploymentSeed(seed: number): Promise<Counts> {
  const world = new DeploymentWorld(seed);
  await world.play();
  return world.counts;
}
