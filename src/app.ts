// The composition root: a configuration goes in, a running program comes out. Only this file knows which part is
// plugged into which port.

import { randomBytes } from "node:crypto";
import { mkdirSync } from "node:fs";
import { hostname } from "node:os";
import { join } from "node:path";
import type { FastifyInstance } from "fastify";
import { type Logger, pino } from "pino";
import { runtimeServer } from "./api/runtime/server.ts";
import { IDEMPOTENCY_MS, IdempotentRequests } from "./api/shared/idempotency.ts";
import { Paging } from "./api/shared/paging.ts";
import { EventStreams } from "./api/shared/sse.ts";
import { Bundles } from "./bundles/bundles.ts";
import { systemClock, systemRandomness } from "./clock.ts";
import { type Config, runtimePortName } from "./config.ts";
import { isLoopback } from "./config-parsers.ts";
import { Engine } from "./engine/engine.ts";
import type { EngineLog } from "./engine/ports.ts";
import { PoolSlots } from "./execution/pools.ts";
import { removeTree } from "./execution/remove-tree.ts";
import { LocalTaskRunner } from "./execution/task-runner.ts";
import { Definitions } from "./jobs/definitions.ts";
import { Housekeeping } from "./jobs/housekeeping.ts";
import { LaunchPlans } from "./jobs/launch-plans.ts";
import { Launcher } from "./jobs/launcher.ts";
import { RunEnds } from "./jobs/run-ends.ts";
import { Runs } from "./jobs/runs.ts";
import { KeyedTurns } from "./keyed-turns.ts";
import { listen } from "./listen.ts";
import { Cleanup } from "./runs/cleanup.ts";
import { EventFeed } from "./runs/feed.ts";
import { ConfigurationSecrets } from "./secrets/configuration.ts";
import { openSecretKey } from "./secrets/secret-key.ts";
import { FileBlobs } from "./store/blobs.ts";
import { SqlBundleRecords } from "./store/bundle-records.ts";
import { SqlRecordCounter } from "./store/gateway-counts.ts";
import { SqlGatewayRecords } from "./store/gateway-records.ts";
import { databaseFile, openHome } from "./store/home.ts";
import { SqlJobRecords } from "./store/job-records.ts";
import { openSqlite } from "./store/sqlite/database.ts";
import { SqliteJournal } from "./store/sqlite/journal.ts";
import { StoreWatch } from "./store/store-watch.ts";
import { programVersion } from "./version.ts";

/** What is served, each with /api/v1; null: not by this process. */
export interface Served {
  readonly gatewayUrl: string | null;
  readonly runtimeUrl: string | null;
}

export interface RunningProgram extends Served {
  /** Runtime jobs that have not ended. */
  openJobs(): number;
  /** Drains and stops: running jobs stay open for the next start. May be called twice. */
  close(): Promise<void>;
}

/** How long running commands may go on when the program stops, before they are interrupted. */
const DRAIN_MS = 2_000;
/** How long the last changes may wait for a store that takes no writes when the program stops. */
const LAST_COMMIT_MS = 3_000;

/**
 * Starts the program: opens the home and the store, ends what a dead predecessor left running, serves the APIs of
 * the command, and recovers the jobs that are open.
 *
 * @throws StartFailed, StoreUnusable, SecretKeyUnusable
 */
export async function startProgram(config: Config): Promise<RunningProgram> {
  await using undo = new AsyncDisposableStack();
  const log = pino({ level: config.logLevel }, pino.destination(2));
  const core = await openCore(config, log, undo);
  const { engine, runner, cleanup } = core;
  const gateway = openGateway(core);
  const stopping = new AbortController();
  const servers: FastifyInstance[] = [];
  undo.defer(async () => {
    engine.stop("The runtime is shutting down; try again once it has restarted.");
    stopping.abort();
    cleanup.stop();
    await gateway.stop();
    await Promise.all(servers.map((server) => server.close()));
    await runner.drain(DRAIN_MS);
    if (!(await engine.settledWithin(LAST_COMMIT_MS))) {
      log.error("the store took no writes: what could not be written is done again at the next start");
    }
  });
  const ended = await runner.endPredecessors();
  if (ended > 0) log.warn({ processes: ended }, "ended commands that a dead predecessor had left running");

  const streams = new EventStreams({ feed: core.feed, stopping: stopping.signal, log });
  const served = await serve(config, core, gateway, { servers, streams, stopping: stopping.signal });
  const recovered = await engine.recover();
  if (recovered > 0) log.info({ jobs: recovered }, "open jobs carry on");
  await gateway.start();

  // Files that a killed predecessor had not got to; nobody waits for them.
  cleanup
    .collectGarbage()
    .catch((error: unknown) => log.warn({ err: error }, "old files could not be removed"));

  const owned = undo.move();
  return { ...served, openJobs: () => engine.openJobs, close: () => owned.disposeAsync() };
}

type Core = Awaited<ReturnType<typeof openCore>>;
type Gateway = ReturnType<typeof openGateway>;

/** The store, the engine and what it runs on. */
async function openCore(config: Config, log: Logger, undo: AsyncDisposableStack) {
  const engineLog: EngineLog = {
    warn: (fields, message) => log.warn(fields, message),
    error: (fields, message) => log.error(fields, message),
  };
  const home = openHome(config.home);
  undo.defer(() => home.release());
  const key = await openSecretKey({ home: home.path, given: config.secretKey });
  const secrets = new ConfigurationSecrets(key);
  mkdirSync(join(home.path, "runs"), { recursive: true, mode: 0o700 });
  const database = openSqlite(databaseFile(home.path));
  undo.defer(() => database.close());
  const blobs = new FileBlobs(join(home.path, "blobs"));
  await blobs.sweep();
  const bundles = await Bundles.open({
    home: home.path,
    records: new SqlBundleRecords(database),
    bundleBytesMax: config.bundleBytesMax,
    nowMs: systemClock.nowMs,
  });
  const records = new SqlJobRecords(database);
  const feed = new EventFeed();
  const slots = new PoolSlots(config.executorPools, systemRandomness.id);
  const runner = new LocalTaskRunner({
    home: home.path,
    blobs,
    payloadFolder: (fingerprint) => bundles.payloadFolder(fingerprint),
    declaredOutputs: (jobId) => engine.declaredOutputs(jobId),
    openConfiguration: (json) => secrets.open(json, process.env),
    newId: systemRandomness.id,
    clock: systemClock,
    workerEnvPrefixes: config.workerEnvPrefixes,
    runtimeEnv: process.env,
    log: engineLog,
  });
  const engine = new Engine({
    owner: systemRandomness.id(),
    clock: systemClock,
    randomness: systemRandomness,
    journal: new SqliteJournal(database),
    runner,
    slots,
    feed,
    log: engineLog,
  });
  runner.setListener(engine);
  const cleanup = new Cleanup({
    records,
    engine,
    removeRunFiles: (runId) => removeTree(join(home.path, "runs", runId)),
    removeBlob: (sha256, sinceMs) => blobs.removeUnlessPutSince(sha256, sinceMs),
    commandsEnded: (runId) => runner.commandsEnded(runId),
    clock: systemClock,
    log: engineLog,
  });
  const blobPath = async (sha256: string) => (await blobs.open(sha256))?.path ?? null;
  const startedAtMs = systemClock.nowMs();
  return {
    home: home.path,
    log,
    engineLog,
    key,
    secrets,
    database,
    bundles,
    records,
    feed,
    slots,
    runner,
    engine,
    cleanup,
    blobPath,
    startedAtMs,
  };
}

/** Durable jobs and their runs. They are looked after whatever API is served: their runs are the engine's. */
function openGateway(core: Core) {
  const { bundles, engine, feed, secrets, engineLog: log } = core;
  const clock = systemClock;
  const store = new StoreWatch(core.database, clock.nowMs);
  const records = new SqlGatewayRecords(store.database, clock.soon);
  const ends = new RunEnds({ records, feed, clock });
  const plans = new LaunchPlans({ bundles, secrets });
  const turns = new KeyedTurns();
  const launcher = new Launcher({ records, plans, engine, ends, turns, clock, log });
  const newId = systemRandomness.id;
  const newTraceId = () => randomBytes(16).toString("hex");
  const runs = new Runs({ records, bundles, engine, launcher, ends, turns, clock, newId, newTraceId });
  const definitions = new Definitions({
    records,
    bundles,
    runs,
    secrets,
    clock,
    newId,
    collectGarbage: () => core.cleanup.collectGarbage(),
    log,
  });
  const housekeeping = new Housekeeping({
    records,
    definitions,
    clock,
    log,
    idempotencyMs: IDEMPOTENCY_MS,
  });
  return {
    records,
    counter: new SqlRecordCounter(core.database),
    storeProblem: () => store.problem(),
    definitions,
    runs,
    launcher,
    idempotency: new IdempotentRequests({ records, nowMs: clock.nowMs }),
    paging: new Paging({ key: core.key.derive("page tokens"), nowMs: clock.nowMs }),
    async start() {
      await launcher.recover();
      housekeeping.start();
    },
    async stop() {
      await launcher.stop();
      await housekeeping.stop();
    },
  };
}

interface Serving {
  /** Filled with what listens. */
  readonly servers: FastifyInstance[];
  /** One for both APIs: they share its part of the thread. */
  readonly streams: EventStreams;
  readonly stopping: AbortSignal;
}

/** Serves what the command is for: `up` both APIs, `gateway` one, everything else the other. */
async function serve(config: Config, core: Core, gateway: Gateway, serving: Serving): Promise<Served> {
  const { command } = config;
  const runtimeUrl = command === "gateway" ? null : await serveRuntime(config, core, serving);
  const isGateway = command === "up" || command === "gateway";
  const gatewayUrl = isGateway ? await serveGateway(config, core, gateway, serving) : null;
  return { gatewayUrl, runtimeUrl };
}

async function serveRuntime(config: Config, core: Core, { servers, streams }: Serving): Promise<string> {
  const server = runtimeServer(
    {
      engine: core.engine,
      records: core.records,
      streams,
      bundles: core.bundles,
      secrets: core.secrets,
      cleanup: core.cleanup,
      pools: core.slots,
      blobPath: core.blobPath,
      home: core.home,
      nodeName: hostname(),
      version: programVersion(),
      startedAtMs: core.startedAtMs,
      nowMs: systemClock.nowMs,
    },
    {
      bodyBytesMax: config.bodyBytesMax,
      bundleBytesMax: config.bundleBytesMax,
      isLoopback: isLoopback(config.runtimeApiHost),
      logger: core.log,
    },
  );
  servers.push(server);
  const { runtimeApiHost: host, runtimeApiPort: port } = config;
  return `${await listen(server, { host, port, variable: runtimePortName(config) })}/api/v1`;
}

async function serveGateway(
  config: Config,
  core: Core,
  gateway: Gateway,
  { servers, streams, stopping }: Serving,
): Promise<string> {
  // Loaded here because a runtime alone does not need it.
  const { gatewayServer } = await import("./api/gateway/server.ts");
  const server = gatewayServer(
    {
      ...gateway,
      bundles: core.bundles,
      secrets: core.secrets,
      engine: core.engine,
      journal: core.records,
      streams,
      pools: core.slots,
      blobPath: core.blobPath,
      config,
      home: core.home,
      nodeName: hostname(),
      processId: systemRandomness.id().slice(-8),
      version: programVersion(),
      startedAtMs: core.startedAtMs,
      nowMs: systemClock.nowMs,
      stopping,
    },
    core.log,
  );
  servers.push(server);
  const { apiHost: host, apiPort: port } = config;
  return `${await listen(server, { host, port, variable: "SVC_API_PORT" })}/api/v1`;
}
