// The core of a running program: the store, the engine, what it runs on, and the maintenance of both; the same whatever
// API is served.

import { mkdirSync } from "node:fs";
import { join } from "node:path";
import type { Logger } from "pino";
import { schemaProblem } from "../blueprints/json-schema.ts";
import { Bundles } from "../bundles/bundles.ts";
import type { Unused } from "../bundles/shared-folders.ts";
import { hostOf } from "../cluster/nodes.ts";
import { Reconciler } from "../cluster/reconcile.ts";
import type { ReconcileNode } from "../cluster/remote-reconcile.ts";
import { Engine } from "../engine/engine.ts";
import type { EngineLog } from "../engine/ports.ts";
import { isDevice } from "../execution/devices.ts";
import { FreePorts, isPortFree } from "../execution/free-ports.ts";
import { makeRedactor } from "../execution/output/redaction.ts";
import { PoolSlots } from "../execution/pools.ts";
import { payloadsIn } from "../execution/runner/paths.ts";
import { SandboxNetworks } from "../execution/sandbox/network/sandbox-networks.ts";
import { Sandboxes } from "../execution/sandbox/sandboxes.ts";
import { LocalTaskRunner } from "../execution/task-runner.ts";
import { volumeRemoval } from "../execution/volume-removal.ts";
import { RunTokens } from "../http/core/run-token.ts";
import { findRunSource } from "../http/resources/run-documents.ts";
import { problemsOfAnswer } from "../launch/preparation/schemas.ts";
import { SharedRuns } from "../launch/preparation/shared-runs.ts";
import { isLoopback } from "../lib/addresses.ts";
import { removeTree } from "../lib/remove-tree.ts";
import { RunLlms } from "../models/serving/run-llms.ts";
import { meteredJournal, meteredListener, meteredSlots } from "../observability/metrics/metered-ports.ts";
import { RuntimeMeter } from "../observability/metrics/runtime-meter.ts";
import { alone, type Ownership } from "../operations/ownership.ts";
import { effectiveOf } from "../resources/limits.ts";
import { Resources } from "../resources/resources.ts";
import { ChangeNotes } from "../runs/change-notes.ts";
import { Cleanup } from "../runs/cleanup.ts";
import { DeadLetters } from "../runs/dead-letters.ts";
import { EventFeed } from "../runs/feed.ts";
import { HumanAnswers } from "../runs/human-answers.ts";
import { Retention } from "../runs/retention.ts";
import { RunStore } from "../runs/store/run-store.ts";
import { ConfigurationSecrets } from "../security/configuration.ts";
import { openSecretKey } from "../security/secret-key.ts";
import { ServiceRegistry } from "../services/registry.ts";
import { Services } from "../services/services.ts";
import { settleNode } from "../store/cluster-file.ts";
import { openHome, pathsOpenToOthers } from "../store/home.ts";
import { homeLeftovers } from "../store/home-leftovers.ts";
import { openNodeIdentity } from "../store/node-identity.ts";
import { openStore } from "../store/open-store.ts";
import { sqlBundleRecords } from "../store/sql/bundles.ts";
import { sqlDeadLetterRecords } from "../store/sql/dead-letters.ts";
import { sqlGatewayRecords } from "../store/sql/gateway.ts";
import { sqlJobHeads } from "../store/sql/heads.ts";
import { sqlHumanRequestRecords } from "../store/sql/human-requests.ts";
import { sqlJobRecords } from "../store/sql/jobs.ts";
import { sqlOperationRecords } from "../store/sql/operations.ts";
import { sqlPortRecords } from "../store/sql/ports.ts";
import { runsThere } from "../store/sql/references.ts";
import { sqlResourceRecords } from "../store/sql/resources.ts";
import { sqlRetentionRecords } from "../store/sql/retention.ts";
import { StoreWatch } from "../store/sql/store-watch.ts";
import type { OpenStore } from "../store/store.ts";
import { dashboardsHere } from "../web/dashboards-here.ts";
import { WEB_UI_POOL } from "../web/inject.ts";
import { WebUiPorts } from "../web/ports.ts";
import { RunEvents } from "../web/run-events.ts";
import { workersEnvironment } from "./bucket-credentials.ts";
import { type FilesOfNodes, openBytes } from "./bytes.ts";
import { stopwatch, systemClock, systemRandomness } from "./clock.ts";
import type { Config } from "./config.ts";
import type { Node, NodeParts } from "./node.ts";
import { describeOwnNode, OwnMachine } from "./own-node.ts";

/** How often limits of resources are read that another node may have changed. */
const LIMITS_READ_MS = 15_000;

export type Core = Awaited<ReturnType<typeof openCore>>;

/** What an operator allows for one start. */
export interface StartOptions {
  /** To start with an empty database although the home holds what belongs to a lost one. */
  readonly newDatabase?: boolean;
  /** To make a new secret key although the database holds values that only the lost one decrypts. */
  readonly newKey?: boolean;
  /** To continue although acknowledged commits are missing from the database. */
  readonly acceptDataLoss?: boolean;
}

/**
 * The store, the engine and what it runs on.
 *
 * @param end called when the program is to end, with the reason
 */
export async function openCore(
  config: Config,
  options: StartOptions,
  { log, end }: { readonly log: Logger; readonly end: (reason: string) => void },
  undo: AsyncDisposableStack,
) {
  const engineLog: EngineLog = {
    warn: (fields, message) => log.warn(fields, message),
    error: (fields, message) => log.error(fields, message),
  };
  const home = openHome(config.home);
  undo.defer(() => home.release());
  await settleNode(home.path);
  const open = pathsOpenToOthers(home.path, { fix: true });
  if (open.length > 0) {
    log.warn(
      { paths: open },
      "other users of this machine may read SVC_HOME: `chmod -R go= SVC_HOME` as its owner",
    );
  }
  const { databaseUrl, databaseIsPooled } = config;
  const opened = await openStore({
    ...options,
    home: home.path,
    databaseUrl,
    databaseIsPooled,
    clock: systemClock,
    log: engineLog,
  });
  undo.defer(() => opened.close());
  const networks = new SandboxNetworks({ clock: systemClock, log: engineLog });
  const sandboxes = new Sandboxes(home.path, networks, config.sandboxEngine);
  // It starts a sandbox, meanwhile; and writes into the home, which nothing does before the store is found fit.
  const sandboxLabels = sandboxes.labels();
  const { database } = opened;
  mkdirSync(join(home.path, "runs"), { recursive: true, mode: 0o700 });
  const keys = await openSecretKey({
    home: home.path,
    given: config.secretKeys,
    mayMake: async () => options.newKey === true || !(await opened.needsKey()),
  });
  const key = keys.led(await opened.checkKey([keys.id, ...keys.older.map(({ id }) => id)]));
  const secrets = new ConfigurationSecrets(key);
  const { blobs, folders: shared, ofNodes: files } = await openBytes(config, home.path, log);
  const bundles = await Bundles.open({
    home: home.path,
    records: sqlBundleRecords(database),
    bundleBytesMax: config.bundleBytesMax,
    bundlesBytesMax: config.bundlesBytesMax,
    shared,
    nowMs: systemClock.nowMs,
  });
  // Bundles from before there was a shared store; the start does not wait for them.
  const notShared = (error: unknown) =>
    log.warn(
      { error: String(error) },
      "a bundle is not in the store of files yet; the next start tries again",
    );
  bundles.snapshots.shareAll(notShared).catch(notShared);
  const sharedRuns = new SharedRuns(home.path, shared);
  /** What else removes from the shared store what nothing names, once a day. */
  const sharedSweeps: ((request: Omit<Unused, "isNamed">) => Promise<void>)[] = [];
  const records = sqlJobRecords(database);
  const feed = new EventFeed();
  const pools = { ...config.executorPools, [WEB_UI_POOL]: config.webUiPortEnd - config.webUiPortStart + 1 };
  const meter = new RuntimeMeter(Object.keys(pools));
  const runTokens = new RunTokens(key.derive("run tokens"));
  // A dashboard that only this machine can reach needs no key when the gateway needs no token.
  const dashboardsAsk = config.apiTokens.length > 0 || !isLoopback(config.webUiHost);
  const runEvents = new RunEvents((runId) => (dashboardsAsk ? runTokens.of(runId) : null));
  const runLlms = new RunLlms({
    key: key.derive("llm keys"),
    write: (work) => gatewayRecords.write(({ llmUsage }) => work(llmUsage)),
    log: engineLog,
  });
  const webUiPlace = { host: config.webUiHost, publicUrl: config.webUiPublicUrl };
  const dashboards = dashboardsHere(webUiPlace, dashboardsAsk);
  const { snapshots } = bundles;
  const payloadOf = payloadsIn({
    home: home.path,
    snapshotPayload: (fingerprint) => snapshots.payloads(fingerprint),
    ensureSnapshot: (fingerprint) => snapshots.ensure(fingerprint),
    ensurePrepared: (runId) => sharedRuns.ensure(runId),
  });
  const workersEnv = workersEnvironment(process.env, config.blobCredentials);
  const machine = await OwnMachine.open(home.path, workersEnv.PATH);
  const labels = { ...config.nodeLabels, ...(await sandboxLabels) };
  const names = { ports: new FreePorts(systemRandomness.fraction(), isPortFree), hasDevice: isDevice };
  const slots = new PoolSlots(
    pools,
    systemRandomness.id,
    systemClock.steadyMs,
    labels,
    machine.totals,
    names,
  );
  const identity = await openNodeIdentity(home.path, systemRandomness.id);
  const { nodeId } = identity;
  const volumeOwners = opened.sharedByNodes?.volumesOf(nodeId);
  const runner = new LocalTaskRunner({
    home: home.path,
    blobs,
    payloadOf,
    declaredOutputs: (jobId) =>
      node === null || engine.holds(jobId)
        ? engine.declaredOutputs(jobId)
        : node.tasks.host.declaredOutputs(jobId),
    openConfiguration: (json) => secrets.decryptForWorker(json, workersEnv),
    openBody: (body) => secrets.decryptBody(body),
    runEvents: (runId) => runEvents.of(runId),
    openLlm: (attempt) => runLlms.open(attempt),
    environmentHere: dashboards.environment,
    newId: systemRandomness.id,
    clock: systemClock,
    workerEnvPrefixes: config.workerEnvPrefixes,
    runtimeEnv: workersEnv,
    runtimeSecrets: config.secretTexts,
    sandboxes,
    requireSandbox: () => config.requireSandbox,
    ...(volumeOwners !== undefined && { volumeOwners }),
    log: engineLog,
  });
  const serviceRegistry = new ServiceRegistry({
    clock: systemClock,
    fraction: systemRandomness.fraction,
    node: { name: config.nodeName, host: machineOf(config) },
    asHere: dashboards.service,
    asksForKey: dashboards.asksForKey,
    run: runner.sideCommands.run,
    payloadOf,
    redact: makeRedactor(config.secretTexts).text,
    report: (jobId, change) => engine.serviceChanged(jobId, change),
  });
  const services = new Services({
    own: serviceRegistry,
    nodeName: config.nodeName,
    nodeId,
    outOfService: () => gatewayRecords.deployments.outOfService(),
    clock: systemClock,
  });
  const ownNode = describeOwnNode(config, { nodeId, labels, machine, slots, runner, engine: () => engine });
  const nodeParts = { identity, ownNode, shared: opened.sharedByNodes, slots, runner, end, log: engineLog };
  const node = await openNodeOf(config, { ...nodeParts, engine: () => engine }, undo);
  const engine: Engine = new Engine({
    owner: node?.owner() ?? systemRandomness.id(),
    clock: systemClock,
    randomness: systemRandomness,
    journal: meteredJournal(opened.journal, meter, stopwatch),
    runner: node?.tasks.runner ?? runner,
    slots: meteredSlots(node?.tasks.slots ?? slots, meter, stopwatch),
    feed,
    schemaProblem,
    services: serviceRegistry,
    log: engineLog,
  });
  runner.setListener(meteredListener(node?.tasks.reports ?? engine, meter));
  const store = new StoreWatch(database, systemClock.nowMs);
  const resources = new Resources({
    records: sqlResourceRecords(store.database),
    apply: (limits) => slots.limitTo(effectiveOf(machine.totals, limits)),
    everyMs: node === null ? null : LIMITS_READ_MS,
    clock: systemClock,
    log: engineLog,
  });
  const changeNotes = new ChangeNotes(feed);
  const gatewayRecords = sqlGatewayRecords(
    store.database,
    systemClock.soon,
    node?.nodeId,
    changeNotes.written,
  );
  const operationRecords = sqlOperationRecords(store.database);
  const doorParts = {
    engine,
    feed,
    heads: sqlJobHeads(database),
    jobs: records,
    gatewayRecords,
    operationRecords,
    changeNotes,
  };
  const portRecords = sqlPortRecords(store.database, node?.nodeId);
  const webUiPorts = new WebUiPorts({
    records: portRecords,
    start: config.webUiPortStart,
    end: config.webUiPortEnd,
    mode: config.webUiPortAllocationMode,
    host: config.webUiHost,
    clock: systemClock,
  });
  const reconciler = new Reconciler({
    home: home.path,
    engine,
    runner,
    foreign: () => node?.tasks.host.attempts ?? [],
    reports: node?.tasks.reports ?? engine,
    services: serviceRegistry,
    runsThere: (runIds) => runsThere(database, runIds),
    heldPorts: () => webUiPorts.held(),
    clock: systemClock,
    log: engineLog,
  });
  const ofServices = { serviceRegistry, services };
  const removeVolume = volumeRemoval({ volumes: runner.volumes, slots });
  const doorGiven = { ...doorParts, ...ofServices, files, reconciler, removeVolume, log: engineLog };
  const door = await node?.openDoor(doorGiven, key.texts);
  const control = door?.control ?? engine;
  const reconcileOwn: ReconcileNode = async (asked, fix) =>
    asked === nodeId ? reconciler.reconcile(fix) : null;
  const retentionRecords = {
    ...sqlRetentionRecords(database, (runIds) => changeNotes.written("runs", runIds)),
    ...garbageOf(opened, node, files),
  };
  const cleanup = new Cleanup({
    records,
    retention: retentionRecords,
    engine,
    control,
    removeRunFiles: async (runId) => {
      await removeTree(join(home.path, "runs", runId));
      await runStore.remove(runId);
    },
    removeBlob: (sha256, sinceMs, options) => blobs.removeUnlessPutSince(sha256, sinceMs, options),
    commandsEnded: (runId) => runner.commandsEnded(runId),
    clock: systemClock,
  });
  const ownership: Ownership = node?.ownership ?? alone;
  const takeDuty = (name: string, forMs: number) => opened.takeDuty(name, ownership.owner() ?? "", forMs);
  const retention = new Retention({
    records: retentionRecords,
    cleanup,
    limits: { olderThanDays: config.retentionDays, bytesMax: config.retentionBytesMax },
    filesAreShared: config.blobUrl !== null,
    blobPages: () => blobs.pages(),
    leftovers: homeLeftovers({
      home: home.path,
      isRunThere: (runId) => retentionRecords.isRunThere(runId),
      remove: removeTree,
    }),
    removeSnapshots: async (request) => {
      const isNamed = async (runId: string) => (await gatewayRecords.openRun(runId)) !== null;
      await sharedRuns.removeUnused({ ...request, isNamed });
      for (const sweep of sharedSweeps) await sweep(request);
      return snapshots.removeUnused(request);
    },
    takeDuty: (forMs) => takeDuty("retention", forMs),
    shrinkDatabase: () => opened.shrink(),
    clock: systemClock,
    log: engineLog,
  });
  const runStore = new RunStore({
    home: home.path,
    records,
    openBlob: (blob, first, last) => blobs.read(blob, first, last),
    findRun: (runId) => findRunSource({ records: gatewayRecords, journal: records, secrets }, runId),
  });
  const startedAtMs = systemClock.nowMs();
  const humanRequests = sqlHumanRequestRecords(database);
  const deadLetterRecords = sqlDeadLetterRecords(database);
  return {
    home: home.path,
    log,
    engineLog,
    key,
    secrets,
    opened,
    database,
    bundles,
    records,
    feed,
    slots,
    runner,
    workersEnv,
    shared,
    sharedRuns,
    sharedSweeps,
    runTokens,
    runEvents,
    runLlms,
    engine,
    control,
    services,
    serviceRegistry,
    webUiPlace,
    meter,
    people: {
      humanRequests,
      deadLetterRecords,
      humanAnswers: new HumanAnswers({
        records: humanRequests,
        jobs: records,
        control,
        dataProblems: problemsOfAnswer,
      }),
      deadLetters: new DeadLetters({ records: deadLetterRecords, jobs: records, control, secrets }),
    },
    cleanup,
    retention,
    store,
    gatewayRecords,
    changeNotes,
    operationRecords,
    ownNode,
    machine,
    sandboxes,
    resources,
    node,
    reconcileNode: door?.reconcileNode ?? reconcileOwn,
    removeVolume: door?.removeVolume ?? removeVolume,
    portRecords,
    webUiPorts,
    ownership,
    takeDuty,
    runStore,
    startedAtMs,
  };
}

/** Where other nodes reach this machine; null: there are none. */
function machineOf({ databaseUrl, nodeAddress, nodeHost }: Config): string | null {
  if (databaseUrl === null) return null;
  return nodeAddress === null ? nodeHost : hostOf(nodeAddress);
}

/** What is noted of files that several nodes have, each in its home. */
function garbageOf({ sharedByNodes }: OpenStore, node: Node | null, files: FilesOfNodes | null) {
  if (sharedByNodes === null || node === null) return {};
  const { nodeId } = node;
  return sharedByNodes.garbageOf({ nodeId, kinds: files === null ? ["run"] : ["run", "blob"] });
}

/** Null where no other program can share the database. */
async function openNodeOf(
  config: Config,
  { shared, ...parts }: Omit<NodeParts, "shared"> & { readonly shared: NodeParts["shared"] | null },
  undo: AsyncDisposableStack,
): Promise<Node | null> {
  if (shared === null) return null;
  const { openNode } = await import("./node.ts");
  return openNode(config, { ...parts, shared }, undo);
}
