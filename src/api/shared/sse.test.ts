// The stream's reader at the moments that a real run hits by chance only: what is published while the store is
// being read, and more of it than a reader keeps. A real server, a real feed, and a store that the test settles
// by hand.

import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { EventFeed } from "../../runs/feed.ts";
import type { EventPage } from "../../runs/job-records.ts";
import { streamEvents } from "./sse.ts";

const line = (seq: number, last: number) =>
  JSON.stringify({
    timestamp: "",
    type: seq === last ? "job_completed" : `e${seq}`,
    agent_id: null,
    payload: {},
  });

/** Serves a job of `last` events to one reader. */
async function serve(last: number) {
  const feed = new EventFeed();
  const page = (firstSeq: number, upTo: number): EventPage => ({
    firstSeq,
    lines: Array.from({ length: upTo - firstSeq + 1 }, (_, i) => line(firstSeq + i, last)),
  });
  const reads: { readonly afterSeq: number; readonly resolve: (page: EventPage) => void }[] = [];
  let asked = () => {};
  const server = createServer((_request, response) => {
    const source = {
      feed,
      jobId: "job",
      read: (afterSeq: number) =>
        new Promise<EventPage>((resolve) => {
          reads.push({ afterSeq, resolve });
          asked();
        }),
      exists: async () => true,
      render: (_seq: number, text: string) => text,
    };
    void streamEvents(response, source, 0, new AbortController().signal);
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const answer = fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`).then((given) =>
    given.text(),
  );
  return {
    page,
    publish: (given: EventPage) => feed.published("job", given.firstSeq, given.lines),
    /** Waits until the reader asks the store. */
    async nextRead() {
      while (reads.length === 0) {
        await new Promise<void>((resolve) => {
          asked = resolve;
        });
      }
      const read = reads.shift();
      assert.ok(read);
      return read;
    },
    ids: async () =>
      [...(await answer).matchAll(/^id: (\d+)\nevent: (\w+)$/gm)].map((match) => Number(match[1])),
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}

const upTo = (last: number) => Array.from({ length: last }, (_, i) => i + 1);

test("S1: what is published while the store is read, and was read as well, is sent once", async () => {
  await using stream = await serve(4);
  const read = await stream.nextRead();
  stream.publish(stream.page(1, 3));
  stream.publish(stream.page(2, 4));
  read.resolve(stream.page(1, 2));
  assert.deepEqual(await stream.ids(), upTo(4));
});

test("S2: a reader that fell behind the live pages it may keep gets the rest from the store, without a gap", async () => {
  await using stream = await serve(200);
  const first = await stream.nextRead();
  for (let seq = 1; seq <= 150; seq++) stream.publish(stream.page(seq, seq));
  first.resolve(stream.page(1, 1));
  const second = await stream.nextRead();
  assert.equal(second.afterSeq, 1);
  second.resolve(stream.page(2, 200));
  assert.deepEqual(await stream.ids(), upTo(200));
});

test("S3: nothing is sent after the terminal event, though more is published", async () => {
  await using stream = await serve(2);
  const read = await stream.nextRead();
  read.resolve(stream.page(1, 2));
  stream.publish(stream.page(3, 5));
  assert.deepEqual(await stream.ids(), upTo(2));
});
