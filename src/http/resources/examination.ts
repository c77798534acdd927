// The examination of a running server: bounded in time, and shared by all who ask within a few seconds.
//
// X1. One examination is under way at a time, and its result is good for RESULT_MS.
// X2. A check that hangs (a dead network disk) is reported as failed after `limitMs`, and not started again before it
//     has come back.

import type { Finding } from "../../execution/machine.ts";

const RESULT_MS = 5_000;
const LIMIT_MS = 5_000;

export interface Check {
  /** Stands in the finding of a check that hangs or breaks. */
  readonly name: string;
  run(): Promise<readonly Finding[]>;
}

export interface ExaminationResult {
  readonly findings: readonly Finding[];
  readonly checkedAtMs: number;
}

export class Examination {
  readonly #checks: readonly Check[];
  readonly #nowMs: () => number;
  readonly #limitMs: number;
  /** Of the check at the same place: what it promised and has not answered yet. */
  readonly #pending = new Map<Check, Promise<readonly Finding[]>>();
  #last: ExaminationResult | null = null;
  #running: Promise<ExaminationResult> | null = null;

  /**
   * @param parts.limitMs how long a check may take; more than 0, LIMIT_MS without it
   * @param parts.nowMs wall time in ms since 1970
   */
  constructor(parts: {
    readonly checks: readonly Check[];
    readonly nowMs: () => number;
    readonly limitMs?: number;
  }) {
    this.#checks = parts.checks;
    this.#nowMs = parts.nowMs;
    this.#limitMs = parts.limitMs ?? LIMIT_MS;
  }

  /** The findings of all checks, in their order. */
  result(): Promise<ExaminationResult> {
    const last = this.#last;
    const age = last === null ? Number.POSITIVE_INFINITY : this.#nowMs() - last.checkedAtMs;
    // A clock that steps back makes no result good for longer.
    if (last !== null && age >= 0 && age < RESULT_MS) return Promise.resolve(last);
    this.#running ??= this.#examine().finally(() => {
      this.#running = null;
    });
    return this.#running;
  }

  async #examine(): Promise<ExaminationResult> {
    const findings = (await Promise.all(this.#checks.map((check) => this.#bounded(check)))).flat();
    this.#last = { findings, checkedAtMs: this.#nowMs() };
    return this.#last;
  }

  async #bounded(check: Check): Promise<readonly Finding[]> {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<readonly Finding[]>((resolve) => {
      timer = setTimeout(() => resolve([hangs(check, this.#limitMs)]), this.#limitMs);
    });
    try {
      return await Promise.race([this.#started(check), late]);
    } finally {
      clearTimeout(timer);
    }
  }

  #started(check: Check): Promise<readonly Finding[]> {
    const pending = this.#pending.get(check);
    if (pending !== undefined) return pending;
    const started = check
      .run()
      .catch((error: unknown) => [broke(check, error)])
      .finally(() => this.#pending.delete(check));
    this.#pending.set(check, started);
    return started;
  }
}

function hangs({ name }: Check, limitMs: number): Finding {
  return {
    name,
    state: "fail",
    text: `did not answer within ${limitMs / 1_000} s`,
    mend: "The machine is overloaded, or a disk hangs: look at its load and its log.",
  };
}

function broke({ name }: Check, error: unknown): Finding {
  const code = (error as NodeJS.ErrnoException).code ?? (error as Error).name;
  return { name, state: "fail", text: `could not be checked (${code})`, mend: "Look at the server's log." };
}
