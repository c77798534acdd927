// GET /metrics: what the process, the runtime, its pools and the gateway are doing. In the gateway as JSON, or as text for
// Prometheus when that is asked for; in the runtime API, as an addition to its specification, as text alone.

import type { FastifyInstance } from "fastify";
import type { ClusterTotals } from "../../cluster/cluster-nodes.ts";
import type { Engine } from "../../engine/engine.ts";
import type { Launcher } from "../../launch/launcher.ts";
import {
  gauge,
  histogram,
  labelled,
  type Metric,
  metricsText,
  type TextFlavour,
  textTypes,
} from "../../observability/metrics/exposition.ts";
import type { MetricsSource } from "../../observability/metrics/metrics-source.ts";
import { type RuntimeReading, runtimeMetrics } from "../../observability/metrics/runtime-metrics.ts";
import type { HttpCounts } from "../core/http-counts.ts";
import { addRoutes, get } from "../core/route.ts";
import { type Schema, Type } from "../core/type.ts";
import { Pools } from "./nodes.ts";
import { type HealthParts, Lag, lagShown, UptimeSeconds, whyUnavailable } from "./system.ts";

const MetricsQuery = Type.Input({
  format: Type.OneOf(["json", "prometheus"], "Goes before the Accept header."),
});

const MetricsSchema = Type.Object(
  {
    process: Type.Object({
      uptime_seconds: UptimeSeconds,
      rss_bytes: Type.Integer("Resident memory."),
      heap_used_bytes: Type.Integer(),
      heap_total_bytes: Type.Integer(),
      external_bytes: Type.Integer("Buffers outside the heap."),
      cpu_user_seconds: Type.Number(),
      cpu_system_seconds: Type.Number(),
      event_loop_lag_ms: Lag,
    }),
    runtime: Type.Object({
      available: Type.Boolean("Whether new work is accepted."),
      open_jobs: Type.Integer(),
      launches_waiting: Type.Integer(),
      messages_waiting: Type.Integer("In the mailboxes of all open runs."),
      human_requests_waiting: Type.Integer("What workers asked people, without an answer."),
      stream_readers: Type.Integer("Readers of event streams."),
      waiting_requests: Type.Integer("Requests that wait for an end (`Prefer: wait`)."),
      runs_started: Type.Integer("Since the process started."),
      runs_ended: Type.Object({
        completed: Type.Integer(),
        failed: Type.Integer(),
        cancelled: Type.Integer(),
      }),
      executor_pools: Pools,
    }),
    cluster: Type.Nullable(
      Type.Object(
        {
          nodes: Type.Record(Type.Integer(), "Nodes by status: ready, draining, maintenance, lost, left."),
          open_jobs: Type.Integer(),
          tasks_running: Type.Integer(),
          executor_pools: Pools,
        },
        "All nodes that are neither lost nor left, together; every node shows the same. Null while the store cannot be read.",
      ),
    ),
    http: Type.Object({
      requests: Type.Record(Type.Integer(), "Answers given since the start, by class of status: 1xx to 5xx."),
      connections: Type.Integer("Open at this moment."),
      duration_ms: Type.Object(
        {
          count: Type.Integer(),
          sum: Type.Integer(),
          buckets: Type.Array(
            Type.Object({ le: Type.Number(), count: Type.Integer() }),
            "How many took no longer than `le`.",
          ),
        },
        "How long answers took; event streams and requests that wait are left out.",
      ),
    }),
  },
  "What the process is doing that answers; cluster is about all nodes.",
);

/** The same metrics, in each format. */
const metricsTexts = (json: Schema) => ({
  description: "The metrics as they are now.",
  content: {
    "application/json": { schema: json },
    "text/plain": {
      schema: Type.String("Prometheus's text format, version 0.0.4."),
      example:
        "# HELP troupe_open_jobs Runs in the runtime that have not ended.\n# TYPE troupe_open_jobs gauge\ntroupe_open_jobs 3\n",
    },
    "application/openmetrics-text": { schema: Type.String("OpenMetrics 1.0.") },
  },
});

/** By the names that clients see. */
export const schemas = { Metrics: MetricsSchema };

export interface Parts {
  readonly engine: Pick<Engine, "unavailable">;
  readonly metrics: MetricsSource;
}

export function runtimeRoutes(api: FastifyInstance, { engine, metrics }: Parts): void {
  api.get("/metrics", async (_request, reply) => {
    const reading = await metrics.read(engine.unavailable === null);
    reply.header("cache-control", "no-store").type(textTypes.prometheus);
    return metricsText(runtimeMetrics(reading), "prometheus");
  });
}

export interface GatewayParts extends Parts, HealthParts {
  readonly launcher: Pick<Launcher, "waiting">;
  readonly httpCounts: HttpCounts;
  readonly nowMs: () => number;
}

export function gatewayRoutes(api: FastifyInstance, parts: GatewayParts): void {
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
        const reading = await parts.metrics.read((await whyUnavailable(parts)) === null);
        const flavour = flavourOf(request.query.format, request.headers.accept);
        if (flavour === "json") return shown(parts, reading);
        const metrics = [...runtimeMetrics(reading), ...gatewayMetrics(parts)];
        return reply.type(textTypes[flavour]).send(metricsText(metrics, flavour));
      },
    }),
  ]);
}

// ------------------------------------------------------------------------------------------------- JSON

function shown({ launcher, httpCounts: http, nowMs }: GatewayParts, reading: RuntimeReading) {
  const { process } = reading;
  const durations = http.durationSeconds.snapshot();
  return {
    process: {
      uptime_seconds: Math.floor(Math.max(0, nowMs() - reading.startedAtMs) / 1_000),
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
      launches_waiting: launcher.waiting,
      messages_waiting: reading.waiting.messages,
      human_requests_waiting: reading.waiting.people,
      stream_readers: reading.streamReaders,
      waiting_requests: reading.waitingRequests,
      runs_started: reading.meter.runsStarted,
      runs_ended: reading.meter.runsEnded,
      executor_pools: reading.pools,
    },
    cluster: reading.cluster === null ? null : clusterShown(reading.cluster),
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

const clusterShown = ({ nodes, pools, jobsOwned, tasksRunning }: ClusterTotals) => ({
  nodes,
  open_jobs: jobsOwned,
  tasks_running: tasksRunning,
  executor_pools: pools,
});

// ------------------------------------------------------------------------------------------- Prometheus

/** What only the gateway has. */
function gatewayMetrics({ launcher, httpCounts: http }: GatewayParts): readonly Metric[] {
  return [
    gauge("troupe_launches_waiting", "Accepted runs that the runtime does not have yet.", launcher.waiting),
    labelled(
      "counter",
      "troupe_http_requests_total",
      "Answers given, by class of status.",
      "status",
      http.requests,
    ),
    gauge("troupe_http_connections", "Open connections to the gateway.", http.connections),
    histogram(
      "troupe_http_request_duration_seconds",
      "How long answers took; event streams and requests that wait are left out.",
      http.durationSeconds,
    ),
  ];
}

// -------------------------------------------------------------------------------------------- Accept

/** The format that the query, or else the Accept header, prefers; the first of equal weight. */
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
