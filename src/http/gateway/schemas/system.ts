// Health, the runtime, the cluster, metrics (spec gateway-api "Health", CONTRACTS §3).

import { type TSchema, Type } from "../../core/type.ts";
import { answerObject, pageOf, pageQuery, strictObject, Time } from "./common.ts";

const oneOf = (values: readonly string[], options: { readonly description?: string } = {}) =>
  Type.Union(
    values.map((value) => Type.Literal(value)),
    options,
  );

/** Whatever a load balancer puts behind the path. */
export const AnyQuery = Type.Object({}, { additionalProperties: true });

const Version = Type.String({ description: "Of the program.", examples: ["0.1.0"] });
const UptimeSeconds = Type.Integer({ description: "Since the start." });
const Detail = Type.Optional(
  Type.String({ description: "Why nothing new is accepted at the moment; absent while all is well." }),
);

const Checks = answerObject({
  store: oneOf(["ok", "failing"], { description: "failing: what is done cannot be committed." }),
  runtime: oneOf(["ok", "stopping"], { description: "stopping: the program shuts down." }),
});

const Pools = Type.Record(
  Type.String(),
  answerObject({
    capacity: Type.Integer({ description: "Slots there are." }),
    available: Type.Integer(),
    in_use: Type.Integer(),
    queued: Type.Integer({ description: "Requests that wait for slots." }),
    active: Type.Integer({ description: "Leases that are held." }),
  }),
  { description: "Executor pools by name." },
);

const Lag = answerObject(
  { p50: Type.Number(), p99: Type.Number(), max: Type.Number() },
  { description: "How long the event loop kept callers waiting, over the last minutes." },
);

const ok = oneOf(["ok", "degraded"], { description: "degraded: nothing new is accepted at the moment." });

export const HealthSchema = answerObject(
  {
    status: ok,
    version: Version,
    api_contract: Type.Literal("svc.rest.v1"),
    uptime_seconds: UptimeSeconds,
    configuration: answerObject(
      {
        environment: oneOf(["dev", "test", "prod"]),
        auth: oneOf(["token", "none"], { description: "token: every other request needs the API token." }),
        store: oneOf(["sqlite"]),
        executor_pools: Type.Record(Type.String(), Type.Integer(), { description: "Slots by pool." }),
        body_max_bytes: Type.Integer({ description: "Of a JSON body." }),
        bundle_max_bytes: Type.Integer({ description: "Of an uploaded zip." }),
        requests_per_minute_max: Type.Integer({ description: "0: no limit." }),
        retention_days: Type.Integer({ description: "How long ended runs are kept; 0: whatever their age." }),
        retention_max_bytes: Type.Integer({
          description: "What ended runs may have together in histories and artifacts; 0: no bound.",
        }),
      },
      { description: "The settings that a client may want to know; no secret, no path." },
    ),
    checks: Checks,
    detail: Detail,
  },
  { description: "Whether the gateway lives, and how it is set up." },
);

export const RuntimeHealthSchema = answerObject(
  { status: ok, checks: Checks, detail: Detail },
  { description: "Whether the embedded runtime takes work." },
);

export const RuntimeStatusSchema = answerObject(
  {
    status: oneOf(["running", "degraded", "stopping"], {
      description: "degraded: the store takes no writes; open runs wait.",
    }),
    version: Version,
    started_at: Time("When the process started."),
    uptime_seconds: UptimeSeconds,
    open_jobs: Type.Integer({
      description: "Runs in the runtime that have not ended, those of its own API included.",
    }),
    launches_waiting: Type.Integer({ description: "Accepted runs that the runtime does not have yet." }),
    executor_pools: Pools,
    event_loop_lag_ms: Lag,
    detail: Detail,
  },
  { description: "The embedded runtime at this moment." },
);

export const DoctorSchema = answerObject(
  {
    status: oneOf(["ok", "warn", "fail"], { description: "The worst of its checks." }),
    checked_at: Time("When the checks ended; they are made again after a few seconds."),
    checks: Type.Array(
      answerObject({
        name: Type.String({ examples: ["disk"] }),
        status: oneOf(["ok", "warn", "fail"]),
        text: Type.String({ description: "What was found.", examples: ["76.5 GiB free"] }),
        mend: Type.Optional(Type.String({ description: "What to do about it." })),
      }),
    ),
  },
  { description: "What was found when the machine was looked at." },
);

export const NodeSchema = answerObject(
  {
    name: Type.String({ description: "The machine's name." }),
    self: Type.Boolean({ description: "Whether this node answers." }),
    status: oneOf(["up", "degraded", "stopping"]),
    version: Version,
    started_at: Time("When its process started."),
    executor_pools: Pools,
  },
  { description: "A machine that executes runs." },
);

export const NodePageSchema = pageOf(NodeSchema, "nodes");

export const NodesQuery = strictObject(pageQuery);

const Count = (description: string) => Type.Integer({ minimum: 0, description });

export const SystemSummarySchema = answerObject(
  {
    nodes: Type.Array(NodeSchema),
    jobs: answerObject({
      total: Count("Jobs there are."),
      open: Count("Those whose latest run has not ended, or that have none yet."),
    }),
    runs: answerObject(
      {
        pending: Count("Accepted, not yet begun."),
        queued: Count("Waiting for slots."),
        running: Count("At work."),
        paused: Count("Paused."),
        completed: Count("Ended well."),
        failed: Count("Ended with a failure."),
        cancelled: Count("Cancelled."),
      },
      { description: "Runs by status." },
    ),
    count_max: Type.Integer({ description: "Counting stops here: a count of this means so many or more." }),
  },
  { description: "The cluster in a few numbers." },
);

export const MetricsQuery = strictObject({
  format: Type.Optional(
    Type.Union([Type.Literal("json"), Type.Literal("prometheus")], {
      description: "Goes before the Accept header.",
    }),
  ),
});

export const MetricsSchema = answerObject(
  {
    process: answerObject({
      uptime_seconds: UptimeSeconds,
      rss_bytes: Type.Integer({ description: "Resident memory." }),
      heap_used_bytes: Type.Integer(),
      heap_total_bytes: Type.Integer(),
      external_bytes: Type.Integer({ description: "Buffers outside the heap." }),
      cpu_user_seconds: Type.Number(),
      cpu_system_seconds: Type.Number(),
      event_loop_lag_ms: Lag,
    }),
    runtime: answerObject({
      available: Type.Boolean({ description: "Whether new work is accepted." }),
      open_jobs: Type.Integer(),
      launches_waiting: Type.Integer(),
      messages_waiting: Type.Integer({ description: "In the mailboxes of all open runs." }),
      human_requests_waiting: Type.Integer({ description: "What workers asked people, without an answer." }),
      stream_readers: Type.Integer({ description: "Readers of event streams." }),
      waiting_requests: Type.Integer({ description: "Requests that wait for an end (`Prefer: wait`)." }),
      runs_started: Type.Integer({ description: "Since the process started." }),
      runs_ended: answerObject({
        completed: Type.Integer(),
        failed: Type.Integer(),
        cancelled: Type.Integer(),
      }),
      executor_pools: Pools,
    }),
    http: answerObject({
      requests: Type.Record(Type.String(), Type.Integer(), {
        description: "Answers given since the start, by class of status: 1xx to 5xx.",
      }),
      connections: Type.Integer({ description: "Open at this moment." }),
      duration_ms: answerObject(
        {
          count: Type.Integer(),
          sum: Type.Integer(),
          buckets: Type.Array(answerObject({ le: Type.Number(), count: Type.Integer() }), {
            description: "How many took no longer than `le`.",
          }),
        },
        { description: "How long answers took; event streams and requests that wait are left out." },
      ),
    }),
  },
  { description: "What the process is doing." },
);

/** The same metrics, in each format. */
export const metricsTexts = (json: TSchema) => ({
  description: "The metrics as they are now.",
  content: {
    "application/json": { schema: json },
    "text/plain": {
      schema: Type.String({ description: "Prometheus's text format, version 0.0.4." }),
      example:
        "# HELP troupe_open_jobs Runs in the runtime that have not ended.\n# TYPE troupe_open_jobs gauge\ntroupe_open_jobs 3\n",
    },
    "application/openmetrics-text": { schema: Type.String({ description: "OpenMetrics 1.0." }) },
  },
});
