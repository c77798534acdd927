import assert from "node:assert/strict";
import { test } from "node:test";
import { answerCommand } from "./event-text.ts";

test("the command that answers a question is safe to paste, whatever id a worker has chosen", () => {
  assert.equal(answerCommand("run_1", { request_id: "ship.it-1" }), "troupe answer run_1 ship.it-1 DECISION");
  assert.equal(
    answerCommand("run_1", { request_id: "$(rm -rf ~); it's `me`" }),
    "troupe answer run_1 '$(rm -rf ~); it'\\''s `me`' DECISION",
  );
});
