// Runs: one execution of a job each. Accepting, and control by desired state.
//
// R1. A run that was accepted is on disk; it is launched afterwards, by this process or by the next one.
// R2. What was asked of a run (its desired state) is on disk before the runtime is asked for it, so that a restart in
//     between still brings it about.
// R3. Requests to control one run, and its launch, take effect one after the other.

import type { Bundles } from "../bundles/bundles.ts";
import { EngineUnavailable } from "../engine/batch.ts";
import type { Engine } from "../engine/engine.ts";
import { withInputs } from "../engine/inputs.ts";
import type { JsonObject } from "../engine/json.ts";
import { type Clock, isTerminal, type JobStatus } from "../engine/ports.ts";
import type { KeyedTurns } from "../keyed-turns.ts";
import { applyDesiredState, type Launcher } from "./launcher.ts";
import type {
  DesiredState,
  GatewayRecords,
  GatewayWrites,
  NewRun,
  OpenRun,
  RunRecord,
  RunTrigger,
} from "./records.ts";
import { Refusal } from "./refusal.ts";
import type { RunEnds } from "./run-ends.ts";
import { storedBundle } from "./stored-bundle.ts";

export interface RunsParts {
  readonly records: GatewayRecords;
  readonly bundles: Bundles;
  readonly engine: Engine;
  readonly launcher: Launcher;
  readonly ends: RunEnds;
  /** Shared with the launcher (R3). */
  readonly turns: KeyedTurns;
  readonly clock: Clock;
  readonly newId: () => string;
  readonly newTraceId: () => string;
}

export interface RunRequest {
  readonly inputs: JsonObject;
  readonly configOverrides: JsonObject | null;
  readonly trigger: RunTrigger;
}

/** What is still to be done of a checked request, in a transaction; `accepted` is to be called after its commit. */
export type InsertRun = (writes: GatewayWrites) => Promise<NewRun>;

/** A run after it was controlled with others. */
export interface ControlledRun {
  readonly runId: string;
  readonly status: JobStatus;
}

export type Transition =
  /** Asked for what it already is. */
  { readonly kind: "unchanged" } | { readonly kind: "change" } | { readonly kind: "invalid" };

const OPEN_RUNS_PAGE = 200;

/** CONTRACTS §3, the matrix of run control. */
export function transition(status: JobStatus, desired: DesiredState): Transition {
  if (isTerminal(status)) {
    return { kind: status === "cancelled" && desired === "cancelled" ? "unchanged" : "invalid" };
  }
  const isPaused = status === "paused";
  if (desired === "cancelled") return { kind: "change" };
  return { kind: isPaused === (desired === "paused") ? "unchanged" : "change" };
}

export class Runs {
  readonly #parts: RunsParts;

  constructor(parts: RunsParts) {
    this.#parts = parts;
  }

  /**
   * Checks a request for a run; writes nothing.
   *
   * @throws Refusal `job_not_found`; `validation_failed` with every mistake; `conflict` when the bundle's content is
   *   gone
   */
  async prepare(jobId: string, request: RunRequest): Promise<InsertRun> {
    const { records, clock } = this.#parts;
    const job = await records.job(jobId);
    if (job === null) throw jobNotFound(jobId);
    if (request.configOverrides !== null && job.source.kind === "bundle") throw overridesRefused();
    const { graph } = await storedBundle(this.#parts.bundles, job.bundleFingerprint);
    const answer = withInputs(graph, request.inputs);
    if (answer.kind === "invalid") throw inputsRefused(answer.problems);
    const run: NewRun = {
      runId: `run_${this.#parts.newId()}`,
      jobId,
      runtimeJobId: `${graph.graphId}-${this.#parts.newId()}`,
      inputsJson: JSON.stringify(request.inputs),
      configOverridesJson: request.configOverrides === null ? null : JSON.stringify(request.configOverrides),
      trigger: request.trigger,
      traceId: this.#parts.newTraceId(),
      agentsTotal: graph.nodes.length,
      createdAtMs: clock.nowMs(),
    };
    return async (writes) => {
      if (!(await writes.insertRun(run))) throw jobNotFound(jobId);
      return run;
    };
  }

  /** To be called when the run is on disk: it will be launched. */
  accepted(run: NewRun): void {
    this.#parts.launcher.enqueue(run.runId);
  }

  /**
   * Brings a run to the state that is asked for; doing it twice changes nothing.
   *
   * @throws Refusal `run_not_found`, `invalid_transition`; EngineUnavailable
   */
  control(runId: string, desired: DesiredState): Promise<RunRecord> {
    return this.#parts.turns.run(runId, async () => {
      const run = await this.#find(runId);
      const { kind } = transition(run.status, desired);
      if (kind === "invalid") throw invalidTransition(run, desired);
      if (kind === "unchanged" && run.desiredState === desired) return run;
      if (run.launched) return this.#controlLaunched(run, desired);
      return this.#controlWaiting(run, desired);
    });
  }

  /**
   * The same for every run of a job that has not ended.
   *
   * @returns what the runs are afterwards, however many: a few words of each
   * @throws Refusal `job_not_found`; `invalid_transition` when no run is open
   */
  async controlAll(jobId: string, desired: DesiredState): Promise<readonly ControlledRun[]> {
    const { records } = this.#parts;
    if ((await records.job(jobId)) === null) throw jobNotFound(jobId);
    const changed: ControlledRun[] = [];
    let after: string | null = null;
    for (;;) {
      const page: readonly OpenRun[] = await records.openRuns(jobId, { limit: OPEN_RUNS_PAGE, after });
      const last = page.at(-1);
      if (last === undefined) break;
      after = last.runId;
      const now = await Promise.all(page.map((run) => this.#controlOpen(run.runId, desired)));
      changed.push(...now.filter((run) => run !== null));
    }
    if (changed.length > 0) return changed;
    if ((await records.job(jobId)) === null) throw jobNotFound(jobId);
    throw new Refusal(
      "invalid_transition",
      `Job ${jobId} has no run that has not ended, so there is nothing to bring to ${desired}. Start one with POST /api/v1/jobs/${jobId}/runs.`,
    );
  }

  /** One of many: a run that has ended meanwhile is left as it is; null when it went with its job. */
  async #controlOpen(runId: string, desired: DesiredState): Promise<ControlledRun | null> {
    try {
      const { status } = await this.control(runId, desired);
      return { runId, status };
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      const run = await this.#parts.records.run(runId);
      return run === null ? null : { runId, status: run.status };
    }
  }

  async #controlLaunched(run: RunRecord, desired: DesiredState): Promise<RunRecord> {
    const { records, engine, clock } = this.#parts;
    await records.write((writes) => writes.setDesiredState(run.runId, desired, clock.nowMs()));
    const isDone = await applyDesiredState(engine, run.runtimeJobId, desired);
    const now = await this.#find(run.runId);
    if (isDone) return now;
    // The runtime does not have it open: it has just ended, or this start has not come to it yet.
    if (transition(now.status, desired).kind === "invalid") throw invalidTransition(now, desired);
    if (isTerminal(now.status)) return now;
    throw new EngineUnavailable(
      `Run ${run.runId} is still being recovered after a restart; it will be brought to ${desired}.`,
      false,
    );
  }

  async #controlWaiting(run: RunRecord, desired: DesiredState): Promise<RunRecord> {
    const { records, ends, launcher, clock } = this.#parts;
    const { runId } = run;
    if (desired === "cancelled") await ends.cancelled(runId);
    else {
      await records.write(async (writes) => {
        const nowMs = clock.nowMs();
        await writes.setDesiredState(runId, desired, nowMs);
        await writes.setWaiting(runId, desired === "paused" ? "paused" : "pending", null, nowMs);
      });
    }
    if (desired === "running") launcher.enqueue(runId);
    return this.#find(runId);
  }

  async #find(runId: string): Promise<RunRecord> {
    const run = await this.#parts.records.run(runId);
    if (run === null) throw runNotFound(runId);
    return run;
  }
}

export function jobNotFound(jobId: string): Refusal {
  return new Refusal(
    "job_not_found",
    `Job ${jobId} was not found. GET /api/v1/jobs lists the jobs there are.`,
  );
}

export function runNotFound(runId: string): Refusal {
  return new Refusal(
    "run_not_found",
    `Run ${runId} was not found. GET /api/v1/runs lists the runs there are.`,
  );
}

function invalidTransition(run: RunRecord, desired: DesiredState): Refusal {
  return new Refusal(
    "invalid_transition",
    `Run ${run.runId} is ${run.status}, which is final: it cannot become ${desired}. Start a new run instead.`,
  );
}

function overridesRefused(): Refusal {
  const message =
    "config_overrides are for jobs that were made from a catalog blueprint; change this job's resolved_configuration instead";
  return new Refusal("validation_failed", `${message}.`, [
    { path: "/config_overrides", code: "not_allowed", message },
  ]);
}

function inputsRefused(problems: readonly string[]): Refusal {
  const errors = problems.map((message) => ({ path: "/inputs", code: "invalid_inputs", message }));
  return new Refusal("validation_failed", `${problems.join("; ")}.`, errors);
}
