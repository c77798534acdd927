// What the runtime does, counted since this process started. Fed by the ports that app.ts wraps (metered-ports.ts), so
// that neither the engine nor the store knows of it.
//
// - A run counts as started, and as ended, when the batch that contains it is on disk.
// - Cardinality is bounded: pools, statuses and outcomes, never ids.

import { isTerminal, type JobChanges } from "../../engine/journal.ts";
import { Histogram } from "./histogram.ts";

const COMMIT_SECONDS = [0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 2.5];
const BATCH_EVENTS = [1, 4, 16, 64, 256, 1_024, 4_096, 16_384, 65_536];
const BATCH_JOBS = [1, 2, 4, 8, 16, 32, 64, 128, 512];
const WAIT_SECONDS = [0.001, 0.01, 0.05, 0.1, 0.5, 1, 5, 15, 60, 300, 1_800];
const RUN_SECONDS = [0.01, 0.05, 0.1, 0.5, 1, 5, 15, 60, 300, 1_800, 7_200, 86_400];

export type RunEnd = "completed" | "failed" | "cancelled";
export type AttemptEnd = "succeeded" | "failed" | "interrupted";

export class RuntimeMeter {
  readonly commitSeconds = new Histogram(COMMIT_SECONDS);
  readonly batchEvents = new Histogram(BATCH_EVENTS);
  readonly batchJobs = new Histogram(BATCH_JOBS);
  readonly runSeconds = new Histogram(RUN_SECONDS);
  readonly leaseWaitSeconds = new Map<string, Histogram>();
  readonly runsEnded: Record<RunEnd, number> = { completed: 0, failed: 0, cancelled: 0 };
  readonly attemptsEnded: Record<AttemptEnd, number> = { succeeded: 0, failed: 0, interrupted: 0 };
  runsStarted = 0;
  events = 0;
  deadLetters = 0;
  commitFailures = 0;

  /** @param pools their names */
  constructor(pools: readonly string[]) {
    for (const pool of pools) this.leaseWaitSeconds.set(pool, new Histogram(WAIT_SECONDS));
  }

  /** A batch is on disk. @param lost the jobs of it that another owner has */
  committed(batch: readonly JobChanges[], lost: readonly string[], seconds: number): void {
    this.commitSeconds.observe(seconds);
    let events = 0;
    let jobs = 0;
    for (const changes of batch) {
      if (lost.length > 0 && lost.includes(changes.jobId)) continue;
      jobs++;
      events += changes.eventLines.length;
      this.deadLetters += changes.deadLetters.length;
      if (changes.insert !== null) this.runsStarted++;
      const { status, startedAtMs, updatedAtMs } = changes.progress;
      if (!isTerminal(status)) continue;
      this.runsEnded[status as RunEnd]++;
      this.runSeconds.observe(Math.max(0, updatedAtMs - (startedAtMs ?? updatedAtMs)) / 1_000);
    }
    this.events += events;
    this.batchEvents.observe(events);
    this.batchJobs.observe(jobs);
  }

  leaseGranted(pool: string, waitedMs: number): void {
    this.leaseWaitSeconds.get(pool)?.observe(waitedMs / 1_000);
  }
}
