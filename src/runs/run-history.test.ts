// Pages of a history: H1, bounded work, and H2, nothing lost or repeated.

import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { type HistoryPage, readHistory } from "./run-history.ts";

/** A history of `count` lines that is read in pieces of different sizes. */
function historyOf(count: number, pieces: readonly number[] = [3], lineOf = (seq: number) => `line ${seq}`) {
  let reads = 0;
  return {
    get reads() {
      return reads;
    },
    read: async (afterSeq: number) => {
      const size = pieces[reads++ % pieces.length]!;
      const length = Math.max(0, Math.min(size, count - afterSeq));
      return { firstSeq: afterSeq + 1, lines: Array.from({ length }, (_, i) => lineOf(afterSeq + 1 + i)) };
    },
  };
}

test("H2: pages of any size joined are the whole view, in order, each event once", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.integer({ min: 0, max: 120 }),
      fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1, maxLength: 5 }),
      fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1, maxLength: 5 }),
      fc.func(fc.boolean()),
      async (count, pieces, limits, shows) => {
        const view = (seq: number) => (shows(seq) ? seq : null);
        const { read } = historyOf(count, pieces);
        const seen: number[] = [];
        let afterSeq: number | null = 0;
        for (let n = 0; afterSeq !== null; n++) {
          const limit = limits[n % limits.length]!;
          const page: HistoryPage<number> = await readHistory(read, { afterSeq, limit, view });
          assert.ok(page.items.length <= limit);
          // Without the bound on reading, only the last page is short.
          if (page.nextAfterSeq !== null) assert.equal(page.items.length, limit);
          seen.push(...page.items);
          afterSeq = page.nextAfterSeq;
        }
        assert.deepEqual(
          seen,
          Array.from({ length: count }, (_, i) => i + 1).filter((seq) => shows(seq)),
        );
      },
    ),
  );
});

test("a page that holds exactly what is left is the last one", async () => {
  const page = await readHistory(historyOf(4).read, { afterSeq: 0, limit: 4, view: (seq) => seq });
  assert.deepEqual(page, { items: [1, 2, 3, 4], nextAfterSeq: null });
});

test("H1: a view that matches rarely ends its page early, and the next one goes on there", async () => {
  const history = historyOf(50_000, [1_000]);
  const view = (seq: number) => (seq === 45_000 ? seq : null);
  const found: number[] = [];
  let pages = 0;
  let readsBefore = 0;
  for (let afterSeq: number | null = 0; afterSeq !== null; pages++) {
    const page: HistoryPage<number> = await readHistory(history.read, { afterSeq, limit: 50, view });
    assert.ok(history.reads - readsBefore <= 22);
    readsBefore = history.reads;
    found.push(...page.items);
    afterSeq = page.nextAfterSeq;
  }
  assert.equal(pages, 3);
  assert.deepEqual(found, [45_000]);
});

test("H1: a page of long lines is short, and still goes forward", async () => {
  const long = "x".repeat(3 * 1024 * 1024);
  const { read } = historyOf(20, [2], () => long);
  const first = await readHistory(read, { afterSeq: 0, limit: 200, view: (seq) => seq });
  assert.deepEqual(first, { items: [1, 2, 3], nextAfterSeq: 3 });
  const second = await readHistory(read, { afterSeq: 3, limit: 200, view: (seq) => seq });
  assert.deepEqual(second.items, [4, 5, 6]);
});
