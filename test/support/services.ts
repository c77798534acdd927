// For tests of services: declarations in few words, jobs that offer them, and real servers to check.

import { once } from "node:events";
import { createServer, type RequestListener } from "node:http";
import {
  type AddressInfo,
  connect,
  createServer as createTcpServer,
  type Server,
  type Socket,
} from "node:net";
import { systemClock } from "../../src/app/clock.ts";
import type { Graph, GraphNode } from "../../src/engine/graph.ts";
import type { JsonObject } from "../../src/engine/json.ts";
import { manifestProblemsText, parseManifest } from "../../src/engine/manifest.ts";
import type { RequiredService, ServiceCheck, ServiceSpec } from "../../src/engine/service.ts";
import type { ServiceJob } from "../../src/engine/service-port.ts";
import { type RegistryParts, ServiceRegistry } from "../../src/services/registry.ts";
import type { Services, Unmet } from "../../src/services/services.ts";

/** A job whose one agent, "worker", and which itself offer services. */
export function serviceJob(
  jobId: string,
  services: readonly JsonObject[],
  ofWorker: readonly JsonObject[] = [],
): ServiceJob {
  const graph = graphOf(services, ofWorker);
  const runId = `run-of-${jobId}`;
  return { jobId, runId, definitionId: null, bundleFingerprint: null, hasOwnPayload: false, graph };
}

export const workerOf = ({ graph }: ServiceJob): GraphNode => graph.nodes[0]!;

function graphOf(services: readonly JsonObject[], ofWorker: readonly JsonObject[]): Graph {
  const parsed = parseManifest({
    manifest_version: "1.0",
    graph_id: "g",
    entrypoints: ["worker"],
    services,
    nodes: [{ node_id: "worker", agent_type: "executor", config: { command: ["true"] }, services: ofWorker }],
  });
  if (parsed.kind === "invalid") throw new Error(manifestProblemsText(parsed.problems));
  return parsed.graph;
}

/** The registry of a node that starts no programs for its checks. */
export function registryOf(
  name: string,
  given: Partial<RegistryParts> = {},
): ServiceRegistry & { [Symbol.dispose](): void } {
  const registry = new ServiceRegistry({
    clock: systemClock,
    fraction: () => 0.5,
    node: { name, host: null },
    asHere: (spec) => spec,
    asksForKey: () => false,
    run: async () => ({ kind: "not_started", reason: "no programs in this test" }),
    payloadOf: async () => null,
    redact: (text) => text,
    report: () => {},
    ...given,
  });
  return Object.assign(registry, { [Symbol.dispose]: () => registry.stop() });
}

/** Services of which a test says what is missing. */
export function servicesLacking(
  unmet: (required: readonly RequiredService[]) => readonly Unmet[],
): Pick<Services, "unmet" | "unmetLately"> {
  const asked = async (required: readonly RequiredService[]) => unmet(required);
  return { unmet: asked, unmetLately: asked };
}

/** A service as a manifest's words make it. */
export function specOf(service: JsonObject): ServiceSpec {
  return graphOf([{ name: "s", ...service }], []).services[0]!;
}

export function checkOf(check: JsonObject, port = 1): ServiceCheck {
  return specOf({ port, checks: [check] }).checks[0]!;
}

export interface TestServer extends AsyncDisposable {
  readonly port: number;
}

/** A server on any free port of this machine; its connections end with it. */
export async function serve(server: Server): Promise<TestServer> {
  const sockets = new Set<Socket>();
  server.on("connection", (socket: Socket) => {
    sockets.add(socket);
    socket.on("error", () => {});
  });
  await new Promise<void>((resolve) => {
    server.listen(0, "127.0.0.1", resolve);
  });
  return {
    port: (server.address() as AddressInfo).port,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

export const serveHttp = (listener: RequestListener): Promise<TestServer> => serve(createServer(listener));

/**
 * A port on which nothing listens, and nothing can for as long as this process lives: it is the other end of a
 * connection.
 */
export async function closedPort(): Promise<number> {
  const server = createTcpServer((socket) => void socket.unref()).listen(0, "127.0.0.1");
  await once(server, "listening");
  server.unref();
  const { port } = server.address() as AddressInfo;
  for (;;) {
    const localPort = await freePort();
    const socket = connect({ host: "127.0.0.1", port, localAddress: "127.0.0.1", localPort }).unref();
    try {
      await once(socket, "connect");
      return localPort;
    } catch (error) {
      // Somebody was quicker.
      if ((error as NodeJS.ErrnoException).code !== "EADDRINUSE") throw error;
    }
  }
}

async function freePort(): Promise<number> {
  await using server = await serve(createTcpServer());
  return server.port;
}
