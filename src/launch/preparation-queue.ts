// Preparations of launches: what happens between a run's acceptance and its submission when its package needs more
// than its snapshot. It may take long, and happens outside the run's turn.
//
// - At most four at a time (operations/work-queue.ts).
// - The result of one is kept until the launcher has used it; of many that are not used (their runs are paused) the
//   oldest are forgotten, and prepared again.
// - A run that is dropped is aborted. Its files are removed with the run's end, which is not done here.
// - Nothing here survives the process: the next one prepares again what was not submitted.
// - One whose services are not there yet (after a restart their jobs are only being recovered) is tried again for a
//   while; what is missing then fails the run.
// - One that meets an unexpected error is tried again, and its run's label tells so; at the last try the error fails
//   the run.

import { getSystemErrorMessage } from "node:util";
import { descriptionOf } from "../blueprints/describe-package.ts";
import type { WebUi } from "../blueprints/package-description.ts";
import type { BlueprintRecords } from "../blueprints/records.ts";
import { BundleProblem, messagesOf } from "../bundles/problem.ts";
import { FilesUnavailable } from "../bundles/shared-folders.ts";
import type { FailureCode } from "../engine/failure-catalogue.ts";
import type { JsonObject } from "../engine/json.ts";
import type { Clock, EngineLog } from "../engine/ports.ts";
import { OperationInterrupted } from "../operations/failures.ts";
import type { Ownership } from "../operations/ownership.ts";
import { Throttle } from "../operations/throttle.ts";
import { isUnavailable, WorkQueue } from "../operations/work-queue.ts";
import type { ConfigurationSecrets } from "../security/configuration.ts";
import { ConfigurationUnreadable } from "../security/configuration-decryption.ts";
import { WEB_UI_PORT, type WebUiPorts } from "../web/ports.ts";
import type { PortRecords } from "../web/records.ts";
import { blueprintOf, type LaunchPlans } from "./launch-plans.ts";
import { PreparationFailed } from "./preparation/findings.ts";
import type { PreparationProgress } from "./preparation/payload.ts";
import type { Preparation, PreparedLaunch } from "./preparation/preparation.ts";
import { type LaunchSubject, resolveLaunch } from "./preparation/resolved-launch.ts";
import type { GatewayRecords, JobDefinition, OpenRun, RunRecord } from "./records.ts";

const AT_ONCE_MAX = 4;
const WAITING_MAX = 100_000;
const OUTCOMES_MAX = 100;
/** One a second: about a minute, for errors that do not last. */
const TRIES_MAX = 60;
/** Of a run that waits for services: half a minute. */
const LOOKS_MAX = 30;
const LABEL_EVERY_MS = 1_000;

/** The result of the preparation of a run. */
export type PreparationOutcome =
  | { readonly kind: "prepared"; readonly launch: PreparedLaunch; readonly bundleFingerprint: string }
  | { readonly kind: "failed"; readonly code: FailureCode; readonly message: string };

/** The result of one try. */
type Attempt =
  | PreparationOutcome
  /** It is to be done again. */
  | { readonly kind: "interrupted"; readonly error: unknown }
  /** The run's services are to be waited for; there is at least one. */
  | {
      readonly kind: "waits";
      readonly services: readonly string[];
      readonly isMissing: () => Promise<boolean>;
    }
  /** The run is not to be launched any more. */
  | { readonly kind: "dropped" };

export interface PreparationQueueParts {
  readonly records: GatewayRecords;
  readonly plans: LaunchPlans;
  readonly preparation: Pick<Preparation, "prepare" | "missingServices">;
  readonly blueprints: Pick<BlueprintRecords, "prepared">;
  readonly ports: Pick<PortRecords, "portsOf">;
  readonly webUiPorts: Pick<WebUiPorts, "candidates" | "refusal">;
  readonly secrets: ConfigurationSecrets;
  readonly ownership: Ownership;
  readonly clock: Clock;
  readonly log: EngineLog;
}

export class PreparationQueue {
  readonly #parts: PreparationQueueParts;
  readonly #onOutcome: (runId: string) => void;
  readonly #queue: WorkQueue;
  readonly #outcomes = new Map<string, PreparationOutcome>();
  /** Runs that wait for their services. */
  readonly #waits = new Map<string, { readonly isMissing: () => Promise<boolean>; looks: number }>();

  /** @param onOutcome called when there is an outcome */
  constructor(parts: PreparationQueueParts, onOutcome: (runId: string) => void) {
    this.#parts = parts;
    this.#onOutcome = onOutcome;
    this.#queue = new WorkQueue({
      what: "the preparation of a launch",
      keyName: "run_id",
      atOnceMax: AT_ONCE_MAX,
      work: (runId, signal, errors) => this.#work(runId, signal, errors),
      clock: parts.clock,
      log: parts.log,
    });
  }

  /** Runs that wait for their preparation or their services, or are being prepared. */
  get size(): number {
    return this.#queue.size;
  }

  /** Whether there will be an outcome. */
  has(runId: string): boolean {
    return !this.#outcomes.has(runId) && this.#queue.has(runId);
  }

  outcomeOf(runId: string): PreparationOutcome | null {
    return this.#outcomes.get(runId) ?? null;
  }

  /**
   * Asks for a run's preparation; one that is under way continues.
   * @returns false when there is no room; the same may be tried again
   */
  begin(runId: string): boolean {
    if (!this.has(runId) && this.size >= WAITING_MAX) return false;
    // Also of one that is under way: it may have found the run paused a moment ago.
    this.#queue.add(runId);
    return true;
  }

  /** To be called when the outcome was used. */
  forget(runId: string): void {
    this.#outcomes.delete(runId);
  }

  /** The run will not be launched: ends its preparation, and forgets its result. */
  drop(runId: string): void {
    this.#queue.drop(runId);
    this.#waits.delete(runId);
    this.#outcomes.delete(runId);
  }

  /** Aborts what is under way; resolves when nothing is. */
  stop(): Promise<void> {
    return this.#queue.stop();
  }

  async #work(runId: string, signal: AbortSignal, errors: number): Promise<void> {
    if (this.#outcomes.has(runId)) return;
    const wait = this.#waits.get(runId);
    // A look at the services alone: thousands may wait.
    if (wait !== undefined && ++wait.looks < LOOKS_MAX && (await wait.isMissing()))
      throw new OperationInterrupted();
    const hasWaited = this.#waits.delete(runId);
    const label = labelWriter(this.#parts, runId);
    const now = await this.#prepare(runId, hasWaited, { signal, report: label.report }).catch(
      (error: unknown) => afterError(error, signal, errors),
    );
    await label.end(labelOf(now));
    if (signal.aborted) return;
    switch (now.kind) {
      case "dropped":
        return;
      case "waits":
        this.#waits.set(runId, { isMissing: now.isMissing, looks: 0 });
        throw new OperationInterrupted();
      case "interrupted":
        throw now.error;
      default:
        this.#keep(runId, now);
    }
  }

  #keep(runId: string, outcome: PreparationOutcome): void {
    this.#outcomes.set(runId, outcome);
    const [oldest] = this.#outcomes.keys();
    if (this.#outcomes.size > OUTCOMES_MAX && oldest !== undefined) this.#outcomes.delete(oldest);
    this.#onOutcome(runId);
  }

  async #prepare(runId: string, hasWaited: boolean, progress: PreparationProgress): Promise<Attempt> {
    const { records, plans, preparation, secrets, ownership } = this.#parts;
    const run = await records.run(runId);
    const job = run === null ? null : await records.job(run.jobId);
    if (run === null || job === null || job.status !== "ready" || !isToBeLaunched(run))
      return { kind: "dropped" };
    if (run.owner !== ownership.owner()) return { kind: "dropped" };
    const { definition, bundleFingerprint } = await plans.of(job);
    const { description, problems } = await descriptionOf(definition);
    if (description === null) return failed("manifest.invalid", messagesOf(problems));
    const asked = await askedOf(job, run, secrets);
    const subject: LaunchSubject = { ...asked, fingerprint: bundleFingerprint, definition, description };
    const services = await preparation.missingServices(description);
    if (!hasWaited && services.length > 0) {
      return {
        kind: "waits",
        services,
        isMissing: async () => (await preparation.missingServices(description)).length > 0,
      };
    }
    const ports = await this.#portsOf(runId, (await resolveLaunch(subject, secrets)).webUi);
    if (ports === null) return failed("preparation.no_free_port", this.#parts.webUiPorts.refusal().message);
    const wasChecked = await this.#wasAdded(blueprintOf(job), run.createdAtMs);
    const launch = await preparation.prepare(
      { runId, jobId: run.jobId, ports, wasChecked },
      subject,
      progress,
    );
    return { kind: "prepared", launch, bundleFingerprint };
  }

  /** Whether a blueprint's package was there at that time, and has not been replaced since. */
  async #wasAdded(blueprintId: string | null, atMs: number): Promise<boolean> {
    if (blueprintId === null) return true;
    const addedAtMs = (await this.#parts.blueprints.prepared(blueprintId))?.addedAtMs ?? null;
    return addedAtMs !== null && addedAtMs < atMs;
  }

  /**
   * The run's ports. One whose dashboard was not known of when it was accepted gets its own now.
   * @returns null when it needs one, and all are in use
   */
  async #portsOf(runId: string, webUi: WebUi | null): Promise<ReadonlyMap<string, number> | null> {
    const { ports, records, webUiPorts } = this.#parts;
    const given = await ports.portsOf(runId);
    if (webUi === null || given.has(WEB_UI_PORT)) return given;
    const candidates = await webUiPorts.candidates();
    const port = await records.write((writes) => writes.ports.reserve(runId, WEB_UI_PORT, candidates));
    return port === null ? null : new Map([...given, [WEB_UI_PORT, port]]);
  }
}

export function isToBeLaunched({ launched, status, desiredState }: OpenRun): boolean {
  return !launched && status === "pending" && desiredState === "running";
}

/** The failure of a run whose job cannot be launched as it is; null for what may succeed when it is tried again. */
export function failureCodeOf(error: unknown): FailureCode | null {
  if (error instanceof BundleProblem) return "runtime.bundle_missing";
  if (error instanceof PreparationFailed || error instanceof ConfigurationUnreadable) return error.code;
  return null;
}

/** @param errors unexpected ones before this one */
function afterError(error: unknown, signal: AbortSignal, errors: number): Attempt {
  if (signal.aborted) return { kind: "dropped" };
  const code = failureCodeOf(error);
  if (code !== null) return failed(code, (error as Error).message);
  // A store that takes nothing, or a node that has what is needed and is away, is no fault of this run.
  const tries = errors + 1;
  if (isUnavailable(error) || error instanceof FilesUnavailable || tries < TRIES_MAX)
    return { kind: "interrupted", error };
  const message = `The launch could not be prepared in ${tries} tries, the last time because of ${reasonOf(error)}.`;
  return failed("preparation.unexpected_error", message);
}

/** The label of a run that is not launched yet; null: none. */
function labelOf(now: Attempt): string | null {
  if (now.kind === "interrupted") return `Preparing again after ${reasonOf(now.error)}`;
  if (now.kind !== "waits") return null;
  const [first, ...others] = now.services;
  const more = others.length === 0 ? "" : ` and ${others.length} more`;
  return `Waiting for service ${first}${more}`;
}

/** Without the places of this machine that are in an error's own text. */
function reasonOf(error: unknown): string {
  if (error instanceof FilesUnavailable) return error.message;
  const { code, errno } = error as NodeJS.ErrnoException;
  if (code === undefined || errno === undefined) return "an error of the runtime itself, which is in its log";
  return `${code} (${getSystemErrorMessage(errno)})`;
}

function failed(code: FailureCode, message: string): PreparationOutcome {
  return { kind: "failed", code, message };
}

/** @throws ConfigurationUnreadable */
async function askedOf(job: JobDefinition, run: RunRecord, secrets: ConfigurationSecrets) {
  const { configOverridesJson: overrides } = run;
  return {
    blueprintId: blueprintOf(job),
    jobConfiguration: JSON.parse(job.configurationJson) as JsonObject,
    configOverrides: overrides === null ? null : (JSON.parse(overrides) as JsonObject),
    inputs: await secrets.decrypt(JSON.parse(run.inputsJson) as JsonObject),
  };
}

/** Writes the label of a run while it is prepared. */
function labelWriter({ records, clock, log }: PreparationQueueParts, runId: string) {
  let written: string | null = null;
  const write = async (label: string | null) => {
    if (label === written) return;
    written = label;
    try {
      await records.write((writes) => writes.setLabel(runId, label, clock.nowMs()));
    } catch (error) {
      // A store that takes nothing at the moment loses a label; the preparation continues.
      log.warn({ run_id: runId, error: String(error) }, "a run's label could not be written");
    }
  };
  const throttle = new Throttle<string>({ clock, everyMs: () => LABEL_EVERY_MS, write });
  return {
    report: (label: string) => throttle.report(label),
    /** Writes no more; resolves when the label is `last`. */
    end: async (last: string | null) => {
      await throttle.close();
      await write(last);
    },
  };
}
