// Styles that programs write into their lines.

import assert from "node:assert/strict";
import { test } from "node:test";
import { anyString, fc } from "../../../../test/support/fast-check.ts";

const { styledParts } = await import(new URL("./ansi.js", import.meta.url).href);

test("a line's colours and weights are those that its program set, until it sets others", () => {
  const parts = styledParts("a\u001b[1;31mb\u001b[22mc\u001b[32md\u001b[0me\u001b[38;5;31mf\u001b[mg");
  assert.deepEqual(
    parts.map(({ text, styles }: { text: string; styles: string[] }) => [text, styles.join(" ")]),
    [
      ["a", ""],
      ["b", "bold red"],
      ["c", "red"],
      ["d", "green"],
      ["e", ""],
      ["f", ""],
      ["g", ""],
    ],
  );
});

test("nothing of a text is lost but its styles", () => {
  fc.assert(
    fc.property(fc.array(anyString()), (texts) => {
      const plain = texts.map((text) => text.replaceAll("\u001b", ""));
      const told = styledParts(plain.join("\u001b[31m")).map(({ text }: { text: string }) => text);
      assert.equal(told.join(""), plain.join(""));
    }),
    { examples: [[Array.from({ length: 50 }, () => "x")]] },
  );
});
