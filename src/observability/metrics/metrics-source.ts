// Where a reading of the metrics comes from.

import { statfs } from "node:fs/promises";
import { type ClusterNodes, type ClusterTotals, totalsOf } from "../../cluster/cluster-nodes.ts";
import { JournalUnavailable } from "../../engine/journal.ts";
import type { EventRecords } from "../../schedules/event-records.ts";
import type { DeploymentCounts } from "./deployment-counts.ts";
import type { LlmCounts } from "./llm-counts.ts";
import type { Lag, ProcessMeter } from "./process-meter.ts";
import type { RuntimeMeter } from "./runtime-meter.ts";
import type { RuntimeReading, StoreBytes } from "./runtime-metrics.ts";
import type { ScheduleCounts } from "./schedule-counts.ts";

/** More are not counted: each reading looks at all of them. */
const EVENTS_WAITING_MAX = 100_000;

export interface MetricsParts {
  readonly version: string;
  readonly startedAtMs: number;
  readonly process: ProcessMeter;
  readonly meter: RuntimeMeter;
  readonly schedules: ScheduleCounts;
  readonly deployments: DeploymentCounts;
  readonly llm: LlmCounts;
  readonly events: Pick<EventRecords, "countWaiting">;
  readonly engine: { readonly openJobs: number; waiting(): RuntimeReading["waiting"] };
  readonly pools: { snapshot(): RuntimeReading["pools"] };
  readonly streams: { readonly readers: number };
  readonly waits: { readonly open: number };
  readonly retention: { readonly totals: RuntimeReading["retention"] };
  readonly nodes: Pick<ClusterNodes, "overview">;
  /** SVC_HOME. */
  readonly home: string;
  readonly storeSizes: () => Promise<Omit<StoreBytes, "diskFree">>;
}

export interface MetricsSource {
  lag(): Lag;
  read(isAvailable: boolean): Promise<RuntimeReading>;
}

export function metricsSource(parts: MetricsParts): MetricsSource {
  const {
    version,
    startedAtMs,
    process,
    meter,
    schedules,
    deployments,
    llm,
    engine,
    pools,
    streams,
    waits,
    retention,
  } = parts;
  return {
    lag: () => process.lag(),
    read: async (isAvailable) => ({
      cluster: await clusterTotals(parts),
      version,
      startedAtMs,
      process: process.sample(),
      isAvailable,
      openJobs: engine.openJobs,
      waiting: engine.waiting(),
      streamReaders: streams.readers,
      waitingRequests: waits.open,
      pools: pools.snapshot(),
      retention: retention.totals,
      storeBytes: await storeBytes(parts),
      meter,
      schedules,
      deployments,
      llm,
      eventsWaiting: await eventsWaiting(parts),
    }),
  };
}

const clusterTotals = ({ nodes }: MetricsParts): Promise<ClusterTotals | null> =>
  whileReadable(async () => totalsOf(await nodes.overview()));

const eventsWaiting = ({ events }: MetricsParts): Promise<number | null> =>
  whileReadable(() => events.countWaiting(EVENTS_WAITING_MAX));

/** What was known a while ago would not be told from what is. */
async function whileReadable<Value>(read: () => Promise<Value>): Promise<Value | null> {
  try {
    return await read();
  } catch (error) {
    if (error instanceof JournalUnavailable) return null;
    throw error;
  }
}

async function storeBytes({ home, storeSizes }: MetricsParts): Promise<StoreBytes> {
  const [sizes, disk] = await Promise.all([storeSizes(), statfs(home)]);
  return { ...sizes, diskFree: disk.bavail * disk.bsize };
}
