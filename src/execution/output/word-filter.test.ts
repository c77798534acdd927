// The filter says what a plain search says.

import assert from "node:assert/strict";
import { test } from "node:test";
import { fc } from "../../../test/support/fast-check.ts";
import { WordFilter } from "./word-filter.ts";

const letters = fc.constantFrom("a", "b", "c", "\u00e9", "\u4e16");
const wordOf = (minLength: number, maxLength: number) =>
  fc.array(letters, { minLength, maxLength }).map((chars) => chars.join(""));

test("it finds the words that a plain search finds, wherever they stand", () => {
  const words = fc.array(wordOf(3, 40), { minLength: 1, maxLength: 12 });
  fc.assert(
    fc.property(words, wordOf(0, 80), fc.nat(12), wordOf(0, 20), (list, before, which, behind) => {
      const filter = new WordFilter(list);
      for (const text of [before, before + (list[which % list.length] ?? "") + behind]) {
        assert.deepEqual(new Set(filter.wordsIn(text)), new Set(list.filter((word) => text.includes(word))));
      }
    }),
    { numRuns: 3_000 },
  );
});

test("words that are too short are refused", () => {
  assert.throws(() => new WordFilter(["long enough", "ab"]), /too short/);
});

test("words of thousands, many of them, and a text of repetitions", () => {
  const words = Array.from({ length: 5_000 }, (_, i) => `${String(i).padStart(6, "0")}${"x".repeat(3_000)}`);
  const filter = new WordFilter(words);
  assert.deepEqual(filter.wordsIn("0".repeat(1_000_000)), []);
  assert.deepEqual(filter.wordsIn(`${"0".repeat(1_000)}${words[4_321]}`), [words[4_321]]);
});
