// What a running program serves: the runtime API, the gateway, or both, and the metrics that they share.

import { rmSync } from "node:fs";
import type { FastifyInstance } from "fastify";
import type { ClusterNodes } from "../cluster/cluster-nodes.ts";
import { ownNodeName } from "../cluster/node-names.ts";
import { answerWhenDurable } from "../http/core/durable-answers.ts";
import { answerHalfClosed } from "../http/core/half-closed.ts";
import type { EventStreams } from "../http/core/sse.ts";
import type { Waits } from "../http/resources/waits.ts";
import { runtimeServer } from "../http/runtime/server.ts";
import { type MetricsSource, metricsSource } from "../observability/metrics/metrics-source.ts";
import { ProcessMeter } from "../observability/metrics/process-meter.ts";
import type { Capacity } from "../resources/capacity.ts";
import { checkFiles } from "./bytes.ts";
import { systemClock, systemRandomness } from "./clock.ts";
import { type Config, runtimePortName } from "./config.ts";
import type { Core } from "./core.ts";
import type { Gateway } from "./gateway.ts";
import { listen, listenAtSocket } from "./listen.ts";
import { runtimeSocket } from "./runtime-socket.ts";
import { programVersion } from "./version.ts";

/** What is served, each with /api/v1; null: not by this process. */
export interface Served {
  readonly gatewayUrl: string | null;
  readonly runtimeUrl: string | null;
  /** The path of the socket that the runtime API is served at. */
  readonly runtimeSocket: string | null;
}

/** What the metrics of both APIs are read from. */
export function openMetrics(
  core: Core,
  { streams, waits, nodes }: Pick<Serving, "streams" | "waits" | "nodes">,
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
    engine,
    pools,
    streams,
    waits,
    retention: core.retention,
    nodes,
    home: core.home,
    storeSizes: () => core.opened.sizes(),
  });
}

export interface Serving {
  /** Filled with what listens. */
  readonly servers: FastifyInstance[];
  /** One for both APIs: they share its part of the thread. */
  readonly streams: EventStreams;
  readonly waits: Waits;
  readonly nodes: ClusterNodes;
  readonly capacity: Capacity;
  readonly metrics: MetricsSource;
  readonly stopping: AbortSignal;
}

/** Serves what the command is for: `up` both APIs, `gateway` one, everything else the other. */
export async function serve(config: Config, core: Core, gateway: Gateway, serving: Serving): Promise<Served> {
  const { command } = config;
  const socket = runtimeSocket(core.home);
  // A killed predecessor's socket is dead, and commands would try it.
  rmSync(socket, { force: true });
  const door = command === "gateway" ? "off" : config.runtimeApi;
  const runtime = door === "off" ? null : runtimeApi(config, core, serving, door);
  if (runtime !== null && door === "socket") await listenAtSocket(runtime, socket);
  const { runtimeApiHost: host, runtimeApiPort: port } = config;
  const runtimeUrl =
    runtime !== null && door === "tcp"
      ? `${await listen(runtime, { host, port, variable: runtimePortName(config) })}/api/v1`
      : null;
  const isGateway = command === "up" || command === "gateway";
  const gatewayUrl = isGateway ? await serveGateway(config, core, gateway, serving) : null;
  return { gatewayUrl, runtimeUrl, runtimeSocket: door === "socket" ? socket : null };
}

/** The parts that both APIs share. */
function sharedParts(config: Config, core: Core, { streams, waits, nodes, capacity, metrics }: Serving) {
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
    waits,
    nodes,
    metrics,
    resources: core.resources,
    capacity,
    measureMachine: () => core.machine.measure(),
    home,
    nodeNames: core.node?.names ?? ownNodeName(config.nodeName),
    version: programVersion(),
    startedAtMs: core.startedAtMs,
    nowMs: systemClock.nowMs,
  };
}

function runtimeApi(config: Config, core: Core, serving: Serving, door: "tcp" | "socket"): FastifyInstance {
  const server = runtimeServer(
    { ...sharedParts(config, core, serving), cleanup: core.cleanup },
    {
      bodyBytesMax: config.bodyBytesMax,
      bundleBytesMax: config.bundleBytesMax,
      door: {
        boundHost: config.runtimeApiHost,
        allowedHosts: config.allowedHosts,
        tokens: door === "tcp" ? config.runtimeApiTokens : [],
      },
      logger: core.log,
    },
  );
  answerHalfClosed(server);
  answerWhenDurable(server, core.database.durable);
  serving.servers.push(server);
  return server;
}

async function serveGateway(config: Config, core: Core, gateway: Gateway, serving: Serving): Promise<string> {
  // Loaded here because a runtime alone does not need it.
  const { gatewayServer } = await import("../http/gateway/server.ts");
  const { runTokens, log } = core;
  const server = gatewayServer(
    {
      ...gateway,
      ...sharedParts(config, core, serving),
      runTokens,
      config,
      nodeOrders: core.node?.orders ?? null,
      reconcileNode: core.reconcileNode,
      checkFiles: () => checkFiles(config),
      processId: systemRandomness.id().slice(-8),
      stopping: serving.stopping,
    },
    log,
  );
  answerHalfClosed(server);
  answerWhenDurable(server, core.database.durable);
  serving.servers.push(server);
  const { apiHost: host, apiPort: port } = config;
  return `${await listen(server, { host, port, variable: "SVC_API_PORT" })}/api/v1`;
}
