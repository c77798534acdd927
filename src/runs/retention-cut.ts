// Where retention cuts: everything that ended at the cut or before goes, everything behind it stays. Age and size are
// both cuts through the one order of ends, so the later of the two is what counts.

import type { EndedRun, EndPosition, RetentionRecords } from "./retention-records.ts";

export interface CutRequest {
  /** What ended before goes; wall time in ms since 1970. Null: age does not matter. */
  readonly beforeMs: number | null;
  /** What ended runs may have together; the oldest end goes first until they have no more. Null: size does not matter. */
  readonly bytesMax: number | null;
}

const RUNS_PER_PAGE = 500;
/** Sorts behind every id. */
const BEHIND_ALL_IDS = "\u{10ffff}";

type Ended = Pick<RetentionRecords, "endedPage">;

/** Does one page's work; between two of them others have their turn. */
type Step = <Result>(work: () => Promise<Result>) => Promise<Result>;

/** @returns null when nothing goes */
export async function findCut(
  records: Ended,
  { beforeMs, bytesMax }: CutRequest,
  step: Step,
): Promise<EndPosition | null> {
  const byAge = beforeMs === null ? null : { endedAtMs: beforeMs - 1, id: BEHIND_ALL_IDS };
  if (bytesMax === null) return byAge;
  let bytes = 0;
  for await (const page of pagesBehind(records, null, step)) {
    for (const run of page) {
      if (beforeMs !== null && run.endedAtMs < beforeMs) return byAge;
      bytes += run.storedBytes;
      if (bytes > bytesMax) return run;
    }
  }
  return byAge;
}

/** How many the cut takes, and how much they have. */
export async function countThrough(
  records: Ended,
  cut: EndPosition,
  step: Step,
): Promise<{ readonly count: number; readonly bytes: number }> {
  let count = 0;
  let bytes = 0;
  // Right behind the cut, so that it is the first to be counted.
  const from = { endedAtMs: cut.endedAtMs, id: `${cut.id}\u0000` };
  for await (const page of pagesBehind(records, from, step)) {
    count += page.length;
    for (const run of page) bytes += run.storedBytes;
  }
  return { count, bytes };
}

/** Ended runs from the newest end back. */
async function* pagesBehind(
  records: Ended,
  from: EndPosition | null,
  step: Step,
): AsyncGenerator<readonly EndedRun[]> {
  let after = from;
  for (;;) {
    const page = await step(() => records.endedPage(RUNS_PER_PAGE, after));
    if (page.length > 0) yield page;
    if (page.length < RUNS_PER_PAGE) return;
    after = page.at(-1) ?? null;
  }
}
