// Large texts are parsed piece by piece, with the result that one parse would have.

import assert from "node:assert/strict";
import { test } from "node:test";
import { fc } from "../../test/support/fast-check.ts";
import { type JsonValue, parseJson } from "./json.ts";
import { jsonSteps } from "./large-json.ts";

const DEPTH_MAX = 8;

function parsed(text: string, depthMax = DEPTH_MAX) {
  const steps = jsonSteps(text, depthMax);
  let count = 0;
  let step = steps.next();
  for (; !step.done; step = steps.next()) count++;
  return { result: step.value, count };
}

/** Keys too, in their order. */
function assertSame(text: string): void {
  const [expected, { result }] = [parseJson(text, DEPTH_MAX), parsed(text)];
  assert.deepEqual(result, expected, text.slice(0, 200));
  if (expected !== null) assert.equal(JSON.stringify(result?.value), JSON.stringify(expected.value));
}

/** Members that are smaller and larger than a piece. */
const long = fc
  .constantFrom(1, 40_000, 70_000, 140_000)
  .map((chars) => 'é\\"]},'.repeat(Math.ceil(chars / 6)));
const value = fc.letrec<{ value: JsonValue }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 4 },
    fc.constantFrom(null, true, 1.5, "", "[", "{,"),
    long,
    fc.array(tie("value"), { maxLength: 4 }),
    fc.dictionary(fc.constantFrom("a", "__proto__", "7", 'q"uo,te', "x:y"), tie("value")),
  ),
})).value;

test("a text gives the same value in pieces as at once, however it is spaced", () => {
  fc.assert(
    fc.property(value, fc.constantFrom("", "\t", " ".repeat(70)), (one, space) => {
      assertSame(`${space}${JSON.stringify(one, null, space)}${space}`);
    }),
    { numRuns: 60 },
  );
});

test("what is wrong anywhere in a large text makes it no JSON, as at once", () => {
  const item = JSON.stringify("x".repeat(70_000));
  const few = Array.from({ length: 9_000 }, (_, n) => `{"n":${n}}`).join(",");
  for (const list of [`${item},${item}`, few, `${few},${item},1`]) {
    const object = list.replaceAll(/(^|,)(?=["{1])/g, '$1"k":');
    for (const text of [`[${list}]`, `{"a":[${list}],"b":{${object}},"a":2}`]) {
      assert.notEqual(parseJson(text, DEPTH_MAX), null);
      assertSame(text);
      for (const wrong of [
        `${text},`,
        `${text}]`,
        text.slice(0, -1),
        `${text.slice(0, -1)},${text.at(-1)}`,
        `${text.slice(0, -1)}${text.at(-1) === "]" ? "}" : "]"}`,
        text.replace(",", ",,"),
        text.replace(/([[{])/, "$1,"),
        text.replace(":", "="),
        text.replace('"', ""),
        `\u00a0${text}`,
        `${text}\u00a0`,
        "[".repeat(DEPTH_MAX) + text + "]".repeat(DEPTH_MAX),
      ]) {
        assertSame(wrong);
      }
    }
  }
});

test("a text that nests too deep is none, whether its inner values are large or not", () => {
  const nested = (depth: number, inside: string) => "[".repeat(depth) + inside + "]".repeat(depth);
  for (const inside of ["", JSON.stringify("x".repeat(100_000))]) {
    const others = `"${"y".repeat(100_000)}"`;
    assertSame(`[${others},${nested(DEPTH_MAX - 1, inside)}]`);
    assert.equal(parsed(`[${others},${nested(DEPTH_MAX, inside)}]`).result, null);
  }
  const mixed = (depth: number) =>
    nested(depth / 2, "1")
      .replaceAll("[", '[{"a":')
      .replaceAll("]", "}]");
  assert.notEqual(parseJson(mixed(DEPTH_MAX), DEPTH_MAX), null);
  assert.equal(parseJson(mixed(DEPTH_MAX + 2), DEPTH_MAX), null);
});

test("a large text is parsed in many steps, and one large string is looked through in many", () => {
  const text = JSON.stringify({ nodes: Array.from({ length: 100_000 }, (_, n) => ({ node_id: `n${n}` })) });
  const { result, count } = parsed(text);
  assert.deepEqual(result?.value, JSON.parse(text));
  assert.ok(count > text.length / 100_000, `${count} steps`);
  assert.ok(parsed(JSON.stringify(["x".repeat(1_000_000)])).count > 10);
});
