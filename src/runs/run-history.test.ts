// Pages of a history, in either direction: bounded work, nothing lost or repeated, and slices.

import assert from "node:assert/strict";
import { test } from "node:test";
import { fc } from "../../test/support/fast-check.ts";
import { type HistoryPage, type NewestPage, readHistory, readNewest } from "./run-history.ts";

/** A history of `count` lines that is read in pieces of different sizes. */
function historyOf(count: number, pieces: readonly number[] = [3], lineOf = (seq: number) => `line ${seq}`) {
  let reads = 0;
  const sizeOf = () => pieces[reads++ % pieces.length]!;
  return {
    get reads() {
      return reads;
    },
    readBefore: async (beforeSeq: number) => {
      const toSeq = Math.min(count + 1, beforeSeq);
      const firstSeq = Math.max(1, toSeq - sizeOf());
      return { firstSeq, lines: Array.from({ length: toSeq - firstSeq }, (_, i) => lineOf(firstSeq + i)) };
    },
    read: async (afterSeq: number) => {
      const length = Math.max(0, Math.min(sizeOf(), count - afterSeq));
      return { firstSeq: afterSeq + 1, lines: Array.from({ length }, (_, i) => lineOf(afterSeq + 1 + i)) };
    },
  };
}

test("pages of any size joined are the whole view, in order, each event once", async () => {
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
  assert.deepEqual(page, { items: [1, 2, 3, 4], nextAfterSeq: null, seenSeq: 4 });
});

test("a view that matches rarely ends its page early, and the next one continues there", async () => {
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

test("a page of long lines is short, and still advances", async () => {
  const long = "x".repeat(3 * 1024 * 1024);
  const { read } = historyOf(20, [2], () => long);
  const first = await readHistory(read, { afterSeq: 0, limit: 200, view: (seq) => seq });
  assert.deepEqual(first, { items: [1, 2, 3], nextAfterSeq: 3, seenSeq: 3 });
  const second = await readHistory(read, { afterSeq: 3, limit: 200, view: (seq) => seq });
  assert.deepEqual(second.items, [4, 5, 6]);
});

test("pages from the newest back are the same view in the other order", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.integer({ min: 0, max: 120 }),
      fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1, maxLength: 5 }),
      fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1, maxLength: 5 }),
      fc.func(fc.boolean()),
      async (count, pieces, limits, shows) => {
        const view = (seq: number) => (shows(seq) ? seq : null);
        const { readBefore } = historyOf(count, pieces);
        const seen: number[] = [];
        let beforeSeq: number | null = null;
        for (let n = 0; n === 0 || beforeSeq !== null; n++) {
          const limit = limits[n % limits.length]!;
          const page: NewestPage<number> = await readNewest(readBefore, { beforeSeq, limit, view });
          assert.ok(page.items.length <= limit);
          if (n === 0) assert.equal(page.newestSeq, count);
          if (page.nextBeforeSeq !== null) assert.equal(page.items.length, limit);
          seen.push(...page.items);
          beforeSeq = page.nextBeforeSeq;
        }
        assert.deepEqual(
          seen,
          Array.from({ length: count }, (_, i) => count - i).filter((seq) => shows(seq)),
        );
      },
    ),
  );
});

test("a part of a history is read as if it were all there is, in either direction", async () => {
  const { read, readBefore } = historyOf(40, [7]);
  const view = (seq: number) => seq;
  const forwards = await readHistory(read, { afterSeq: 9, endSeq: 13, limit: 50, view });
  assert.deepEqual(forwards, { items: [10, 11, 12], nextAfterSeq: null, seenSeq: 12 });
  const full = await readHistory(read, { afterSeq: 9, endSeq: 13, limit: 3, view });
  assert.equal(full.nextAfterSeq, null);
  const back = await readNewest(readBefore, { beforeSeq: 13, fromSeq: 10, limit: 50, view });
  assert.deepEqual(back, { items: [12, 11, 10], nextBeforeSeq: null, newestSeq: 12 });
});

test("backwards too, a view that matches rarely ends its page early", async () => {
  const history = historyOf(50_000, [1_000]);
  const view = (seq: number) => (seq === 5_000 ? seq : null);
  const first = await readNewest(history.readBefore, { beforeSeq: null, limit: 50, view });
  assert.deepEqual(first, { items: [], nextBeforeSeq: 30_001, newestSeq: 50_000 });
  assert.ok(history.reads <= 22);
  const second = await readNewest(history.readBefore, { beforeSeq: 30_001, limit: 50, view });
  assert.equal(second.nextBeforeSeq, 10_001);
  const third = await readNewest(history.readBefore, { beforeSeq: 10_001, limit: 50, view });
  assert.deepEqual(third, { items: [5_000], nextBeforeSeq: null, newestSeq: 10_000 });
});

test("other work has its turn while a page is read", async () => {
  const busyUntil = (ms: number) => {
    while (performance.now() < ms);
    return null;
  };
  const slow = { limit: 50, view: () => busyUntil(performance.now() + 1) };
  for (const reading of [
    () => readHistory(historyOf(20, [20]).read, { afterSeq: 0, ...slow }),
    () => readNewest(historyOf(20, [20]).readBefore, { beforeSeq: null, ...slow }),
  ]) {
    let turns = 0;
    let isRead = false;
    const others = () => {
      turns++;
      if (!isRead) setImmediate(others);
    };
    setImmediate(others);
    await reading();
    isRead = true;
    // Twenty events of 1 ms each fill more than six slices.
    assert.ok(turns >= 3, `${turns} turns`);
  }
});
