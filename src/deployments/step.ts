// What there is to do for a deployment: a function of the deployment, of how its instances are, and of the time.
//
// - One step is one transaction, with the runs that it starts and stops; then the next one is taken. Where it stops, it says
//   until when.
// - The time is one that nobody sets: a clock that is put forward fails no rollout.

import {
  crashed,
  deadlineOf,
  failureOf,
  isLate,
  isRollout,
  type Observed,
  startableAt,
  withObserved,
} from "./health.ts";
import type { Deployment, Instance } from "./records.ts";
import {
  isComplete,
  isStaged,
  isStageReached,
  missing,
  type NewInstance,
  replacesStable,
  startsOf,
  withoutSuperfluous,
  withServing,
} from "./rollout.ts";

export interface Step {
  /** The deployment behind it, without what is started; the same one when nothing has changed. */
  readonly next: Deployment;
  readonly starts: readonly NewInstance[];
  /** Runs that are to end now. */
  readonly stops: readonly string[];
  /** When there may be something to do though nothing happens; null: never. */
  readonly wakeAtMs: number | null;
}

export function step(deployment: Deployment, observed: Observed, nowMs: number): Step {
  const begun = deployment.status === "pending" ? beginning(deployment, nowMs) : deployment;
  const judged = judge(withoutLate(withObserved(begun, observed, nowMs), nowMs), nowMs);
  const serving = withoutSuperfluous(withServing(promoted(judged, nowMs), nowMs), nowMs);
  const placed = settled(withoutDrained(serving, nowMs));
  const wasStopping = new Set(deployment.instances.filter(isStopping).map(({ runId }) => runId));
  const stopping = placed.instances.filter(isStopping).map(({ runId }) => runId);
  const starts = startsOf(placed, nowMs);
  return {
    next:
      placed === deployment ? deployment : { ...placed, updatedAtMs: Math.max(nowMs, placed.updatedAtMs) },
    starts,
    stops: stopping.filter((runId) => !wasStopping.has(runId)),
    wakeAtMs: wakeAt(placed, nowMs),
  };
}

const isStopping = ({ phase }: Instance) => phase === "stopping";

function beginning(deployment: Deployment, nowMs: number): Deployment {
  return { ...deployment, status: "running", progressAtMs: nowMs };
}

/** One that does not come up is stopped, and another one started; in a rollout, that of the new version fails the rollout. */
function withoutLate(deployment: Deployment, nowMs: number): Deployment {
  const judged = (one: Instance) => isRollout(deployment) && one.version === deployment.version;
  const late = deployment.instances.filter((one) => isLate(deployment, one, nowMs) && !judged(one));
  let next = deployment;
  for (const one of late) {
    const instances = next.instances.map((each) =>
      each === one ? { ...one, phase: "stopping" as const } : each,
    );
    const reason = `instance ${one.number} was not healthy within ${next.strategy.healthyDeadlineSeconds} s`;
    next = crashed({ ...next, instances }, one.version, reason, nowMs);
  }
  return next;
}

function judge(deployment: Deployment, nowMs: number): Deployment {
  const reason = failureOf(deployment, nowMs);
  return reason === null
    ? deployment
    : failed(deployment, { reason, goesBack: deployment.strategy.autoRollback }, nowMs);
}

/** The deployment when its rollout has failed. @param how.goesBack to the version before, if there is one */
export function failed(
  deployment: Deployment,
  { reason, goesBack }: { readonly reason: string; readonly goesBack: boolean },
  nowMs: number,
): Deployment {
  const { version, stable, isRollingBack } = deployment;
  const noted: Deployment = { ...deployment, lastFailure: { atMs: nowMs, version, reason } };
  if (stable === null || !goesBack || isRollingBack || !replacesStable(deployment))
    return { ...noted, status: "failed", isRollingBack: false };
  return aimedAt(noted, stable.version, { isRollingBack: true }, nowMs);
}

/** The deployment on the way to another version. */
export function aimedAt(
  deployment: Deployment,
  version: number,
  { isRollingBack }: { readonly isRollingBack: boolean },
  nowMs: number,
): Deployment {
  const versions = deployment.versions.map((one) =>
    one.version === version ? { ...one, crashes: 0, crashedAtMs: null } : one,
  );
  return {
    ...deployment,
    version,
    versions,
    status: "running",
    isRollingBack,
    isPromoted: false,
    progressAtMs: nowMs,
  };
}

/** Goes on behind a stage that is reached, or waits for the promotion while its strategy asks for one. */
function promoted(deployment: Deployment, nowMs: number): Deployment {
  const { status, strategy } = deployment;
  const isWaiting = status === "awaiting_promotion";
  const isReached = status === "running" && isStaged(deployment) && isStageReached(deployment, nowMs);
  if (!isWaiting && !isReached) return deployment;
  if (isStaged(deployment) && !strategy.autoPromote)
    return isWaiting ? deployment : { ...deployment, status: "awaiting_promotion" };
  return { ...deployment, status: "running", isPromoted: true, progressAtMs: nowMs };
}

function withoutDrained(deployment: Deployment, nowMs: number): Deployment {
  const isOver = ({ phase, stopAtMs }: Instance) => phase === "draining" && (stopAtMs ?? 0) <= nowMs;
  if (!deployment.instances.some(isOver)) return deployment;
  const instances = deployment.instances.map(
    (one): Instance => (isOver(one) ? { ...one, phase: "stopping" } : one),
  );
  return { ...deployment, instances };
}

function settled(deployment: Deployment): Deployment {
  const { status, version, count, isRollingBack, versions } = deployment;
  if (status !== "running" || isStaged(deployment) || !isComplete(deployment)) return deployment;
  return {
    ...deployment,
    status: isRollingBack ? "rolled_back" : "succeeded",
    isRollingBack: false,
    stable: { version, count },
    versions: versions.map((one) =>
      one.version === version ? { ...one, hasSucceeded: true, crashes: 0, crashedAtMs: null } : one,
    ),
  };
}

/**
 * The deployment when a program comes to it that does not know how it has been: what was waited for is waited for again. Times
 * of another program may be in the future: its clock was another one.
 */
export function restarted(deployment: Deployment, nowMs: number): Deployment {
  const { strategy, versions, instances } = deployment;
  const next: Deployment = {
    ...deployment,
    versions: sameOr(versions, (one) => {
      const isAhead = one.crashedAtMs !== null && one.crashedAtMs > nowMs;
      return isAhead ? { ...one, crashedAtMs: nowMs } : one;
    }),
    instances: sameOr(instances, (one) => {
      const latestMs = nowMs + strategy.drainSeconds * 1_000;
      return one.stopAtMs !== null && one.stopAtMs > latestMs ? { ...one, stopAtMs: latestMs } : one;
    }),
  };
  const isWaiting = isRollout(deployment) || instances.some(({ phase }) => phase === "starting");
  if (!isWaiting) {
    const isSame = next.versions === versions && next.instances === instances;
    return isSame ? deployment : next;
  }
  const again = { health: "unknown", healthSinceMs: nowMs, waitsSinceMs: nowMs } as const;
  return { ...next, instances: next.instances.map((one) => ({ ...one, ...again })), progressAtMs: nowMs };
}

/** @returns the same list when no item is another one */
function sameOr<Item>(items: readonly Item[], change: (item: Item) => Item): readonly Item[] {
  const next = items.map(change);
  return next.every((one, i) => one === items[i]) ? items : next;
}

function wakeAt(deployment: Deployment, nowMs: number): number | null {
  const { instances, status, strategy, progressAtMs, version, stable } = deployment;
  const { ofTarget, ofStable } = missing(deployment);
  const times = [
    ...instances.map((one) => deadlineOf(deployment, one)),
    ...instances.map(({ stopAtMs }) => stopAtMs),
    ...instances
      .filter(({ phase, health }) => phase === "starting" && health === "passing")
      .map(({ healthSinceMs }) => healthSinceMs + strategy.minHealthySeconds * 1_000),
    status === "running" ? progressAtMs + strategy.progressDeadlineSeconds * 1_000 : null,
    ofTarget > 0 ? startableAt(deployment, version) : null,
    ofStable > 0 && stable !== null ? startableAt(deployment, stable.version) : null,
  ].filter((time) => time !== null && time > nowMs);
  return times.length === 0 ? null : Math.min(...(times as readonly number[]));
}
