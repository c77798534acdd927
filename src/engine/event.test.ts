import assert from "node:assert/strict";
import { test } from "node:test";
import { renderEvent } from "./event.ts";
import type { JsonObject } from "./json.ts";
import { limits } from "./limits.ts";

const head = { nowMs: 0, type: "progress", agentId: "a" };
const payloadOf = (payload: unknown) =>
  (JSON.parse(renderEvent(head, payload)) as { payload: JsonObject }).payload;

test("of a payload that is too large the longest values are replaced, and the rest stays", () => {
  const long = "x".repeat(limits.eventPayloadCharsMax);
  const cut = payloadOf({ percent: 40, label: "half", details: { rows: 7, dump: long }, gone: undefined });
  assert.deepEqual(cut, {
    percent: 40,
    label: "half",
    details: { rows: 7, dump: { truncated: true, chars: long.length, preview: "x".repeat(1_024) } },
  });
});

test("a payload that fits is not touched, and one of many small values is replaced whole", () => {
  const fits = { text: "y".repeat(limits.eventPayloadCharsMax - 100) };
  assert.deepEqual(payloadOf(fits), fits);
  const many = Object.fromEntries(Array.from({ length: 20_000 }, (_, i) => [`key${i}`, i]));
  assert.equal(payloadOf(many).truncated, true);
});
