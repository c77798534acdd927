// Which instances of a deployment begin to serve, stop serving, are stopped and started: by its version, strategy and status.
//
// - An instance serves only once it has been healthy for long enough.
// - One that is healthy stops serving only while as many healthy ones as are asked for remain; one that is critical, while a
//   healthy one remains.
// - There are never more than count + max_parallel instances, with blue_green twice count; of more, as after a smaller count,
//   none is started.

import { isLive, isReady, isRollout, startableAt } from "./health.ts";
import type { Deployment, Instance } from "./records.ts";

export interface NewInstance {
  readonly number: number;
  readonly version: number;
}

const isServing = ({ phase }: Instance) => phase === "serving";
const isStarting = ({ phase }: Instance) => phase === "starting";

/** Whether it is on the way from a version that had succeeded to another one. */
export const replacesStable = ({ stable, version }: Deployment): boolean =>
  stable !== null && stable.version !== version;

/** Whether it stops behind its canaries, or before its second set serves, until it is promoted. */
export function isStaged(deployment: Deployment): boolean {
  const { strategy, isPromoted, isRollingBack } = deployment;
  return strategy.kind !== "rolling" && replacesStable(deployment) && !isPromoted && !isRollingBack;
}

const isOfTarget =
  ({ version }: Deployment) =>
  (one: Instance) =>
    one.version === version;

/** Whether nothing of the new version is to be started or to begin to serve. */
const isHeld = (deployment: Deployment) =>
  deployment.isDeleted ||
  deployment.status === "paused" ||
  (deployment.status === "failed" && deployment.stable?.version !== deployment.version);

/** How many instances of the version that is aimed at there are to be now. */
function wantedOfTarget(deployment: Deployment): number {
  const { strategy, count } = deployment;
  if (isHeld(deployment)) return 0;
  return strategy.kind === "canary" && isStaged(deployment) ? Math.min(strategy.canaries, count) : count;
}

/** How many of the version before there are to be, while another one is aimed at. */
function wantedOfStable(deployment: Deployment): number {
  const { stable, count, instances, status, isDeleted } = deployment;
  if (stable === null || !replacesStable(deployment) || isDeleted) return 0;
  const replaced = instances.filter((one) => isServing(one) && isOfTarget(deployment)(one)).length;
  // More than there were are of the new version, unless that has failed.
  const most = status === "failed" ? count : stable.count;
  return Math.max(0, Math.min(most, count - replaced));
}

/** Whether all of the second set are healthy (blue_green), or all canaries serve. */
export function isStageReached(deployment: Deployment, nowMs: number): boolean {
  const { strategy, instances, count } = deployment;
  const ofTarget = instances.filter((one) => isLive(one) && isOfTarget(deployment)(one));
  if (strategy.kind === "blue_green")
    return ofTarget.filter((one) => isServing(one) || isReady(deployment, one, nowMs)).length >= count;
  const serving = ofTarget.filter((one) => isServing(one) && one.health === "passing");
  return serving.length >= Math.min(strategy.canaries, count);
}

/** Whether instances of the second set wait for all of them, and for the promotion. */
function waitsForSet(deployment: Deployment, nowMs: number): boolean {
  const { strategy, isPromoted, isRollingBack } = deployment;
  const isStaged = strategy.kind === "blue_green" && isRollout(deployment) && replacesStable(deployment);
  if (!isStaged || isRollingBack) return false;
  return !(isPromoted && isStageReached(deployment, nowMs));
}

/** Instances that are ready begin to serve. */
export function withServing(deployment: Deployment, nowMs: number): Deployment {
  if (deployment.isDeleted) return deployment;
  const waits = waitsForSet(deployment, nowMs) || isHeld(deployment);
  const instances = deployment.instances.map((one): Instance => {
    if (!isStarting(one) || !isReady(deployment, one, nowMs)) return one;
    if (isOfTarget(deployment)(one) ? waits : one.version !== deployment.stable?.version) return one;
    return { ...one, phase: "serving", servesSinceMs: nowMs };
  });
  if (instances.every((one, i) => one === deployment.instances[i])) return deployment;
  return { ...deployment, instances, progressAtMs: nowMs };
}

/** Instances that are there no more for anything are drained, or stopped if nobody has found them. */
export function withoutSuperfluous(deployment: Deployment, nowMs: number): Deployment {
  const leaving = new Set([...drainable(deployment), ...needless(deployment)]);
  if (leaving.size === 0) return deployment;
  const stopAtMs = nowMs + deployment.strategy.drainSeconds * 1_000;
  const instances = deployment.instances.map((one): Instance => {
    if (!leaving.has(one)) return one;
    return isServing(one) ? { ...one, phase: "draining", stopAtMs } : { ...one, phase: "stopping" };
  });
  return { ...deployment, instances };
}

/** Those that need not serve any more. */
function drainable(deployment: Deployment): readonly Instance[] {
  const { instances, count, status, stable, isDeleted } = deployment;
  const serving = instances.filter(isServing);
  if (isDeleted) return serving;
  if (status === "paused") return [];
  const others = serving.filter((one) => !isOfTarget(deployment)(one));
  const tooMany = serving.filter(isOfTarget(deployment)).slice(count).toReversed();
  const isCritical = ({ health }: Instance) => health === "critical";
  // Canaries serve beside at least one of the others.
  const replaced = isStaged(deployment) ? others.slice(0, -1) : others;
  // Where a rollout has failed, its version goes before the one that had succeeded.
  const isStable = ({ version }: Instance) => version === stable?.version;
  const leaveFirst =
    status === "failed"
      ? serving.toSorted((a, b) => Number(isStable(a)) - Number(isStable(b)))
      : [...replaced, ...tooMany];
  const inOrder = leaveFirst.toSorted((a, b) => Number(isCritical(b)) - Number(isCritical(a)));
  let healthy = serving.filter(({ health }) => health === "passing").length;
  const leaving: Instance[] = [];
  for (const one of inOrder) {
    if (serving.length - leaving.length <= count) break;
    const remain = one.health === "passing" ? healthy - 1 : healthy;
    if (remain < (isCritical(one) ? 1 : count)) continue;
    healthy = remain;
    leaving.push(one);
  }
  return leaving;
}

/** Those that have not served, and need not. */
function needless(deployment: Deployment): readonly Instance[] {
  const { instances, status, stable, isDeleted } = deployment;
  const starting = instances.filter(isStarting);
  if (isDeleted) return starting;
  if (status === "paused") return [];
  const ofTarget = starting.filter(isOfTarget(deployment));
  const repairs = starting.filter(({ version }) => replacesStable(deployment) && version === stable?.version);
  const others = starting.filter((one) => !ofTarget.includes(one) && !repairs.includes(one));
  const served = (version: number | undefined) =>
    instances.filter((one) => isServing(one) && one.version === version).length;
  return [
    ...others,
    ...ofTarget.slice(Math.max(0, wantedOfTarget(deployment) - served(deployment.version))),
    ...repairs.slice(Math.max(0, wantedOfStable(deployment) - served(stable?.version))),
  ];
}

/** What is to be started now. */
export function startsOf(deployment: Deployment, nowMs: number): readonly NewInstance[] {
  const { started, stable, version } = deployment;
  const { ofTarget, ofStable } = missing(deployment);
  const target = nowMs >= startableAt(deployment, version) ? ofTarget : 0;
  const before = stable !== null && nowMs >= startableAt(deployment, stable.version) ? ofStable : 0;
  const versions = [
    ...Array.from({ length: before }, () => stable?.version ?? version),
    ...Array.from({ length: target }, () => version),
  ];
  return versions.map((one, i) => ({ number: started + i + 1, version: one }));
}

/** How many are to be started of each version, as soon as it may be. */
export function missing(deployment: Deployment): { readonly ofTarget: number; readonly ofStable: number } {
  const { instances, stable, version, strategy, count } = deployment;
  const { kind, maxParallel } = strategy;
  const room = count + (kind === "blue_green" ? count : maxParallel) - instances.length;
  const live = (of: number | undefined) => instances.filter((one) => isLive(one) && one.version === of);
  const ofStable = within(wantedOfStable(deployment) - live(stable?.version).length, room);
  const starting = live(version).filter(isStarting).length;
  const atOnce = replacesStable(deployment) && kind !== "blue_green" ? maxParallel - starting : count;
  const ofTarget = within(wantedOfTarget(deployment) - live(version).length, atOnce, room - ofStable);
  return { ofTarget, ofStable };
}

const within = (...limits: readonly number[]) => Math.max(0, Math.min(...limits));

/** Whether all that was asked for is there, and nothing else. */
export function isComplete(deployment: Deployment): boolean {
  const live = deployment.instances.filter(isLive);
  const isGood = (one: Instance) => isOfTarget(deployment)(one) && isServing(one) && one.health === "passing";
  return live.length >= deployment.count && live.every(isGood);
}
