// Submissions: how a run that is to be launched becomes a job of the runtime, or fails with the reason why not.
//
// U1. A run whose package needs no more than its snapshot is submitted at once; every other one is prepared first,
//     and `isReady` is told when it may be submitted.
// U2. Nothing is remembered of a run that fails here.

import { JobUnwritable } from "../engine/batch.ts";
import type { Engine } from "../engine/engine.ts";
import type { FailureCode } from "../engine/failure-catalogue.ts";
import { withInputs } from "../engine/inputs.ts";
import type { JsonObject } from "../engine/json.ts";
import { blueprintOf, type LaunchPlan } from "./launch-plans.ts";
import { failureCodeOf, LaunchPreparations, type LaunchPreparationsParts } from "./launch-preparations.ts";
import type { PreparedLaunch } from "./preparation/preparation.ts";
import type { JobDefinition, RunRecord } from "./records.ts";
import type { RunEnds } from "./run-ends.ts";

export interface SubmissionsParts extends LaunchPreparationsParts {
  readonly engine: Engine;
  readonly ends: RunEnds;
}

export class Submissions {
  readonly #parts: SubmissionsParts;
  readonly #preparations: LaunchPreparations;

  /** @param isReady called when `submit` may have more to do for a run: its preparation has ended */
  constructor(parts: SubmissionsParts, isReady: (runId: string) => void) {
    this.#parts = parts;
    this.#preparations = new LaunchPreparations(parts, isReady);
  }

  /** Runs that are being prepared, or wait for it. */
  get preparing(): number {
    return this.#preparations.size;
  }

  isPreparing(runId: string): boolean {
    return this.#preparations.has(runId);
  }

  /** The run will not be launched: its preparation ends. */
  drop(runId: string): void {
    this.#preparations.drop(runId);
  }

  /** Resolves when no preparation is under way. */
  stop(): Promise<void> {
    return this.#preparations.stop();
  }

  /**
   * Hands a run that is to be launched to the runtime, or begins its preparation, or lets it fail with the reason; to be
   * called in the run's turn.
   *
   * @throws EngineUnavailable, JournalUnavailable, and what nobody foresaw
   */
  async submit(run: RunRecord): Promise<void> {
    const { records, plans } = this.#parts;
    const job = await records.job(run.jobId);
    if (job === null || job.status === "preparing") return;
    if (job.status === "failed_preparation") {
      await this.#fail(run, "blueprint.not_prepared", await this.#whyNotPrepared(job));
      return;
    }
    const plan = await plans.of(job).catch((error: unknown) => asFailure(error));
    if ("code" in plan) await this.#fail(run, plan.code, plan.message);
    else if (plan.preparation !== null || run.configOverridesJson !== null) await this.#submitPrepared(run);
    else await this.#submitAs(run, plan.bundleFingerprint, launchOf(plan, run));
  }

  /** Begins the run's preparation, or uses what came of it (U1). */
  async #submitPrepared(run: RunRecord): Promise<void> {
    const { runId } = run;
    const outcome = this.#preparations.outcomeOf(runId);
    if (outcome?.kind === "prepared") {
      await this.#submitAs(run, outcome.bundleFingerprint, outcome.launch);
      this.#preparations.forget(runId);
    } else if (outcome?.kind === "failed") {
      await this.#fail(run, outcome.code, outcome.message);
    } else if (outcome?.kind === "interrupted") {
      this.#preparations.forget(runId);
      throw outcome.error;
    } else if (!this.#preparations.begin(runId)) throw new Error("too many launches are being prepared");
  }

  async #submitAs(run: RunRecord, bundleFingerprint: string, launch: PreparedLaunch): Promise<void> {
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

/** @throws what may pass */
function asFailure(error: unknown): { readonly code: FailureCode; readonly message: string } {
  const code = failureCodeOf(error);
  if (code === null) throw error;
  return { code, message: (error as Error).message };
}
