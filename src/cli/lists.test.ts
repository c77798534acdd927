import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { testCall } from "../../test/support/test-call.ts";
import { type Listing, printList, printStream } from "./lists.ts";
import { colourPaint } from "./terminal.ts";

/** A list of so many numbers that remembers how far it was walked, and in what pages. */
function numbers(count: number, limit: number | null = null) {
  const asked = { pageSize: 0, items: 0 };
  const listing: Listing<{ readonly n: number }> = {
    limit,
    items: async function* (pageSize) {
      asked.pageSize = pageSize;
      for (let n = 1; n <= count; n++) {
        asked.items++;
        yield { n };
      }
    },
    head: ["N", "SQUARE"],
    row: ({ n }) => [n, n * n],
    nothing: "Nothing.",
  };
  return { listing, asked };
}

describe("a list", () => {
  test("is a table with one head, however long it is", async () => {
    const call = testCall();
    await printList(call, numbers(450).listing);
    assert.equal(call.out.length, 451);
    assert.equal(call.out[0], "N    SQUARE");
    assert.equal(call.out.filter((line) => line.startsWith("N")).length, 1);
    assert.match(call.out[450] ?? "", /^450 +202500$/);
    assert.deepEqual(call.err, []);
  });
  test("ends at its limit, reports that there are more, and fetches no more than it needs", async () => {
    const call = testCall();
    const { listing, asked } = numbers(1_000, 3);
    await printList(call, listing);
    assert.equal(call.out.length, 4);
    assert.deepEqual(call.err, ["The newest 3; --all shows all."]);
    assert.deepEqual(asked, { pageSize: 4, items: 4 });
  });
  test("of exactly the limit is complete", async () => {
    const call = testCall();
    await printList(call, numbers(3, 3).listing);
    assert.equal(call.out.length, 4);
    assert.deepEqual(call.err, []);
  });
  test("never asks for more than a page may have", async () => {
    const { listing, asked } = numbers(1, 5_000);
    await printList(testCall(), listing);
    assert.equal(asked.pageSize, 200);
  });
  test("paints the rows of items that have a style, and ends with its hint", async () => {
    const { listing } = numbers(2);
    const call = testCall();
    const terminal = { ...call.terminal, paint: colourPaint };
    const style = ({ n }: { readonly n: number }) => (n === 1 ? ("red" as const) : null);
    await printList({ ...call, terminal }, { ...listing, style, hint: "See also." });
    assert.deepEqual(call.out, ["N  SQUARE", "\x1b[31m1  1\x1b[39m", "2  4"]);
    assert.deepEqual(call.err, ["See also."]);
    const json = testCall({ json: true });
    await printList(json, { ...listing, hint: "See also." });
    assert.deepEqual(json.err, []);
  });
  test("that is empty has a notice on stderr", async () => {
    const call = testCall();
    await printList(call, numbers(0, 3).listing);
    assert.deepEqual([call.out, call.err], [[], ["Nothing."]]);
  });
  for (const count of [0, 1, 2, 450]) {
    test(`as JSON is one document: ${count} items`, async () => {
      const call = testCall({ json: true });
      await printList(call, numbers(count).listing);
      const document = JSON.parse(call.out.join("\n"));
      assert.deepEqual(
        document.map(({ n }: { n: number }) => n),
        Array.from({ length: count }, (_, i) => i + 1),
      );
      assert.deepEqual(call.err, []);
    });
  }
});

test("a stream is one line for each item, or one JSON object", async () => {
  const items = () => numbers(2).listing.items(1);
  const plain = testCall();
  await printStream(plain, items(), ({ n }) => `n is ${n}`);
  assert.deepEqual(plain.out, ["n is 1", "n is 2"]);
  const json = testCall({ json: true });
  await printStream(json, items(), () => "");
  assert.deepEqual(json.out, ['{"n":1}', '{"n":2}']);
});
