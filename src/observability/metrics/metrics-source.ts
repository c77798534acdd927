// Where a reading of the metrics comes from.

import { stat, statfs } from "node:fs/promises";
import { join } from "node:path";
import type { Lag, ProcessMeter } from "./process-meter.ts";
import type { RuntimeMeter } from "./runtime-meter.ts";
import type { RuntimeReading, StoreBytes } from "./runtime-metrics.ts";

export interface MetricsParts {
  readonly version: string;
  readonly startedAtMs: number;
  readonly process: ProcessMeter;
  readonly meter: RuntimeMeter;
  readonly engine: { readonly openJobs: number; waiting(): RuntimeReading["waiting"] };
  readonly pools: { snapshot(): RuntimeReading["pools"] };
  readonly streams: { readonly readers: number };
  readonly waits: { readonly open: number };
  readonly retention: { readonly totals: RuntimeReading["retention"] };
  /** The database's file. */
  readonly databaseFile: string;
}

export interface MetricsSource {
  lag(): Lag;
  read(isAvailable: boolean): Promise<RuntimeReading>;
}

export function metricsSource(parts: MetricsParts): MetricsSource {
  const { version, startedAtMs, process, meter, engine, pools, streams, waits, retention, databaseFile } =
    parts;
  return {
    lag: () => process.lag(),
    read: async (isAvailable) => ({
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
      storeBytes: await storeBytes(databaseFile),
      meter,
    }),
  };
}

async function storeBytes(file: string): Promise<StoreBytes> {
  const [database, wal, disk] = await Promise.all([
    sizeOf(file),
    sizeOf(`${file}-wal`),
    statfs(join(file, "..")),
  ]);
  return { database, wal, diskFree: disk.bavail * disk.bsize };
}

/** 0 for a file that is not there. */
async function sizeOf(path: string): Promise<number> {
  const stats = await stat(path).catch(() => null);
  return stats?.size ?? 0;
}
