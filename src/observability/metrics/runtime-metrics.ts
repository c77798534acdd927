// The metrics of a process and its runtime, as both APIs show them to Prometheus. docs/operating.md tells what they
// mean and which to alert on.

import type { ClusterTotals } from "../../cluster/cluster-nodes.ts";
import type { DeploymentCounts } from "./deployment-counts.ts";
import {
  counter,
  gauge,
  histogram,
  histogramSamples,
  labelled,
  type Metric,
  type Sample,
} from "./exposition.ts";
import type { LlmCounts, ModelCounts } from "./llm-counts.ts";
import type { ProcessSample } from "./process-meter.ts";
import type { RuntimeMeter } from "./runtime-meter.ts";
import type { ScheduleCounts } from "./schedule-counts.ts";

export interface RuntimeReading {
  readonly version: string;
  readonly startedAtMs: number;
  readonly process: ProcessSample;
  readonly isAvailable: boolean;
  readonly openJobs: number;
  readonly waiting: { readonly messages: number; readonly people: number };
  readonly streamReaders: number;
  readonly waitingRequests: number;
  readonly pools: Readonly<Record<string, PoolReading>>;
  readonly storeBytes: StoreBytes;
  /** What retention has removed since the start, and how often something refused to go. */
  readonly retention: {
    readonly sweeps: number;
    readonly failures: number;
    readonly runs: { readonly count: number; readonly bytes: number };
  };
  readonly meter: RuntimeMeter;
  readonly schedules: ScheduleCounts;
  readonly deployments: DeploymentCounts;
  readonly llm: LlmCounts;
  /** Null while they cannot be read. */
  readonly eventsWaiting: number | null;
  /** Null while the nodes cannot be read. */
  readonly cluster: ClusterTotals | null;
}

interface PoolReading {
  readonly capacity: number;
  readonly in_use: number;
  readonly queued: number;
}

/** The database's files, and what the disk under them has left. */
export interface StoreBytes {
  readonly database: number;
  readonly wal: number;
  readonly diskFree: number;
}

export function runtimeMetrics(reading: RuntimeReading): readonly Metric[] {
  return [
    ...processMetrics(reading),
    ...stateMetrics(reading),
    ...workMetrics(reading.meter),
    ...scheduleMetrics(reading.schedules),
    ...deploymentMetrics(reading.deployments),
    ...llmMetrics(reading.llm),
    ...retentionMetrics(reading.retention),
    ...(reading.eventsWaiting === null ? [] : [waitingMetric(reading.eventsWaiting)]),
    ...(reading.cluster === null ? [] : clusterMetrics(reading.cluster)),
  ];
}

function processMetrics({ process, version, startedAtMs }: RuntimeReading): readonly Metric[] {
  const { p50Ms, p99Ms, maxMs } = process.lag;
  const cpuSeconds = process.cpuUserSeconds + process.cpuSystemSeconds;
  return [
    labelled("gauge", "troupe_build_info", "The version that runs; always 1.", "version", { [version]: 1 }),
    gauge(
      "process_start_time_seconds",
      "When the process started, in seconds since 1970.",
      startedAtMs / 1e3,
    ),
    gauge("process_resident_memory_bytes", "Resident memory.", process.rssBytes),
    counter("process_cpu_seconds_total", "Processor time used.", cpuSeconds),
    gauge("nodejs_heap_size_used_bytes", "Heap in use.", process.heapUsedBytes),
    gauge("nodejs_heap_size_total_bytes", "Heap reserved.", process.heapTotalBytes),
    gauge("nodejs_external_memory_bytes", "Memory of buffers outside the heap.", process.externalBytes),
    labelled(
      "gauge",
      "troupe_event_loop_lag_seconds",
      "How long the event loop kept callers waiting, over the last minutes.",
      // Not "quantile", which only summaries may have.
      "percentile",
      { 50: p50Ms / 1_000, 99: p99Ms / 1_000, 100: maxMs / 1_000 },
    ),
  ];
}

function stateMetrics(reading: RuntimeReading): readonly Metric[] {
  const { waiting, storeBytes, pools } = reading;
  return [
    gauge("troupe_available", "1 while new work is accepted, else 0.", reading.isAvailable ? 1 : 0),
    gauge("troupe_open_jobs", "Runs in the runtime that have not ended.", reading.openJobs),
    gauge("troupe_messages_waiting", "Messages that wait in mailboxes.", waiting.messages),
    gauge("troupe_human_requests_waiting", "Requests to people without an answer.", waiting.people),
    gauge("troupe_sse_subscribers", "Readers of event streams.", reading.streamReaders),
    gauge(
      "troupe_waiting_requests",
      "Requests that wait for an end (Prefer: wait).",
      reading.waitingRequests,
    ),
    ...poolMetrics("troupe_pool", pools),
    gauge("troupe_store_database_bytes", "Size of the database file.", storeBytes.database),
    gauge("troupe_store_wal_bytes", "Size of the write-ahead log.", storeBytes.wal),
    gauge("troupe_store_disk_free_bytes", "What the disk of SVC_HOME has left.", storeBytes.diskFree),
  ];
}

/** Of all nodes together: each node has the same. */
function clusterMetrics({ nodes, pools, jobsOwned, tasksRunning }: ClusterTotals): readonly Metric[] {
  return [
    labelled("gauge", "troupe_cluster_nodes", "Nodes by status.", "status", nodes),
    gauge("troupe_cluster_open_jobs", "Runs that living nodes execute.", jobsOwned),
    gauge("troupe_cluster_tasks_running", "Attempts that run on living nodes.", tasksRunning),
    ...poolMetrics("troupe_cluster_pool", pools),
  ];
}

function poolMetrics(prefix: string, pools: RuntimeReading["pools"]): readonly Metric[] {
  const perPool = (name: string, help: string, field: keyof PoolReading) => {
    const values = Object.entries(pools).map(([pool, of]) => [pool, of[field]]);
    return labelled("gauge", `${prefix}_${name}`, help, "pool", Object.fromEntries(values));
  };
  return [
    perPool("slots", "Slots of an executor pool.", "capacity"),
    perPool("slots_in_use", "Slots that are held.", "in_use"),
    perPool("requests_queued", "Requests for slots that wait.", "queued"),
  ];
}

function scheduleMetrics({
  dispatches,
  delaySeconds,
  events,
  matches,
  webhooks,
}: ScheduleCounts): readonly Metric[] {
  const dispatched = "Due times of schedules, and events that were to start runs, by what became of them.";
  const delay = "From when a schedule was due until its run was on disk, after outages too.";
  return [
    labelled("counter", "troupe_schedule_dispatches_total", dispatched, "outcome", dispatches),
    histogram("troupe_schedule_delay_seconds", delay, delaySeconds),
    labelled(
      "counter",
      "troupe_trigger_events_total",
      "Trigger events that were answered, by whether schedules react to them; ends of runs if a schedule reacts to such.",
      "outcome",
      events,
    ),
    labelled(
      "counter",
      "troupe_trigger_matches_total",
      "What schedules have made of trigger events when they came.",
      "outcome",
      matches,
    ),
    labelled(
      "counter",
      "troupe_webhook_requests_total",
      "Requests to webhooks, by result.",
      "result",
      webhooks,
    ),
  ];
}

function deploymentMetrics({ rollouts, instances }: DeploymentCounts): readonly Metric[] {
  const ended = "Rollouts of deployments that have ended, by outcome.";
  const changed = "Instances of deployments that were started, and whose runs have ended.";
  return [
    labelled("counter", "troupe_deployment_rollouts_total", ended, "outcome", rollouts),
    labelled("counter", "troupe_deployment_instances_total", changed, "event", instances),
  ];
}

function llmMetrics({ models }: LlmCounts): readonly Metric[] {
  const samples = (of: (counts: ModelCounts) => readonly Sample[]) =>
    [...models].flatMap(([model, counts]) =>
      of(counts).map((sample) => ({ ...sample, labels: { model, ...sample.labels } })),
    );
  const each = (label: string, values: Readonly<Record<string, number>>) =>
    Object.entries(values).map(([name, value]) => ({ labels: { [label]: name }, value }));
  const tokens = "Tokens of answered requests: asked, and answered; also those that were estimated.";
  const estimated = "Tokens of these that no upstream has told, and were estimated.";
  const metric = (name: string, kind: Metric["kind"], help: string, of: Parameters<typeof samples>[0]) => ({
    name: `troupe_llm_${name}`,
    kind,
    help,
    samples: samples(of),
  });
  return [
    metric("requests_total", "counter", "Requests to served models, by how they ended.", ({ requests }) =>
      each("outcome", requests),
    ),
    metric("tokens_total", "counter", tokens, (counts) => each("direction", counts.tokens)),
    metric("estimated_tokens_total", "counter", estimated, (counts) => each("direction", counts.estimated)),
    metric("request_seconds", "histogram", "From a request to the end of its answer.", ({ seconds }) =>
      histogramSamples(seconds),
    ),
    metric("first_token_seconds", "histogram", "From a request to the first part of its answer.", (counts) =>
      histogramSamples(counts.firstTokenSeconds),
    ),
  ];
}

/** Each node of a cluster has the same. */
const waitingMetric = (count: number) =>
  gauge("troupe_cluster_trigger_events_waiting", "Events that runs are still to be started for.", count);

function retentionMetrics({ sweeps, failures, runs }: RuntimeReading["retention"]): readonly Metric[] {
  return [
    counter("troupe_retention_sweeps_total", "Sweeps for what is too old or too much.", sweeps),
    counter("troupe_retention_runs_removed_total", "Runs that retention has removed.", runs.count),
    counter("troupe_retention_failures_total", "Times that something could not be removed.", failures),
  ];
}

function workMetrics(meter: RuntimeMeter): readonly Metric[] {
  const attempts = "Attempts of tasks that ended, by how.";
  return [
    counter("troupe_runs_started_total", "Runs that began.", meter.runsStarted),
    labelled("counter", "troupe_runs_ended_total", "Runs that ended, by how.", "status", meter.runsEnded),
    histogram("troupe_run_duration_seconds", "From a run's start to its end.", meter.runSeconds),
    labelled("counter", "troupe_attempts_total", attempts, "outcome", meter.attemptsEnded),
    counter("troupe_dead_letters_total", "Messages that were dead-lettered.", meter.deadLetters),
    counter("troupe_events_total", "Events written to histories.", meter.events),
    histogram("troupe_commit_seconds", "How long a batch took to be on disk.", meter.commitSeconds),
    counter("troupe_commit_failures_total", "Batches that the store refused.", meter.commitFailures),
    histogram("troupe_batch_events", "Events of a batch.", meter.batchEvents),
    histogram("troupe_batch_jobs", "Runs that share a batch.", meter.batchJobs),
    {
      name: "troupe_lease_wait_seconds",
      help: "How long requests for slots waited, those granted at once included.",
      kind: "histogram",
      samples: [...meter.leaseWaitSeconds].flatMap(([pool, of]) => histogramSamples(of, { pool })),
    },
  ];
}
