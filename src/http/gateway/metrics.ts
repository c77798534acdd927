// GET /metrics: what the process, the runtime, its pools and this API are doing, as JSON, or as text for Prometheus
// when that is asked for.

import type { FastifyInstance } from "fastify";
import {
  type Metric,
  metricsText,
  type TextFlavour,
  textTypes,
} from "../../observability/metrics/exposition.ts";
import type { ProcessSample } from "../../observability/metrics/process-meter.ts";
import {
  gauge,
  histogram,
  type RuntimeReading,
  runtimeMetrics,
} from "../../observability/metrics/runtime-metrics.ts";
import { addRoutes, get } from "../core/route.ts";
import type { HttpCounts } from "./http-counts.ts";
import { MetricsQuery, MetricsSchema, metricsTexts } from "./schemas/system.ts";
import type { GatewayServices } from "./services.ts";
import { problemOf } from "./system.ts";

export function metricsRoutes(api: FastifyInstance, services: GatewayServices, http: HttpCounts): void {
  addRoutes(api, "system", [
    get("/metrics", {
      operationId: "getMetrics",
      summary: "Read metrics",
      description:
        "JSON, unless the Accept header prefers text/plain or application/openmetrics-text, or format=prometheus asks for Prometheus's text.",
      query: MetricsQuery,
      answers: { 200: metricsTexts(MetricsSchema) },
      handle: async (request, reply) => {
        reply.header("vary", "Accept").header("cache-control", "no-store");
        const reading = await services.metrics.read((await problemOf(services)) === null);
        const flavour = flavourOf(request.query.format, request.headers.accept);
        if (flavour === "json") return shown(services, reading, http);
        const metrics = [...runtimeMetrics(reading), ...gatewayMetrics(services, http)];
        return reply.type(textTypes[flavour]).send(metricsText(metrics, flavour));
      },
    }),
  ]);
}

// ------------------------------------------------------------------------------------------------- JSON

function shown(services: GatewayServices, reading: RuntimeReading, http: HttpCounts) {
  const { process } = reading;
  const durations = http.durationSeconds.snapshot();
  return {
    process: {
      uptime_seconds: Math.floor(Math.max(0, services.nowMs() - reading.startedAtMs) / 1_000),
      rss_bytes: process.rssBytes,
      heap_used_bytes: process.heapUsedBytes,
      heap_total_bytes: process.heapTotalBytes,
      external_bytes: process.externalBytes,
      cpu_user_seconds: process.cpuUserSeconds,
      cpu_system_seconds: process.cpuSystemSeconds,
      event_loop_lag_ms: lagShown(process.lag),
    },
    runtime: {
      available: reading.isAvailable,
      open_jobs: reading.openJobs,
      launches_waiting: services.launcher.waiting,
      messages_waiting: reading.waiting.messages,
      human_requests_waiting: reading.waiting.people,
      stream_readers: reading.streamReaders,
      waiting_requests: reading.waitingRequests,
      runs_started: reading.meter.runsStarted,
      runs_ended: reading.meter.runsEnded,
      executor_pools: reading.pools,
    },
    http: {
      requests: http.requests,
      connections: http.connections,
      duration_ms: {
        count: durations.count,
        sum: Math.round(durations.sum * 1_000),
        buckets: http.durationSeconds.bounds.map((bound, i) => ({
          le: bound * 1_000,
          count: durations.cumulative[i]!,
        })),
      },
    },
  };
}

export const lagShown = ({ p50Ms, p99Ms, maxMs }: ProcessSample["lag"]) => ({
  p50: p50Ms,
  p99: p99Ms,
  max: maxMs,
});

// ------------------------------------------------------------------------------------------- Prometheus

/** What only the gateway has. */
function gatewayMetrics({ launcher }: GatewayServices, http: HttpCounts): readonly Metric[] {
  return [
    gauge("troupe_launches_waiting", "Accepted runs that the runtime does not have yet.", launcher.waiting),
    {
      name: "troupe_http_requests_total",
      help: "Answers given, by class of status.",
      kind: "counter",
      samples: Object.entries(http.requests).map(([status, value]) => ({ labels: { status }, value })),
    },
    gauge("troupe_http_connections", "Open connections to the gateway.", http.connections),
    histogram(
      "troupe_http_request_duration_seconds",
      "How long answers took; event streams and requests that wait are left out.",
      http.durationSeconds,
    ),
  ];
}

// -------------------------------------------------------------------------------------------- Accept

/** Of what can be had, what the query or else the Accept header wants most; the first one named wins a tie. */
export function flavourOf(
  format: "json" | "prometheus" | undefined,
  accept: string | undefined,
): TextFlavour | "json" {
  if (format !== undefined) return format;
  let best: TextFlavour | "json" = "json";
  let bestWeight = 0;
  for (const range of (accept ?? "").split(",")) {
    const [type = "", ...parameters] = range.split(";").map((part) => part.trim().toLowerCase());
    const flavour = flavours[type];
    const weight = weightOf(parameters);
    if (flavour === undefined || weight <= bestWeight) continue;
    best = flavour;
    bestWeight = weight;
  }
  return best;
}

const flavours: Readonly<Record<string, TextFlavour | "json">> = {
  "*/*": "json",
  "application/*": "json",
  "application/json": "json",
  "text/*": "prometheus",
  "text/plain": "prometheus",
  "application/openmetrics-text": "openmetrics",
};

function weightOf(parameters: readonly string[]): number {
  const given = parameters.find((parameter) => parameter.startsWith("q="))?.slice(2);
  const weight = given === undefined ? 1 : Number(given);
  return weight >= 0 && weight <= 1 ? weight : 0;
}
