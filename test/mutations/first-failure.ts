// A reporter that ends the test's process with its first failure: more is not asked of a mutation, and what follows a
// failure often hangs. The programs that a test has started end with its process (test/support/program.ts).

import type { TestEvent } from "node:test/reporters";

/** The exit status of a test that has not failed, but has reached its time limit. */
export const TIMED_OUT = 3;
const LINE_CHARS_MAX = 200;

// biome-ignore lint/correctness/useYield: what it prints must be out before the process ends.
export default async function* firstFailure(source: AsyncIterable<TestEvent>): AsyncGenerator<string> {
  for await (const { type, data } of source) {
    // "test:fail" would wait for tests that still run beside it.
    if (type !== "test:complete" || data.details.passed) continue;
    const { failureType, cause, message } = data.details.error as TestError;
    const [line] = (cause?.message ?? message).trim().split("\n");
    console.log(`${data.name}: ${line?.slice(0, LINE_CHARS_MAX)}`);
    process.exit(failureType === "testTimeoutFailure" ? TIMED_OUT : 1);
  }
}

interface TestError extends Error {
  readonly failureType?: string;
  readonly cause?: Error;
}
