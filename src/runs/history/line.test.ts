// What the runtime API shows of a stored line.

import assert from "node:assert/strict";
import { test } from "node:test";
import { renderEvent } from "../../engine/event.ts";
import { withoutNullAgent } from "./line.ts";

test("only an event of the whole job loses its agent_id, and no payload does", () => {
  const payload = { type: "x", agent_id: null, text: '"type":"job_failed","agent_id":null' };
  for (const agentId of [null, "a", "null", 'a","agent_id":null']) {
    const line = renderEvent({ nowMs: 0, type: "log", agentId }, payload);
    const { agent_id, ...others } = JSON.parse(line) as Record<string, unknown>;
    const shown = JSON.parse(withoutNullAgent(line)) as Record<string, unknown>;
    assert.deepEqual(shown, agent_id === null ? others : { ...others, agent_id });
  }
});

test("a summary's last event may have no payload, and there may be none", () => {
  const last = '{"timestamp":"2026-01-01T00:00:00.000Z","type":"job_failed"';
  assert.equal(withoutNullAgent(`${last},"agent_id":null}`), `${last}}`);
  assert.equal(withoutNullAgent("null"), "null");
});
