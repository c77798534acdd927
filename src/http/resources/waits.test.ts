// Requests that wait for an end, at moments that the test chooses: real sockets, a real feed, timers by hand.

import assert from "node:assert/strict";
import { once } from "node:events";
import { test } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import { startApp } from "../../../test/support/api.ts";
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
  const begun = Promise.withResolvers<{ watch: Watch; closed: Promise<unknown> }>();
  const app = await startApp({}, (api) => {
    api.post("/wait", async (_request, reply) => {
      const watch = waits.watch(reply, ["job"]);
      begun.resolve({ watch, closed: once(reply.raw, "close") });
      await watch.over;
      return { isComplete: watch.isComplete };
    });
  });
  const leaving = new AbortController();
  const { signal } = leaving;
  const asked = fetch(`${app.url}/wait`, { method: "POST", headers: { prefer: "wait=60" }, signal });
  const { watch, closed } = await begun.promise;
  assert.deepEqual([waits.open, timers.size], [1, 1]);
  return {
    feed,
    timers,
    asked,
    /** Waits until the server knows that the client has gone. */
    async leave(): Promise<void> {
      leaving.abort();
      await closed;
      await nextTurn();
    },
    isOver: () => watch.isOver && waits.open === 0,
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
  const rejected = assert.rejects(server.asked, { name: "AbortError" });
  await server.leave();
  await rejected;
  assert.ok(server.isOver());
  assert.equal(server.timers.size, 0);
});
