// Launching: hands accepted runs to the runtime, a few at a time, in the order of their acceptance; and brings runs to
// the state that was asked for.
//
// L1. A run is launched once: its runtime job has an id that was fixed with the run, and whether the journal has it
//     stands in the run's own row, written with the job's first batch.
// L2. A run that cannot be launched for a reason of its own ends as failed, with the reason. When the runtime takes
//     nothing at the moment, all runs wait; when a run meets an error that nobody foresaw, it waits alone.
// L3. Nothing is remembered here that a restart would miss: `recover` finds what is open in the records.
// L4. A launch takes its turn among the requests that control the run: it sees what they have written, and they see
//     a run that is launched or is not.
// L5. Memory is bounded: runs that find no room in the queue are read from the records when it is empty.
// L6. A run whose desired state is on disk comes to it, in its turn: at once, or with the next start.
// L7. A run that has to be prepared is, outside its turn and beside the launches of others (launch-preparations.ts);
//     then it takes its turn again, and is submitted if it is still to be launched.
// L8. A run whose job waits for its blueprint waits with it: `settle` finds it when the job's addition has ended.

import { EngineUnavailable } from "../engine/batch.ts";
import type { Engine } from "../engine/engine.ts";
import { JournalUnavailable } from "../engine/journal.ts";
import type { KeyedMutex } from "../lib/async.ts";
import { isToBeLaunched } from "./launch-preparations.ts";
import type { DesiredState, OpenRun } from "./records.ts";
import { Submissions, type SubmissionsParts } from "./submissions.ts";

const LAUNCHES_AT_ONCE_MAX = 64;
const QUEUE_MAX = 2_000;
const RETRY_MS = 1_000;
const RECORDS_PAGE = 500;

export interface LauncherParts extends SubmissionsParts {
  /** Shared with those who control runs (L4). */
  readonly turns: KeyedMutex;
}

export class Launcher {
  readonly #parts: LauncherParts;
  readonly #submissions: Submissions;
  /** Ids of runs that wait, in order; what is under way; and what waits for the retry. */
  #queue = new Set<string>();
  readonly #underWay = new Map<string, Promise<void>>();
  readonly #later = new Set<string>();
  /** Whether more wait than the queue has, and the reading of them. */
  #hasMore = false;
  #reading: Promise<void> | null = null;
  /** The runtime or the store takes nothing until the retry. */
  #isBlocked = false;
  #cancelRetry: (() => void) | null = null;
  #isStopped = false;

  constructor(parts: LauncherParts) {
    this.#parts = parts;
    this.#submissions = new Submissions(parts, (runId) => this.enqueue(runId));
  }

  /** Runs that wait for their launch or are being launched: as many as this, or more when it is thousands. */
  get waiting(): number {
    return this.#queue.size + this.#later.size + this.#underWay.size + this.#submissions.preparing;
  }

  /** To be called once the run is on disk. */
  enqueue(runId: string): void {
    if (this.#hasMore || this.#queue.size >= QUEUE_MAX) this.#hasMore = true;
    else this.#queue.add(runId);
    this.#fill();
  }

  /** Launches what a predecessor had accepted only, and brings open runs to the state they were asked for. */
  async recover(): Promise<void> {
    for await (const runs of this.#unsettled(null)) {
      await Promise.all(runs.map((run) => this.#settleLater(run)));
    }
  }

  /** A store that takes nothing at this moment does not stop the start; the next control request or start mends it. */
  async #settleLater(run: OpenRun): Promise<void> {
    try {
      await this.#settle(run);
    } catch (error) {
      if (!isUnavailable(error)) throw error;
      const fields = { run_id: run.runId, reason: error.message };
      this.#parts.log.warn(fields, "a run could not be brought to its desired state yet");
    }
  }

  /**
   * Brings the open runs of a job to the states that stand in their rows; doing it twice changes nothing. What the
   * runtime has not recovered yet after a restart is left to `recover`.
   *
   * @throws EngineUnavailable, JournalUnavailable
   */
  async settle(jobId: string): Promise<void> {
    for await (const runs of this.#unsettled(jobId)) await Promise.all(runs.map((run) => this.#settle(run)));
  }

  /** `settle` for a caller who can neither wait for it nor try it again. */
  settleSoon(jobId: string): void {
    this.settle(jobId).catch((error: unknown) => {
      this.#parts.log.warn({ job_id: jobId, error: String(error) }, "a job's runs could not be settled yet");
      this.#hasMore = true;
      this.#retryLater();
    });
  }

  async #settle(run: OpenRun): Promise<void> {
    if (isToBeLaunched(run)) {
      this.enqueue(run.runId);
      return;
    }
    await this.#parts.turns.run(run.runId, async () => {
      const now = await this.#parts.records.openRun(run.runId);
      if (now !== null) await this.bring(now);
    });
  }

  /**
   * Brings a run to its desired state, which the runtime is asked for, or which is written for a run that waits. To be
   * called in the run's turn.
   *
   * @returns false when the runtime should have the run open, and has not: it has ended, or is not recovered yet
   * @throws EngineUnavailable, JournalUnavailable
   */
  async bring(run: OpenRun): Promise<boolean> {
    const { records, engine, ends, clock } = this.#parts;
    const { runId, desiredState } = run;
    if (run.launched) return applyDesiredState(engine, run.runtimeJobId, desiredState);
    if (desiredState === "cancelled") {
      await ends.cancelled(runId);
      this.#submissions.drop(runId);
      return true;
    }
    await records.write(async (writes) => {
      const nowMs = clock.nowMs();
      await writes.setDesiredState(runId, desiredState, nowMs);
      await writes.setWaiting(runId, desiredState === "paused" ? "paused" : "pending", null, nowMs);
    });
    if (desiredState === "running") this.enqueue(runId);
    return true;
  }

  /** Takes no more; resolves when nothing is under way. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#cancelRetry?.();
    await this.#reading;
    await Promise.all([this.#submissions.stop(), ...this.#underWay.values()]);
  }

  /** What is open and not as it should be, of one job or of all, oldest first, page by page. */
  async *#unsettled(jobId: string | null): AsyncGenerator<readonly OpenRun[]> {
    let after: string | null = null;
    while (!this.#isStopped) {
      const page: readonly OpenRun[] = await this.#parts.records.unsettledRuns({
        jobId,
        limit: RECORDS_PAGE,
        after,
      });
      const last = page.at(-1);
      if (last === undefined) return;
      after = last.runId;
      yield page;
    }
  }

  #fill(): void {
    if (this.#isStopped || this.#isBlocked) return;
    for (const runId of this.#queue) {
      if (this.#underWay.size >= LAUNCHES_AT_ONCE_MAX) return;
      if (this.#underWay.has(runId)) continue;
      this.#queue.delete(runId);
      const work = this.#launch(runId).finally(() => {
        this.#underWay.delete(runId);
        this.#fill();
      });
      this.#underWay.set(runId, work);
    }
    // Not while some wait for the retry: those would be found, and tried again at once.
    if (this.#hasMore && this.#queue.size === 0 && this.#cancelRetry === null) this.#readMore();
  }

  #readMore(): void {
    this.#reading ??= this.#fillQueue()
      .catch((error: unknown) => {
        this.#parts.log.warn({ error: String(error) }, "accepted runs could not be read yet");
        this.#hasMore = true;
        this.#retryLater();
      })
      .finally(() => {
        this.#reading = null;
        this.#fill();
      });
  }

  /** Takes the oldest runs that wait into the queue, until it is full. */
  async #fillQueue(): Promise<void> {
    this.#hasMore = false;
    for await (const runs of this.#unsettled(null)) {
      for (const run of runs) {
        if (!isToBeLaunched(run) || this.#submissions.isPreparing(run.runId)) continue;
        if (this.#queue.size >= QUEUE_MAX) this.#hasMore = true;
        else this.#queue.add(run.runId);
      }
      if (this.#hasMore) return;
    }
  }

  async #launch(runId: string): Promise<void> {
    try {
      await this.#parts.turns.run(runId, async () => {
        const run = await this.#parts.records.run(runId);
        if (run !== null && isToBeLaunched(run)) await this.#submissions.submit(run);
      });
    } catch (error) {
      this.#isBlocked ||= isUnavailable(error);
      if (!this.#isBlocked) {
        this.#parts.log.error({ run_id: runId, error: String(error) }, "a run could not be launched yet");
      }
      if (this.#later.size < QUEUE_MAX) this.#later.add(runId);
      else this.#hasMore = true;
      this.#retryLater();
    }
  }

  #retryLater(): void {
    if (this.#isStopped) return;
    this.#cancelRetry ??= this.#parts.clock.after(RETRY_MS, () => {
      this.#cancelRetry = null;
      this.#isBlocked = false;
      this.#queue = new Set([...this.#later, ...this.#queue]);
      this.#later.clear();
      this.#fill();
    });
  }
}

/** Whether the runtime or the store takes nothing at the moment. */
function isUnavailable(error: unknown): error is EngineUnavailable | JournalUnavailable {
  return error instanceof EngineUnavailable || error instanceof JournalUnavailable;
}

/** Asks the runtime for what was asked of the run. @returns false when the job is not open there */
async function applyDesiredState(
  engine: Engine,
  runtimeJobId: string,
  desired: DesiredState,
): Promise<boolean> {
  const answer = await ask(engine, runtimeJobId, desired);
  return answer.kind === "done";
}

function ask(engine: Engine, runtimeJobId: string, desired: DesiredState) {
  switch (desired) {
    case "running":
      return engine.resume(runtimeJobId);
    case "paused":
      return engine.pause(runtimeJobId);
    case "cancelled":
      return engine.cancel(runtimeJobId);
    default:
      return desired satisfies never;
  }
}
