// Faults of schedules: what is due, and that each due time starts one run.

import type { Mutation } from "./mutation.ts";

const simulation = ["test/simulation/schedules.test.ts"];
const rule = ["src/schedules/rule.test.ts"];

const step = (fault: string, search: string, replacement: string): Mutation => ({
  fault,
  file: "src/schedules/step.ts",
  search,
  replacement,
  tests: simulation,
});
const scheduler = (fault: string, search: string, replacement: string): Mutation => ({
  fault,
  file: "src/schedules/scheduler.ts",
  search,
  replacement,
  tests: simulation,
});
const starts = (fault: string, search: string, replacement: string): Mutation => ({
  fault,
  file: "src/schedules/run-starts.ts",
  search,
  replacement,
  tests: simulation,
});

export const scheduleMutations: readonly Mutation[] = [
  {
    fault: "February 31 is March 3",
    file: "src/lib/dates.ts",
    search: "day.getUTCDate() === Number(text.slice(8, 10))",
    replacement: "!Number.isNaN(day.getTime())",
    tests: ["test/gateway/schedules.test.ts", "test/integration/cli-schedules.test.ts"],
  },
  scheduler(
    "a start that was prepared for an older version of a schedule is made",
    "now === null || now.version !== schedule.version",
    "now === null",
  ),
  starts(
    "a run that was started is not noted",
    "if (run !== null) await writes.schedules.noteRun({ ...run, scheduleId });",
    "",
  ),
  scheduler(
    "ends that nobody has seen are never looked at",
    "this.#ends.add(runId);\n          continue;",
    "continue;",
  ),
  starts(
    "a run that was cancelled for the next one goes on",
    "for (const runId of cancelled) await starts.cancel(writes, runId);",
    "",
  ),
  {
    ...scheduler(
      "a clock that is put back lets no run be started for hours",
      "Math.min(ROUND_MS, Math.max(0, atMs - clock.nowMs()))",
      "Math.max(0, atMs - clock.nowMs())",
    ),
    tests: ["src/schedules/scheduler.test.ts"],
  },
  scheduler(
    "the end of a run does not let the one start that waits for it",
    "hasOpen ? counted : freed(counted)",
    "counted",
  ),
  scheduler(
    "only the program on duty starts runs",
    "const BEHIND_MS = 2_000;",
    "const BEHIND_MS = 86_400_000;",
  ),
  step("runs of one schedule overlap", 'hasOpen && schedule.overlap === "skip"', "false"),
  step(
    "a second run waits for the end of the first",
    "if (queuedDueAtMs !== null) return skipped(moved, due, nowMs, HAS_NOT_ENDED);",
    "",
  ),
  scheduler(
    "a time that comes again after the clock was put back is started again",
    "const insert = isThere ? null : prepared;",
    "const insert = prepared;",
  ),
  step("a missed time is not counted", "missed: all.length - wanted.length", "missed: 0"),
  step(
    "of missed times the oldest are made up for",
    "all.slice(-catchupLimit)",
    "all.slice(0, catchupLimit)",
  ),
  step("of several missed times one is forgotten", "dues[1] ?? followedBy", "followedBy"),
  step("more runs are started than were asked for", "dispatched >= schedule.maxRuns", "false"),
  step("what failed again and again is not paused", "failuresInARow >= schedule.pauseAfterFailures", "false"),
  {
    fault: "a time that comes twice is due twice",
    file: "src/schedules/rule.ts",
    search: ', fixedTimeRule: "no-wildcard"',
    replacement: "",
    tests: rule,
  },
  {
    fault: "times are due in the machine's own zone",
    file: "src/schedules/rule.ts",
    search: "{ timezone, fixed",
    replacement: "{ fixed",
    tests: rule,
  },
  {
    fault: "two due times have one run",
    file: "src/schedules/rule.ts",
    search: ".update(`${scheduleId} ${of}`)",
    replacement: ".update(`${of}`)",
    tests: rule,
  },
  {
    fault: "an expression without words of its own cannot be shown",
    file: "src/schedules/rule.ts",
    search: "    return expression;",
    replacement: "    throw new Error(expression);",
    tests: rule,
  },
  {
    fault: "a drained node starts scheduled runs",
    file: "src/schedules/scheduler.ts",
    search: "while (!signal.aborted && closed() === null)",
    replacement: "while (!signal.aborted)",
    tests: ["src/schedules/scheduler.test.ts"],
  },
];
