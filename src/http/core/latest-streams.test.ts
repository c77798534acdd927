// Streams of a record that changes, at moments that the test chooses: real sockets, a real feed, timers by hand.

import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { text } from "node:stream/consumers";
import { test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import { EventFeed } from "../../runs/feed.ts";
import { type Latest, LatestStreams } from "./latest-streams.ts";
import { realThread } from "./sse-pacer.ts";

const RECORD_BYTES = 1_000_000;

async function serve() {
  const feed = new EventFeed();
  const timers = new Set<() => void>();
  const delaysMs: number[] = [];
  const responses: ServerResponse[] = [];
  const warnings: string[] = [];
  const stopping = new AbortController();
  const job = { seq: 1, reads: 0, isOver: false, read: async (): Promise<Latest | null> => null };
  job.read = async () => {
    job.reads++;
    return { seq: job.seq, json: `"${"x".repeat(RECORD_BYTES)}"`, isLast: job.isOver };
  };
  const after = (delayMs: number, run: () => void) => {
    // Signs of life are never due here.
    if (delayMs < 1_000) {
      timers.add(run);
      delaysMs.push(delayMs);
    }
    return () => void timers.delete(run);
  };
  const log = { warn: (_fields: object, message: string) => void warnings.push(message) };
  const streams = new LatestStreams({
    feed,
    stopping: stopping.signal,
    log,
    thread: { ...realThread, nowMs: () => 0, after },
  });
  const server = createServer((_request, response) => {
    responses.push(response);
    streams.serve(response, { jobId: "job", type: "state", read: () => job.read() }, 0);
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  /** Lets all timers run out, and what they set off happen. */
  const tick = async () => {
    for (const run of [...timers]) {
      timers.delete(run);
      run();
    }
    await turn();
  };
  const publish = () => feed.published("job", ++job.seq, ["{}"]);
  const open = async () => {
    const socket = connect(port, "127.0.0.1");
    const count = responses.length;
    socket.write("GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
    while (responses.length === count) await turn();
    return { socket, response: responses[count]! };
  };
  const close = async () => {
    server.closeAllConnections();
    server.close();
    await once(server, "close");
  };
  return { job, streams, delaysMs, stopping, warnings, tick, publish, open, [Symbol.asyncDispose]: close };
}

const idsIn = (bytes: string) => [...bytes.matchAll(/^id: (\d+)$/gm)].map(([, id]) => Number(id));

test("a reader that does not read costs one record, and gets the newest when it reads again", async () => {
  await using served = await serve();
  const { socket, response } = await served.open();
  for (let i = 0; i < 50; i++) {
    await served.tick();
    served.publish();
  }
  assert.ok(response.writableLength < 2 * RECORD_BYTES, `${response.writableLength} bytes wait`);
  served.job.isOver = true;
  served.publish();
  await served.tick();
  const ids = idsIn(await text(socket));
  assert.equal(ids.at(-1), served.job.seq);
  assert.ok(ids.length < 40, `${ids.length} of 51 records`);
  assert.equal(served.streams.readers, 0);
});

test("the record is made once for all readers, 200 ms after the one before, and not while nobody reads", async () => {
  await using served = await serve();
  const sockets = [await served.open(), await served.open(), await served.open()].map(({ socket }) => socket);
  const texts = sockets.map((socket) => text(socket));
  await served.tick();
  assert.equal(served.job.reads, 1);
  for (let i = 0; i < 10; i++) served.publish();
  await served.tick();
  assert.equal(served.job.reads, 2);
  assert.deepEqual(served.delaysMs, [0, 200]);
  served.job.isOver = true;
  served.publish();
  await served.tick();
  for (const one of await Promise.all(texts)) assert.equal(idsIn(one).at(-1), served.job.seq);
  while (served.streams.readers > 0) await turn();
  served.publish();
  await served.tick();
  assert.equal(served.job.reads, 3);
});

test("readers are cut off when the record cannot be made, and their streams end when the job is gone or the server stops", async () => {
  await using served = await serve();
  const failing = await served.open();
  const { read } = served.job;
  served.job.read = async () => Promise.reject(new Error("no store"));
  await served.tick();
  assert.doesNotMatch(await text(failing.socket), /\r\n0\r\n\r\n$/, "not the end of an answer");
  assert.equal(served.warnings.length, 1);
  served.job.read = async () => null;
  const gone = await served.open();
  await served.tick();
  assert.deepEqual(idsIn(await text(gone.socket)), []);
  served.job.read = read;
  const stopped = await served.open();
  served.stopping.abort();
  assert.match(await text(stopped.socket), /retry: 1000/);
});
