// Runs: one execution of a job each. Accepting, and control by desired state.
//
// - A run that was accepted is on disk; it is launched afterwards, by this process or by the next one.
// - What was asked of a run (its desired state) is on disk before the runtime is asked for it, so that a restart in
//   between still brings it about.
// - Requests to control one run, and its launch, take effect one after the other.

import { EngineUnavailable } from "../engine/batch.ts";
import { isTerminal, type JobStatus } from "../engine/journal.ts";
import type { JsonObject } from "../engine/json.ts";
import type { Clock } from "../engine/ports.ts";
import { defaultTerms, type Priority } from "../engine/share.ts";
import type { TraceContext } from "../engine/trace.ts";
import type { KeyedMutex } from "../lib/async.ts";
import { DomainError } from "../lib/domain-error.ts";
import type { Ownership } from "../operations/ownership.ts";
import type { ConfigurationSecrets } from "../security/configuration.ts";
import type { Acceptance } from "./acceptance.ts";
import { blueprintOf } from "./launch-plans.ts";
import type { Launcher } from "./launcher.ts";
import type {
  DesiredState,
  GatewayRecords,
  GatewayWrites,
  JobDefinition,
  NewRun,
  OpenRun,
  RunRecord,
  RunTrigger,
} from "./records.ts";

export interface RunsParts {
  readonly records: GatewayRecords;
  readonly acceptance: Acceptance;
  readonly launcher: Launcher;
  /** Shared with the launcher. */
  readonly turns: KeyedMutex;
  readonly secrets: Pick<ConfigurationSecrets, "decryptBody">;
  readonly ownership: Ownership;
  readonly clock: Clock;
  readonly newId: () => string;
  readonly newTraceId: () => string;
}

export interface RunRequest {
  /** One that is known before the run is there; a new one when absent. */
  readonly runId?: string;
  /** Null: those of the run that it repeats, or none. */
  readonly inputs: JsonObject | null;
  /** The same. */
  readonly configOverrides: JsonObject | null;
  /** The run that it repeats, of the same job or blueprint. */
  readonly rerunOf?: string;
  /** Normal when absent. */
  readonly priority?: Priority;
  readonly trigger: RunTrigger;
  /** The caller's trace; null: the run has one of its own. */
  readonly trace: TraceContext | null;
}

/**
 * What is still to be done of a checked request, in a transaction; `accepted` is to be called after its commit.
 *
 * @param owner who launches it; this program when absent
 */
export type InsertRun = (writes: GatewayWrites, owner?: string | null) => Promise<NewRun>;

/** A run that is controlled with others. */
export interface ControlledRun {
  readonly runId: string;
  readonly status: JobStatus;
}

/** What a request for a state does; unchanged: the run is in it already. */
export type Transition = "unchanged" | "change" | "invalid";

/** CONTRACTS §3, the matrix of run control. */
export function transition(status: JobStatus, desired: DesiredState): Transition {
  if (isTerminal(status)) {
    return status === "cancelled" && desired === "cancelled" ? "unchanged" : "invalid";
  }
  if (desired === "cancelled") return "change";
  const isPaused = status === "paused";
  return isPaused === (desired === "paused") ? "unchanged" : "change";
}

/** The status of an open run once it is in the desired state. */
function statusAfter({ status, launched }: OpenRun, desired: DesiredState): JobStatus {
  if (desired !== "running") return desired;
  if (status !== "paused") return status;
  return launched ? "running" : "pending";
}

export class Runs {
  readonly #parts: RunsParts;

  constructor(parts: RunsParts) {
    this.#parts = parts;
  }

  /**
   * Checks a request for a run; writes nothing.
   *
   * @throws DomainError `job_not_found`, and what Acceptance.check throws
   */
  async prepare(jobId: string, request: RunRequest): Promise<InsertRun> {
    return this.prepareOf(await this.jobOf(jobId), request);
  }

  /** The job that runs are asked of. @throws DomainError `job_not_found` */
  async jobOf(jobId: string): Promise<JobDefinition> {
    const job = await this.#parts.records.job(jobId);
    if (job === null) throw jobNotFound(jobId);
    return job;
  }

  /** The same for a job that is at hand, such as one that is inserted in the same transaction. */
  async prepareOf(job: JobDefinition, request: RunRequest): Promise<InsertRun> {
    const { jobId } = job;
    const { rerunOf = null } = request;
    const original = rerunOf === null ? null : await this.#original(job, rerunOf);
    const found = await this.#parts.acceptance.check(job, {
      inputs: request.inputs ?? this.#given(original?.inputsJson ?? null) ?? {},
      configOverrides: request.configOverrides ?? this.#given(original?.configOverridesJson ?? null),
    });
    const made: NewRun = {
      runId: request.runId ?? `run_${this.#parts.newId()}`,
      jobId,
      jobName: job.name,
      blueprintId: blueprintOf(job),
      rerunOf,
      runtimeJobId: `${found.graphId}-${this.#parts.newId()}`,
      inputsJson: found.inputsJson,
      configOverridesJson: found.configOverridesJson,
      priority: request.priority ?? defaultTerms.priority,
      trigger: request.trigger,
      traceId: request.trace?.traceId ?? this.#parts.newTraceId(),
      parentSpanId: request.trace?.parentSpanId ?? null,
      agentsTotal: found.agentsTotal,
      label: found.label,
      owner: this.#parts.ownership.owner(),
      createdAtMs: this.#parts.clock.nowMs(),
    };
    return async (writes, owner = made.owner) => {
      const run = { ...made, owner };
      await found.settle(writes, run.runId);
      if (!(await writes.insertRun(run))) throw jobNotFound(jobId);
      return run;
    };
  }

  /** @throws DomainError `validation_failed` when there is no such run of the job, or of its blueprint */
  async #original(job: JobDefinition, runId: string): Promise<RunRecord> {
    const original = await this.#parts.records.run(runId);
    const blueprintId = blueprintOf(job);
    const isOfBlueprint = blueprintId !== null && original?.blueprintId === blueprintId;
    if (original !== null && (original.jobId === job.jobId || isOfBlueprint)) return original;
    const message = "must be a run of the same job, or of a job of the same blueprint";
    throw new DomainError("validation_failed", `/rerun_of: ${message}. Nothing was started.`, [
      { path: "/rerun_of", code: "not_found", message },
    ]);
  }

  /** What a run was given, its secrets decrypted, to be given again. */
  #given(json: string | null): JsonObject | null {
    return json === null ? null : (this.#parts.secrets.decryptBody(JSON.parse(json)).body as JsonObject);
  }

  /** To be called when the run is on disk: it will be launched. */
  accepted(run: NewRun): void {
    this.#parts.launcher.enqueue(run.runId);
  }

  /**
   * Brings a run to the state that is asked for; doing it twice changes nothing.
   *
   * @throws DomainError `run_not_found`, `invalid_transition`; EngineUnavailable
   */
  control(runId: string, desired: DesiredState): Promise<RunRecord> {
    return this.#parts.turns.run(runId, async () => {
      const run = await this.#find(runId);
      const step = transition(run.status, desired);
      if (step === "invalid") throw invalidTransition(run, desired);
      if (step === "unchanged" && run.desiredState === desired) return run;
      return this.#bring(run, desired);
    });
  }

  /**
   * Gives a run another priority: what waits of it for slots has it at once.
   *
   * @throws DomainError `run_not_found`; `invalid_transition` when it has ended; EngineUnavailable
   */
  prioritize(runId: string, priority: Priority): Promise<RunRecord> {
    return this.#parts.turns.run(runId, async () => {
      const run = await this.#find(runId);
      if (isTerminal(run.status)) throw hasEnded(run);
      if (await this.#parts.launcher.prioritize(run, priority)) return { ...run, priority };
      const now = await this.#find(runId);
      if (isTerminal(now.status)) throw hasEnded(now);
      throw new EngineUnavailable(`Run ${runId} is still being recovered after a restart.`, false);
    });
  }

  /**
   * Asks the same of every run of a job that has not ended. To be called in a transaction; after its commit the runs
   * come to it by `settle`, or by the next start.
   *
   * @returns what the runs come to, oldest first, however many: a few words of each. One that ends by itself before it
   *   can be reached stays as it has ended
   * @throws DomainError `job_not_found`; `invalid_transition` when no run is open
   */
  async askAll(
    writes: GatewayWrites,
    jobId: string,
    desired: DesiredState,
  ): Promise<readonly ControlledRun[]> {
    if ((await writes.job(jobId)) === null) throw jobNotFound(jobId);
    const open = await writes.openRuns(jobId);
    if (open.length === 0) throw nothingToControl(jobId, desired);
    await writes.setDesiredStates(jobId, desired, this.#parts.clock.nowMs());
    return open.map((run) => ({ runId: run.runId, status: statusAfter(run, desired) }));
  }

  /**
   * Brings the runs of a job to what was asked of them; doing it twice changes nothing.
   *
   * @throws EngineUnavailable, JournalUnavailable: some runs have not been reached; the same may be tried again
   */
  settle(jobId: string): Promise<void> {
    return this.#parts.launcher.settle(jobId);
  }

  /** `askAll` and `settle`. */
  async controlAll(jobId: string, desired: DesiredState): Promise<readonly ControlledRun[]> {
    const controlled = await this.#parts.records.write((writes) => this.askAll(writes, jobId, desired));
    await this.settle(jobId);
    return controlled;
  }

  async #bring(run: RunRecord, desired: DesiredState): Promise<RunRecord> {
    const { records, launcher, clock } = this.#parts;
    // For a run that waits, that it is asked for and that it comes about are one write.
    if (run.launched) {
      await records.write((writes) => writes.setDesiredState(run.runId, desired, clock.nowMs()));
    }
    const isDone = await launcher.bring({ ...run, desiredState: desired });
    const now = await this.#find(run.runId);
    if (isDone) return now;
    // The runtime does not have it open: it has just ended, or this start has not come to it yet.
    if (transition(now.status, desired) === "invalid") throw invalidTransition(now, desired);
    if (isTerminal(now.status)) return now;
    throw new EngineUnavailable(
      `Run ${run.runId} is still being recovered after a restart; it will be brought to ${desired}.`,
      false,
    );
  }

  async #find(runId: string): Promise<RunRecord> {
    const run = await this.#parts.records.run(runId);
    if (run === null) throw runNotFound(runId);
    return run;
  }
}

export function jobNotFound(jobId: string): DomainError {
  return new DomainError("job_not_found", `Job ${jobId} was not found. List the jobs to find its id.`);
}

export function runNotFound(runId: string): DomainError {
  return new DomainError("run_not_found", `Run ${runId} was not found. List the runs to find its id.`);
}

function invalidTransition(run: RunRecord, desired: DesiredState): DomainError {
  return new DomainError(
    "invalid_transition",
    `Run ${run.runId} is ${run.status}, which is final: it cannot become ${desired}. Start a new run instead.`,
  );
}

function hasEnded({ runId, status }: RunRecord): DomainError {
  return new DomainError("invalid_transition", `Run ${runId} is ${status}: it waits for nothing any more.`);
}

function nothingToControl(jobId: string, desired: DesiredState): DomainError {
  return new DomainError(
    "invalid_transition",
    `Job ${jobId} has no run that has not ended, so there is nothing to bring to ${desired}. Start one with POST /api/v1/jobs/${jobId}/runs.`,
  );
}
