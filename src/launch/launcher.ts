// Launching: hands accepted runs to the runtime, a few at a time, in the order of their acceptance; and brings runs to
// the state that was asked for.
//
// The path of a launch: blueprint-launches.ts (or runs.ts, for a job that exists), acceptance.ts, this file,
// preparation-queue.ts, preparation/preparation.ts. docs/architecture.md draws it.
//
// - A run is launched once: its runtime job has an id that was fixed with the run, and whether the journal has it
//   is kept in the run's own row, written with the job's first batch.
// - A run that cannot be launched for a reason of its own ends as failed, with the reason. When the runtime takes
//   nothing at the moment, all runs wait; when a run meets an unexpected error, it waits alone.
// - Nothing is remembered here that a restart would miss: `recover` finds what is open in the records.
// - A launch takes its turn among the requests that control the run: it sees what they have written, and they see
//   a run that is launched or is not.
// - Memory is bounded: runs that find no room in the queue are read from the records when it is empty.
// - A run whose desired state is on disk is brought to it, in its turn: at once, or with the next start.
// - A run whose package needs more than its snapshot is prepared first, outside its turn and beside the launches of
//   others (preparation-queue.ts); then it takes its turn again, and is submitted if it is still to be launched.
// - A run whose job waits for its blueprint waits with it: `settle` finds it when the job's addition has ended.
// - Of several programs that share the records, the owner of a run launches it (operations/ownership.ts). One that has lost
//   it meanwhile, and knows nothing of it yet, launches nothing: the run's job has one id, and the journal takes it once.

import { JobUnwritable } from "../engine/batch.ts";
import type { Engine } from "../engine/engine.ts";
import type { FailureCode } from "../engine/failure-catalogue.ts";
import type { JobControl } from "../engine/job-control.ts";
import type { JsonObject } from "../engine/json.ts";
import type { Priority } from "../engine/share.ts";
import type { KeyedMutex } from "../lib/async.ts";
import { isUnavailable, WorkQueue } from "../operations/work-queue.ts";
import { withInputs } from "./inputs.ts";
import { blueprintOf, type LaunchPlan } from "./launch-plans.ts";
import type { PreparedLaunch } from "./preparation/preparation.ts";
import {
  failureCodeOf,
  isToBeLaunched,
  PreparationQueue,
  type PreparationQueueParts,
} from "./preparation-queue.ts";
import type { DesiredState, JobDefinition, KeysetPage, OpenRun, RunRecord } from "./records.ts";
import type { RunEnds } from "./run-ends.ts";

const LAUNCHES_AT_ONCE_MAX = 64;
const RECORDS_PAGE = 500;
/** So long a request that changes a run may be under way: until then the run is not looked after by anybody else. */
const STRAYED_MS = 5_000;

export interface LauncherParts extends PreparationQueueParts {
  readonly engine: Pick<Engine, "submit">;
  readonly control: Pick<JobControl, "cancel" | "pause" | "resume" | "prioritize">;
  readonly ends: RunEnds;
  /** Shared with those who control runs. */
  readonly turns: KeyedMutex;
}

export class Launcher {
  readonly #parts: LauncherParts;
  readonly #queue: WorkQueue;
  readonly #preparations: PreparationQueue;

  constructor(parts: LauncherParts) {
    this.#parts = parts;
    this.#queue = new WorkQueue({
      what: "the launch of a run",
      keyName: "run_id",
      atOnceMax: LAUNCHES_AT_ONCE_MAX,
      work: (runId) => this.#launch(runId),
      recorded: () => this.#toBeLaunched(),
      clock: parts.clock,
      log: parts.log,
    });
    this.#preparations = new PreparationQueue(parts, (runId) => this.enqueue(runId));
  }

  /** Runs that wait for their launch or are being launched: as many as this, or more when it is thousands. */
  get waiting(): number {
    return this.#queue.size + this.#preparations.size;
  }

  /** To be called once the run is on disk. */
  enqueue(runId: string): void {
    this.#queue.add(runId);
  }

  /**
   * Launches what a predecessor had accepted only, and brings open runs to the state they were asked for. Of several
   * programs that share the records each does its own share.
   */
  async recover(): Promise<void> {
    for await (const runs of this.#unsettled(null)) {
      await Promise.all(runs.map((run) => this.#settleLater(run)));
    }
    for await (const runs of this.#strayed()) {
      await Promise.all(runs.map((run) => this.#settleLater(run)));
    }
  }

  /** A store that takes nothing at this moment does not stop the start; the next control request or start does it. */
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
   * Brings the open runs of a job to the states in their rows; doing it twice changes nothing. What the
   * runtime has not recovered yet after a restart is left to `recover`.
   *
   * @throws EngineUnavailable, JournalUnavailable
   */
  async settle(jobId: string): Promise<void> {
    for await (const runs of this.#unsettled(jobId)) await Promise.all(runs.map((run) => this.#settle(run)));
  }

  /** `settle` of a job that has become ready, for a caller who can neither wait for it nor try it again. */
  settleSoon(jobId: string): void {
    this.#later(jobId, this.#settleReady(jobId));
  }

  /** `settle` for such a caller; what waits at other programs is left to them. */
  reachSoon(jobId: string): void {
    this.#later(jobId, this.settle(jobId));
  }

  #later(jobId: string, settling: Promise<void>): void {
    settling.catch((error: unknown) => {
      this.#parts.log.warn({ job_id: jobId, error: String(error) }, "a job's runs could not be settled yet");
      this.#queue.readLater();
    });
  }

  /** Its runs may wait at other programs, which are not told. */
  async #settleReady(jobId: string): Promise<void> {
    const { ownership, records } = this.#parts;
    const owner = ownership.owner();
    if (owner !== null) await records.write((writes) => writes.adoptRuns(jobId, owner));
    await this.settle(jobId);
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
    const { control, ends } = this.#parts;
    const { runId, desiredState } = run;
    if (run.launched) return (await ask(control, run.runtimeJobId, desiredState)).kind === "done";
    const isLaunched =
      desiredState === "cancelled"
        ? await ends.cancelled(runId)
        : await this.#setWaiting(runId, desiredState);
    // Another program has launched it since it was read.
    if (isLaunched) return this.bring({ ...run, launched: true });
    if (desiredState === "cancelled") this.#preparations.drop(runId);
    if (desiredState === "running") this.enqueue(runId);
    return true;
  }

  /**
   * Gives a run another priority. To be called in the run's turn.
   *
   * @returns as `bring`
   * @throws EngineUnavailable, JournalUnavailable
   */
  async prioritize(
    run: Pick<OpenRun, "runId" | "runtimeJobId" | "launched">,
    priority: Priority,
  ): Promise<boolean> {
    const { control, records } = this.#parts;
    const { runId, runtimeJobId, launched } = run;
    if (launched) return (await control.prioritize(runtimeJobId, priority)).kind === "done";
    const isLaunched = await records.write(async (writes) => {
      await writes.setPriority(runId, priority);
      return (await writes.run(runId))?.launched ?? false;
    });
    // Another program has launched it since it was read.
    return isLaunched ? this.prioritize({ ...run, launched: true }, priority) : true;
  }

  /** Of a run that is not launched. @returns whether it was launched all the same */
  #setWaiting(runId: string, desired: "paused" | "running"): Promise<boolean> {
    const { records, ownership, clock } = this.#parts;
    const status = desired === "paused" ? "paused" : "pending";
    const owner = ownership.owner();
    return records.write(async (writes) => {
      const nowMs = clock.nowMs();
      await writes.setDesiredState(runId, desired, nowMs);
      await writes.setWaiting(runId, { status, label: null, owner }, nowMs);
      return (await writes.run(runId))?.launched ?? false;
    });
  }

  /** Takes no more; resolves when nothing is under way. */
  async stop(): Promise<void> {
    await Promise.all([this.#queue.stop(), this.#preparations.stop()]);
  }

  /** What is open and not as it should be, of one job or of all; of all, where others share them: what waits here. */
  #unsettled(jobId: string | null): AsyncGenerator<readonly OpenRun[]> {
    const { records, ownership } = this.#parts;
    const owner = ownership.owner();
    return this.#pages((page) =>
      jobId !== null || owner === null
        ? records.unsettledRuns({ jobId, ...page })
        : records.waitingRunsOf(owner, page),
    );
  }

  /** Launched runs whose jobs are here, and that another program did not bring to what was asked of them: it was lost. */
  async *#strayed(): AsyncGenerator<readonly OpenRun[]> {
    const { records, ownership, clock } = this.#parts;
    const owner = ownership.owner();
    if (owner === null) return;
    const beforeMs = clock.nowMs() - STRAYED_MS;
    yield* this.#pages((page) => records.strayedRunsOf(owner, beforeMs, page));
  }

  /** Oldest first. */
  async *#pages(read: (page: KeysetPage) => Promise<readonly OpenRun[]>): AsyncGenerator<readonly OpenRun[]> {
    let after: string | null = null;
    while (!this.#queue.isStopped) {
      const page: readonly OpenRun[] = await read({ limit: RECORDS_PAGE, after });
      const last = page.at(-1);
      if (last === undefined) return;
      after = last.runId;
      yield page;
    }
  }

  async *#toBeLaunched(): AsyncGenerator<readonly string[]> {
    for await (const runs of this.#unsettled(null)) {
      yield runs
        .filter((run) => isToBeLaunched(run) && !this.#preparations.has(run.runId))
        .map(({ runId }) => runId);
    }
  }

  async #launch(runId: string): Promise<void> {
    await this.#parts.turns.run(runId, async () => {
      const run = await this.#parts.records.run(runId);
      if (run !== null && isToBeLaunched(run) && this.#isOwn(run)) await this.#submit(run);
    });
  }

  #isOwn({ owner }: RunRecord): boolean {
    return owner === this.#parts.ownership.owner();
  }

  /** Hands a run to the runtime, or begins its preparation, or lets it fail with the reason. */
  async #submit(run: RunRecord): Promise<void> {
    const { records, plans } = this.#parts;
    const job = await records.job(run.jobId);
    if (job === null || job.status === "preparing") return;
    if (job.status === "failed_preparation") {
      await this.#fail(run, "blueprint.not_prepared", await this.#whyNotPrepared(job));
      return;
    }
    const plan = await plans.of(job).catch((error: unknown) => asFailure(error));
    if ("code" in plan) await this.#fail(run, plan.code, plan.message);
    else if (plan.preparation !== null || run.configOverridesJson !== null)
      await this.#submitPrepared(run, job);
    else await this.#submitAs(run, job, plan.bundleFingerprint, launchOf(plan, run));
  }

  /** Uses the result of the run's preparation, or begins it. */
  async #submitPrepared(run: RunRecord, job: JobDefinition): Promise<void> {
    const { runId } = run;
    const outcome = this.#preparations.outcomeOf(runId);
    if (outcome?.kind === "prepared") {
      await this.#submitAs(run, job, outcome.bundleFingerprint, outcome.launch);
      this.#preparations.forget(runId);
    } else if (outcome?.kind === "failed") {
      await this.#fail(run, outcome.code, outcome.message);
    } else if (!this.#preparations.begin(runId)) throw new Error("too many launches are being prepared");
  }

  async #submitAs(
    run: RunRecord,
    { weight }: JobDefinition,
    bundleFingerprint: string,
    launch: PreparedLaunch,
  ): Promise<void> {
    const { graph, inputs, manifestJson, configurationJson, hasOwnPayload } = launch;
    const answer = withInputs(graph, inputs);
    if (answer.kind === "invalid") {
      await this.#fail(run, "inputs.invalid", answer.problems.join("; "));
      return;
    }
    const submitted = this.#parts.engine.submit({
      graph: answer.graph,
      identity: { jobId: run.runtimeJobId, runId: run.runId, definitionId: run.jobId },
      manifestJson,
      bundleFingerprint,
      hasOwnPayload,
      configurationJson,
      trace: { traceId: run.traceId, parentSpanId: run.parentSpanId },
      priority: run.priority,
      weight,
    });
    try {
      await submitted;
    } catch (error) {
      if (!(error instanceof JobUnwritable)) throw error;
      await this.#fail(run, "runtime.record_damaged", error.message);
    }
  }

  async #fail(run: RunRecord, code: FailureCode, message: string): Promise<void> {
    const { ends } = this.#parts;
    await ends.failed(run, ends.makeFailure(run, code, message));
    this.#preparations.drop(run.runId);
  }

  async #whyNotPrepared(job: JobDefinition): Promise<string> {
    const blueprintId = blueprintOf(job) ?? "";
    const prepared = await this.#parts.blueprints.prepared(blueprintId);
    const why =
      prepared === null || prepared.error === null
        ? `The blueprint ${blueprintId} is not added`
        : `The blueprint ${blueprintId} could not be added (operation ${prepared.operationId}): ${prepared.error.detail.replace(/\.$/, "")}`;
    return `${why}. Add it with POST /api/v1/blueprints/${blueprintId}/additions, then start a new run.`;
  }
}

/** A run that needs no preparation uploads from the snapshot. */
function launchOf(plan: LaunchPlan, { inputsJson }: RunRecord): PreparedLaunch {
  const { graph, configurationJson } = plan;
  const { manifestJson } = plan.definition;
  const inputs = JSON.parse(inputsJson) as JsonObject;
  return { graph, manifestJson, configurationJson, hasOwnPayload: false, inputs };
}

/** @throws what may succeed when it is tried again */
function asFailure(error: unknown): { readonly code: FailureCode; readonly message: string } {
  const code = failureCodeOf(error);
  if (code === null) throw error;
  return { code, message: (error as Error).message };
}

/** Asks the runtime for what was asked of the run. */
function ask(control: LauncherParts["control"], runtimeJobId: string, desired: DesiredState) {
  switch (desired) {
    case "running":
      return control.resume(runtimeJobId);
    case "paused":
      return control.pause(runtimeJobId);
    case "cancelled":
      return control.cancel(runtimeJobId);
    default:
      return desired satisfies never;
  }
}
