// The two sizes of the suite. `npm test` is small enough to run before every commit; `npm run test:long` also runs every seed
// and every kill round, and afterwards the mutations.

/** Set by test/run.ts for `--long`. */
export const LONG_VARIABLE = "TROUPE_TEST_LONG";

/** @returns what a test uses in the suite's size of this run */
export function sized<T>(usually: T, long: T): T {
  return process.env[LONG_VARIABLE] === "1" ? long : usually;
}
