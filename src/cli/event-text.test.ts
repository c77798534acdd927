import assert from "node:assert/strict";
import { test } from "node:test";
import { answerCommand, eventText, isWorthReading, readEvent } from "./event-text.ts";

test("a request for slots is shown while a run is watched when no node can grant it", () => {
  const requested = (more: object) =>
    readEvent(1, { type: "executor_lease_requested", agent_id: "a", payload: { pool: "gpu", ...more } });
  assert.equal(isWorthReading(requested({})), false);
  assert.equal(eventText(requested({})), "executor lease requested pool=gpu");
  const hinted = requested({ hint: "No node has\na slot." });
  assert.equal(isWorthReading(hinted), true);
  assert.equal(eventText(hinted), "No node has a slot.");
});

test("the command that answers a question is safe to paste, whatever id a worker has chosen", () => {
  assert.equal(answerCommand("run_1", { request_id: "ship.it-1" }), "troupe answer run_1 ship.it-1 DECISION");
  assert.equal(
    answerCommand("run_1", { request_id: "$(rm -rf ~); it's `me`" }),
    "troupe answer run_1 '$(rm -rf ~); it'\\''s `me`' DECISION",
  );
});
