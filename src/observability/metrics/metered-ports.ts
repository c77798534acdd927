// The engine's ports with a meter at them: they do what the ports behind them do, and count it.

import type {
  CommitAnswer,
  DamagedJob,
  DamagedJobEnd,
  JobChanges,
  JobImage,
  Journal,
} from "../../engine/journal.ts";
import type { Grant, Slots } from "../../engine/ports.ts";
import type {
  Lease,
  TaskEvent,
  TaskListener,
  TaskOutcome,
  TaskRef,
  WorkerActions,
} from "../../engine/task-port.ts";
import type { RuntimeMeter } from "./runtime-meter.ts";

/** Monotonic milliseconds. */
export type Stopwatch = () => number;

export class MeteredJournal implements Journal {
  readonly #journal: Journal;
  readonly #meter: RuntimeMeter;
  readonly #watch: Stopwatch;

  constructor(journal: Journal, meter: RuntimeMeter, watch: Stopwatch) {
    this.#journal = journal;
    this.#meter = meter;
    this.#watch = watch;
  }

  async commit(batch: readonly JobChanges[]): Promise<CommitAnswer> {
    const fromMs = this.#watch();
    try {
      const answer = await this.#journal.commit(batch);
      const unwritten = [...answer.lost, ...answer.unwritable.map(({ jobId }) => jobId)];
      this.#meter.committed(batch, unwritten, (this.#watch() - fromMs) / 1_000);
      return answer;
    } catch (error) {
      this.#meter.commitFailures++;
      throw error;
    }
  }

  claim(owner: string, limit: number): Promise<readonly string[]> {
    return this.#journal.claim(owner, limit);
  }

  load(jobId: string): Promise<JobImage | null> {
    return this.#journal.load(jobId);
  }

  async failDamaged(
    jobId: string,
    owner: string,
    render: (job: DamagedJob) => DamagedJobEnd,
  ): Promise<number | null> {
    const eventSeq = await this.#journal.failDamaged(jobId, owner, render);
    if (eventSeq !== null) this.#meter.runsEnded.failed++;
    return eventSeq;
  }
}

/** How long requests for slots wait: those that are granted at once have waited 0. */
export class MeteredSlots implements Slots {
  onGranted: (key: string, lease: Lease) => void = () => {};
  readonly #slots: Slots;
  readonly #meter: RuntimeMeter;
  readonly #watch: Stopwatch;
  readonly #waitingSinceMs = new Map<string, number>();

  constructor(slots: Slots, meter: RuntimeMeter, watch: Stopwatch) {
    this.#slots = slots;
    this.#meter = meter;
    this.#watch = watch;
    slots.onGranted = (key, lease) => {
      const sinceMs = this.#waitingSinceMs.get(key);
      this.#waitingSinceMs.delete(key);
      if (sinceMs !== undefined) meter.leaseGranted(lease.pool, watch() - sinceMs);
      this.onGranted(key, lease);
    };
  }

  request(key: string, pool: string, slots: number): Grant {
    const grant = this.#slots.request(key, pool, slots);
    if (grant.kind === "granted") this.#meter.leaseGranted(pool, 0);
    else if (grant.kind === "queued") this.#waitingSinceMs.set(key, this.#watch());
    return grant;
  }

  release(key: string): void {
    this.#waitingSinceMs.delete(key);
    this.#slots.release(key);
  }
}

/** How attempts end, as their runner reports it. */
export class MeteredListener implements TaskListener {
  readonly #listener: TaskListener;
  readonly #meter: RuntimeMeter;

  constructor(listener: TaskListener, meter: RuntimeMeter) {
    this.#listener = listener;
    this.#meter = meter;
  }

  taskEvents(ref: TaskRef, events: readonly TaskEvent[]): void {
    this.#listener.taskEvents(ref, events);
  }

  taskActions(ref: TaskRef, actions: WorkerActions): void {
    this.#listener.taskActions(ref, actions);
  }

  taskEnded(ref: TaskRef, outcome: TaskOutcome): void {
    this.#meter.attemptsEnded[outcome.kind]++;
    this.#listener.taskEnded(ref, outcome);
  }

  backpressure(): Promise<void> | null {
    return this.#listener.backpressure();
  }
}
