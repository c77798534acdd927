// Checks of the machine by a running server, bounded in time; requests within a few seconds share a result.
//
// - One examination runs at a time, and its result is reused for RESULT_MS.
// - A check that hangs (a dead network disk) is reported as failed after `limitMs`, and not started again before it
//   has come back.

import { setTimeout } from "node:timers/promises";
import type { Finding } from "./machine.ts";

const RESULT_MS = 5_000;
const LIMIT_MS = 5_000;

export interface Check {
  /** The name in the finding when the check hangs or fails. */
  readonly name: string;
  run(): Promise<readonly Finding[]>;
}

export interface ExaminationResult {
  readonly findings: readonly Finding[];
  readonly checkedAtMs: number;
}

/**
 * Makes the examination.
 *
 * @param parts.nowMs wall time in ms since 1970
 * @param parts.limitMs how long a check may take; more than 0
 * @returns a function that returns the findings of all checks, in their order
 */
export function examinationOf({
  checks,
  nowMs,
  limitMs = LIMIT_MS,
}: {
  readonly checks: readonly Check[];
  readonly nowMs: () => number;
  readonly limitMs?: number;
}): () => Promise<ExaminationResult> {
  /** Checks that have not answered yet. */
  const pending = new Map<Check, Promise<readonly Finding[]>>();
  let last: ExaminationResult | null = null;
  let running: Promise<ExaminationResult> | null = null;

  function started(check: Check): Promise<readonly Finding[]> {
    const before = pending.get(check);
    if (before !== undefined) return before;
    const findings = check
      .run()
      .catch((error: unknown) => [broke(check, error)])
      .finally(() => pending.delete(check));
    pending.set(check, findings);
    return findings;
  }

  async function bounded(check: Check): Promise<readonly Finding[]> {
    const limit = new AbortController();
    const late = setTimeout(limitMs, [hangs(check, limitMs)], { signal: limit.signal });
    return Promise.race([started(check), late]).finally(() => limit.abort());
  }

  async function examine(): Promise<ExaminationResult> {
    const findings = (await Promise.all(checks.map(bounded))).flat();
    last = { findings, checkedAtMs: nowMs() };
    return last;
  }

  return async () => {
    const ageMs = last === null ? Number.POSITIVE_INFINITY : nowMs() - last.checkedAtMs;
    // The clock may step back.
    if (last !== null && ageMs >= 0 && ageMs < RESULT_MS) return last;
    running ??= examine().finally(() => {
      running = null;
    });
    return running;
  };
}

function hangs({ name }: Check, limitMs: number): Finding {
  return {
    name,
    state: "fail",
    text: `did not answer within ${limitMs / 1_000} s`,
    fix: "The machine is overloaded, or a disk hangs: look at its load and its log.",
  };
}

function broke({ name }: Check, error: unknown): Finding {
  const code = (error as NodeJS.ErrnoException).code ?? (error as Error).name;
  return { name, state: "fail", text: `could not be checked (${code})`, fix: "Look at the server's log." };
}
