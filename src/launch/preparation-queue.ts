// Preparations of launches: what happens between a run's acceptance and its submission when its package needs more
// than its snapshot. It may take long, and happens outside the run's turn.
//
// V1. At most four at a time; the others wait in the order in which they came, as ids alone.
// V2. What came of one is kept until the launcher has used it; of many that nobody uses (their runs are paused) the
//     oldest are forgotten, and prepared anew.
// V3. A run that is dropped is aborted. Its files go with the run's end, which is not looked after here.
// V4. Nothing here survives the process: the next one prepares anew what was not submitted.
// V5. One whose services are not there yet waits for them outside of the four, for a while (service-waits.ts); what is
//     missing then fails the run.
// V6. One that meets an error that nobody foresaw is begun again by the launcher, and its run is told; at the last try
//     the error fails the run.

import { getSystemErrorMessage } from "node:util";
import { descriptionOf } from "../blueprints/describe-package.ts";
import type { WebUi } from "../blueprints/package-description.ts";
import type { BlueprintRecords } from "../blueprints/records.ts";
import { BundleProblem, messagesOf } from "../bundles/problem.ts";
import type { FailureCode } from "../engine/failure-catalogue.ts";
import { JournalUnavailable } from "../engine/journal.ts";
import type { JsonObject } from "../engine/json.ts";
import type { Clock, EngineLog } from "../engine/ports.ts";
import type { ConfigurationSecrets } from "../security/configuration.ts";
import { ConfigurationUnreadable } from "../security/open-configuration.ts";
import { WEB_UI_PORT, type WebUiPorts } from "../web/ports.ts";
import type { PortRecords } from "../web/records.ts";
import { LabelWriter } from "./label-writer.ts";
import { blueprintOf, type LaunchPlans } from "./launch-plans.ts";
import type { Preparation } from "./preparation/launch-preparation.ts";
import { type LaunchSubject, PreparationFailed, type PreparedLaunch } from "./preparation/preparation.ts";
import { resolveLaunch } from "./preparation/resolved-launch.ts";
import type { GatewayRecords, JobDefinition, OpenRun, RunRecord } from "./records.ts";
import { ServiceWaits, waitLabel } from "./service-waits.ts";

const AT_ONCE_MAX = 4;
const WAITING_MAX = 100_000;
const OUTCOMES_MAX = 100;
/** The launcher begins one again after a second: more than a minute, for what passes by itself. */
const TRIES_MAX = 60;

/** What came of the preparation of a run. */
export type PreparationOutcome =
  | { readonly kind: "prepared"; readonly launch: PreparedLaunch; readonly bundleFingerprint: string }
  | { readonly kind: "failed"; readonly code: FailureCode; readonly message: string }
  /** Something that may pass; it is to be begun again. */
  | { readonly kind: "interrupted"; readonly error: unknown };

/** The run's services are to be waited for. */
interface Waits {
  readonly kind: "waits";
  readonly services: readonly string[];
  readonly isMissing: () => boolean;
}

export interface LaunchPreparationsParts {
  readonly records: GatewayRecords;
  readonly plans: LaunchPlans;
  readonly preparation: Pick<Preparation, "prepare" | "missingServices">;
  readonly blueprints: Pick<BlueprintRecords, "prepared">;
  readonly ports: Pick<PortRecords, "portsOf">;
  readonly webUiPorts: Pick<WebUiPorts, "candidates" | "refusal">;
  readonly secrets: ConfigurationSecrets;
  readonly clock: Clock;
  readonly log: EngineLog;
}

export class LaunchPreparations {
  readonly #parts: LaunchPreparationsParts;
  readonly #onEnd: (runId: string) => void;
  readonly #waiting = new Set<string>();
  readonly #underWay = new Map<string, { readonly abort: AbortController; readonly work: Promise<void> }>();
  readonly #outcomes = new Map<string, PreparationOutcome>();
  readonly #serviceWaits: ServiceWaits;
  /** Runs in `#waiting` whose wait for services is over. */
  readonly #hasWaited = new Set<string>();
  /** How often the preparation of a run was interrupted until now (V6). */
  readonly #interruptions = new Map<string, number>();
  #isStopped = false;

  /** @param onEnd called when a preparation has ended: there is an outcome, or the run was not to be launched then */
  constructor(parts: LaunchPreparationsParts, onEnd: (runId: string) => void) {
    this.#parts = parts;
    this.#onEnd = onEnd;
    this.#serviceWaits = new ServiceWaits(parts.clock);
  }

  /** Runs that wait for their preparation or their services, or are being prepared. */
  get size(): number {
    return this.#waiting.size + this.#underWay.size + this.#serviceWaits.size;
  }

  has(runId: string): boolean {
    return this.#waiting.has(runId) || this.#underWay.has(runId) || this.#serviceWaits.has(runId);
  }

  outcomeOf(runId: string): PreparationOutcome | null {
    return this.#outcomes.get(runId) ?? null;
  }

  /**
   * Asks for a run's preparation; nothing happens when it waits or is under way.
   * @returns false when there is no room; the same may be tried again
   */
  begin(runId: string): boolean {
    if (this.has(runId) || this.#isStopped) return true;
    if (this.size >= WAITING_MAX) return false;
    this.#waiting.add(runId);
    this.#fill();
    return true;
  }

  /** To be called when the outcome was used. */
  forget(runId: string): void {
    this.#outcomes.delete(runId);
  }

  /** The run will not be launched: ends its preparation, and forgets what came of it (V3). */
  drop(runId: string): void {
    this.#waiting.delete(runId);
    this.#hasWaited.delete(runId);
    this.#serviceWaits.drop(runId);
    this.#interruptions.delete(runId);
    this.#outcomes.delete(runId);
    this.#underWay.get(runId)?.abort.abort();
  }

  /** Aborts what is under way; resolves when nothing is. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#waiting.clear();
    this.#serviceWaits.dropAll();
    for (const { abort } of this.#underWay.values()) abort.abort();
    await Promise.all([...this.#underWay.values()].map(({ work }) => work));
  }

  #fill(): void {
    for (const runId of this.#waiting) {
      if (this.#underWay.size >= AT_ONCE_MAX || this.#isStopped) return;
      this.#waiting.delete(runId);
      const abort = new AbortController();
      const work = this.#work(runId, abort.signal).finally(() => {
        this.#underWay.delete(runId);
        this.#fill();
        // Without an outcome too: meanwhile the run may have been asked to go on.
        this.#onEnd(runId);
      });
      this.#underWay.set(runId, { abort, work });
    }
  }

  async #work(runId: string, signal: AbortSignal): Promise<void> {
    const label = new LabelWriter(this.#parts, runId);
    const outcome = await this.#prepare(runId, { signal, report: label.report }).catch((error: unknown) =>
      this.#outcomeOfError(runId, error),
    );
    if (outcome?.kind === "waits") return this.#waitForServices(runId, outcome, label, signal);
    await label.end(
      outcome?.kind === "interrupted" ? `Preparing again after ${reasonOf(outcome.error)}` : null,
    );
    if (outcome === null || signal.aborted) return;
    if (outcome.kind !== "interrupted") this.#interruptions.delete(runId);
    this.#outcomes.set(runId, outcome);
    const [oldest] = this.#outcomes.keys();
    if (this.#outcomes.size > OUTCOMES_MAX && oldest !== undefined) this.#outcomes.delete(oldest);
  }

  #outcomeOfError(runId: string, error: unknown): PreparationOutcome {
    const code = failureCodeOf(error);
    if (code !== null) return failed(code, (error as Error).message);
    // A store that takes nothing holds up all runs, and is no fault of this one.
    if (error instanceof JournalUnavailable) return { kind: "interrupted", error };
    const tries = (this.#interruptions.get(runId) ?? 0) + 1;
    this.#interruptions.set(runId, tries);
    if (tries < TRIES_MAX) return { kind: "interrupted", error };
    const message = `The launch could not be prepared in ${tries} tries, the last time because of ${reasonOf(error)}.`;
    return failed("preparation.unexpected_error", message);
  }

  async #waitForServices(
    runId: string,
    { services, isMissing }: Waits,
    label: LabelWriter,
    signal: AbortSignal,
  ): Promise<void> {
    await label.end(waitLabel(services));
    if (signal.aborted) return;
    this.#serviceWaits.begin(runId, isMissing, () => {
      this.#hasWaited.add(runId);
      this.#waiting.add(runId);
      this.#fill();
    });
  }

  /** @returns null when the run is not to be launched any more */
  async #prepare(
    runId: string,
    progress: { readonly signal: AbortSignal; report(label: string): void },
  ): Promise<PreparationOutcome | Waits | null> {
    const { records, plans, preparation, secrets } = this.#parts;
    const hasWaited = this.#hasWaited.delete(runId);
    const run = await records.run(runId);
    const job = run === null ? null : await records.job(run.jobId);
    if (run === null || job === null || job.status !== "ready" || !isToBeLaunched(run)) return null;
    const { definition, bundleFingerprint } = await plans.of(job);
    const { description, problems } = descriptionOf(definition);
    if (description === null) return failed("manifest.invalid", messagesOf(problems));
    const asked = askedOf(job, run, secrets);
    const subject: LaunchSubject = { ...asked, fingerprint: bundleFingerprint, definition, description };
    const services = preparation.missingServices(description);
    if (!hasWaited && services.length > 0) {
      return {
        kind: "waits",
        services,
        isMissing: () => preparation.missingServices(description).length > 0,
      };
    }
    const ports = await this.#portsOf(runId, resolveLaunch(subject, secrets).webUi);
    if (ports === null) return failed("preparation.no_free_port", this.#parts.webUiPorts.refusal().message);
    const wasExamined = await this.#wasAdded(blueprintOf(job), run.createdAtMs);
    const launch = await preparation.prepare(
      { runId, jobId: run.jobId, ports, wasExamined },
      subject,
      progress,
    );
    return { kind: "prepared", launch, bundleFingerprint };
  }

  /** Whether a blueprint's package was there at that time, and has not been made anew since. */
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

/** The failure of a run whose job cannot be launched as it is; null for what may pass. */
export function failureCodeOf(error: unknown): FailureCode | null {
  if (error instanceof BundleProblem) return "runtime.bundle_missing";
  if (error instanceof PreparationFailed || error instanceof ConfigurationUnreadable) return error.code;
  return null;
}

/** Without the places of this machine that are in an error's own text. */
function reasonOf(error: unknown): string {
  const { code, errno } = error as NodeJS.ErrnoException;
  if (code === undefined || errno === undefined) return "an error of the runtime itself, which is in its log";
  return `${code} (${getSystemErrorMessage(errno)})`;
}

function failed(code: FailureCode, message: string): PreparationOutcome {
  return { kind: "failed", code, message };
}

/** @throws ConfigurationUnreadable */
function askedOf(job: JobDefinition, run: RunRecord, secrets: ConfigurationSecrets) {
  const { configOverridesJson: overrides } = run;
  return {
    blueprintId: blueprintOf(job),
    jobConfiguration: JSON.parse(job.configurationJson) as JsonObject,
    configOverrides: overrides === null ? null : (JSON.parse(overrides) as JsonObject),
    inputs: secrets.unseal(JSON.parse(run.inputsJson) as JsonObject),
  };
}
