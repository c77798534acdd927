// GET /metrics: the runtime's figures as Prometheus reads them. An addition to the specification, for operators.

import type { FastifyInstance } from "fastify";
import { metricsText, textTypes } from "../../observability/metrics/exposition.ts";
import { runtimeMetrics } from "../../observability/metrics/runtime-metrics.ts";
import type { RuntimeServices } from "./services.ts";

export function metricsRoutes(api: FastifyInstance, { engine, metrics }: RuntimeServices): void {
  api.get("/metrics", async (_request, reply) => {
    const reading = await metrics.read(engine.unavailable === null);
    reply.header("cache-control", "no-store").type(textTypes.prometheus);
    return metricsText(runtimeMetrics(reading), "prometheus");
  });
}
