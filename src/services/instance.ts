// One instance of a service: a service that a job, or a command of one of its agents, offers right now.

import type { ServiceCheck, ServiceSpec } from "../engine/service.ts";
import type { ServiceJob } from "../engine/service-port.ts";
import {
  afterCheck,
  type CheckResult,
  type CheckState,
  newCheck,
  type ServiceStatus,
  together,
} from "./check-state.ts";

/** What others see of an instance. */
export interface ServiceView {
  /** Stable: the next attempt of the agent, and the next start of the runtime, has the same. */
  readonly serviceId: string;
  readonly spec: ServiceSpec;
  readonly job: ServiceJob;
  /** Null for a service of the job as a whole. */
  readonly agentId: string | null;
  readonly status: ServiceStatus;
  readonly checks: readonly CheckView[];
  readonly registeredAtMs: number;
  /** When its status changed last. */
  readonly updatedAtMs: number;
}

export interface CheckView {
  readonly check: ServiceCheck;
  readonly status: ServiceStatus;
  /** Failures in a row, up to now. */
  readonly failures: number;
  readonly output: string;
  /** Null before it was made for the first time. */
  readonly checkedAtMs: number | null;
}

interface Round {
  readonly check: ServiceCheck;
  state: CheckState;
  output: string;
  checkedAtMs: number | null;
}

type Origin = Pick<ServiceView, "serviceId" | "spec" | "job" | "agentId" | "registeredAtMs"> & {
  /** Later ones have higher numbers. */
  readonly order: number;
};

export class ServiceInstance implements ServiceView {
  readonly serviceId: string;
  readonly spec: ServiceSpec;
  readonly job: ServiceJob;
  readonly agentId: string | null;
  readonly registeredAtMs: number;
  readonly order: number;
  updatedAtMs: number;
  /** By the number of the check that waits for its next time. */
  readonly timers = new Map<number, () => void>();
  readonly #over = new AbortController();
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
      check,
      status: shown(state.kind),
      failures: state.failures,
      output,
      checkedAtMs,
    }));
  }

  /** Why it is what it is, for people. */
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
    return round.state;
  }
}

const shown = (kind: CheckState["kind"]): ServiceStatus => (kind === "passing" ? "passing" : "critical");
