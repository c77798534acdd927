// Pages (CONTRACTS §2): tokens that are tampered with, and walks through lists that change meanwhile.

import assert from "node:assert/strict";
import { test } from "node:test";
import { fc } from "../../../test/support/fast-check.ts";
import { PAGE_TOKEN_MS } from "./page-token.ts";
import { type ListRequest, Paging } from "./paging.ts";
import { Problem } from "./problem.ts";

const key = Buffer.alloc(32, 7);
const paging = (nowMs = () => 0) => new Paging({ key, nowMs });
const request = (more: Partial<ListRequest> = {}): ListRequest => ({
  principal: "anonymous",
  list: "/runs",
  filters: { status: "failed" },
  ...more,
});

function tokenOf(given: ListRequest, pages = paging(), at = "run_1"): string {
  const page = pages.read({ ...given, pageSize: 1 });
  const token = pages.answer(page, [at, "next"], (row) => [row]).next_page_token;
  assert.ok(token !== null);
  return token;
}

function refusal(act: () => unknown): Problem {
  try {
    act();
  } catch (error) {
    assert.ok(error instanceof Problem, String(error));
    return error;
  }
  return assert.fail("it was not refused");
}

const isRefused = (given: ListRequest, pages = paging()) => {
  const { status, code } = refusal(() => pages.read(given));
  assert.deepEqual([status, code], [400, "invalid_page_token"]);
};

test("page_size default 50", () => {
  assert.equal(paging().read(request()).size, 50);
  assert.equal(paging().read(request({ pageSize: 200 })).size, 200);
});

test("the token is null (present) on the last page, and on an empty one", () => {
  const page = paging().read(request({ pageSize: 2 }));
  assert.equal(page.fetch, 3);
  const rows = (count: number) => Array.from({ length: count }, (_, i) => i);
  for (const count of [0, 1, 2]) {
    assert.deepEqual(
      paging().answer(page, rows(count), (row) => [row]),
      { items: rows(count), next_page_token: null },
    );
  }
  const more = paging().answer(page, rows(3), (row) => [row]);
  assert.deepEqual(more.items, [0, 1]);
  assert.equal(typeof more.next_page_token, "string");
});

test("limit ends the walk with the page that reaches it", () => {
  const page = paging().read(request({ pageSize: 2, limit: 3 }));
  const { next_page_token: pageToken } = paging().answer(page, [1, 2, 3], (row) => [row]);
  assert.ok(pageToken !== null);
  const second = paging().read(request({ pageSize: 2, limit: 3, pageToken }));
  assert.deepEqual([second.size, second.remaining], [1, 1]);
  assert.deepEqual(
    paging().answer(second, [3, 4], (row) => [row]),
    { items: [3], next_page_token: null },
  );
});

test("a token may stand behind a position that no item has; what was shown counts towards the limit", () => {
  const pages = paging();
  const next = (given: ListRequest, shown: number) => {
    const pageToken = pages.tokenBehind(pages.read(given), ["run_1", 500], shown);
    const { after, remaining } = pages.read({ ...given, pageToken });
    return { after, remaining };
  };
  assert.deepEqual(next(request(), 0), { after: ["run_1", 500], remaining: null });
  assert.deepEqual(next(request({ limit: 10 }), 3), { after: ["run_1", 500], remaining: 7 });
});

test("a token goes on behind the last item shown, with any page size and filters in any order", () => {
  const filters = { status: "failed", job_id: undefined, b: true };
  const pageToken = tokenOf(request({ filters }));
  const page = paging().read(request({ filters: { b: true, status: "failed" }, pageSize: 9, pageToken }));
  assert.deepEqual([page.after, page.size], [["run_1"], 9]);
});

test("someone else's token, or one used with other filters, another list or another limit, is invalid_page_token", () => {
  const pageToken = tokenOf(request({ limit: 10 }));
  assert.deepEqual(paging().read(request({ limit: 10, pageToken })).after, ["run_1"]);
  const others: Partial<ListRequest>[] = [
    { limit: 10, principal: "token_1" },
    { limit: 10, list: "/jobs" },
    { limit: 10, filters: { status: "completed" } },
    { limit: 10, filters: {} },
    { limit: 10, filters: { status: "failed", job_id: "j" } },
    { limit: 11 },
    {},
  ];
  for (const other of others) isRefused(request({ ...other, pageToken }));
  const foreign = new Paging({ key: Buffer.alloc(32, 8), nowMs: () => 0 });
  isRefused(request({ limit: 10, pageToken }), foreign);
});

test("a token expires after 24 h, to the millisecond", () => {
  let nowMs = 1_000;
  const pages = paging(() => nowMs);
  const pageToken = tokenOf(request(), pages);
  nowMs += PAGE_TOKEN_MS - 1;
  assert.deepEqual(pages.read(request({ pageToken })).after, ["run_1"]);
  nowMs += 1;
  isRefused(request({ pageToken }), pages);
});

test("random tampering of a token never gives anything but 400", () => {
  const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  const tokens = ["run_1", "run_22", "run_333"].map((at) => tokenOf(request(), paging(), at));
  const tampering = fc.oneof(
    fc.record({
      kind: fc.constant("change" as const),
      at: fc.nat(),
      by: fc.constantFrom(...alphabet, "=", "+", "/", " ", "é"),
    }),
    fc.record({ kind: fc.constant("cut" as const), at: fc.nat(), by: fc.constant("") }),
    fc.record({
      kind: fc.constant("insert" as const),
      at: fc.nat(),
      by: fc.string({ minLength: 1, maxLength: 2_000 }),
    }),
    fc.record({ kind: fc.constant("splice" as const), at: fc.nat(), by: fc.constantFrom(...tokens) }),
  );
  fc.assert(
    fc.property(fc.constantFrom(...tokens), tampering, (token, { kind, at, by }) => {
      const place = at % token.length;
      const tail = {
        change: token.slice(place + 1),
        cut: "",
        insert: token.slice(place),
        splice: by.slice(place),
      }[kind];
      const tampered = token.slice(0, place) + (kind === "splice" ? "" : by) + tail;
      fc.pre(!tokens.includes(tampered));
      isRefused(request({ pageToken: tampered }));
    }),
    { numRuns: 3_000 },
  );
});

test("every single byte of a token counts, the last bits of its spelling included", () => {
  const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  for (const at of ["r", "ru", "run"]) {
    const token = tokenOf(request(), paging(), at);
    for (let i = 0; i < token.length; i++) {
      const other = alphabet[(alphabet.indexOf(token[i] ?? "") ^ 1) % alphabet.length];
      isRefused(request({ pageToken: token.slice(0, i) + other + token.slice(i + 1) }));
    }
    for (const pageToken of [`${token}=`, `${token} `, ` ${token}`, `${token}\n`, ""])
      isRefused(request({ pageToken }));
  }
});

/** A list of numbers, ascending; what is asked of a store: those behind a key, so many. */
const rowsOf = (list: ReadonlySet<number>, after: number | null, count: number) =>
  [...list]
    .sort((a, b) => a - b)
    .filter((item) => after === null || item > after)
    .slice(0, count);

const change = fc.record({ item: fc.nat(60), isInsert: fc.boolean() });
const walk = fc.record({
  items: fc.uniqueArray(fc.nat(60), { maxLength: 40 }),
  sizes: fc.array(fc.integer({ min: 1, max: 7 }), { minLength: 1, maxLength: 5 }),
  changes: fc.array(fc.array(change, { maxLength: 4 }), { maxLength: 30 }),
  limit: fc.option(fc.integer({ min: 1, max: 30 }), { nil: undefined }),
});

test("an item that exists throughout a walk is returned exactly once, whatever comes and goes; limit caps the whole walk", () => {
  fc.assert(
    fc.property(walk, ({ items, sizes, changes, limit }) => {
      const list = new Set(items);
      const lasting = new Set(items);
      const seen: number[] = [];
      let pageToken: string | null | undefined;
      for (let step = 0; pageToken !== null; step++) {
        assert.ok(step < 200, "the walk ends");
        const pageSize = sizes[step % sizes.length];
        const page = paging().read(request({ limit, pageSize, pageToken }));
        const rows = rowsOf(list, (page.after?.[0] as number | undefined) ?? null, page.fetch);
        const answer = paging().answer(page, rows, (row) => [row]);
        assert.ok(answer.items.length <= (pageSize ?? 0));
        seen.push(...answer.items);
        pageToken = answer.next_page_token;
        for (const { item, isInsert } of changes[step] ?? []) {
          if (isInsert) list.add(item);
          else if (list.delete(item)) lasting.delete(item);
        }
      }
      assert.equal(new Set(seen).size, seen.length, "nothing twice");
      if (limit !== undefined) assert.ok(seen.length <= limit);
      const isCut = limit !== undefined && seen.length === limit;
      const expected = [...lasting].filter((item) => !isCut || item <= (seen.at(-1) ?? -1));
      for (const item of expected) assert.ok(seen.includes(item), `${item} was lost`);
    }),
    { numRuns: 500 },
  );
});
