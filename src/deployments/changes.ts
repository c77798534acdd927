// What the owner of a deployment does to it, one function each. Pure; the next step brings it about.

import { DomainError } from "../lib/domain-error.ts";
import { isRollout, versionOf } from "./health.ts";
import type { Deployment, DeploymentSettings, DeploymentVersion } from "./records.ts";
import { VERSIONS_MAX } from "./records.ts";
import { aimedAt, failed } from "./step.ts";

const isOpen = (deployment: Deployment): boolean =>
  isRollout(deployment) || deployment.status === "pending" || deployment.status === "paused";

/** With another number of instances, strategy or name: no version of its own. */
export function withSettings(deployment: Deployment, settings: Partial<DeploymentSettings>): Deployment {
  const next = { ...deployment, ...settings };
  const { stable, version, count } = next;
  return stable?.version === version ? { ...next, stable: { version, count } } : next;
}

/** What a new version is made of. */
export type NewVersion = Pick<DeploymentVersion, "jobId" | "source" | "config" | "services">;

/** With a new version, on the way to it, whatever it was doing. Versions that are old and unused are forgotten. */
export function withVersion(deployment: Deployment, made: NewVersion, nowMs: number): Deployment {
  const version = deployment.lastVersion + 1;
  const added: DeploymentVersion = {
    ...made,
    version,
    hasSucceeded: false,
    crashes: 0,
    crashedAtMs: null,
    createdAtMs: nowMs,
  };
  const versions = withoutOld([...deployment.versions, added], deployment);
  return aimedAt({ ...deployment, versions, lastVersion: version }, version, { isRollingBack: false }, nowMs);
}

function withoutOld(
  versions: readonly DeploymentVersion[],
  { stable, instances }: Deployment,
): readonly DeploymentVersion[] {
  const used = new Set([
    stable?.version,
    versions.at(-1)?.version,
    ...instances.map(({ version }) => version),
  ]);
  let excess = versions.length - VERSIONS_MAX;
  return versions.filter(({ version }) => used.has(version) || excess-- <= 0);
}

/** @throws DomainError `invalid_transition` */
export function promote(deployment: Deployment, nowMs: number): Deployment {
  if (deployment.status !== "awaiting_promotion")
    throw refused(deployment, "promoted", "It waits for no promotion.");
  return { ...deployment, status: "running", isPromoted: true, progressAtMs: nowMs };
}

/**
 * @param asked null: the last version that had succeeded before this one
 * @throws DomainError `invalid_transition`; `validation_failed` for a version that is not kept
 */
export function rollBack(deployment: Deployment, asked: number | null, nowMs: number): Deployment {
  const { stable, versions, version } = deployment;
  const earlier = versions.findLast((one) => one.hasSucceeded && one.version < version)?.version;
  const before = stable !== null && stable.version !== version ? stable.version : earlier;
  const to = asked ?? before;
  if (to === undefined) throw refused(deployment, "rolled back", "No version before this one has succeeded.");
  if (versionOf(deployment, to) === undefined) {
    const kept = versions.map((one) => one.version).join(", ");
    const message = `version ${to} is not kept; these are: ${kept}`;
    const entry = { path: "/version", code: "unknown_version", message };
    throw new DomainError("validation_failed", `${message}.`, [entry]);
  }
  if (to === version) throw refused(deployment, "rolled back", `Version ${to} is the one that it has.`);
  return aimedAt(deployment, to, { isRollingBack: true }, nowMs);
}

/** @throws DomainError `invalid_transition` */
export function pause(deployment: Deployment): Deployment {
  if (deployment.status === "paused") return deployment;
  if (!isOpen(deployment)) throw refused(deployment, "paused", "No rollout is under way.");
  return { ...deployment, status: "paused" };
}

/** @throws DomainError `invalid_transition` */
export function resume(deployment: Deployment, nowMs: number): Deployment {
  if (isRollout(deployment)) return deployment;
  if (deployment.status !== "paused") throw refused(deployment, "resumed", "It is not paused.");
  const instances = deployment.instances.map((one) => ({ ...one, waitsSinceMs: nowMs }));
  return { ...deployment, status: "running", instances, progressAtMs: nowMs };
}

/** @throws DomainError `invalid_transition` */
export function fail(deployment: Deployment, goesBack: boolean, nowMs: number): Deployment {
  if (!isOpen(deployment)) throw refused(deployment, "failed", "No rollout is under way.");
  const next = failed(deployment, { reason: "it was asked to fail", goesBack }, nowMs);
  if (goesBack && next.status === "failed")
    throw refused(
      deployment,
      "rolled back",
      "No version before this one has succeeded; fail it without rollback.",
    );
  return next;
}

/** Its instances are drained and stopped, and then it is gone. */
export function removed(deployment: Deployment): Deployment {
  return { ...deployment, isDeleted: true };
}

function refused({ deploymentId, status }: Deployment, what: string, why: string): DomainError {
  return new DomainError(
    "invalid_transition",
    `Deployment ${deploymentId} is ${status} and cannot be ${what}. ${why}`,
  );
}
