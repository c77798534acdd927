// The one place that says how much a run of the tests tries: `npm test` takes a few rounds, seeds and clients of each
// test that has many, `npm run test:long` all of them.

export const isLongRun = process.env.TROUPE_TEST_LONG === "1";

/** How many a test takes. @example const KILLS = rounds({ usually: 5, long: 50 }); */
export function rounds({ usually, long }: { readonly usually: number; readonly long: number }): number {
  return isLongRun ? long : usually;
}
