// GET /metrics: what the process, the runtime, its pools and this API are doing, as JSON, or as text for Prometheus
// when that is asked for.

import type { FastifyInstance } from "fastify";
import type { Static } from "../shared/type.ts";
import { DURATION_BUCKETS_MS, type HttpCounts, type HttpSnapshot } from "./http-counts.ts";
import { type Metric, metricsText, type TextFlavour, textTypes } from "./metrics-text.ts";
import type { ProcessMeter, ProcessSample } from "./process-sample.ts";
import { responses } from "./schemas/common.ts";
import { MetricsQuery, MetricsSchema, metricsTexts } from "./schemas/system.ts";
import type { GatewayServices } from "./services.ts";
import { problemOf } from "./system.ts";

export interface Meters {
  readonly http: HttpCounts;
  readonly process: ProcessMeter;
}

export function metricsRoutes(api: FastifyInstance, services: GatewayServices, meters: Meters): void {
  api.get<{ Querystring: Static<typeof MetricsQuery> }>(
    "/metrics",
    {
      schema: {
        operationId: "getMetrics",
        tags: ["system"],
        summary: "Read metrics",
        description:
          "JSON, unless the Accept header prefers text/plain or application/openmetrics-text, or format=prometheus asks for Prometheus's text.",
        querystring: MetricsQuery,
        response: responses({ 200: metricsTexts(MetricsSchema) }, ["invalid_parameter"]),
      },
    },
    async (request, reply) => {
      reply.header("vary", "Accept").header("cache-control", "no-store");
      const reading = await read(services, meters);
      const flavour = flavourOf(request.query.format, request.headers.accept);
      if (flavour === "json") return shown(reading);
      return reply.type(textTypes[flavour]).send(metricsText(asMetrics(reading), flavour));
    },
  );
}

type Reading = Awaited<ReturnType<typeof read>>;

async function read(services: GatewayServices, meters: Meters) {
  return {
    version: services.version,
    startedAtMs: services.startedAtMs,
    uptimeSeconds: Math.max(0, services.nowMs() - services.startedAtMs) / 1_000,
    process: meters.process.sample(),
    isAvailable: (await problemOf(services)) === null,
    openJobs: services.engine.openJobs,
    launchesWaiting: services.launcher.waiting,
    pools: services.pools.snapshot(),
    http: meters.http.snapshot(),
  };
}

// ------------------------------------------------------------------------------------------------- JSON

function shown({ process, http, ...reading }: Reading) {
  return {
    process: {
      uptime_seconds: Math.floor(reading.uptimeSeconds),
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
      launches_waiting: reading.launchesWaiting,
      executor_pools: reading.pools,
    },
    http: {
      requests: http.requests,
      connections: http.connections,
      duration_ms: {
        count: http.durations.count,
        sum: Math.round(http.durations.sumMs),
        buckets: DURATION_BUCKETS_MS.map((le, i) => ({ le, count: http.durations.cumulative[i]! })),
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

function asMetrics(reading: Reading): readonly Metric[] {
  return [...processMetrics(reading), ...runtimeMetrics(reading), ...httpMetrics(reading.http)];
}

const gauge = (name: string, help: string, value: number): Metric => ({
  name,
  help,
  kind: "gauge",
  samples: [{ value }],
});

function processMetrics({ process, version, startedAtMs }: Reading): readonly Metric[] {
  const quantile = (name: string, valueMs: number) => ({
    labels: { quantile: name },
    value: valueMs / 1_000,
  });
  return [
    {
      name: "troupe_build_info",
      help: "The version that runs; always 1.",
      kind: "gauge",
      samples: [{ labels: { version }, value: 1 }],
    },
    gauge(
      "process_start_time_seconds",
      "When the process started, in seconds since 1970.",
      startedAtMs / 1e3,
    ),
    gauge("process_resident_memory_bytes", "Resident memory.", process.rssBytes),
    {
      name: "process_cpu_seconds_total",
      help: "Processor time used.",
      kind: "counter",
      samples: [{ value: process.cpuUserSeconds + process.cpuSystemSeconds }],
    },
    gauge("nodejs_heap_size_used_bytes", "Heap in use.", process.heapUsedBytes),
    gauge("nodejs_heap_size_total_bytes", "Heap reserved.", process.heapTotalBytes),
    gauge("nodejs_external_memory_bytes", "Memory of buffers outside the heap.", process.externalBytes),
    {
      name: "troupe_event_loop_lag_seconds",
      help: "How long the event loop kept callers waiting, over the last minutes.",
      kind: "gauge",
      samples: [
        quantile("0.5", process.lag.p50Ms),
        quantile("0.99", process.lag.p99Ms),
        quantile("1", process.lag.maxMs),
      ],
    },
  ];
}

function runtimeMetrics({ isAvailable, openJobs, launchesWaiting, pools }: Reading): readonly Metric[] {
  const perPool = (name: string, help: string, field: "capacity" | "in_use" | "queued"): Metric => ({
    name,
    help,
    kind: "gauge",
    samples: Object.entries(pools).map(([pool, of]) => ({ labels: { pool }, value: of[field] })),
  });
  return [
    gauge("troupe_available", "1 while new work is accepted, else 0.", isAvailable ? 1 : 0),
    gauge("troupe_open_jobs", "Runs in the runtime that have not ended.", openJobs),
    gauge("troupe_launches_waiting", "Accepted runs that the runtime does not have yet.", launchesWaiting),
    perPool("troupe_pool_slots", "Slots of an executor pool.", "capacity"),
    perPool("troupe_pool_slots_in_use", "Slots that are held.", "in_use"),
    perPool("troupe_pool_requests_queued", "Requests for slots that wait.", "queued"),
  ];
}

function httpMetrics({ requests, connections, durations }: HttpSnapshot): readonly Metric[] {
  const buckets = DURATION_BUCKETS_MS.map((bound, i) => ({
    suffix: "_bucket" as const,
    labels: { le: String(bound / 1_000) },
    value: durations.cumulative[i]!,
  }));
  return [
    {
      name: "troupe_http_requests_total",
      help: "Answers given, by class of status.",
      kind: "counter",
      samples: Object.entries(requests).map(([status, value]) => ({ labels: { status }, value })),
    },
    gauge("troupe_http_connections", "Open connections to the gateway.", connections),
    {
      name: "troupe_http_request_duration_seconds",
      help: "How long answers took; event streams are left out.",
      kind: "histogram",
      samples: [
        ...buckets,
        { suffix: "_bucket", labels: { le: "+Inf" }, value: durations.count },
        { suffix: "_sum", value: durations.sumMs / 1_000 },
        { suffix: "_count", value: durations.count },
      ],
    },
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
