// Deployments as their owners see them: made, changed, promoted, rolled back, paused, failed and removed.
//
// - What a version is made of is checked, and its job is made, before the version is there.
// - A change names the revision it was made for; it lands on that revision or not at all.

import { mergePatch } from "../bundles/merge.ts";
import type { JsonObject } from "../engine/json.ts";
import type { Clock } from "../engine/ports.ts";
import { DomainError, type DomainErrorEntry } from "../lib/domain-error.ts";
import type { ConfigurationSecrets } from "../security/configuration.ts";
import { fail, pause, promote, removed, resume, rollBack, withSettings, withVersion } from "./changes.ts";
import { withEvents } from "./events.ts";
import { versionOf } from "./health.ts";
import type { ControllerRecords, ControllerWrites, VersionDraft, VersionRequest } from "./instance-runs.ts";
import type { Deployment, DeploymentSettings, DeploymentSource, Strategy } from "./records.ts";

/** Each deployment and each change of one is looked at by all of its instances. */
export const COUNT_MAX = 200;

export interface DeploymentsParts<Writes extends ControllerWrites> {
  readonly records: ControllerRecords<Writes>;
  /** Checks what a version is to be made of. @throws DomainError */
  readonly draftVersion: (request: VersionRequest) => Promise<VersionDraft<Writes>>;
  readonly secrets: ConfigurationSecrets;
  /** The controller's: waits are counted by it. */
  readonly nowMs: () => number;
  readonly clock: Pick<Clock, "nowMs">;
  readonly newId: () => string;
}

export interface NewDeployment extends DeploymentSettings {
  readonly source: DeploymentSource;
  readonly config: JsonObject;
}

export interface DeploymentPatch extends Partial<DeploymentSettings> {
  readonly source?: DeploymentSource;
  /** A JSON merge patch (RFC 7396) on what is shown; null takes all of it away. */
  readonly config?: JsonObject | null;
}

/** A change that is written; `DeploymentController.changed` is to be called after its commit. */
export interface Changed {
  readonly deployment: Deployment;
  readonly lines: readonly string[];
}

export interface DeploymentDraft<Writes> {
  insert(writes: Writes): Promise<Changed>;
  /** To be called after its commit. */
  created(): void;
}

/** What an owner asks for, beside changes of its settings. */
export type Action =
  | { readonly kind: "promote" | "pause" | "resume" }
  | { readonly kind: "rollback"; readonly version: number | null }
  | { readonly kind: "fail"; readonly rollback: boolean };

export class Deployments<Writes extends ControllerWrites> {
  readonly #parts: DeploymentsParts<Writes>;

  constructor(parts: DeploymentsParts<Writes>) {
    this.#parts = parts;
  }

  /** Checks a request for a deployment; writes nothing. @throws DomainError what the check of its version throws */
  async prepareCreate({ source, config, ...settings }: NewDeployment): Promise<DeploymentDraft<Writes>> {
    refuseInvalid(settings);
    const { newId, nowMs, clock } = this.#parts;
    const draft = await this.#parts.draftVersion({ name: settings.name, source, config });
    const now = nowMs();
    const empty: Deployment = {
      ...settings,
      deploymentId: `deployment_${newId()}`,
      version: 0,
      versions: [],
      lastVersion: 0,
      status: "pending",
      stable: null,
      isRollingBack: false,
      isPromoted: false,
      progressAtMs: now,
      lastFailure: null,
      instances: [],
      started: 0,
      isDeleted: false,
      eventSeq: 0,
      revision: 1,
      changes: 1,
      createdAtMs: now,
      updatedAtMs: now,
    };
    return {
      insert: async (writes) => {
        const jobId = await draft.insert(writes);
        const made = { jobId, source, config: draft.config, services: draft.services };
        const first: Deployment = { ...withVersion(empty, made, now), status: "pending" };
        const { counted, lines } = withEvents(first, null, clock.nowMs());
        await writes.deployments.insert(counted);
        await writes.deployments.addEvents(counted.deploymentId, 1, lines);
        return { deployment: counted, lines };
      },
      created: () => draft.created(),
    };
  }

  /** @throws DomainError `deployment_not_found` */
  async find(deploymentId: string): Promise<Deployment> {
    return found(await this.#parts.records.deployments.deployment(deploymentId), deploymentId);
  }

  /**
   * Changes what a deployment is to be. Another source or configuration is a new version, and the instances are replaced.
   *
   * @param before as the caller saw it
   * @throws DomainError `precondition_failed`, `deployment_not_found`, and what the check of its version throws
   */
  async update(before: Deployment, { source, config, ...settings }: DeploymentPatch): Promise<Changed> {
    refuseInvalid({ ...before, ...settings });
    const { records, nowMs } = this.#parts;
    const current = versionOf(before, before.version);
    const from = source ?? current?.source;
    const isNew = from !== undefined && (source !== undefined || config !== undefined);
    const draft = isNew
      ? await this.#parts.draftVersion({
          name: settings.name ?? before.name,
          source: from,
          config: await this.#patched(current?.config ?? {}, config),
        })
      : null;
    const changed = await records.write(async (writes) =>
      this.#changeIn(writes, before.deploymentId, async (now) => {
        if (now.revision !== before.revision) throw changedMeanwhile(now);
        const next = withSettings(now, settings);
        if (draft === null || from === undefined) return next;
        const jobId = await draft.insert(writes);
        const made = { jobId, source: from, config: draft.config, services: draft.services };
        return withVersion(next, made, nowMs());
      }),
    );
    draft?.created();
    return changed;
  }

  /** @returns the plain values */
  async #patched(stored: JsonObject, patch: JsonObject | null | undefined): Promise<JsonObject> {
    const { secrets } = this.#parts;
    if (patch === null) return {};
    if (patch === undefined) return secrets.decrypt(stored);
    const encrypted = await secrets.encryptGiven(mergePatch(secrets.mask(stored), patch), stored, {
      at: "/config",
    });
    if (encrypted.kind === "encrypted") return secrets.decrypt(encrypted.value);
    throw invalid(encrypted.errors);
  }

  /** Doing it twice changes nothing, where that makes sense. @throws DomainError `invalid_transition`, `deployment_not_found` */
  act(writes: Writes, deploymentId: string, action: Action): Promise<Changed> {
    return this.#changeIn(writes, deploymentId, async (now) => acted(now, action, this.#parts.nowMs()));
  }

  /** Its instances are drained and stopped. @param before as the caller saw it @throws as `update` */
  remove(before: Deployment): Promise<Changed> {
    return this.#parts.records.write((writes) =>
      this.#changeIn(writes, before.deploymentId, async (now) => {
        if (now.revision !== before.revision) throw changedMeanwhile(now);
        return removed(now);
      }),
    );
  }

  async #changeIn(
    { deployments }: Writes,
    deploymentId: string,
    change: (now: Deployment) => Promise<Deployment>,
  ): Promise<Changed> {
    const now = found(await deployments.deployment(deploymentId), deploymentId);
    const next = await change(now);
    if (next === now) return { deployment: now, lines: [] };
    const { nowMs, clock } = this.#parts;
    const changed: Deployment = {
      ...next,
      revision: now.revision + 1,
      changes: now.changes + 1,
      updatedAtMs: Math.max(nowMs(), now.updatedAtMs),
    };
    const { counted, lines } = withEvents(changed, now, clock.nowMs());
    await deployments.save(counted, now);
    await deployments.addEvents(deploymentId, now.eventSeq + 1, lines);
    return { deployment: counted, lines };
  }
}

function acted(deployment: Deployment, action: Action, nowMs: number): Deployment {
  switch (action.kind) {
    case "promote":
      return promote(deployment, nowMs);
    case "pause":
      return pause(deployment);
    case "resume":
      return resume(deployment, nowMs);
    case "rollback":
      return rollBack(deployment, action.version, nowMs);
    case "fail":
      return fail(deployment, action.rollback, nowMs);
    default:
      return action satisfies never;
  }
}

function refuseInvalid({ strategy }: { readonly strategy: Strategy }): void {
  const { minHealthySeconds, healthyDeadlineSeconds, progressDeadlineSeconds } = strategy;
  const errors: DomainErrorEntry[] = [];
  const late = (name: string, than: string) =>
    errors.push({ path: `/strategy/${name}`, code: "too_small", message: `must be more than ${than}` });
  if (healthyDeadlineSeconds <= minHealthySeconds)
    late("healthy_deadline_seconds", `min_healthy_seconds, which is ${minHealthySeconds}`);
  if (progressDeadlineSeconds <= minHealthySeconds)
    late("progress_deadline_seconds", `min_healthy_seconds, which is ${minHealthySeconds}`);
  if (errors.length > 0) throw invalid(errors);
}

function invalid(errors: readonly DomainErrorEntry[]): DomainError {
  const messages = errors.map(({ path, message }) => `${path} ${message}`).join("; ");
  return new DomainError("validation_failed", `Invalid deployment: ${messages}.`, errors);
}

function found(deployment: Deployment | null, deploymentId: string): Deployment {
  if (deployment !== null && !deployment.isDeleted) return deployment;
  throw new DomainError(
    "deployment_not_found",
    `Deployment ${deploymentId} was not found. List the deployments to find its id.`,
  );
}

function changedMeanwhile({ deploymentId }: Deployment): DomainError {
  return new DomainError(
    "precondition_failed",
    `Deployment ${deploymentId} has changed since this ETag was given. Get it again, look at what changed, and repeat the request with the new ETag.`,
  );
}
