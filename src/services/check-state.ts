// What a check knows of a service: a state machine without a clock.
//
//   starting -> passing <-> critical
//   starting -> critical
//
// K1. A service is passing only while all of its checks are, and no check is before it has passed once.
// K2. A check that was passing is critical after so many failures in a row as it allows; one pass mends it.
// K3. A check that has never passed is repeated in quick succession first, each time after twice the time, because a
//     program that was just started is seldom reachable at once; after that it is critical, and keeps to its interval.

import type { ServiceCheck } from "../engine/service.ts";

export const serviceStatuses = ["passing", "critical"] as const;
export type ServiceStatus = (typeof serviceStatuses)[number];

export interface CheckResult {
  readonly passed: boolean;
  /** For people: what was found. */
  readonly output: string;
}

/** The failures in a row, up to now. */
export interface CheckState {
  readonly kind: "starting" | "passing" | "critical";
  readonly failures: number;
}

type Timing = Pick<ServiceCheck, "intervalMs" | "failuresBeforeCritical">;

const FIRST_DELAY_MS = 100;

export const newCheck: CheckState = { kind: "starting", failures: 0 };

export function afterCheck(state: CheckState, passed: boolean, timing: Timing): CheckState {
  if (passed) return { kind: "passing", failures: 0 };
  const failures = state.failures + 1;
  switch (state.kind) {
    case "starting":
      return { kind: quickDelayMs(failures) < timing.intervalMs ? "starting" : "critical", failures };
    case "passing":
      return { kind: failures < timing.failuresBeforeCritical ? "passing" : "critical", failures };
    case "critical":
      return { kind: "critical", failures };
    default:
      return state.kind satisfies never;
  }
}

/** Milliseconds until the check is to be made again. */
export function delayMsAfter({ kind, failures }: CheckState, { intervalMs }: Timing): number {
  return kind === "starting" ? Math.min(quickDelayMs(failures), intervalMs) : intervalMs;
}

const quickDelayMs = (failures: number) => FIRST_DELAY_MS * 2 ** (failures - 1);

/** All checks together; a service without any passes. */
export function together(checks: readonly CheckState[]): CheckState["kind"] {
  if (checks.some(({ kind }) => kind === "critical")) return "critical";
  return checks.every(({ kind }) => kind === "passing") ? "passing" : "starting";
}
