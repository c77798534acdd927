// Lines as they are stored in a short segment, and read back.

import assert from "node:assert/strict";
import { test } from "node:test";
import { anyString, fc } from "../../../test/support/fast-check.ts";
import { renderEvent } from "../../engine/event.ts";
import { firstTimeMs, packLines, TIME_CHARS, unpackLines } from "./packed-lines.ts";

const NOW_MS = Date.parse("2026-11-21T09:30:00.000Z");

const events = fc.array(
  fc.record({
    nowMs: fc.oneof(fc.integer({ min: NOW_MS, max: NOW_MS + 3 }), fc.constantFrom(0, 8.64e15, NOW_MS - 1)),
    type: fc.constantFrom("log", "job_pending", "custom.type-1", "a", "", "{"),
    agentId: fc.oneof(fc.constant(null), anyString(), fc.constantFrom('a,"payload":', "\t", "", "null")),
    payload: fc.oneof(
      fc.dictionary(anyString(), fc.jsonValue()),
      fc.record({
        message_id: fc.constantFrom("msg_a_1", "msg_a_2", "msg_b_1", "msg_", "msg_a", "_1"),
        from: fc.string(),
      }),
    ),
  }),
  { minLength: 1, maxLength: 8 },
);

test("every line that the engine renders is read back as the same text", () => {
  fc.assert(
    fc.property(events, (all) => {
      const lines = all.map(({ payload, ...head }) => renderEvent(head, payload));
      const packed = packLines(lines.join("\n"));
      assert.deepEqual(unpackLines(packed), lines);
      assert.equal(firstTimeMs(packed.slice(0, TIME_CHARS)), all[0]?.nowMs);
    }),
  );
});

test("lines of another form are stored as they are, between packed ones as well", () => {
  const line = (ms: number) => renderEvent({ nowMs: NOW_MS + ms, type: "log", agentId: "a" }, { n: ms });
  const odd = ["{}", '{"n":1}', line(0).replace("Z", " "), line(0).replace("11-21", "02-30"), `${line(0)} `];
  const lines = [line(1), ...odd, line(2), line(1)];
  const packed = packLines(lines.join("\n"));
  assert.deepEqual(unpackLines(packed), lines);
  assert.deepEqual(packed.split("\n").slice(1, 1 + odd.length), odd);
  assert.deepEqual(unpackLines(lines.join("\n")), lines);
});

test("rows from before types had codes are read", () => {
  const head = { nowMs: NOW_MS, type: "job_running", agentId: null };
  const stored = `${NOW_MS}\tjob_running\t\t{}\n\tjob_running\t\t{}`;
  assert.deepEqual(unpackLines(stored), [renderEvent(head, {}), renderEvent(head, {})]);
});

test("a packed line keeps its payload and little else", () => {
  const line = (type: string, payload: object) =>
    renderEvent({ nowMs: NOW_MS, type, agentId: null }, payload as never);
  const received = (seq: number) => line("agent_message_received", { message_id: `msg_1_${seq}`, from: "a" });
  assert.equal(
    packLines([line("job_running", {}), line("job_unknown", {}), received(1), received(2)].join("\n")),
    `${NOW_MS}\td\t\t{}\n\tjob_unknown\t\t{}\n\th\t\t{"message_id":"msg_1_1","from":"a"}\n\th\t\t_2","from":"a"}`,
  );
});
