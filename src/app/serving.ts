// What a running program serves: the runtime API, the gateway, or both, and the metrics that they share.

import { rmSync } from "node:fs";
import type { FastifyInstance } from "fastify";
import { Asking } from "../ask/asking.ts";
import type { ClusterNodes } from "../cluster/cluster-nodes.ts";
import { ownNodeName } from "../cluster/node-names.ts";
import { answerWhenDurable } from "../http/core/durable-answers.ts";
import { answerHalfClosed } from "../http/core/half-closed.ts";
import type { ListStreams } from "../http/core/list-streams.ts";
import type { EventStreams } from "../http/core/sse.ts";
import type { Waits } from "../http/resources/waits.ts";
import type { DoorSettings } from "../http/runtime/door.ts";
import { runtimeServer } from "../http/runtime/server.ts";
import { programVersion } from "../lib/version.ts";
import { type MetricsSource, metricsSource } from "../observability/metrics/metrics-source.ts";
import { ProcessMeter } from "../observability/metrics/process-meter.ts";
import { describeTelemetry, type Env } from "../observability/traces/settings.ts";
import type { Capacity } from "../resources/capacity.ts";
import { checkFiles } from "./bytes.ts";
import { systemClock, systemRandomness } from "./clock.ts";
import { type Config, describeConfig, runtimePortName } from "./config.ts";
import type { Core } from "./core.ts";
import type { Gateway } from "./gateway.ts";
import { addressOf, listen, listenAtSocket } from "./listen.ts";
import { listenForProtocol, protocolTls } from "./protocol.ts";
import { runtimeSocket } from "./runtime-socket.ts";

/** What is served, each with /api/v1; null: not by this process. */
export interface Served {
  readonly gatewayUrl: string | null;
  readonly runtimeUrl: string | null;
  /** The path of the socket that the runtime API is served at. */
  readonly runtimeSocket: string | null;
  /** host:port of the runtime protocol. */
  readonly grpcAddress: string | null;
}

/** What the metrics of both APIs are read from. */
export function openMetrics(
  core: Core,
  {
    scheduleCounts: schedules,
    deploymentCounts: deployments,
    llmCounts: llm,
    records,
  }: Pick<Gateway, "scheduleCounts" | "deploymentCounts" | "llmCounts" | "records">,
  { streams, lists, waits, nodes }: Pick<Serving, "streams" | "lists" | "waits" | "nodes">,
  undo: AsyncDisposableStack,
): MetricsSource {
  const process = new ProcessMeter(systemClock.steadyMs);
  undo.defer(() => process.stop());
  const { engine, meter, slots: pools, startedAtMs } = core;
  return metricsSource({
    version: programVersion(),
    startedAtMs,
    process,
    meter,
    schedules,
    deployments,
    llm,
    events: records.events,
    engine,
    pools,
    streams: {
      get readers() {
        return streams.readers + lists.readers;
      },
    },
    waits,
    retention: core.retention,
    nodes,
    home: core.home,
    storeSizes: () => core.opened.sizes(),
  });
}

export interface Serving {
  /** Filled with what listens. */
  readonly servers: { close(): PromiseLike<unknown> }[];
  /** One for both APIs: they share its part of the thread. */
  readonly streams: EventStreams;
  readonly lists: ListStreams;
  readonly waits: Waits;
  readonly nodes: ClusterNodes;
  readonly capacity: Capacity;
  readonly metrics: MetricsSource;
  /** What says whether and how traces are exported. */
  readonly env: Env;
  readonly stopping: AbortSignal;
}

/** Serves what the command is for: `up` both APIs, `gateway` one, everything else the other. */
export async function serve(config: Config, core: Core, gateway: Gateway, serving: Serving): Promise<Served> {
  const { command } = config;
  const socket = runtimeSocket(core.home);
  // A killed predecessor's socket is dead, and commands would try it.
  rmSync(socket, { force: true });
  const door = command === "gateway" ? "off" : config.runtimeApi;
  const { allowedHosts, runtimeApiHost: boundHost } = config;
  const tokens = door === "tcp" ? config.runtimeApiTokens : [];
  const runtime =
    door === "off" ? null : runtimeApi(config, core, gateway, serving, { boundHost, allowedHosts, tokens });
  if (runtime !== null && door === "socket") await listenAtSocket(runtime, socket);
  const { runtimeApiHost: host, runtimeApiPort: port } = config;
  const runtimeUrl =
    runtime !== null && door === "tcp"
      ? `${await listen(runtime, { host, port, variable: runtimePortName(config) })}/api/v1`
      : null;
  const isGateway = command === "up" || command === "gateway";
  const gatewayUrl = isGateway ? await serveGateway(config, core, gateway, serving) : null;
  const grpcAddress = command === "gateway" ? null : await serveProtocol(config, core, gateway, serving);
  return { gatewayUrl, runtimeUrl, runtimeSocket: door === "socket" ? socket : null, grpcAddress };
}

/** The parts that both APIs share. */
function sharedParts(
  config: Config,
  core: Core,
  { declaredModels }: Pick<Gateway, "declaredModels">,
  { streams, lists, waits, nodes, capacity, metrics }: Serving,
) {
  const { people, engine, control, records, bundles, secrets, retention, slots, runStore, services, home } =
    core;
  return {
    ...people,
    engine,
    control,
    journal: records,
    bundles,
    secrets,
    retention,
    pools: slots,
    runStore,
    services,
    streams,
    lists,
    waits,
    nodes,
    metrics,
    resources: core.resources,
    removeVolume: core.removeVolume,
    capacity,
    declaredModels,
    measureMachine: () => core.machine.measure(),
    home,
    nodeNames: core.node?.names ?? ownNodeName(config.nodeName),
    version: programVersion(),
    startedAtMs: core.startedAtMs,
    nowMs: systemClock.nowMs,
  };
}

function runtimeApi(
  config: Config,
  core: Core,
  gateway: Gateway,
  serving: Serving,
  door: DoorSettings,
): FastifyInstance {
  const { records, schedules, scheduler, scheduleTargets, triggerEvents } = gateway;
  const ofSchedules = { records, schedules, scheduler, scheduleTargets, triggerEvents };
  const server = runtimeServer(
    {
      ...sharedParts(config, core, gateway, serving),
      ...ofSchedules,
      cleanup: core.cleanup,
      peaksOf: (ref) => core.runner.peaksOf(ref),
      sandboxEngine: config.sandboxEngine,
    },
    {
      bodyBytesMax: config.bodyBytesMax,
      bundleBytesMax: config.bundleBytesMax,
      door,
      logger: core.log,
    },
  );
  answerHalfClosed(server);
  answerWhenDurable(server, core.database.durable);
  serving.servers.push(server);
  return server;
}

async function gatewayApi(
  config: Config,
  core: Core,
  gateway: Gateway,
  serving: Serving,
): Promise<FastifyInstance> {
  // Loaded here because a runtime alone does not need it.
  const { gatewayServer } = await import("../http/gateway/server.ts");
  const { runTokens, log, workersEnv } = core;
  const shared = sharedParts(config, core, gateway, serving);
  const server = gatewayServer(
    {
      ...gateway,
      ...shared,
      asking: new Asking({ ...shared, environment: workersEnv }),
      runTokens,
      config,
      nodeOrders: core.node?.orders ?? null,
      reconcileNode: core.reconcileNode,
      checkFiles: () => checkFiles(config),
      settings: () => [...describeConfig(config), ...describeTelemetry(serving.env)],
      sandboxEngine: config.sandboxEngine,
      processId: systemRandomness.id().slice(-8),
      stopping: serving.stopping,
    },
    log,
  );
  answerHalfClosed(server);
  answerWhenDurable(server, core.database.durable);
  serving.servers.push(server);
  return server;
}

async function serveGateway(config: Config, core: Core, gateway: Gateway, serving: Serving): Promise<string> {
  const server = await gatewayApi(config, core, gateway, serving);
  const { apiHost: host, apiPort: port } = config;
  return `${await listen(server, { host, port, variable: "SVC_API_PORT" })}/api/v1`;
}

/** The same routes once more, for calls of the protocol alone: it admits who may, by one token for both. */
async function serveProtocol(
  config: Config,
  core: Core,
  gateway: Gateway,
  serving: Serving,
): Promise<string> {
  const { apiTokens: tokens, grpcHost, allowedHosts, corsOrigins, bodyBytesMax } = config;
  const tls = protocolTls(config);
  const open = async () => {
    const { protocolServer } = await import("../grpc/server.ts");
    const door = { boundHost: "localhost", allowedHosts: [], tokens };
    const gatewayRoutes = await gatewayApi(config, core, gateway, serving);
    return protocolServer({
      apis: { gateway: gatewayRoutes, runtime: runtimeApi(config, core, gateway, serving, door) },
      tokens,
      origins: { boundHost: grpcHost, allowedHosts, corsOrigins },
      tls,
      messageBytesMax: bodyBytesMax,
      isServing: () => core.engine.closed === null,
      stopping: serving.stopping,
    });
  };
  const port = await listenForProtocol(config, open, core.log);
  serving.servers.push(port);
  return addressOf(grpcHost, port.port);
}
