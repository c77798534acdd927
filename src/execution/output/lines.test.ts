import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { fc } from "../../../test/support/fast-check.ts";
import { LineSplitter, Tail } from "./lines.ts";

function split(lineBytesMax: number, chunks: readonly (string | Buffer)[]): [string, boolean][] {
  const lines: [string, boolean][] = [];
  const splitter = new LineSplitter(lineBytesMax, (line, cut) => lines.push([line, cut]));
  for (const chunk of chunks) splitter.push(Buffer.from(chunk));
  splitter.flush();
  splitter.flush();
  return lines;
}

describe("line splitter", () => {
  it("gives whole lines, empty ones included, and the partial last one at the end", () => {
    assert.deepEqual(split(100, ["a\n\nb\r\nc"]), [
      ["a", false],
      ["", false],
      ["b", false],
      ["c", false],
    ]);
  });

  it("cuts a line beyond its limit once, wherever the chunks end, and goes on behind it", () => {
    assert.deepEqual(split(4, ["abcdef\nx\n"]), [
      ["abcd", true],
      ["x", false],
    ]);
    assert.deepEqual(split(4, ["ab", "cd", "ef", "gh\nx"]), [
      ["abcd", true],
      ["x", false],
    ]);
    assert.deepEqual(split(4, ["abcd", "\n"]), [["abcd", false]]);
  });

  it("replaces invalid UTF-8", () => {
    assert.deepEqual(split(100, [Buffer.from([0x61, 0xff, 0x62, 0x0a])]), [["a\ufffdb", false]]);
  });

  it("gives the same lines however the bytes are cut into chunks", () => {
    fc.assert(
      fc.property(
        fc.string({ unit: fc.constantFrom("a", "é", "\n", "𝄞") }),
        fc.array(fc.nat(9)),
        (text, sizes) => {
          const bytes = Buffer.from(text);
          const chunks: Buffer[] = [];
          let from = 0;
          for (const size of sizes) {
            chunks.push(bytes.subarray(from, from + size));
            from += size;
          }
          chunks.push(bytes.subarray(from));
          const lines = text.split("\n");
          if (lines.at(-1) === "") lines.pop();
          assert.deepEqual(
            split(1_000, chunks).map(([line]) => line),
            lines,
          );
        },
      ),
    );
  });
});

describe("tail", () => {
  it("keeps the last bytes, and says whether any are missing", () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 20 }),
        fc.array(fc.string({ unit: "binary-ascii" })),
        (max, chunks) => {
          const tail = new Tail(max);
          for (const chunk of chunks) tail.push(Buffer.from(chunk));
          const all = chunks.join("");
          assert.equal(tail.text(), all.slice(-max));
          assert.equal(tail.cut, all.length > max);
        },
      ),
    );
  });

  it("does not begin within a character", () => {
    const tail = new Tail(3);
    tail.push(Buffer.from("aéé"));
    assert.equal(tail.text(), "é");
    assert.ok(tail.cut);
  });
});
