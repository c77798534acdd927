// The kinds of things that the simulation promises to try, and how often each has happened: a kind that never happens
// any more would be a part of the engine that nobody tests, without anything turning red.

import type { StoredJob } from "../support/memory-journal.ts";
import { parse, type SeenEvent } from "./checker.ts";

export const kinds = [
  "crash",
  "partition",
  "jump of the clock",
  "failing commit",
  "commit of unknown outcome",
  "crash behind a commit",
  "job that cannot be written",
  "slow claim",
  "failing claim",
  "slow load",
  "failing load",
  "job that cannot be read",
  "recovered job",
  "deadline",
  "pause",
  "retry of an attempt",
  "attempt timeout of a command",
  "attempt timeout of a module",
  "interrupted attempt",
  "module",
  "file sensor",
  "file that was there before its sensor",
  "interval of a sensor",
  "expired message",
  "full mailbox",
  "dead letter sent again",
  "answer of a person",
  "question that timed out",
  "service",
  "wait for resources",
] as const;

/** What happens in worlds of many nodes alone. */
export const clusterKinds = [
  "stop within the lease",
  "stop beyond the lease",
  "node that is cut off",
  "node that stays away",
  "database that is down",
  "slow renewal",
  "lease that was lost",
  "takeover",
  "takeover whose answer was lost",
  "command ended by the guard",
  "start refused behind the lease",
  "drain",
  "maintenance",
  "drain that was cancelled",
  "node that ended without work",
  "job that was handed over",
  "attempt ended for a drain",
] as const;

/** What happens in worlds with a disk alone. */
export const diskKinds = [
  "power cut",
  "power cut in a checkpoint",
  "power cut in a log that begins again",
  "commit that survived a power cut",
  "commit lost in a power cut",
  "slow sync",
  "failing sync",
  "commit made while another is synced",
] as const;

/** What happens in worlds of the gateway. */
export const gatewayKinds = [
  "crash of the gateway",
  "crash behind a write of the gateway",
  "store that failed the gateway",
  "answer that was given again",
  "key that was used for something else",
  "run without a free port",
  "run that completed",
  "run that was cut short",
  "run that was cancelled before its launch",
  "run that failed in its preparation",
  "preparation of a launch",
  "preparation that failed",
  "operation that completed",
  "operation that failed",
  "operation that was done again",
  "operation on a busy target",
  "gateway that stayed away for longer than its lease",
  "gateway that stood still",
  "gateway that was cut off",
  "gateway that lost its name",
  "work of a lost gateway that was taken over",
  "run that was controlled through another gateway",
  "launch that came too late",
] as const;

/** What happens in worlds of deployments alone. */
export const deploymentKinds = [
  "controller killed",
  "outage of all controllers",
  "crash behind a write of a controller",
  "store that failed a controller",
  "jump of a controller's clock",
  "instance that was refused",
  "instance that died",
  "instance that became critical",
  "event of an instance that nobody saw",
  "new version of a deployment",
  "other count of a deployment",
  "deletion of a deployment",
  "promote of a deployment",
  "pause of a deployment",
  "resume of a deployment",
  "rollback of a deployment",
  "fail of a deployment",
  "deployment that is running",
  "deployment that is paused",
  "deployment that is awaiting_promotion",
  "deployment that is succeeded",
  "deployment that is failed",
  "deployment that is rolled_back",
] as const;

/** What happens in worlds of schedules alone. */
export const scheduleKinds = [
  "scheduler killed",
  "outage of all schedulers",
  "crash behind a write of a scheduler",
  "store that failed a scheduler",
  "jump of the wall clock",
  "start that was refused",
  "end of a scheduled run that nobody saw",
  "dispatch by hand",
  "change of a schedule",
  "pause of a schedule",
  "resume of a schedule",
  "run cancelled by the next one",
  "due time that was skipped",
  "due time that was missed",
  "event that was sent again",
  "event that started a run",
  "event that waited for its run",
  "event in a batch",
  "event that a later one replaced",
  "event that was throttled",
  "event that came while a run was open",
  "event that came during a pause",
  "event whose run was refused",
  "event of an ended schedule",
  "schedule that is active",
  "schedule that is paused",
  "schedule that is completed",
] as const;

/** What happens among jobs that want the same slots. "crash" and "pause" are of all worlds. */
export const shareKinds = [
  "crash",
  "pause",
  "turn of another job",
  "higher priority that was preferred",
  "priority that has risen",
  "changed priority",
  "cancelled run",
] as const;

export type Kind =
  | (typeof kinds)[number]
  | (typeof clusterKinds)[number]
  | (typeof diskKinds)[number]
  | (typeof gatewayKinds)[number]
  | (typeof scheduleKinds)[number]
  | (typeof deploymentKinds)[number]
  | (typeof shareKinds)[number];

const allKinds: readonly Kind[] = [
  ...kinds,
  ...clusterKinds,
  ...diskKinds,
  ...gatewayKinds,
  ...scheduleKinds,
  ...deploymentKinds,
  ...shareKinds.slice(2),
];

export class Counts {
  readonly #counts = new Map<Kind, number>();

  add(kind: Kind, times = 1): void {
    if (times > 0) this.#counts.set(kind, this.of(kind) + times);
  }

  of(kind: Kind): number {
    return this.#counts.get(kind) ?? 0;
  }

  /** Adds what another world has counted. */
  addAll(other: Counts): void {
    for (const kind of allKinds) this.add(kind, other.of(kind));
  }

  /** Those that have not happened. */
  missing(promised: readonly Kind[]): readonly Kind[] {
    return promised.filter((kind) => this.of(kind) === 0);
  }

  toString(): string {
    const happened = allKinds.filter((kind) => this.of(kind) > 0);
    return happened.map((kind) => `${String(this.of(kind)).padStart(9)}  ${kind}`).join("\n");
  }
}

/** Counts what the stored jobs tell of themselves. */
export function countStored(counts: Counts, jobs: Iterable<StoredJob>): void {
  for (const { events, retriedLetters } of jobs) {
    counts.add("dead letter sent again", retriedLetters.size);
    for (const line of events) {
      const kind = kindOf(parse(line));
      if (kind !== null) counts.add(kind);
    }
  }
}

function kindOf({ type, payload, error }: SeenEvent): Kind | null {
  switch (type) {
    case "job_recovered":
      return "recovered job";
    case "job_paused":
      return "pause";
    case "job_failed":
      return payload.code === "job.timeout" ? "deadline" : null;
    case "sandbox_job_retry_scheduled":
      return payload.code === "module.timeout" ? "attempt timeout of a module" : "retry of an attempt";
    case "sandbox_job_failed":
      return error?.code === "executor.timeout" ? "attempt timeout of a command" : null;
    case "executor_interrupted":
      return payload.reason === "its node is drained" ? "attempt ended for a drain" : "interrupted attempt";
    case "job_handed_over":
      return "job that was handed over";
    case "sensor_observed":
      return "file" in (payload.seen as object) ? "file sensor" : kindOfTick(payload.seen as object);
    case "message_dead_lettered":
      if (payload.reason === "ttl_expired") return "expired message";
      return payload.reason === "mailbox_full" ? "full mailbox" : null;
    case "human_input_answered":
      return "answer of a person";
    case "human_input_timed_out":
      return "question that timed out";
    case "service_registered":
      return "service";
    default:
      return null;
  }
}

function kindOfTick(seen: object): Kind | null {
  return "timer" in seen ? "interval of a sensor" : null;
}
