// Cutting values to a size: properties over random JSON, and the shape of what a reader then sees.

import assert from "node:assert/strict";
import { test } from "node:test";
import { anyString, fc } from "../../test/support/fast-check.ts";
import { sized } from "../../test/support/long.ts";
import { boundedValue } from "./bounded-value.ts";
import type { JsonObject, JsonValue } from "./json.ts";

const bytesOf = (value: JsonValue) => Buffer.byteLength(JSON.stringify(value));

/** Texts of every kind, now and then far longer than may be kept: escapes, other alphabets, halves of characters. */
const anyText = fc.oneof(
  anyString({ maxLength: 40 }),
  fc
    .tuple(fc.constantFrom("x", "ü", "漢", "😀", "\0", '"', "\\", "\ud800"), fc.nat({ max: 5_000 }))
    .map(([text, count]) => text.repeat(count)),
);
const anyValue = fc.letrec((tie) => ({
  value: fc.oneof(
    { depthSize: "medium" },
    anyText,
    fc.double({ noNaN: true, noDefaultInfinity: true }),
    fc.constantFrom(null, true, false),
    fc.array(tie("value"), { maxLength: 30 }),
    fc.dictionary(fc.oneof(fc.constant("__proto__"), anyText), tie("value"), { maxKeys: 30 }),
  ),
})).value as fc.Arbitrary<JsonValue>;
const anyLimit = fc.integer({ min: 128, max: 20_000 });

test("whatever goes in, what comes out fits, and cutting it again changes nothing", () => {
  fc.assert(
    fc.property(anyValue, anyLimit, (value, bytesMax) => {
      const once = boundedValue(value, bytesMax);
      assert.ok(bytesOf(once) <= bytesMax, `${bytesOf(once)} > ${bytesMax}`);
      assert.deepEqual(boundedValue(once, bytesMax), once);
    }),
    { numRuns: sized(30, 300) },
  );
});

test("a value that fits is not touched", () => {
  fc.assert(
    fc.property(anyValue, (value) => {
      assert.equal(boundedValue(value, Math.max(128, bytesOf(value))), value);
    }),
  );
});

test("the members beside a long one stay, and the long one says how long it was and how it began", () => {
  const long = `${"é".repeat(30_000)}end`;
  const cut = boundedValue({ code: "a.b", details: { message: long, attempt: 2 } }, 16_384) as JsonObject;
  assert.equal(cut.code, "a.b");
  const { message, attempt } = cut.details as JsonObject;
  assert.equal(attempt, 2);
  const { truncated, chars, preview } = message as JsonObject;
  assert.deepEqual([truncated, chars], [true, 30_003]);
  assert.ok(String(preview).length > 500 && long.startsWith(String(preview)));
});

test("a value of many small members is replaced whole", () => {
  const many = Object.fromEntries(Array.from({ length: 5_000 }, (_, i) => [`key${i}`, i]));
  const cut = boundedValue(many, 1_000) as JsonObject;
  assert.equal(cut.truncated, true);
  assert.equal(cut.chars, JSON.stringify(many).length);
  assert.ok(JSON.stringify(many).startsWith(String(cut.preview)));
});
