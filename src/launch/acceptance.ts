// Acceptance: the checks before a run is accepted, in ten seconds at most, and what the run's transaction then
// needs.
//
// - A package that asks for nothing costs nothing here: what is to be known of it is remembered with its job.
// - A run with configuration overrides uses the blueprint's package as it is now: a job that was made from an older
//   one is brought up to date in the run's transaction.
// - A run and the removal of its blueprint exclude each other, each in its transaction: a run that was accepted keeps
//   what was prepared for it, and none is accepted once the removal has begun.
// - What else can change until the launch is checked again then; the first check refuses runs that could only fail.

import type { Blueprints } from "../blueprints/blueprints.ts";
import { descriptionOf } from "../blueprints/describe-package.ts";
import type { PackageDescription } from "../blueprints/package-description.ts";
import type { Bundles } from "../bundles/bundles.ts";
import { extensionsOf } from "../bundles/definition.ts";
import type { JsonObject } from "../engine/json.ts";
import type { Clock } from "../engine/ports.ts";
import { DomainError } from "../lib/domain-error.ts";
import type { DeclaredModels } from "../models/serving/declared-models.ts";
import type { Capacity } from "../resources/capacity.ts";
import type { ConfigurationSecrets, EncryptedConfiguration } from "../security/configuration.ts";
import { ConfigurationUnreadable } from "../security/configuration-decryption.ts";
import { type SecretPaths, secretPathsIn } from "../security/secret-detection.ts";
import { WEB_UI_PORT, type WebUiPorts } from "../web/ports.ts";
import { withInputs } from "./inputs.ts";
import { isStillAdded, storedBundle } from "./job-sources.ts";
import { blueprintOf, type LaunchPlans } from "./launch-plans.ts";
import { refuseFailed } from "./preparation/findings.ts";
import type { Preparation } from "./preparation/preparation.ts";
import { missingAssets } from "./preparation/requirements.ts";
import type { LaunchPackage } from "./preparation/resolved-launch.ts";
import type { GatewayWrites, JobDefinition } from "./records.ts";

export const WAITS_FOR_BLUEPRINT = "Waiting for the blueprint to be added";

export interface AcceptanceParts {
  readonly bundles: Bundles;
  readonly plans: LaunchPlans;
  readonly preparation: Pick<Preparation, "check">;
  readonly blueprints: Blueprints;
  readonly webUiPorts: Pick<WebUiPorts, "candidates" | "refusal">;
  readonly secrets: ConfigurationSecrets;
  readonly capacity: Pick<Capacity, "refuseUnsatisfiable">;
  readonly declaredModels: Pick<DeclaredModels, "refuseUnserved">;
  /** Why no run is to begin on this node; null while they are. */
  readonly closed: () => string | null;
  readonly clock: Clock;
}

export interface AskedRun {
  readonly inputs: JsonObject;
  readonly configOverrides: JsonObject | null;
  /** Whether parts of the inputs are not known yet: nothing is checked then that looks at them. */
  readonly isTemplate?: boolean;
}

/** A run that may be accepted. */
export interface AcceptableRun {
  readonly graphId: string;
  readonly agentsTotal: number;
  /** Secrets encrypted, as in configOverridesJson. */
  readonly inputsJson: string;
  readonly configOverridesJson: string | null;
  /** What the run waits for from the beginning. */
  readonly label: string | null;
  /**
   * To be called in the run's transaction, before it is inserted.
   *
   * @throws DomainError `no_free_port`; `blueprint_busy`, `requirements_not_met` when its blueprint is removed meanwhile
   */
  settle(writes: GatewayWrites, runId: string): Promise<void>;
}

/** What a run is made of. */
interface Package extends Omit<LaunchPackage, "description"> {
  /** What the run is checked against; null: nothing. */
  readonly description: PackageDescription | null;
  /** Whether the job is brought up to date with it. */
  readonly isNewer: boolean;
}

export class Acceptance {
  readonly #parts: AcceptanceParts;

  constructor(parts: AcceptanceParts) {
    this.#parts = parts;
  }

  /**
   * Checks everything about a run; writes nothing.
   *
   * @param job as it is, or as it is about to be inserted
   * @throws DomainError `unavailable` while this node is drained; `validation_failed` with every mistake;
   *   `requirements_not_met`, `resource_unsatisfiable`, `no_free_port`; `conflict` when the job's content is gone; `blueprint_busy` while its blueprint
   *   is being removed; for a job that is not ready what Blueprints.forJob throws
   */
  async check(
    job: JobDefinition,
    { inputs, configOverrides, isTemplate = false }: AskedRun,
  ): Promise<AcceptableRun> {
    const closed = this.#parts.closed();
    if (closed !== null) throw new DomainError("unavailable", closed);
    const blueprintId = blueprintOf(job);
    if (blueprintId !== null) await this.#parts.blueprints.refuseRemoving(blueprintId);
    if (configOverrides !== null && job.source.kind === "bundle") throw overridesRefused();
    const found = await this.#packageOf(job, configOverrides !== null);
    const { graph, manifest } = found.definition;
    await this.#parts.capacity.refuseUnsatisfiable(graph);
    await this.#parts.declaredModels.refuseUnserved(graph);
    const answer = withInputs(graph, inputs);
    if (answer.kind === "invalid") throw inputsRefused(answer.problems);
    const paths = secretPathsIn(manifest);
    const overrides =
      configOverrides === null ? null : await this.#encryptedOverrides(job, configOverrides, paths);
    const encryptedInputs = asEncrypted(await this.#parts.secrets.encryptInputs(inputs, { paths }));
    const asked = { inputs, configOverrides: overrides };
    const ports = isTemplate ? null : await this.#portsAfterCheck(job, found, asked);
    return {
      graphId: graph.graphId,
      agentsTotal: graph.nodes.length,
      inputsJson: JSON.stringify(encryptedInputs),
      configOverridesJson: overrides === null ? null : JSON.stringify(overrides),
      label: job.status === "preparing" ? WAITS_FOR_BLUEPRINT : null,
      settle: async (writes, runId) => {
        await this.#refuseRemoved(writes, job, found);
        if (found.isNewer) await this.#bringUpToDate(writes, job.jobId, found);
        if (ports === null) return;
        const port = await writes.ports.reserve(runId, WEB_UI_PORT, ports);
        if (port === null) throw this.#parts.webUiPorts.refusal();
      },
    };
  }

  async #encryptedOverrides(
    job: JobDefinition,
    overrides: JsonObject,
    paths: SecretPaths,
  ): Promise<JsonObject> {
    const stored = JSON.parse(job.configurationJson) as JsonObject;
    return asEncrypted(
      await this.#parts.secrets.encryptGiven(overrides, stored, { at: "/config_overrides", paths }),
    );
  }

  async #packageOf(job: JobDefinition, hasOverrides: boolean): Promise<Package> {
    const { bundles, blueprints, plans } = this.#parts;
    const { bundleFingerprint: fingerprint } = job;
    const blueprintId = blueprintOf(job);
    if (fingerprint === null) {
      if (blueprintId === null) throw new Error(`Job ${job.jobId} is made of nothing.`);
      return { ...(await blueprints.forJob(blueprintId)), isNewer: false };
    }
    if (hasOverrides && blueprintId !== null) {
      const newer = await this.#newerPackage(blueprintId, fingerprint);
      if (newer !== null) return newer;
    }
    const definition = await storedBundle(bundles, fingerprint);
    const description = hasOverrides
      ? (await descriptionOf(definition)).description
      : await plans.preparationOf(job).catch(atLaunch);
    return { blueprintId, fingerprint, definition, description, isNewer: false };
  }

  /** The blueprint's package, if it is added and another than the job's; whatever else it is, the job's own is there. */
  async #newerPackage(blueprintId: string, fingerprint: string): Promise<Package | null> {
    try {
      const found = await this.#parts.blueprints.forJob(blueprintId);
      const isNewer = found.fingerprint !== null && found.fingerprint !== fingerprint;
      return isNewer ? { ...found, isNewer } : null;
    } catch (error) {
      if (error instanceof DomainError) return null;
      throw error;
    }
  }

  /** @returns the ports of which the run needs one; null when it needs none */
  async #portsAfterCheck(
    job: JobDefinition,
    found: Package,
    asked: AskedRun,
  ): Promise<readonly number[] | null> {
    const { preparation, webUiPorts } = this.#parts;
    const { description } = found;
    if (description === null) return null;
    const jobConfiguration = JSON.parse(job.configurationJson) as JsonObject;
    const check = await preparation.check({ ...found, ...asked, description, jobConfiguration });
    refuseFailed(check, job.source.kind === "blueprint" ? "/config_overrides" : "/resolved_configuration");
    if (check.webUi === null) return null;
    const ports = await webUiPorts.candidates();
    if (ports.length === 0) throw webUiPorts.refusal();
    return ports;
  }

  /** In the run's transaction. */
  async #refuseRemoved(
    writes: GatewayWrites,
    job: JobDefinition,
    { blueprintId, fingerprint, description }: Package,
  ): Promise<void> {
    if (blueprintId === null) return;
    await this.#parts.blueprints.refuseRemoving(blueprintId, writes.blueprints);
    if (fingerprint === null || description === null) return;
    const missing = await missingAssets({ blueprintId, fingerprint, description }, writes.blueprints);
    if (missing.length === 0) return;
    // A job of the same transaction may have come to wait for the next addition, which makes them.
    if ((await writes.job(job.jobId))?.status === "preparing") return;
    refuseFailed({ errors: [], unmet: missing }, "");
  }

  /** In the run's transaction: the job may have changed since it was checked, and keeps what it has otherwise. */
  async #bringUpToDate(
    writes: GatewayWrites,
    jobId: string,
    { blueprintId, fingerprint, definition }: Package,
  ): Promise<void> {
    const job = await writes.job(jobId);
    if (job === null || blueprintId === null || job.bundleFingerprint === fingerprint) return;
    if (!(await isStillAdded(writes, { blueprintId, fingerprint }))) return;
    const upToDate: JobDefinition = {
      ...job,
      bundleFingerprint: fingerprint,
      graphId: definition.graph.graphId,
      extensions: extensionsOf(definition),
      revision: job.revision + 1,
      updatedAtMs: Math.max(this.#parts.clock.nowMs(), job.updatedAtMs),
    };
    await writes.updateJob(upToDate, job.revision);
  }
}

/** @throws DomainError with every wrong place */
function asEncrypted(encrypted: EncryptedConfiguration): JsonObject {
  if (encrypted.kind === "encrypted") return encrypted.value;
  const messages = encrypted.errors.map(({ message }) => message).join("; ");
  throw new DomainError("validation_failed", `Invalid run: ${messages}.`, encrypted.errors);
}

/** A configuration that cannot be read fails the run, with that in its failure. */
function atLaunch(error: unknown): null {
  if (error instanceof ConfigurationUnreadable) return null;
  throw error;
}

function overridesRefused(): DomainError {
  const message =
    "config_overrides are for jobs that were made from a catalog blueprint; change this job's resolved_configuration instead";
  return new DomainError("validation_failed", `${message}.`, [
    { path: "/config_overrides", code: "not_allowed", message },
  ]);
}

export function inputsRefused(problems: readonly string[]): DomainError {
  const errors = problems.map((message) => ({ path: "/inputs", code: "invalid_inputs", message }));
  return new DomainError("validation_failed", `${problems.join("; ")}.`, errors);
}
