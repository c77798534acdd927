// The events of a deployment: what is different between two of its states. Pure.

import { isoTime } from "../engine/event.ts";
import type { JsonObject } from "../engine/json.ts";
import type { Deployment, Instance } from "./records.ts";

/** Older ones are removed. */
export const EVENTS_KEPT = 1_000;

/** Nothing follows. */
export const terminalDeploymentEvents: ReadonlySet<string> = new Set(["deployment_deleted"]);

interface News {
  readonly type: string;
  readonly payload: JsonObject;
}

/** @returns the deployment with its events counted, and their lines */
export function withEvents(
  next: Deployment,
  before: Deployment | null,
  nowMs: number,
): { readonly counted: Deployment; readonly lines: readonly string[] } {
  const news = newsBetween(before, next);
  const lines = news.map((one, i) => lineOf(next, next.eventSeq + i + 1, one, nowMs));
  return { counted: { ...next, eventSeq: next.eventSeq + lines.length }, lines };
}

/** The last event of a deployment. */
export const deletedLine = (deploymentId: string, id: number, nowMs: number): string =>
  lineOf({ deploymentId }, id, { type: "deployment_deleted", payload: {} }, nowMs);

const lineOf = (
  { deploymentId }: Pick<Deployment, "deploymentId">,
  id: number,
  { type, payload }: News,
  nowMs: number,
): string => JSON.stringify({ id, deployment_id: deploymentId, timestamp: isoTime(nowMs), type, payload });

function newsBetween(before: Deployment | null, next: Deployment): readonly News[] {
  if (before === null) return [{ type: "deployment_created", payload: standOf(next) }];
  if (next.isDeleted && !before.isDeleted) return [{ type: "deployment_deleting", payload: standOf(next) }];
  const news: News[] = [];
  const failure = next.lastFailure;
  if (failure !== null && failure !== before.lastFailure) {
    const payload = { version: failure.version, reason: failure.reason };
    news.push({ type: "deployment_failure", payload });
  }
  const known = new Map(before.instances.map((one) => [one.runId, one]));
  for (const one of next.instances) {
    news.push(...newsOf(known.get(one.runId), one));
    known.delete(one.runId);
  }
  for (const one of known.values()) news.push({ type: "instance_ended", payload: shown(one) });
  const isOther =
    next.status !== before.status || next.version !== before.version || next.count !== before.count;
  if (isOther) news.push({ type: `deployment_${next.status}`, payload: standOf(next) });
  return news;
}

function newsOf(before: Instance | undefined, now: Instance): readonly News[] {
  if (before === undefined) return [{ type: "instance_started", payload: shown(now) }];
  const news: News[] = [];
  if (now.health !== before.health) news.push({ type: "instance_health", payload: shown(now) });
  if (now.phase !== before.phase) news.push({ type: `instance_${now.phase}`, payload: shown(now) });
  return news;
}

const shown = ({ number, version, runId, phase, health, node }: Instance): JsonObject => ({
  instance: number,
  run_id: runId,
  version,
  phase,
  health,
  node,
});

function standOf(deployment: Deployment): JsonObject {
  const { status, version, count } = deployment;
  return { status, version, desired: count, healthy: healthyOf(deployment) };
}

/** How many instances serve and are healthy. */
export function healthyOf({ instances }: Deployment): number {
  return instances.filter(({ phase, health }) => phase === "serving" && health === "passing").length;
}
