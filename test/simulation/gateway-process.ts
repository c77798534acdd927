// One life of the gateway's process on one node: launcher, preparations, operations, idempotency and the taking over of
// others' work as the program wires them, over the world's database. What is made up: packages (two, in memory), what a
// preparation copies, commands, the leases of names, and what one node asks of another.

import assert from "node:assert/strict";
import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { descriptionOf } from "../../src/blueprints/describe-package.ts";
import type { Definition } from "../../src/bundles/definition.ts";
import { EngineUnavailable } from "../../src/engine/batch.ts";
import { Engine } from "../../src/engine/engine.ts";
import type { ControlAnswer } from "../../src/engine/job-control.ts";
import { type Journal, JournalUnavailable } from "../../src/engine/journal.ts";
import { parseManifest } from "../../src/engine/manifest.ts";
import { noServiceBoard } from "../../src/engine/service-port.ts";
import { noActions, type TaskOutcome, type TaskRef, type TaskStart } from "../../src/engine/task-port.ts";
import { PoolSlots } from "../../src/execution/pools.ts";
import { preparedFolders } from "../../src/execution/runner/paths.ts";
import { IdempotentRequests } from "../../src/http/core/idempotency.ts";
import { type AcceptableRun, Acceptance, type AcceptanceParts } from "../../src/launch/acceptance.ts";
import { type LaunchPlan, LaunchPlans, type LaunchPlansParts } from "../../src/launch/launch-plans.ts";
import { Launcher, type LauncherParts } from "../../src/launch/launcher.ts";
import { PreparationFailed } from "../../src/launch/preparation/findings.ts";
import type { PreparationProgress } from "../../src/launch/preparation/payload.ts";
import type { PreparedLaunch, PreparingRun } from "../../src/launch/preparation/preparation.ts";
import type { LaunchSubject } from "../../src/launch/preparation/resolved-launch.ts";
import { RunFolders } from "../../src/launch/preparation/run-folders.ts";
import { SharedRuns } from "../../src/launch/preparation/shared-runs.ts";
import type { GatewayRecords, GatewayWrites, JobDefinition } from "../../src/launch/records.ts";
import { RunEnds } from "../../src/launch/run-ends.ts";
import { Runs } from "../../src/launch/runs.ts";
import { KeyedMutex } from "../../src/lib/async.ts";
import { DomainError } from "../../src/lib/domain-error.ts";
import { OperationFailed, OperationInterrupted } from "../../src/operations/failures.ts";
import { type OperationHandler, Operations } from "../../src/operations/operations.ts";
import type { Ownership } from "../../src/operations/ownership.ts";
import type { OperationContext } from "../../src/operations/progress.ts";
import { Takeover, type WorkOwners } from "../../src/operations/takeover.ts";
import { EventFeed } from "../../src/runs/feed.ts";
import { ConfigurationSecrets } from "../../src/security/configuration.ts";
import { SecretKey } from "../../src/security/secret-key.ts";
import { sqlGatewayRecords } from "../../src/store/sql/gateway.ts";
import { sqlOperationRecords } from "../../src/store/sql/operations.ts";
import { sqlPortRecords } from "../../src/store/sql/ports.ts";
import { sqlWorkOwners } from "../../src/store/sql/work-owners.ts";
import { SqliteJournal } from "../../src/store/sqlite/journal.ts";
import { WEB_UI_PORT } from "../../src/web/ports.ts";
import { executor, graph } from "../support/graphs.ts";
import { type GatewayWorld, LEASE_MS } from "./gateway-world.ts";

const PORTS: readonly number[] = [9_001, 9_002];
const noLog = { warn: () => {}, error: () => {} };

/** What every job is made of; a job whose id ends in "prepared" needs preparation. */
const definition = definitionOf();

/** How often a name is renewed, and others are looked at. */
const RENEW_MS = 500;
/** How long an answer of another node is waited for. */
const ANSWER_MS = 2_000;

export class GatewayProcess {
  isAlive = true;
  stoppedUntilMs = 0;
  readonly node: string;
  /** The name that it has now. */
  owner: string;
  readonly runs: Runs;
  readonly idempotency: IdempotentRequests;
  readonly operations: Operations<GatewayWrites>;
  readonly launcher: Launcher;
  readonly records: GatewayRecords;
  readonly feed = new EventFeed();
  readonly #world: GatewayWorld;
  readonly #engine: Engine;
  readonly #folders: RunFolders;
  readonly #takeover: Takeover;
  readonly #stopped = new Set<string>();
  /** Until when its name is a living one's, for all that it knows. */
  #leaseMs: number;
  /** Whether it has lost its name, and has no other yet. */
  #isNameless = false;
  /** Those that were alive when it last looked. */
  #living: ReadonlySet<string> = new Set();

  constructor(world: GatewayWorld, node: string, owner: string) {
    this.#world = world;
    this.node = node;
    this.owner = owner;
    this.#leaseMs = world.nowMs + LEASE_MS;
    const { database, newId } = world;
    const home = world.homeOf(node);
    const ownership: Ownership = { owner: () => this.owner, living: async () => world.living() };
    const clock = world.clockOf(this);
    const log = noLog;
    const stored = sqlGatewayRecords(database, clock.soon);
    const records = this.#recordsOf(stored);
    this.records = records;
    const secrets = new ConfigurationSecrets(new SecretKey(Buffer.alloc(32, 7)));
    this.#engine = new Engine({
      owner,
      clock,
      randomness: { id: newId, fraction: () => world.random.fraction() },
      journal: this.#journalOf(new SqliteJournal(database)),
      runner: {
        start: (task) => this.#startCommand(task),
        stop: (ref) => void this.#stopped.add(keyOf(ref)),
        send: () => {},
        respond: () => {},
      },
      slots: new PoolSlots({ default: 3 }, newId, () => 0),
      feed: this.feed,
      schemaProblem: () => null,
      services: noServiceBoard,
      log,
    });
    this.#folders = new RunFolders({
      home,
      feed: this.feed,
      sharedRuns: new SharedRuns(home, null),
      // Time stands still for those who work on files.
      openRun: (runId) => stored.openRun(runId),
      // They take a while to end behind their run; but time stands still while files are worked on.
      commandsEnded: async () => {
        if (!world.isOnFiles) await world.pause(this, world.random.between(0, 300));
      },
      log,
    });
    const ends = new RunEnds({ records, feed: this.feed, clock });
    const turns = new KeyedMutex();
    const plans = new SimPlans();
    this.launcher = new Launcher({
      records,
      plans,
      preparation: {
        prepare: (run, subject, progress) => this.#prepare(run, subject, progress),
        missingServices: async () =>
          world.random.chance(world.faults.preparationFails) ? ["a service"] : [],
      },
      blueprints: { prepared: async () => null },
      ports: sqlPortRecords(database),
      webUiPorts: { candidates: async () => PORTS, refusal: noFreePort },
      secrets,
      engine: this.#engine,
      control: this.#control(),
      ends,
      turns,
      ownership,
      clock,
      log,
    });
    const newTraceId = () => "4bf92f3577b34da6a3ce929d0e0e4736";
    const acceptance = new SimAcceptance();
    const { launcher } = this;
    this.runs = new Runs({
      records,
      acceptance,
      launcher,
      turns,
      secrets: { decryptBody: (body) => ({ body, secrets: [] }) },
      ownership,
      clock,
      newId,
      newTraceId,
    });
    this.idempotency = new IdempotentRequests({ records, nowMs: clock.nowMs });
    const handler = this.#handler();
    this.operations = new Operations<GatewayWrites>({
      records: sqlOperationRecords(database),
      write: (work) => records.write(work),
      atOnceMax: 4,
      handlers: { blueprint_addition: handler, blueprint_removal: handler },
      ownership,
      feed: this.feed,
      clock,
      newId,
      log,
    });
    this.#takeover = new Takeover({
      ownership,
      records: this.#workOwners(),
      closed: () => this.#engine.closed,
      settle: async () => {
        await this.launcher.recover();
        await this.operations.recover();
      },
      clock: world.clockOf(this, true),
      log,
    });
    this.feed.subscribeAll((id, firstSeq, lines) => this.#published(id, firstSeq, lines));
  }

  /** As src/app starts: runtime jobs first, then launches, operations, and what was prepared for ended runs. */
  async recover(): Promise<void> {
    await this.#engine.recover();
    await this.#takeover.start();
    await this.launcher.recover();
    await this.operations.recover();
    await this.sweep();
  }

  /** Removes what was prepared here for runs that have ended. */
  sweep(): Promise<void> {
    return this.#world.onFiles(this.#folders.sweep());
  }

  // ------------------------------------------------------------------------------------- among other nodes

  beginToRenew(): void {
    this.#world.clockOf(this, true).after(RENEW_MS, () => {
      this.#renew();
      this.beginToRenew();
    });
  }

  /** What src/cluster does for a program: it keeps its name, or gives its jobs up, and notices who was lost. */
  #renew(): void {
    const world = this.#world;
    const isRenewed = !this.#isNameless && !world.isCutOff(this) && world.renew(this.node, this.owner);
    if (isRenewed) this.#leaseMs = world.nowMs + LEASE_MS;
    else if (world.nowMs >= this.#leaseMs) this.#loseName();
    if (world.isCutOff(this)) return;
    if (this.#isNameless) this.#takeName();
    const before = this.#living;
    this.#living = world.living();
    if ([...before].some((one) => !this.#living.has(one))) this.#takeover.lost();
    this.#takeJobs();
  }

  #loseName(): void {
    if (this.#isNameless) return;
    this.#isNameless = true;
    this.#world.counts.add("gateway that lost its name");
    this.#engine.giveUp("The node has lost its lease; try again.");
  }

  #takeName(): void {
    this.owner = this.#world.newName(this.node);
    this.#world.register(this.node, this.owner);
    this.#leaseMs = this.#world.nowMs + LEASE_MS;
    this.#isNameless = false;
    this.#engine.takeUp(this.owner);
    this.#takeover.lost();
  }

  #takeJobs(): void {
    if (this.#world.openJobsOfLost().length === 0) return;
    this.#engine.recover().catch((error: unknown) => {
      if (!(error instanceof JournalUnavailable)) this.#world.broken(error);
    });
  }

  #workOwners(): WorkOwners {
    const world = this.#world;
    const real = sqlWorkOwners(world.database);
    return {
      owners: async () => {
        world.mayFail(this);
        return real.owners();
      },
      takeOver: async (lost, owner) => {
        world.mayFail(this);
        const isOfAnother = lost.some((one) => one !== null && !one.startsWith(`${this.node}/`));
        if (isOfAnother) world.counts.add("work of a lost gateway that was taken over");
        await real.takeOver(lost, owner);
      },
      leaveRuns: async (owner) => {
        world.mayFail(this);
        await real.leaveRuns(owner);
      },
    };
  }

  /** Of the jobs that are here, and through the others of theirs. */
  #control(): LauncherParts["control"] {
    return {
      cancel: (jobId) => this.#ask(jobId, (engine) => engine.cancel(jobId)),
      pause: (jobId) => this.#ask(jobId, (engine) => engine.pause(jobId)),
      resume: (jobId) => this.#ask(jobId, (engine) => engine.resume(jobId)),
      prioritize: (jobId, priority) => this.#ask(jobId, (engine) => engine.prioritize(jobId, priority)),
    };
  }

  async #ask(jobId: string, ask: (engine: Engine) => Promise<ControlAnswer>): Promise<ControlAnswer> {
    const world = this.#world;
    const owner = world.ownerOf(jobId);
    if (owner === null || owner === this.owner) return ask(this.#engine);
    await world.pause(this, world.random.between(0, 5));
    const other = world.isCutOff(this) ? null : world.reachable(owner);
    if (other === null) throw new EngineUnavailable("The job's node is lost; try again.");
    world.counts.add("run that was controlled through another gateway");
    const late = world.pause(this, ANSWER_MS).then((): ControlAnswer => {
      throw new EngineUnavailable("The job's node does not answer; try again.");
    });
    return Promise.race([ask(other.#engine), late]);
  }

  /** Nothing is published before it is stored. */
  #published(id: string, firstSeq: number, lines: readonly string[]): void {
    if (!id.startsWith("op_")) return;
    const sql = "SELECT line FROM operation_events WHERE operation_id = ? AND seq = ?";
    const stored = this.#world.database.connection.prepare(sql);
    for (const [i, line] of lines.entries()) {
      const row = stored.get(id, firstSeq + i);
      if (row?.line === line) continue;
      this.#world.broken(new Error(`W3: event ${firstSeq + i} of ${id} was published before it was stored`));
    }
  }

  #recordsOf(real: GatewayRecords): GatewayRecords {
    const world = this.#world;
    const read =
      <Arguments extends readonly unknown[], T>(reading: (...given: Arguments) => Promise<T>) =>
      async (...given: Arguments): Promise<T> => {
        await world.pause(this, world.random.between(0, 2));
        world.mayFail(this);
        const found = await reading(...given);
        await world.mayStandStill(this);
        return found;
      };
    return {
      ...real,
      job: read(real.job),
      run: read(real.run),
      openRun: read(real.openRun),
      unsettledRuns: read(real.unsettledRuns),
      waitingRunsOf: read(real.waitingRunsOf),
      strayedRunsOf: read(real.strayedRunsOf),
      idempotency: read(real.idempotency),
      write: async (work) => {
        await world.pause(this, world.random.between(0, 5));
        world.mayFail(this);
        await world.mayStandStill(this);
        const value = await real.write(work);
        await world.mayCrash(this);
        return value;
      },
    };
  }

  #journalOf(real: Journal): Journal {
    const world = this.#world;
    return {
      commit: async (batch) => {
        await world.pause(this, world.random.between(0, 2));
        world.mayFail(this);
        await world.mayStandStill(this);
        const isUnknown = world.random.chance(world.faults.storeFails);
        const answer = await real.commit(batch);
        const isNew = (jobId: string) => batch.some((one) => one.jobId === jobId && one.insert !== null);
        if (answer.lost.some(isNew)) world.counts.add("launch that came too late");
        await world.mayCrash(this);
        if (isUnknown) throw new JournalUnavailable("The disk failed.", "unknown");
        return answer;
      },
      claim: async (owner, limit) => {
        world.mayFail(this);
        return world.claimOfLost(owner, limit);
      },
      load: (jobId) => real.load(jobId),
      failDamaged: (jobId, owner, render) => real.failDamaged(jobId, owner, render),
    };
  }

  #startCommand(task: TaskStart): void {
    const { random, faults, nodes } = this.#world;
    // Where another node has prepared it, it is fetched from there.
    const isThere = nodes.some((node) =>
      existsSync(join(preparedFolders(this.#world.homeOf(node), task.runId).root, "payload")),
    );
    if (task.hasOwnPayload && !isThere) {
      this.#world.broken(new Error(`W5: a command of ${task.runId} does not find what was prepared for it`));
    }
    this.#world.plan(random.between(0, 400), this, () => {
      const fails = random.chance(faults.commandFails);
      const isStopped = this.#stopped.has(keyOf(task.ref));
      this.#engine.taskEnded(task.ref, isStopped ? interrupted : fails ? commandFailed : commandDone);
    });
  }

  async #prepare(
    { runId }: PreparingRun,
    { definition: { graph, manifestJson }, inputs }: LaunchSubject,
    { signal, report }: PreparationProgress,
  ): Promise<PreparedLaunch> {
    const world = this.#world;
    const { random, faults, counts } = world;
    const home = world.homeOf(this.node);
    counts.add("preparation of a launch");
    try {
      await world.onFiles(this.#folders.begin(runId));
      report("Copying");
      await world.pause(this, random.between(0, 300));
      signal.throwIfAborted();
      if (random.chance(faults.preparationFails)) {
        counts.add("preparation that failed");
        if (random.chance(0.3))
          throw new PreparationFailed("preparation.requirement_unmet", "It lacks something.");
        throw new Error("an unexpected error");
      }
      writeFileSync(join(`${preparedFolders(home, runId).root}.tmp`, "payload"), runId);
      await world.onFiles(this.#folders.finish(runId, signal));
    } catch (error) {
      await world.onFiles(this.#folders.discard(runId));
      throw error;
    }
    return { graph, manifestJson, configurationJson: null, hasOwnPayload: true, inputs };
  }

  #handler(): OperationHandler<GatewayWrites> {
    return {
      steps: ["look", "copy", "check"].map((name) => ({ name, label: name })),
      run: async (context) => {
        await this.#work(context);
        const { target, operationId } = context.operation;
        return {
          result: { target },
          commit: async (writes) => {
            await writes.insertJob(jobOf(`job_of_${operationId}`, this.#world.nowMs));
            return () => {};
          },
        };
      },
      fail: async () => () => {},
    };
  }

  async #work(context: OperationContext): Promise<void> {
    const { random, faults, counts } = this.#world;
    if (context.operation.status === "running" && context.operation.step !== null) {
      counts.add("operation that was done again");
    }
    for (const name of ["look", "copy", "check"]) {
      if (random.chance(0.2)) {
        await context.skip(name);
        continue;
      }
      await context.step(name);
      for (const share of [0.3, 0.7]) {
        await this.#world.pause(this, random.between(0, 400));
        context.signal.throwIfAborted();
        context.progress(share, `${name} ${share}`);
        if (!random.chance(faults.handlerFails)) continue;
        if (random.chance(0.5)) throw new OperationInterrupted();
        throw random.chance(0.5) ? new OperationFailed("disk_full", "no room") : new Error("unexpected");
      }
    }
  }
}

/** Everything that is made up of a package. */
class SimPlans extends LaunchPlans {
  constructor() {
    super({} as LaunchPlansParts);
  }

  override async of(job: JobDefinition): Promise<LaunchPlan> {
    const isPrepared = job.jobId.endsWith("prepared");
    const { description } = await descriptionOf(definition);
    assert.ok(description !== null);
    return {
      definition,
      graph: definition.graph,
      bundleFingerprint: job.bundleFingerprint!,
      configurationJson: null,
      preparation: isPrepared ? description : null,
    };
  }
}

/** Accepts everything, as long as there are ports for runs that are prepared. */
class SimAcceptance extends Acceptance {
  constructor() {
    super({} as AcceptanceParts);
  }

  override async check(
    { jobId }: JobDefinition,
    { inputs }: Parameters<Acceptance["check"]>[1],
  ): Promise<AcceptableRun> {
    return {
      graphId: definition.graph.graphId,
      agentsTotal: 1,
      inputsJson: JSON.stringify(inputs),
      configOverridesJson: null,
      label: null,
      settle: async (writes, runId) => {
        if (!jobId.endsWith("prepared")) return;
        if ((await writes.ports.reserve(runId, WEB_UI_PORT, PORTS)) === null) throw noFreePort();
      },
    };
  }
}

export function jobOf(jobId: string, nowMs: number): JobDefinition {
  return {
    jobId,
    name: jobId,
    status: "ready",
    source: { kind: "bundle", bundleId: "bundle_1" },
    bundleFingerprint: "fingerprint",
    graphId: definition.graph.graphId,
    configurationJson: "{}",
    weight: 1,
    extensions: [],
    revision: 1,
    createdAtMs: nowMs,
    updatedAtMs: nowMs,
  };
}

function definitionOf(): Definition {
  const manifest = graph("worker", [executor("work", ["true"], { max_attempts: 2, retry_backoff_ms: 50 })]);
  const parsed = parseManifest(manifest);
  assert.equal(parsed.kind, "valid");
  assert.ok(parsed.kind === "valid");
  const manifestJson = JSON.stringify(manifest);
  return {
    graph: parsed.graph,
    manifest,
    manifestJson,
    configuration: null,
    jsonChars: manifestJson.length,
  };
}

const noFreePort = () => new DomainError("no_free_port", "All ports are in use.");
const keyOf = ({ jobId, taskSeq, attempt }: TaskRef) => `${jobId}/${taskSeq}/${attempt}`;

const interrupted: TaskOutcome = { kind: "interrupted", reason: "stopped" };
const command = { exitCode: 0, signal: null, stdout: "", stderr: "", durationMs: 1, usage: null };
const commandDone: TaskOutcome = {
  kind: "succeeded",
  actions: noActions,
  command,
  artifacts: [],
  observation: null,
};
const commandFailed: TaskOutcome = {
  kind: "failed",
  code: "executor.exit_nonzero",
  message: "exit 1",
  command: { ...command, exitCode: 1 },
  artifacts: [],
};
