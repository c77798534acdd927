import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { describe, test } from "node:test";
import {
  bytes,
  cleanLines,
  cleanText,
  displayWidth,
  duration,
  fit,
  pad,
  plural,
  table,
  timeOfDay,
  wrap,
  wrapCommand,
  writeFailure,
} from "./text.ts";

describe("cleanText", () => {
  const hostile: readonly (readonly [string, string, string])[] = [
    ["a colour", "\x1b[31mred\x1b[0m", "red"],
    ["a cursor move", "a\x1b[2J\x1b[1;1Hb", "ab"],
    ["a window title", "a\x1b]0;owned\x07b", "ab"],
    ["a link", "\x1b]8;;http://evil\x1b\\text\x1b]8;;\x1b\\", "text"],
    ["an 8-bit control sequence", "a\x9b31mb", "ab"],
    ["a lone escape", "a\x1b", "a"],
    ["line breaks of every kind", "a\r\nb\u2028c\u0085d\te", "a b c d e"],
    ["a bell, a backspace and NUL", "a\x07b\x08c\0d", "abcd"],
    ["text that runs backwards", "user\u202etxt.exe\u2066", "usertxt.exe"],
    ["invisible characters", "a\u200bb\ufeffc", "abc"],
    ["half a character", "a\ud800b", "a\ufffdb"],
  ];
  for (const [name, input, expected] of hostile) {
    test(`takes ${name} out`, () => assert.equal(cleanText(input), expected));
  }
  test("keeps letters of every script", () => assert.equal(cleanText("Übung 日本語 ✓"), "Übung 日本語 ✓"));
  test("shows what is no text as JSON", () => {
    assert.equal(cleanText({ a: [1] }), '{"a":[1]}');
    assert.equal(cleanText(undefined), "");
    assert.equal(cleanText(null), "null");
  });
  test("is bounded", () => assert.equal(cleanText("é".repeat(1_000_000)).length, 20_000));
  test("keeps the lines of a longer text apart", () => {
    assert.deepEqual(cleanLines("a\x1b[31m\r\nb\n"), ["a", "b", ""]);
  });
});

describe("widths", () => {
  test("a wide character takes two columns, a combining one none", () => {
    assert.equal(displayWidth("日本"), 4);
    assert.equal(displayWidth("e\u0301"), 1);
    assert.equal(displayWidth("😀"), 2);
    assert.equal(displayWidth("abc"), 3);
  });
  test("a text is cut so that it fits, with a mark", () => {
    assert.equal(fit("abcdef", 6), "abcdef");
    assert.equal(fit("abcdef", 5), "abcd…");
    assert.equal(fit("日本語", 5), "日本…");
    assert.equal(fit("日本語", 4), "日…");
    assert.equal(fit("abc", 0), "");
  });
  test("a text that is wrapped loses nothing, and a command is the same in a shell", () => {
    assert.deepEqual(wrap("abcdef", 4), ["abcd", "ef"]);
    assert.deepEqual(wrap("日本語", 5), ["日本", "語"]);
    assert.deepEqual(wrapCommand("troupe answer a b", 17), ["troupe answer a b"]);
    assert.deepEqual(wrapCommand("  troupe answer abcdefghijkl b", 12), [
      "  troupe \\",
      "answer \\",
      "abcdefghijk\\",
      "l b",
    ]);
  });
  test("padding counts columns", () => {
    assert.equal(pad("日", 4), "日  ");
    assert.equal(pad("abcde", 4), "abcde");
  });
});

test("a table cleans its cells; null is an empty one, and what is no text is JSON", () => {
  assert.deepEqual(table(["A", "B", "C"], [["a\x1b[2J\u202e", null, 7]]), ["A  B  C", "a     7"]);
});

test("a table aligns its columns and leaves the last one as it is", () => {
  assert.deepEqual(table(["A", "NAME", "TEXT"], [["日本", "x", "long ".repeat(30).trim()], ["1"]]), [
    "A     NAME  TEXT",
    `日本  x     ${"long ".repeat(30).trim()}`,
    "1",
  ]);
});

test("a cell that is far too long is cut", () => {
  const [, row = ""] = table(["A", "B"], [["x".repeat(100), "y"]]);
  assert.equal(row, `${"x".repeat(59)}…  y`);
});

test("durations read well at every scale and at their borders", () => {
  const said = [
    0, 12.4, 999.4, 999.6, 1_340, 59_940, 59_960, 125_000, 3_599_600, 3_600_000, 11_040_000, 183_600_000,
  ];
  assert.deepEqual(said.map(duration), [
    "0 ms",
    "12 ms",
    "999 ms",
    "1.0 s",
    "1.3 s",
    "59.9 s",
    "1 min 00 s",
    "2 min 05 s",
    "1 h 00 min",
    "1 h 00 min",
    "3 h 04 min",
    "2 d 03 h",
  ]);
  assert.equal(duration(-5), "0 ms");
  assert.equal(duration(Number.NaN), "0 ms");
});

test("sizes read well at every scale", () => {
  assert.deepEqual([0, 1023, 1024, 1536, 12 * 1024 ** 2, 1024 ** 3, 5000 * 1024 ** 4].map(bytes), [
    "0 B",
    "1023 B",
    "1.0 KiB",
    "1.5 KiB",
    "12 MiB",
    "1.0 GiB",
    "5000 TiB",
  ]);
});

test("one is not many", () => assert.deepEqual([plural(1, "job"), plural(0, "job")], ["1 job", "0 jobs"]));

test("a time of day needs a timestamp", () => {
  assert.match(timeOfDay("2026-03-01T10:20:30.007Z"), /^\d\d:\d\d:30\.007$/);
  assert.equal(timeOfDay("\x1b[1mnever"), "never");
});

test("a known failure tells what to do, and keeps the system's code", () => {
  const full = Object.assign(new Error("ENOSPC: no space left on device, write"), { code: "ENOSPC" });
  assert.equal(
    writeFailure(full),
    "the disk is full. Free some space, or choose a place on another disk (ENOSPC)",
  );
  try {
    mkdirSync("/dev/null/below");
    assert.fail("a folder below a file");
  } catch (error) {
    assert.match(writeFailure(error), /^a file stands where a folder is needed\. .* \(ENOTDIR\)$/);
  }
});

test("any other one has the system's own words", () => {
  assert.equal(writeFailure(Object.assign(new Error("EIO: i/o error"), { code: "EIO" })), "EIO: i/o error");
  assert.equal(writeFailure(new Error("its bytes are others")), "its bytes are others");
});
