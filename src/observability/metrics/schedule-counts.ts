// What schedules, trigger events and webhooks have done since this process started. Labels are outcomes, never types or ids.

import { type Skip, skips } from "../../schedules/event-records.ts";
import type { ScheduleMeter } from "../../schedules/meter.ts";
import type { DispatchOutcome } from "../../schedules/records.ts";
import type { Emitted } from "../../schedules/trigger-events.ts";
import { Histogram } from "./histogram.ts";

const DELAY_SECONDS = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 15, 60, 300, 3_600];

const webhookResults = [
  "accepted",
  "repeated",
  "invalid_signature",
  "not_found",
  "invalid_body",
  "rate_limited",
  "failed",
] as const;
export type WebhookResult = (typeof webhookResults)[number];

const zeros = <Name extends string>(names: readonly Name[]) =>
  Object.fromEntries(names.map((name) => [name, 0])) as Record<Name, number>;

export class ScheduleCounts implements ScheduleMeter {
  readonly dispatches = zeros<DispatchOutcome | "missed">([
    "dispatched",
    "skipped",
    "queued",
    "failed",
    "missed",
  ]);
  readonly delaySeconds = new Histogram(DELAY_SECONDS);
  readonly events = zeros(["matched", "unmatched", "repeated"]);
  /** By what a schedule has made of an event. */
  readonly matches = zeros<Skip | "started">(["started", ...skips]);
  readonly webhooks = zeros(webhookResults);

  dispatched(outcome: DispatchOutcome): void {
    this.dispatches[outcome]++;
  }

  missed(count: number): void {
    this.dispatches.missed += count;
  }

  startedLate(ms: number): void {
    this.delaySeconds.observe(Math.max(0, ms) / 1_000);
  }

  emitted({ event, isRepeated }: Emitted): void {
    if (isRepeated) {
      this.events.repeated++;
      return;
    }
    this.events[event.matches.length > 0 ? "matched" : "unmatched"]++;
    for (const { skipped } of event.matches) this.matches[skipped ?? "started"]++;
  }
}
