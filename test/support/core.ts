// For tests of jobs and runs: the real features, store and engine in one process; only commands are not started, the
// test says how they end. What is about one exact moment holds a write, a launch or the journal there.

import { mkdir, mkdtemp, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock, systemRandomness } from "../../src/app/clock.ts";
import { schemaProblem } from "../../src/blueprints/json-schema.ts";
import { Bundles } from "../../src/bundles/bundles.ts";
import { Engine } from "../../src/engine/engine.ts";
import { type Journal, JournalUnavailable } from "../../src/engine/journal.ts";
import type { JsonObject } from "../../src/engine/json.ts";
import type { Clock } from "../../src/engine/ports.ts";
import { noServiceBoard } from "../../src/engine/service-port.ts";
import { noActions, type TaskStart } from "../../src/engine/task-port.ts";
import { PoolSlots } from "../../src/execution/pools.ts";
import { Acceptance } from "../../src/launch/acceptance.ts";
import { BlueprintLaunches } from "../../src/launch/blueprint-launches.ts";
import { Definitions } from "../../src/launch/definitions.ts";
import { LaunchPlans } from "../../src/launch/launch-plans.ts";
import { Launcher } from "../../src/launch/launcher.ts";
import type {
  GatewayRecords,
  JobDefinition,
  JobSource,
  JobView,
  NewRun,
  RunRecord,
} from "../../src/launch/records.ts";
import { RunEnds } from "../../src/launch/run-ends.ts";
import { Runs } from "../../src/launch/runs.ts";
import { KeyedMutex } from "../../src/lib/async.ts";
import { removeTree } from "../../src/lib/remove-tree.ts";
import { alone, type Ownership } from "../../src/operations/ownership.ts";
import { EventFeed } from "../../src/runs/feed.ts";
import { ConfigurationSecrets } from "../../src/security/configuration.ts";
import { openSecretKey } from "../../src/security/secret-key.ts";
import { sqlBundleRecords } from "../../src/store/sql/bundles.ts";
import type { Database } from "../../src/store/sql/database.ts";
import { sqlGatewayRecords } from "../../src/store/sql/gateway.ts";
import { sqlJobRecords } from "../../src/store/sql/jobs.ts";
import { openSqlite } from "../../src/store/sqlite/database.ts";
import { SqliteJournal } from "../../src/store/sqlite/journal.ts";
import { openTestBlueprints } from "./job-blueprints.ts";
import { newDatabase } from "./new-database.ts";
import { until } from "./until.ts";

/** A place where work is held until it is released. */
export class Gate {
  readonly #reached = Promise.withResolvers<void>();
  readonly #opened = Promise.withResolvers<void>();
  /** Resolves when the work has come here. */
  readonly reached = this.#reached.promise;

  pass(): Promise<void> {
    this.#reached.resolve();
    return this.#opened.promise;
  }

  open(): void {
    this.#opened.resolve();
  }
}

/** Real time, but what is to happen later happens when the test lets it. */
export class HandClock implements Clock {
  aheadMs = 0;
  readonly soon = systemClock.soon;
  #timers: (() => void)[] = [];
  #firesByItself = false;

  nowMs(): number {
    return systemClock.nowMs() + this.aheadMs;
  }

  steadyMs(): number {
    return systemClock.steadyMs() + this.aheadMs;
  }

  after(_delayMs: number, run: () => void): () => void {
    this.#timers.push(run);
    if (this.#firesByItself) this.soon(() => this.fire());
    return () => {
      this.#timers = this.#timers.filter((timer) => timer !== run);
    };
  }

  /** Whether what is to happen later happens next, whatever the time. */
  set firesByItself(fires: boolean) {
    this.#firesByItself = fires;
    if (fires) this.fire();
  }

  get timers(): number {
    return this.#timers.length;
  }

  /** Waits until so many things are to happen later. */
  whenTimers(count: number): Promise<true> {
    return until(`${count} timers`, () => this.timers === count);
  }

  /** Calls everything that waits. */
  fire(): void {
    for (const run of this.#timers.splice(0)) run();
  }
}

interface TestRecords extends GatewayRecords {
  /** Hold the next writes before they begin, one each; null lets one through. */
  readonly gates: (Gate | null)[];
  /** Holds what is read next of one run, after it was read. */
  readGate: { readonly runId: string; readonly gate: Gate } | null;
  isBroken: boolean;
}

function testRecords(records: GatewayRecords): TestRecords {
  const held: TestRecords = {
    ...records,
    gates: [],
    readGate: null,
    isBroken: false,
    async run(runId) {
      const run = await records.run(runId);
      if (held.readGate?.runId === runId) {
        const { gate } = held.readGate;
        held.readGate = null;
        await gate.pass();
      }
      return run;
    },
    async write(work) {
      await held.gates.shift()?.pass();
      if (held.isBroken) throw new JournalUnavailable("the test has broken the store");
      return records.write(work);
    },
  };
  return held;
}

class TestPlans extends LaunchPlans {
  gate: Gate | null = null;
  /** Jobs whose launch meets an unexpected error. */
  readonly broken = new Set<string>();
  /** Jobs in the order in which their launches were begun. */
  readonly begun: string[] = [];

  override async of(job: JobDefinition) {
    this.begun.push(job.jobId);
    const { gate } = this;
    this.gate = null;
    await gate?.pass();
    if (this.broken.has(job.jobId)) throw new TypeError("the test has broken this job");
    return super.of(job);
  }
}

export type TestCore = Awaited<ReturnType<typeof startCore>>;

/** @param given.home of a core that has ended: the next process on the same files */
export async function startCore(given: { readonly home?: string } = {}) {
  const home = given.home ?? (await newHome());
  const file = join(home, "db.sqlite");
  const database = given.home === undefined ? await newDatabase(file) : openSqlite(file);
  const journal = new SqliteJournal(database);
  const owner = systemRandomness.id();
  const close = () => database.close();
  return {
    ...(await coreOf({ home, database, journal, owner, ownership: alone, node: "", close })),
    database,
  };
}

export const newHome = () => mkdtemp(join(tmpdir(), "troupe-jobs-"));

/** What a process has of a database, maybe one that it shares with others. */
export interface TestProgram {
  readonly home: string;
  readonly database: Database;
  readonly journal: Journal;
  /** The engine's. */
  readonly owner: string;
  readonly ownership: Ownership;
  readonly node: string;
  readonly close: () => Promise<void>;
}

export async function coreOf(program: TestProgram) {
  const { home, database, ownership, node, journal: real } = program;
  const clock = new HandClock();
  const records = testRecords(sqlGatewayRecords(database, systemClock.soon, node));
  const feed = new EventFeed();
  const bundles = await Bundles.open({
    home,
    records: sqlBundleRecords(database),
    bundleBytesMax: 1_000_000,
    bundlesBytesMax: 0,
    nowMs: systemClock.nowMs,
  });
  const secrets = new ConfigurationSecrets(await openSecretKey({ home, given: [] }));
  const starts: TaskStart[] = [];
  const broken = { journal: false };
  const journal: Journal = {
    commit: async (batch) => {
      if (broken.journal) throw new JournalUnavailable("the test has broken the store");
      return real.commit(batch);
    },
    claim: (owner, limit) => real.claim(owner, limit),
    load: (jobId) => real.load(jobId),
    failDamaged: (jobId, owner, render) => real.failDamaged(jobId, owner, render),
  };
  const log = { warn: () => {}, error: () => {} };
  const slots = new PoolSlots({ default: 4 }, systemRandomness.id, () => 0);
  const engine = new Engine({
    owner: program.owner,
    clock: systemClock,
    randomness: systemRandomness,
    journal,
    runner: {
      start: (task) => void starts.push(task),
      stop: () => {},
      send: () => {},
      respond: () => {},
    },
    slots,
    feed,
    schemaProblem,
    services: noServiceBoard,
    log,
  });
  const newId = systemRandomness.id;
  const turns = new KeyedMutex();
  const ends = new RunEnds({ records, feed, clock });
  const opened = openTestBlueprints({ home, database, records, bundles, feed, secrets, ownership, node });
  const { blueprints, preparation, webUiPorts } = opened;
  const plans = new TestPlans({ bundles, secrets, preparation });
  const launcher = new Launcher({
    records,
    plans,
    preparation,
    blueprints: opened.blueprintRecords,
    ports: opened.portRecords,
    webUiPorts,
    secrets,
    engine,
    control: engine,
    ends,
    turns,
    ownership,
    clock,
    log,
  });
  const newTraceId = () => "4bf92f3577b34da6a3ce929d0e0e4736";
  const capacity = { refuseUnsatisfiable: async () => {} };
  const declaredModels = { refuseUnserved: async () => {} };
  const looked = {
    bundles,
    plans,
    preparation,
    blueprints,
    webUiPorts,
    secrets,
    capacity,
    declaredModels,
    closed: () => null,
    clock,
  };
  const acceptance = new Acceptance(looked);
  const runs = new Runs({
    records,
    acceptance,
    launcher,
    turns,
    secrets,
    ownership,
    clock,
    newId,
    newTraceId,
  });
  const garbage: { collected: number; gate: Gate | null } = { collected: 0, gate: null };
  const definitions = new Definitions({
    records,
    bundles,
    blueprints,
    runs,
    secrets,
    capacity,
    clock,
    newId,
    collectGarbage: async () => {
      garbage.collected++;
      await garbage.gate?.pass();
    },
    log,
  });
  const launches = new BlueprintLaunches({ ...looked, definitions, runs });
  blueprints.onSettled((jobIds) => {
    for (const jobId of jobIds) launcher.settleSoon(jobId);
  });
  let isOver = false;
  const core = {
    ...opened,
    home,
    records,
    journal: sqlJobRecords(database),
    feed,
    bundles,
    secrets,
    engine,
    slots,
    clock,
    launcher,
    plans,
    runs,
    ends,
    definitions,
    launches,
    broken,
    garbage,
    starts,

    async bundle(manifest: JsonObject, files: Readonly<Record<string, JsonObject>> = {}) {
      const folder = join(home, `source-${newId()}`);
      await mkdir(join(folder, "config"), { recursive: true });
      await writeFile(join(folder, "manifest.json"), JSON.stringify(manifest));
      for (const [name, value] of Object.entries(files)) {
        await writeFile(join(folder, name), JSON.stringify(value));
      }
      return bundles.registerFolder({ path: folder });
    },

    async job(manifest: JsonObject, configuration: JsonObject = {}): Promise<JobView> {
      const { bundleId } = await this.bundle(manifest);
      return this.create({ kind: "bundle", bundleId }, configuration);
    },

    async create(source: JobSource, configuration: JsonObject = {}): Promise<JobView> {
      const draft = await definitions.prepareCreate({ source, name: null, configuration });
      const created = await records.write(draft.insert);
      definitions.created(created);
      return created.job;
    },

    /** A run that is on disk, and not yet known to the launcher. */
    async accept(
      jobId: string,
      inputs: JsonObject = {},
      configOverrides: JsonObject | null = null,
    ): Promise<NewRun> {
      const trigger = { kind: "api", id: null } as const;
      return records.write(await runs.prepare(jobId, { inputs, configOverrides, trigger, trace: null }));
    },

    async start(
      jobId: string,
      inputs: JsonObject = {},
      configOverrides: JsonObject | null = null,
    ): Promise<NewRun> {
      const run = await this.accept(jobId, inputs, configOverrides);
      runs.accepted(run);
      return run;
    },

    async find(runId: string): Promise<RunRecord> {
      const run = await records.run(runId);
      if (run === null) throw new Error(`there is no run ${runId}`);
      return run;
    },

    /** Waits until a run is what a test wants it to be. */
    whenRun: (runId: string, is: (run: RunRecord) => boolean) =>
      until(`the state of ${runId}`, async () => {
        const run = await records.run(runId);
        return run !== null && is(run) && run;
      }),

    ended(runId: string): Promise<RunRecord> {
      return this.whenRun(runId, (run) => run.finishedAtMs !== null);
    },

    /** Waits until the command of a run was begun, and lets it end well. */
    async endCommand(runId: string): Promise<void> {
      const start = await until(
        `a command of ${runId}`,
        () => starts.find((one) => one.runId === runId) ?? null,
      );
      engine.taskEnded(start.ref, {
        kind: "succeeded",
        actions: noActions,
        command: { exitCode: 0, signal: null, stdout: "", stderr: "", durationMs: 1, usage: null },
        artifacts: [],
        observation: null,
      });
    },

    /** Waits until the launcher has nothing more to do. */
    launched: () => until("an idle launcher", () => launcher.waiting === 0),

    async recover(): Promise<void> {
      await engine.recover();
      await launcher.recover();
      await blueprints.recover();
    },

    /** Ends this process; the next one finds its files. */
    async end(): Promise<{ readonly home: string }> {
      if (!isOver) {
        isOver = true;
        engine.stop("the test is over");
        await opened.stop();
        await launcher.stop();
        await definitions.stop();
        await engine.settledWithin(60_000);
        await program.close();
      }
      return { home };
    },

    async [Symbol.asyncDispose]() {
      await this.end();
      // What was prepared for runs that have just ended may be under removal too.
      await removeTree(home);
    },
  };
  return core;
}

/** Ends a process and starts the next one on its files. */
export async function restarted(core: TestCore): Promise<TestCore> {
  return startCore(await core.end());
}
