// GET /health (open to everybody), GET /system/summary, GET /nodes.

import type { FastifyInstance, FastifyReply } from "fastify";
import { isoTime } from "../../engine/event.ts";
import { addRoutes, get } from "../core/route.ts";
import { sendPage } from "./page.ts";
import { AnyQuery, HealthSchema, NodePageSchema, NodesQuery, SystemSummarySchema } from "./schemas/system.ts";
import type { GatewayServices } from "./services.ts";

/** Enough for a person; whoever needs all of them reads the lists. */
const COUNT_MAX = 10_000;

export function systemRoutes(api: FastifyInstance, services: GatewayServices): void {
  const configuration = describe(services);

  addRoutes(api, "system", [
    get("/health", {
      operationId: "getHealth",
      summary: "See whether the gateway lives",
      description: "Needs no authentication. 503 with the same body while the store takes no writes.",
      security: [],
      query: AnyQuery,
      answers: { 200: HealthSchema, 503: HealthSchema },
      handle: async (_request, reply) => ({
        ...(await healthOf(services, reply)),
        version: services.version,
        api_contract: "svc.rest.v1",
        uptime_seconds: uptimeSeconds(services),
        configuration,
      }),
    }),

    get("/system/summary", {
      operationId: "getSystemSummary",
      summary: "See the cluster in a few numbers",
      answers: { 200: SystemSummarySchema },
      handle: async () => {
        const { jobs, jobsOpen, runs } = await services.counter.count(COUNT_MAX);
        return {
          nodes: [await node(services)],
          jobs: { total: jobs, open: jobsOpen },
          runs,
          count_max: COUNT_MAX,
        };
      },
    }),

    get("/nodes", {
      operationId: "listNodes",
      summary: "List the nodes",
      query: NodesQuery,
      answers: { 200: NodePageSchema },
      handle: (request, reply) =>
        sendPage(services, request, reply, {
          rows: async (_limit, after) => (after === null ? [await node(services)] : []),
          positionOf: ({ name }) => [name],
          render: (one) => JSON.stringify(one),
        }),
    }),
  ]);
}

/** Why nothing new is accepted, by the engine or by the gateway itself; null while all is well. */
export async function problemOf({ engine, storeProblem }: GatewayServices): Promise<string | null> {
  return engine.unavailable ?? (await storeProblem());
}

/** What the health answers of the gateway and of its runtime have in common; sets the status of the answer. */
export async function healthOf(services: GatewayServices, reply: FastifyReply) {
  const { stopping } = services;
  const problem = await problemOf(services);
  reply.header("cache-control", "no-store");
  if (problem !== null) reply.code(503).header("retry-after", "2");
  return {
    status: problem === null ? "ok" : "degraded",
    checks: {
      store: problem === null || stopping.aborted ? "ok" : "failing",
      runtime: stopping.aborted ? "stopping" : "ok",
    },
    ...(problem !== null && { detail: problem }),
  };
}

export function uptimeSeconds({ nowMs, startedAtMs }: GatewayServices): number {
  return Math.max(0, Math.floor((nowMs() - startedAtMs) / 1_000));
}

/** CONTRACTS: a summary of the active configuration, without a secret and without a path. */
function describe({ config }: GatewayServices) {
  return {
    environment: config.environment,
    auth: config.apiTokens.length === 0 ? "none" : "token",
    store: "sqlite",
    executor_pools: config.executorPools,
    body_max_bytes: config.bodyBytesMax,
    bundle_max_bytes: config.bundleBytesMax,
    requests_per_minute_max: config.requestsPerMinuteMax,
    retention_days: config.retentionDays,
    retention_max_bytes: config.retentionBytesMax,
  };
}

async function node(services: GatewayServices) {
  const isWell = (await problemOf(services)) === null;
  return {
    name: services.nodeName,
    self: true,
    status: services.stopping.aborted ? "stopping" : isWell ? "up" : "degraded",
    version: services.version,
    started_at: isoTime(services.startedAtMs),
    executor_pools: services.pools.snapshot(),
  };
}
