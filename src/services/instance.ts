// One instance of a service that a job, or a command of one of its agents, currently offers; and the state of each of its
// checks, a state machine without a clock:
//
//   starting -> passing <-> critical
//   starting -> critical
//
// - A service is passing only while all of its checks are, and no check is before it has passed once.
// - A check that was passing is critical after so many failures in a row as it allows; one pass makes it
//   healthy again.
// - A check that has never passed is repeated in quick succession first, each time after twice the time, because a
//   program that was just started is seldom reachable at once; after that it is critical, and keeps to its interval.

import type { ServiceCheck, ServiceSpec } from "../engine/service.ts";
import type { ServiceJob } from "../engine/service-port.ts";
import type { CheckView, ServiceStatus } from "./service-view.ts";

export interface CheckResult {
  readonly passed: boolean;
  /** The result, for people. */
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

interface Round {
  readonly check: ServiceCheck;
  state: CheckState;
  output: string;
  checkedAtMs: number | null;
}

interface Origin {
  readonly serviceId: string;
  readonly spec: ServiceSpec;
  readonly job: ServiceJob;
  /** Null for a service of the job as a whole. */
  readonly agentId: string | null;
  readonly registeredAtMs: number;
  /** Later ones have higher numbers. */
  readonly order: number;
}

export class ServiceInstance {
  readonly serviceId: string;
  readonly spec: ServiceSpec;
  readonly job: ServiceJob;
  readonly agentId: string | null;
  readonly registeredAtMs: number;
  readonly order: number;
  updatedAtMs: number;
  /** What the job's history has of it. */
  readonly recorded: { status: ServiceStatus | null; count: number } = { status: null, count: 0 };
  /** By the number of the check that waits for its next time. */
  readonly timers = new Map<number, () => void>();
  readonly #over = new AbortController();
  /** Who waits for the next result of a check, by its number. */
  readonly #awaited = new Map<number, PromiseWithResolvers<void>>();
  readonly #rounds: readonly Round[];

  constructor(origin: Origin) {
    this.serviceId = origin.serviceId;
    this.spec = origin.spec;
    this.job = origin.job;
    this.agentId = origin.agentId;
    this.registeredAtMs = origin.registeredAtMs;
    this.updatedAtMs = origin.registeredAtMs;
    this.order = origin.order;
    this.#rounds = origin.spec.checks.map((check) => ({
      check,
      state: newCheck,
      output: "not checked yet",
      checkedAtMs: null,
    }));
  }

  /** Aborted when the instance is over: nothing that is found out afterwards counts. */
  get over(): AbortSignal {
    return this.#over.signal;
  }

  get isOver(): boolean {
    return this.over.aborted;
  }

  end(): void {
    this.#over.abort();
    for (const cancel of this.timers.values()) cancel();
    this.timers.clear();
    for (const index of [...this.#awaited.keys()]) this.#told(index);
  }

  /** Resolves with the next result of a check, or when the instance is over. */
  nextResult(index: number): Promise<void> {
    if (this.isOver) return Promise.resolve();
    const awaited = this.#awaited.get(index) ?? Promise.withResolvers<void>();
    this.#awaited.set(index, awaited);
    return awaited.promise;
  }

  #told(index: number): void {
    this.#awaited.get(index)?.resolve();
    this.#awaited.delete(index);
  }

  /** Of all checks together; `starting` counts as critical for others. */
  get phase(): CheckState["kind"] {
    return together(this.#rounds.map(({ state }) => state));
  }

  get status(): ServiceStatus {
    return shown(this.phase);
  }

  get checks(): readonly CheckView[] {
    return this.#rounds.map(({ check, state, output, checkedAtMs }) => ({
      name: check.name,
      kind: check.kind,
      status: shown(state.kind),
      failures: state.failures,
      output,
      checkedAtMs,
    }));
  }

  /** The reason for its status, for people. */
  get reason(): string {
    if (this.#rounds.length === 0) return "it has no checks";
    const failing = this.#rounds.filter(({ state }) => state.kind !== "passing");
    if (failing.length === 0) return "all checks pass";
    return failing.map(({ check, output }) => `${check.name}: ${output}`).join("; ");
  }

  /** Takes what a check has found. @returns the check's new state */
  checked(index: number, { passed, output }: CheckResult, nowMs: number): CheckState {
    const before = this.status;
    const round = this.#rounds[index]!;
    round.state = afterCheck(round.state, passed, round.check);
    round.output = output;
    round.checkedAtMs = nowMs;
    if (this.status !== before) this.updatedAtMs = nowMs;
    this.#told(index);
    return round.state;
  }
}

const shown = (kind: CheckState["kind"]): ServiceStatus => (kind === "passing" ? "passing" : "critical");
