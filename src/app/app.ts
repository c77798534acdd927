// The composition root: a configuration goes in, a running program comes out. Only this file and its parts (core,
// gateway, blueprints, serving) know what is plugged into which port.

import { type DestinationStream, type Logger, pino } from "pino";
import { makeRedactor } from "../execution/output/redaction.ts";
import { ListStreams } from "../http/core/list-streams.ts";
import { EventStreams } from "../http/core/sse.ts";
import { realThread } from "../http/core/sse-pacer.ts";
import { listChanges } from "../http/resources/list-changes.ts";
import { Waits } from "../http/resources/waits.ts";
import { programVersion } from "../lib/version.ts";
import { readTelemetry } from "../observability/traces/settings.ts";
import { Capacity } from "../resources/capacity.ts";
import { systemClock, systemRandomness } from "./clock.ts";
import type { Config } from "./config.ts";
import { type Core, openCore, type StartOptions } from "./core.ts";
import { openGateway } from "./gateway.ts";
import { joinOf } from "./join.ts";
import { nodesShown } from "./own-node.ts";
import { openMetrics, type Served, type Serving, serve } from "./serving.ts";

export type { Served, StartOptions };

export interface RunningProgram extends Served {
  /** Runtime jobs that have not ended. */
  openJobs(): number;
  /** Resolves when the program is to end although nobody has stopped it. */
  readonly ending: Promise<ProgramEnd>;
  /** Drains and stops: running jobs stay open for the next start. May be called twice. */
  close(): Promise<void>;
}

export interface ProgramEnd {
  /** For people. */
  readonly reason: string;
  /** What is to be done once the program has ended, before it starts again; null: it stays ended. */
  readonly again: (() => Promise<void>) | null;
}

/** What a program that does not have its process to itself is given in place of the process's. */
export interface Surroundings {
  readonly logTo?: DestinationStream;
  readonly env?: NodeJS.ProcessEnv;
}

/** The program's own log. Libraries log headers at the level trace: no secret of the runtime is written. */
function openLog({ logLevel, secretTexts }: Config, to: DestinationStream): Logger {
  const redactor = makeRedactor(secretTexts);
  return pino({ level: logLevel, hooks: { streamWrite: redactor.text } }, to);
}

/** How long running commands may continue when the program stops, before they are interrupted. */
const DRAIN_MS = 2_000;
/** How long clients may take to be sent the answers that they have waited for when the program stops. */
const LAST_ANSWERS_MS = 1_000;
/** How long the last changes may wait for a store that takes no writes when the program stops. */
const LAST_COMMIT_MS = 3_000;
/** How long the last spans may take to reach the collector when the program stops. */
const LAST_SPANS_MS = 2_000;

/**
 * Starts the program: opens the home and the store, ends what a dead predecessor left running, serves the APIs of
 * the command, and recovers the jobs that are open.
 *
 * @param surroundings.logTo where the log goes; to stderr when absent
 * @param surroundings.env what says whether and how traces are exported; the process's own when absent
 * @throws StartFailed, StoreUnusable, SecretKeyUnusable
 */
export async function startProgram(
  config: Config,
  options: StartOptions = {},
  surroundings: Surroundings = {},
): Promise<RunningProgram> {
  await using undo = new AsyncDisposableStack();
  // What the program and its commands write is for its user alone.
  const umask = process.umask(0o077);
  undo.defer(() => void process.umask(umask));
  const log = openLog(config, surroundings.logTo ?? pino.destination(2));
  const ending = Promise.withResolvers<ProgramEnd>();
  const end = (reason: string) => ending.resolve({ reason, again: null });
  const core = await openCore(config, options, { log, end }, undo);
  const { engine, runner, cleanup, operationRecords } = core;
  const env = surroundings.env ?? process.env;
  await exportTraces(core, env, undo);
  const again = (between: () => Promise<void>) =>
    ending.resolve({ reason: "This program joins a cluster: it starts again as a node.", again: between });
  const stopping = new AbortController();
  const { ownNode, opened, startedAtMs } = core;
  const nodes = nodesShown(ownNode, opened, { startedAtMs, stopping: stopping.signal });
  const capacity = new Capacity(nodes, {
    requireSandbox: config.requireSandbox,
    sandboxRefusal: () => core.sandboxes.refusal(),
  });
  const join = joinOf({ config, env, home: core.home, key: core.key, again });
  const gateway = openGateway(config, core, { join, capacity });
  const waits = new Waits({ feed: core.feed, clock: systemClock, stopping: stopping.signal });
  const servers: Serving["servers"] = [];
  undo.defer(async () => {
    await core.node?.drain(config.drainSeconds);
    engine.stop("The runtime is shutting down; try again once it has restarted.");
    stopping.abort();
    core.serviceRegistry.stop();
    core.resources.stop();
    await Promise.all([cleanup.stop(), core.retention.stop()]);
    await gateway.stop();
    await core.runStore.stop();
    await waits.answered(LAST_ANSWERS_MS);
    await Promise.all(servers.map((server) => server.close()));
    await runner.drain(DRAIN_MS);
    await gateway.closeLlm();
    if (!(await engine.settledWithin(LAST_COMMIT_MS))) {
      log.error("the store accepted no writes: what could not be written is repeated at the next start");
    }
    await core.node?.leave();
  });
  const ended = await runner.endPredecessors();
  if (ended > 0) log.warn({ processes: ended }, "killed orphaned worker processes of a previous start");

  const streams = new EventStreams({ feed: core.feed, stopping: stopping.signal, log });
  const lists = new ListStreams({
    notes: core.node?.notes(core.changeNotes) ?? core.changeNotes,
    read: (notes) => listChanges({ ...gateway, operationRecords, nowMs: systemClock.nowMs }, notes),
    processId: systemRandomness.id().slice(-8),
    stopping: stopping.signal,
    log,
    thread: realThread,
  });
  const metrics = openMetrics(core, gateway, { streams, lists, waits, nodes }, undo);
  const serving = {
    servers,
    streams,
    lists,
    waits,
    nodes,
    capacity,
    metrics,
    env,
    stopping: stopping.signal,
  };
  await core.resources.start();
  await core.node?.join({
    programLost: () => gateway.programLost(),
    launch: (runId) => gateway.launcher.enqueue(runId),
  });
  await gateway.nodeChanges.bringJoin();
  const served = await serve(config, core, gateway, serving);
  core.runEvents.servedAt(served.gatewayUrl);
  gateway.llmServedAt(served.gatewayUrl);
  if (core.node !== null) await core.node.start();
  else {
    const recovered = await engine.recover();
    if (recovered > 0) log.info({ jobs: recovered }, "open jobs resumed");
  }
  await gateway.start();

  // Beside everything else: it may read the whole database.
  void core.opened.checkAfterUncleanEnd(stopping.signal).then((found) => {
    if (found === "damaged") void engine.askStore();
  });
  // Files that a killed predecessor had not removed yet; the start does not wait for this.
  cleanup
    .collectGarbage()
    .catch((error: unknown) => log.warn({ err: error }, "old files could not be removed"));
  core.retention.start();

  const owned = undo.move();
  return {
    ...served,
    openJobs: () => engine.openJobs,
    ending: ending.promise,
    close: () => owned.disposeAsync(),
  };
}

/** Sends traces to a collector when OTEL_* variables enable it; loaded only then. */
async function exportTraces(
  { feed, records, engineLog, log }: Core,
  env: NodeJS.ProcessEnv,
  undo: AsyncDisposableStack,
): Promise<void> {
  const settings = readTelemetry(env);
  for (const warning of settings.warnings) log.warn(warning);
  if (settings.kind === "off") return;
  const { startTelemetry } = await import("../observability/traces/telemetry.ts");
  const version = programVersion();
  const parts = { settings, env, feed, records, clock: systemClock, log: engineLog, version };
  const telemetry = startTelemetry(parts);
  undo.defer(() => telemetry.close(LAST_SPANS_MS));
}
