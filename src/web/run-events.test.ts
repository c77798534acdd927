import assert from "node:assert/strict";
import { test } from "node:test";
import { RunEvents } from "./run-events.ts";

test("a run's events are where the gateway listens, seen from this machine", () => {
  const events = new RunEvents((runId) => `token of ${runId}`);
  assert.equal(events.of("run_1"), null);
  for (const [served, seen] of [
    ["http://127.0.0.1:54001/api/v1", "http://127.0.0.1:54001/api/v1"],
    ["http://0.0.0.0:54001/api/v1", "http://127.0.0.1:54001/api/v1"],
    ["http://[::]:54001/api/v1", "http://[::1]:54001/api/v1"],
    ["http://192.168.1.7:54001/api/v1", "http://192.168.1.7:54001/api/v1"],
  ] as const) {
    events.servedAt(served);
    assert.deepEqual(events.of("run_1"), {
      url: `${seen}/runs/run_1/events/stream`,
      token: "token of run_1",
    });
  }
  events.servedAt(null);
  assert.equal(events.of("run_1"), null);
});
