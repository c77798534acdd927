// The composition root: a configuration goes in, a running program comes out. Only this file knows which part is
// plugged into which port.

import { mkdirSync } from "node:fs";
import type { AddressInfo } from "node:net";
import { hostname } from "node:os";
import { join } from "node:path";
import { pino } from "pino";
import { runtimeServer } from "./api/runtime/server.ts";
import { Bundles } from "./bundles/bundles.ts";
import { systemClock, systemRandomness } from "./clock.ts";
import { type Config, runtimePortName } from "./config.ts";
import { isLoopback } from "./config-parsers.ts";
import { Engine } from "./engine/engine.ts";
import type { EngineLog } from "./engine/ports.ts";
import { PoolSlots } from "./execution/pools.ts";
import { removeTree } from "./execution/remove-tree.ts";
import { LocalTaskRunner } from "./execution/task-runner.ts";
import { Cleanup } from "./runs/cleanup.ts";
import { EventFeed } from "./runs/feed.ts";
import { FileBlobs } from "./store/blobs.ts";
import { SqlBundleRecords } from "./store/bundle-records.ts";
import { databaseFile, openHome } from "./store/home.ts";
import { SqlJobRecords } from "./store/job-records.ts";
import { openSqlite } from "./store/sqlite/database.ts";
import { SqliteJournal } from "./store/sqlite/journal.ts";
import { programVersion } from "./version.ts";

export interface RunningRuntime {
  /** Of the runtime API, with /api/v1. */
  readonly url: string;
  /** Drains and stops: running jobs stay open for the next start. May be called twice. */
  close(): Promise<void>;
}

/** The program cannot start; the message says why, and what to do. */
export class StartFailed extends Error {
  override readonly name = "StartFailed";
}

/** How long running commands may go on when the program stops, before they are interrupted. */
const DRAIN_MS = 2_000;
/** How long the last changes may wait for a store that takes no writes when the program stops. */
const LAST_COMMIT_MS = 3_000;

/**
 * Starts the runtime: opens the home and the store, ends what a dead predecessor left running, recovers its jobs,
 * and serves the runtime API.
 *
 * @throws StartFailed, StoreUnusable
 */
export async function startRuntime(config: Config): Promise<RunningRuntime> {
  await using undo = new AsyncDisposableStack();
  const log = pino({ level: config.logLevel }, pino.destination(2));
  const engineLog: EngineLog = {
    warn: (fields, message) => log.warn(fields, message),
    error: (fields, message) => log.error(fields, message),
  };

  const home = openHome(config.home);
  undo.defer(() => home.release());
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
  const stopping = new AbortController();
  const cleanup = new Cleanup({
    records,
    engine,
    removeRunFiles: (runId) => removeTree(join(home.path, "runs", runId)),
    removeBlob: (sha256, sinceMs) => blobs.removeUnlessPutSince(sha256, sinceMs),
    commandsEnded: (runId) => runner.commandsEnded(runId),
    clock: systemClock,
    log: engineLog,
  });
  const server = runtimeServer(
    {
      engine,
      records,
      feed,
      bundles,
      cleanup,
      pools: slots,
      blobPath: async (sha256) => (await blobs.open(sha256))?.path ?? null,
      home: home.path,
      nodeName: hostname(),
      version: programVersion(),
      startedAtMs: systemClock.nowMs(),
      nowMs: systemClock.nowMs,
    },
    {
      bodyBytesMax: config.bodyBytesMax,
      bundleBytesMax: config.bundleBytesMax,
      isLoopback: isLoopback(config.runtimeApiHost),
      logger: log,
      stopping: stopping.signal,
    },
  );
  undo.defer(async () => {
    engine.stop("The runtime is shutting down; try again once it has restarted.");
    stopping.abort();
    cleanup.stop();
    await server.close();
    await runner.drain(DRAIN_MS);
    if (!(await engine.settledWithin(LAST_COMMIT_MS))) {
      log.error("the store took no writes: what could not be written is done again at the next start");
    }
  });
  const ended = await runner.endPredecessors();
  if (ended > 0) log.warn({ processes: ended }, "ended commands that a dead predecessor had left running");
  await server.listen({ host: config.runtimeApiHost, port: config.runtimeApiPort }).catch((error) => {
    throw new StartFailed(explainListen(error, config));
  });
  const recovered = await engine.recover();
  if (recovered > 0) log.info({ jobs: recovered }, "open jobs carry on");

  // Files that a killed predecessor had not got to; nobody waits for them.
  cleanup
    .collectGarbage()
    .catch((error: unknown) => log.warn({ err: error }, "old files could not be removed"));

  const { port } = server.server.address() as AddressInfo;
  const host = config.runtimeApiHost.includes(":") ? `[${config.runtimeApiHost}]` : config.runtimeApiHost;
  const owned = undo.move();
  return { url: `http://${host}:${port}/api/v1`, close: () => owned.disposeAsync() };
}

function explainListen(error: NodeJS.ErrnoException, config: Config): string {
  const { runtimeApiHost: host, runtimeApiPort: port } = config;
  const variable = runtimePortName(config);
  if (error.code === "EADDRINUSE") {
    return `Port ${port} on ${host} is taken. See who has it with "ss -ltnp 'sport = :${port}'", or choose another with ${variable} (0: any free one).`;
  }
  if (error.code === "EACCES")
    return `Port ${port} needs more rights than this user has. Choose one above 1023 with ${variable}.`;
  return `Listening on ${host}:${port} failed: ${error.message}.`;
}
