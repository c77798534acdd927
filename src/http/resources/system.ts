// Health, and the cluster in a few numbers: GET /health and /system/summary in both APIs; in the gateway also GET
// /runtime/status and /runtime/health about the runtime that it has in it.

import { setImmediate as nextTurn } from "node:timers/promises";
import type { FastifyInstance, FastifyReply } from "fastify";
import { totalsOf } from "../../cluster/cluster-nodes.ts";
import type { Engine } from "../../engine/engine.ts";
import { isoTime } from "../../engine/event.ts";
import type { PoolSnapshot } from "../../execution/pools.ts";
import type { Launcher } from "../../launch/launcher.ts";
import type { RecordCounter } from "../../launch/records.ts";
import type { MetricsSource } from "../../observability/metrics/metrics-source.ts";
import type { ProcessSample } from "../../observability/metrics/process-meter.ts";
import { addRoutes, get } from "../core/route.ts";
import { Type } from "../core/type.ts";
import type { RuntimeRunParts } from "./find-run.ts";
import { NodeSchema, type NodesParts, Pools, renderNode, renderRuntimeNode } from "./nodes.ts";

/** Load balancers may add any parameters. */
const AnyQuery = Type.Object({}, { additionalProperties: true });

const Version = Type.String("Of the program.", { examples: ["0.1.0"] });
const Detail = Type.Optional(
  Type.String("Why nothing new is accepted at the moment; absent while all is well."),
);

export const UptimeSeconds = Type.Integer("Since the start.");

export const Lag = Type.Object(
  { p50: Type.Number(), p99: Type.Number(), max: Type.Number() },
  "How long the event loop kept callers waiting, over the last minutes.",
);

const Checks = Type.Object({
  store: Type.OneOf(["ok", "failing"], "failing: what is done cannot be committed."),
  runtime: Type.OneOf(["ok", "stopping"], "stopping: the program shuts down."),
});

const ok = Type.OneOf(["ok", "degraded"], "degraded: nothing new is accepted at the moment.");

const HealthSchema = Type.Object(
  {
    status: ok,
    version: Version,
    api_contract: Type.Literal("svc.rest.v1"),
    uptime_seconds: UptimeSeconds,
    configuration: Type.Object(
      {
        environment: Type.OneOf(["dev", "test", "prod"]),
        auth: Type.OneOf(["token", "none"], "token: every other request needs the API token."),
        store: Type.OneOf(["sqlite", "postgresql"]),
        executor_pools: Type.Record(Type.Integer(), "Slots by pool."),
        body_max_bytes: Type.Integer("Of a JSON body."),
        bundle_max_bytes: Type.Integer("Of an uploaded zip."),
        requests_per_minute_max: Type.Integer("0: no limit."),
        retention_days: Type.Integer("How long ended runs are kept; 0: whatever their age."),
        retention_max_bytes: Type.Integer(
          "What ended runs may have together in histories and artifacts; 0: no bound.",
        ),
      },
      "The settings that a client may want to know; no secret, no path.",
    ),
    checks: Checks,
    detail: Detail,
  },
  "Whether the gateway lives, and how it is set up.",
);

const RuntimeHealthSchema = Type.Object(
  { status: ok, checks: Checks, detail: Detail },
  "Whether the embedded runtime takes work.",
);

const RuntimeStatusSchema = Type.Object(
  {
    status: Type.OneOf(
      ["running", "degraded", "stopping"],
      "degraded: the store takes no writes; open runs wait.",
    ),
    version: Version,
    started_at: Type.Time("When the process started."),
    uptime_seconds: UptimeSeconds,
    open_jobs: Type.Integer("Runs in the runtime that have not ended, those of its own API included."),
    launches_waiting: Type.Integer("Accepted runs that the runtime does not have yet."),
    executor_pools: Pools,
    event_loop_lag_ms: Lag,
    detail: Detail,
  },
  "The embedded runtime of the node that answers, at this moment.",
);

const Count = (description: string) => Type.Integer({ minimum: 0, description });

const SystemSummarySchema = Type.Object(
  {
    nodes: Type.Array(NodeSchema, "At most 1,000, the living ones first; GET /nodes has all."),
    executor_pools: Pools,
    tasks_running: Count("Attempts that run."),
    jobs: Type.Object({
      total: Count("Jobs there are."),
      open: Count("Those whose latest run has not ended, or that have none yet."),
    }),
    runs: Type.Object(
      {
        pending: Count("Accepted, not yet begun."),
        queued: Count("Waiting for slots."),
        running: Count("At work."),
        paused: Count("Paused."),
        completed: Count("Ended well."),
        failed: Count("Ended with a failure."),
        cancelled: Count("Cancelled."),
      },
      "Runs by status.",
    ),
    ends: Type.Array(
      Type.Object({
        from: Type.Time("Where the hour begins."),
        completed: Count("Ended well."),
        failed: Count("Ended with a failure."),
        cancelled: Count("Cancelled."),
      }),
      "Runs by the hour in which they ended, as many hours as were asked for, the oldest first; the last one is not over.",
    ),
    count_max: Type.Integer("Counting stops here: a count of this means so many or more."),
  },
  "The cluster in a few numbers. Pools and attempts are those of the nodes that are neither lost nor left, together.",
);

/** By the names that clients see. */
export const schemas = {
  Health: HealthSchema,
  RuntimeHealth: RuntimeHealthSchema,
  RuntimeStatus: RuntimeStatusSchema,
  SystemSummary: SystemSummarySchema,
};

export interface Parts {
  readonly engine: Pick<Engine, "unavailable" | "openJobs">;
  readonly pools: { snapshot(): Readonly<Record<string, PoolSnapshot>> };
  readonly version: string;
  readonly startedAtMs: number;
  readonly nowMs: () => number;
}

export const lagShown = ({ p50Ms, p99Ms, maxMs }: ProcessSample["lag"]) => ({
  p50: p50Ms,
  p99: p99Ms,
  max: maxMs,
});

export interface HealthParts {
  readonly engine: Pick<Engine, "unavailable">;
  /** Why the gateway's own writes fail; null while they succeed. */
  readonly storeProblem: () => Promise<string | null>;
}

/** Why nothing new is accepted, by the engine or by the gateway itself; null while all is well. */
export async function whyUnavailable({ engine, storeProblem }: HealthParts): Promise<string | null> {
  return engine.unavailable ?? (await storeProblem());
}

const uptimeSeconds = ({ nowMs, startedAtMs }: Parts) =>
  Math.max(0, Math.floor((nowMs() - startedAtMs) / 1_000));

// ----------------------------------------------------------------------------------------- runtime API

const JOBS_IN_SUMMARY_MAX = 1_000;

export function runtimeRoutes(api: FastifyInstance, parts: Parts & RuntimeRunParts & NodesParts): void {
  const { engine, journal, nodes } = parts;

  api.get("/health", async (_request, reply) => {
    const problem = engine.unavailable;
    reply.code(problem === null ? 200 : 503);
    return {
      status: problem === null ? "ok" : "degraded",
      version: parts.version,
      uptime_seconds: uptimeSeconds(parts),
      ...(problem !== null && { detail: problem }),
    };
  });

  api.get("/system/summary", async () => {
    const [jobs, all] = await Promise.all([journal.newestStatuses(JOBS_IN_SUMMARY_MAX), nodes.overview()]);
    return {
      nodes: all.map(renderRuntimeNode),
      jobs: jobs.map(({ jobId, status }) => ({ job_id: jobId, status })),
    };
  });
}

// --------------------------------------------------------------------------------------------- gateway

/** Enough for an overview; the lists have all of them. */
const COUNT_MAX = 10_000;
const HOUR_MS = 3_600_000;
const HOURS_MAX = 24;

const SummaryQuery = Type.Input({
  hours: Type.Integer("How many hours to count ended runs for; none without it.", {
    minimum: 1,
    maximum: HOURS_MAX,
    examples: [HOURS_MAX],
  }),
});

export interface GatewayParts extends Parts, Pick<HealthParts, "storeProblem">, NodesParts {
  readonly counter: RecordCounter;
  readonly launcher: Pick<Launcher, "waiting">;
  readonly metrics: Pick<MetricsSource, "lag">;
  /** Aborted when the server shuts down. */
  readonly stopping: AbortSignal;
  readonly config: SystemSettings;
}

/** What of the configuration the health answer shows. */
export interface SystemSettings {
  readonly environment: string;
  readonly apiTokens: readonly string[];
  readonly databaseUrl: string | null;
  readonly executorPools: Readonly<Record<string, number>>;
  readonly bodyBytesMax: number;
  readonly bundleBytesMax: number;
  readonly requestsPerMinuteMax: number;
  readonly retentionDays: number;
  readonly retentionBytesMax: number;
}

export function gatewayRoutes(api: FastifyInstance, parts: GatewayParts): void {
  const { engine, launcher, pools, stopping } = parts;
  const configuration = describe(parts);

  addRoutes(api, "system", [
    get("/health", {
      operationId: "getHealth",
      summary: "See whether the gateway lives",
      description: "Needs no authentication. 503 with the same body while the store takes no writes.",
      security: [],
      query: AnyQuery,
      answers: { 200: HealthSchema, 503: HealthSchema },
      handle: async (_request, reply) => ({
        ...(await healthOf(parts, reply)),
        version: parts.version,
        api_contract: "svc.rest.v1",
        uptime_seconds: uptimeSeconds(parts),
        configuration,
      }),
    }),

    get("/system/summary", {
      operationId: "getSystemSummary",
      summary: "See the cluster in a few numbers",
      query: SummaryQuery,
      answers: { 200: SystemSummarySchema },
      handle: async ({ query: { hours = 0 } }) => {
        const [{ jobs, jobsOpen, runs }, all, ends] = await Promise.all([
          parts.counter.count(COUNT_MAX),
          parts.nodes.overview(),
          endsByHour(parts, hours),
        ]);
        const { pools, tasksRunning } = totalsOf(all);
        return {
          nodes: all.map(renderNode),
          executor_pools: pools,
          tasks_running: tasksRunning,
          jobs: { total: jobs, open: jobsOpen },
          runs,
          ends,
          count_max: COUNT_MAX,
        };
      },
    }),
  ]);

  addRoutes(api, "runtime", [
    get("/runtime/status", {
      operationId: "getRuntimeStatus",
      summary: "See what the runtime is doing",
      answers: { 200: RuntimeStatusSchema },
      handle: async () => {
        const problem = await whyUnavailable(parts);
        return {
          status: stopping.aborted ? "stopping" : problem === null ? "running" : "degraded",
          version: parts.version,
          started_at: isoTime(parts.startedAtMs),
          uptime_seconds: uptimeSeconds(parts),
          open_jobs: engine.openJobs,
          launches_waiting: launcher.waiting,
          executor_pools: pools.snapshot(),
          event_loop_lag_ms: lagShown(parts.metrics.lag()),
          ...(problem !== null && { detail: problem }),
        };
      },
    }),

    get("/runtime/health", {
      operationId: "getRuntimeHealth",
      summary: "See whether the runtime takes work",
      description: "503 with the same body while it does not.",
      answers: { 200: RuntimeHealthSchema, 503: RuntimeHealthSchema },
      handle: (_request, reply) => healthOf(parts, reply),
    }),
  ]);
}

/** The hour that goes on, and those before it, each in a turn of its own: counting one may take two milliseconds. */
async function endsByHour({ counter, nowMs }: GatewayParts, hours: number) {
  const endMs = (Math.floor(nowMs() / HOUR_MS) + 1) * HOUR_MS;
  const ends = [];
  for (let fromMs = endMs - hours * HOUR_MS; fromMs < endMs; fromMs += HOUR_MS) {
    ends.push({ from: isoTime(fromMs), ...(await counter.countEnds(fromMs, fromMs + HOUR_MS, COUNT_MAX)) });
    await nextTurn();
  }
  return ends;
}

/** What the health answers of the gateway and of its runtime have in common; sets the status of the answer. */
async function healthOf(parts: GatewayParts, reply: FastifyReply) {
  const { stopping } = parts;
  const problem = await whyUnavailable(parts);
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

/** CONTRACTS: a summary of the active configuration, without a secret and without a path. */
function describe({ config }: GatewayParts) {
  return {
    environment: config.environment,
    auth: config.apiTokens.length === 0 ? "none" : "token",
    store: config.databaseUrl === null ? "sqlite" : "postgresql",
    executor_pools: config.executorPools,
    body_max_bytes: config.bodyBytesMax,
    bundle_max_bytes: config.bundleBytesMax,
    requests_per_minute_max: config.requestsPerMinuteMax,
    retention_days: config.retentionDays,
    retention_max_bytes: config.retentionBytesMax,
  };
}
