// Requests that wait for an end, at moments that the test chooses: real sockets, a real feed, timers by hand.

import assert from "node:assert/strict";
import { test } from "node:test";
import { startApp } from "../../../test/support/api.ts";
import { until } from "../../../test/support/until.ts";
import { EventFeed } from "../../runs/feed.ts";
import { Waits, type Watch } from "./waits.ts";

/** A server that is asked to wait for the end of `job`. */
async function serve() {
  const feed = new EventFeed();
  const timers = new Set<() => void>();
  const after = (_delayMs: number, run: () => void) => {
    timers.add(run);
    return () => void timers.delete(run);
  };
  const waits = new Waits({ feed, clock: { after }, stopping: new AbortController().signal });
  const begun = Promise.withResolvers<Watch>();
  const app = await startApp({}, (api) => {
    api.post("/wait", async (_request, reply) => {
      const watch = waits.watch(reply, ["job"]);
      begun.resolve(watch);
      await watch.over;
      return { isComplete: watch.isComplete };
    });
  });
  const leaving = new AbortController();
  const { signal } = leaving;
  const asked = fetch(`${app.url}/wait`, { method: "POST", headers: { prefer: "wait=60" }, signal });
  const watch = await begun.promise;
  assert.deepEqual([waits.open, timers.size], [1, 1]);
  return {
    feed,
    timers,
    asked,
    leaving,
    /** Waits until nothing waits any more. */
    over: () => until("the end of the waiting", () => watch.isOver && waits.open === 0),
    [Symbol.asyncDispose]: () => app[Symbol.asyncDispose](),
  };
}

test("waiting ends with what is waited for, and leaves no timer", async () => {
  await using server = await serve();
  server.feed.published("job", 1, ["{}"], true);
  assert.deepEqual(await (await server.asked).json(), { isComplete: true });
  assert.equal(server.timers.size, 0);
});

test("waiting ends when its time is over", async () => {
  await using server = await serve();
  for (const run of server.timers) run();
  assert.deepEqual(await (await server.asked).json(), { isComplete: false });
});

test("waiting ends when its client has gone, and leaves no timer", async () => {
  await using server = await serve();
  server.leaving.abort();
  await assert.rejects(server.asked, { name: "AbortError" });
  await server.over();
  assert.equal(server.timers.size, 0);
});
