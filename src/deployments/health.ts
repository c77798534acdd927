// What has happened to the instances of a deployment since its last step: ends, refused starts, changes of health; and whether
// the rollout has failed by it.

import type { Deployment, DeploymentVersion, Health, Instance } from "./records.ts";

/** How the instances are now, by their runs. */
export interface Observed {
  readonly health: ReadonlyMap<string, { readonly health: Health; readonly node: string | null }>;
  /** Those that have ended, with the reason. */
  readonly ended: ReadonlyMap<string, string>;
  /** Versions of which no instance can be started now, with the reason. */
  readonly refused: ReadonlyMap<number, string>;
}

/** So many instances of the new version that end in a row fail its rollout. */
const CRASHES_MAX = 3;
/** An instance that has served for so long and ends is no crash. */
const STEADY_MS = 60_000;
/** Without a crash for so long, the next one is the first again. */
const QUIET_MS = 5 * 60_000;
const BACKOFF_MS = 1_000;
const BACKOFF_MAX_MS = 60_000;

export const isRollout = ({ status }: Deployment): boolean =>
  status === "running" || status === "awaiting_promotion";

export const isLive = ({ phase }: Instance): boolean => phase === "starting" || phase === "serving";

export const versionOf = ({ versions }: Deployment, version: number): DeploymentVersion | undefined =>
  versions.find((one) => one.version === version);

/** When the next instance of a version may be started. */
export function startableAt(deployment: Deployment, version: number): number {
  const { crashes = 0, crashedAtMs = null } = versionOf(deployment, version) ?? {};
  if (crashedAtMs === null || crashes === 0) return 0;
  return crashedAtMs + Math.min(BACKOFF_MAX_MS, BACKOFF_MS * 2 ** (crashes - 1));
}

/** The deployment with what is observed; the same one when nothing is new. */
export function withObserved(deployment: Deployment, observed: Observed, nowMs: number): Deployment {
  let next = deployment;
  const gone = deployment.instances.filter(({ runId }) => observed.ended.has(runId));
  if (gone.length > 0) next = { ...next, instances: next.instances.filter((one) => !gone.includes(one)) };
  for (const version of new Set(gone.filter(isLive).map((one) => one.version))) {
    const [first, ...others] = gone.filter((one) => isLive(one) && one.version === version);
    const reason = `instance ${first?.number} ended: ${observed.ended.get(first?.runId ?? "")}`;
    const isCrash = [first, ...others].some((one) => one !== undefined && !isSteady(one, nowMs));
    next = isCrash ? crashed(next, version, reason, nowMs) : noted(next, version, reason, nowMs);
  }
  for (const [version, reason] of observed.refused)
    next = crashed(next, version, `an instance cannot be started: ${reason}`, nowMs);
  const instances = next.instances.map((one) => withHealth(one, observed, nowMs));
  if (instances.every((one, i) => one === next.instances[i])) return next;
  const isBetter = instances.some(
    (one, i) => one.version === next.version && one.health === "passing" && one !== next.instances[i],
  );
  return { ...next, instances, ...(isBetter && { progressAtMs: nowMs }) };
}

const isSteady = ({ servesSinceMs }: Instance, nowMs: number) =>
  servesSinceMs !== null && nowMs - servesSinceMs >= STEADY_MS;

function withHealth(instance: Instance, { health: all }: Observed, nowMs: number): Instance {
  const { health, node } = all.get(instance.runId) ?? { health: "unknown", node: null };
  if (health === instance.health && (node === null || node === instance.node)) return instance;
  const healthSinceMs = health === instance.health ? instance.healthSinceMs : nowMs;
  return { ...instance, health, healthSinceMs, node: node ?? instance.node };
}

function noted(deployment: Deployment, version: number, reason: string, nowMs: number): Deployment {
  return { ...deployment, lastFailure: { atMs: nowMs, version, reason } };
}

/** An instance of a version has ended before its time: the next one waits. */
export function crashed(deployment: Deployment, version: number, reason: string, nowMs: number): Deployment {
  const versions = deployment.versions.map((one) => {
    if (one.version !== version) return one;
    const isFirst = one.crashedAtMs === null || nowMs - one.crashedAtMs > QUIET_MS;
    return { ...one, crashes: isFirst ? 1 : one.crashes + 1, crashedAtMs: nowMs };
  });
  return noted({ ...deployment, versions }, version, reason, nowMs);
}

/** When an instance that does not serve, or not well, has failed; null: never. */
export function deadlineOf(deployment: Deployment, instance: Instance): number | null {
  const { strategy, version, status } = deployment;
  const deadlineMs = strategy.healthyDeadlineSeconds * 1_000;
  if (status === "paused") return null;
  // One that is healthy becomes ready, and may wait for others then.
  if (instance.phase === "starting")
    return instance.health === "passing" ? null : instance.waitsSinceMs + deadlineMs;
  const isJudged = instance.phase === "serving" && instance.version === version && isRollout(deployment);
  return isJudged && instance.health !== "passing" ? instance.healthSinceMs + deadlineMs : null;
}

/** Whether an instance has been healthy for long enough to serve. */
export function isReady(
  { strategy }: Deployment,
  { health, healthSinceMs }: Instance,
  nowMs: number,
): boolean {
  return health === "passing" && nowMs - healthSinceMs >= strategy.minHealthySeconds * 1_000;
}

/** Why the rollout has failed; null while it has not. */
export function failureOf(deployment: Deployment, nowMs: number): string | null {
  const { version, instances, strategy, progressAtMs, status, lastFailure } = deployment;
  if (!isRollout(deployment)) return null;
  const crashes = versionOf(deployment, version)?.crashes ?? 0;
  if (crashes >= CRASHES_MAX)
    return `${crashes} instances of version ${version} failed in a row; ${lastFailure?.reason}`;
  const late = instances.find((one) => one.version === version && isLate(deployment, one, nowMs));
  if (late !== undefined)
    return `instance ${late.number} of version ${version} was not healthy within ${strategy.healthyDeadlineSeconds} s`;
  if (status === "running" && nowMs >= progressAtMs + strategy.progressDeadlineSeconds * 1_000)
    return `the rollout of version ${version} came no further within ${strategy.progressDeadlineSeconds} s`;
  return null;
}

export function isLate(deployment: Deployment, instance: Instance, nowMs: number): boolean {
  const deadlineMs = deadlineOf(deployment, instance);
  return deadlineMs !== null && nowMs >= deadlineMs;
}
