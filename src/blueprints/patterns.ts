// Regular expressions from packages, on texts from users: some pairs of them take years.
//
// - However many there are in one check, they use BUDGET_MS of CPU time together at most; the rest is not judged then,
//   which the caller reports as a mistake. It is CPU time, so a busy machine changes nothing.

import { cpuMsSince, MachineBusy, runWithTimeout } from "../lib/async.ts";

export const patternLimits = { patternCharsMax: 1_000, textCharsMax: 10_000 } as const;

/** Some five hundred ordinary matches. */
const BUDGET_MS = 100;

export type PatternVerdict = "matches" | "differs" | "too_long" | "too_slow" | "invalid_pattern";

/** The patterns of one check. A pattern is unicode-aware, and found anywhere in the text unless it has anchors. */
export class PatternBudget {
  #leftMs = BUDGET_MS;

  judge(pattern: string, text: string): PatternVerdict {
    const { patternCharsMax, textCharsMax } = patternLimits;
    if (pattern.length > patternCharsMax || text.length > textCharsMax) return "too_long";
    const cpuMs = Math.floor(this.#leftMs);
    if (cpuMs < 1) return "too_slow";
    let isMatch = false;
    let usedMs = cpuMs;
    const match = () => {
      const before = process.threadCpuUsage();
      isMatch = new RegExp(pattern, "u").test(text);
      usedMs = cpuMsSince(before);
    };
    try {
      if (!runWithTimeout(cpuMs, match)) return "too_slow";
      return isMatch ? "matches" : "differs";
    } catch (error) {
      if (error instanceof MachineBusy) throw error;
      return "invalid_pattern";
    } finally {
      this.#leftMs -= usedMs;
    }
  }
}
