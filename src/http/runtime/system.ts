// GET /health, GET /system/summary.

import type { FastifyInstance } from "fastify";
import type { RuntimeServices } from "./services.ts";

const JOBS_IN_SUMMARY_MAX = 1_000;

export function systemRoutes(api: FastifyInstance, services: RuntimeServices): void {
  const { engine, records, pools } = services;

  api.get("/health", async (_request, reply) => {
    const problem = engine.unavailable;
    reply.code(problem === null ? 200 : 503);
    return {
      status: problem === null ? "ok" : "degraded",
      version: services.version,
      uptime_seconds: Math.floor((services.nowMs() - services.startedAtMs) / 1_000),
      ...(problem !== null && { detail: problem }),
    };
  });

  api.get("/system/summary", async () => {
    const jobs = await records.newestStatuses(JOBS_IN_SUMMARY_MAX);
    const node = {
      name: services.nodeName,
      connected_nodes: [],
      "self?": true,
      scheduler_hint: "local",
      executor_pools: pools.snapshot(),
    };
    return { nodes: [node], jobs: jobs.map(({ jobId, status }) => ({ job_id: jobId, status })) };
  });
}
