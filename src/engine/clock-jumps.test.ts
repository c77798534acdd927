// What waits while somebody sets the machine's clock, by hours and days, forwards and backwards: everything ends when
// its time has passed, not when the wall clock reads it. Random moments are the simulation's (I12).

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { EngineHarness, failed } from "../../test/support/engine-harness.ts";
import { executor, graph, router, sensor } from "../../test/support/graphs.ts";
import type { JsonObject } from "./json.ts";

const HOUR_MS = 3_600_000;
const MINUTE_MS = 60_000;
const jumps = [-25, -2, 2, 25];

interface Wait {
  readonly manifest: JsonObject;
  /** Has the job begin to wait, for a minute. */
  readonly begin?: (h: EngineHarness, jobId: string) => Promise<unknown>;
  /** Whether the wait has ended. */
  readonly isOver: (h: EngineHarness, jobId: string) => boolean;
}

const one = (config: JsonObject = {}, more: JsonObject = {}) =>
  graph("g", [executor("x", ["true"], config)], [], more);

const waits: Readonly<Record<string, Wait>> = {
  "a retry": {
    // Half a minute at least, one at most: the harness's chance is 0.5.
    manifest: one({ max_attempts: 2, retry_backoff_ms: 80_000 }),
    begin: (h) => h.end("x", failed()),
    isOver: (h) => h.starts.length === 2,
  },
  "a deadline": {
    manifest: one({}, { policies: { timeout_seconds: 60 } }),
    isOver: (h, jobId) => h.status(jobId) === "failed",
  },
  "a sensor's interval": {
    manifest: graph("g", [sensor("s", { interval_ms: MINUTE_MS })]),
    isOver: (h, jobId) => h.status(jobId) === "completed",
  },
  "a sensor's run_at": {
    manifest: graph("g", [sensor("s", { run_at: "2026-01-01T00:01:00Z" })]),
    isOver: (h, jobId) => h.status(jobId) === "completed",
  },
  "a question": {
    manifest: one(),
    begin: async (h) => {
      const payload = { prompt: "Ship it?", timeout_seconds: 60 };
      h.engine.taskEvents(h.started("x").ref, [{ type: "human_input_requested", payload }]);
      await h.advance();
    },
    isOver: (h) => h.responses.length === 1,
  },
};

describe("when the clock is set while the job waits", () => {
  for (const [what, { manifest, begin, isOver }] of Object.entries(waits)) {
    for (const hours of jumps) {
      test(`${what} ends on time (${hours} h)`, async () => {
        const h = new EngineHarness();
        const jobId = await h.submit(manifest);
        await begin?.(h, jobId);
        h.wallAheadMs = hours * HOUR_MS;
        await h.advance(MINUTE_MS - 1);
        assert.equal(isOver(h, jobId), false, "not early");
        await h.advance(1);
        assert.equal(isOver(h, jobId), true, "not late");
      });

      test(`${what} that began afterwards is as long after a restart (${hours} h)`, async () => {
        const h = new EngineHarness();
        h.wallAheadMs = hours * HOUR_MS;
        const shifted = new Date(h.nowMs + h.wallAheadMs + MINUTE_MS).toISOString();
        const text = JSON.stringify(manifest).replace("2026-01-01T00:01:00Z", shifted);
        const jobId = await h.submit(JSON.parse(text) as JsonObject);
        await begin?.(h, jobId);
        await h.advance(MINUTE_MS / 2);
        await h.restart();
        const before = h.starts.length;
        await h.advance(MINUTE_MS / 2 - 1);
        assert.equal(h.starts.length, before);
        assert.equal(h.status(jobId), "running", "not early");
        await h.advance(1);
        const isAskedNoMore = h.events(jobId, "human_input_timed_out").length === 1;
        const goesOn = h.status(jobId) !== "running" || h.starts.length > before || isAskedNoMore;
        assert.ok(goesOn, "not late");
      });
    }
  }
});

for (const hours of jumps) {
  test(`a message lives as long as its ttl (${hours} h)`, async () => {
    const h = new EngineHarness({ slots: 1 });
    const lines = graph("g", [executor("a", ["true"]), executor("b", ["true"])], []);
    const jobId = await h.submit({ ...lines, entrypoints: ["a"], type: "service" });
    await h.deliver(jobId, "b", { n: 1 }, MINUTE_MS);
    h.wallAheadMs = hours * HOUR_MS;
    await h.deliver(jobId, "b", { n: 2 }, MINUTE_MS);
    await h.advance(MINUTE_MS);
    await h.end("a");
    assert.deepEqual(h.started("b").envelope.body, { n: 1 });
    await h.advance(1);
    await h.end("b");
    assert.equal(h.events(jobId, "message_dead_lettered").length, 1, "the second one came too late");
  });

  test(`a deadline moves by as long as the job was paused (${hours} h)`, async () => {
    const h = new EngineHarness();
    const jobId = await h.submit(one({}, { policies: { timeout_seconds: 60 } }));
    await h.do(h.engine.pause(jobId));
    h.wallAheadMs = hours * HOUR_MS;
    await h.advance(MINUTE_MS);
    await h.do(h.engine.resume(jobId));
    await h.advance(MINUTE_MS - 1);
    assert.equal(h.status(jobId), "running");
    await h.advance(1);
    assert.equal(h.status(jobId), "failed");
  });

  test(`logs are written as soon as ever (${hours} h)`, async () => {
    const h = new EngineHarness();
    const jobId = await h.submit(graph("g", [router("r"), executor("x", ["true"])], [["r", "x"]]));
    h.engine.taskEvents(h.started("x").ref, [{ type: "log", payload: { message: "so" } }]);
    h.wallAheadMs = hours * HOUR_MS;
    await h.advance(1_000);
    assert.equal(h.events(jobId, "log").length, 1);
  });
}
