// The streams at the moments that a real run hits by chance only: what is published while the store is being read,
// more of it than is kept, readers that stop reading. Real sockets, a real feed, and a store that the test holds.

import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import { type AddressInfo, connect, type Socket } from "node:net";
import { test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import { fc } from "../../../test/support/fast-check.ts";
import { eventType } from "../../engine/event.ts";
import { EventFeed } from "../../runs/feed.ts";
import type { EventPage } from "../../runs/job-records.ts";
import { EventStreams, type EventView, frame } from "./sse.ts";
import { realThread, type Thread } from "./sse-pacer.ts";

const lineOf = (seq: number, last: number, padding = "") =>
  JSON.stringify({
    timestamp: "",
    type: seq === last ? "job_completed" : `e${seq}`,
    agent_id: null,
    payload: { padding },
  });

interface Setup {
  /** How many events the job will have; the last is the terminal one. */
  readonly last: number;
  readonly padding?: string;
  readonly view?: Partial<EventView>;
  readonly thread?: Partial<Thread>;
}

/** A job whose history grows as the test says, behind a real server. */
async function serve({ last, padding, view, thread }: Setup) {
  const feed = new EventFeed();
  const stopping = new AbortController();
  const warnings: string[] = [];
  const streams = new EventStreams({
    feed,
    stopping: stopping.signal,
    log: { warn: (_fields, message) => warnings.push(message) },
    thread: { ...realThread, ...thread },
  });
  const page = (firstSeq: number, lastSeq: number): EventPage => ({
    firstSeq,
    lines: Array.from({ length: lastSeq - firstSeq + 1 }, (_, i) => lineOf(firstSeq + i, last, padding)),
  });
  const job = {
    committed: 0,
    /** Positions behind which the store was read. */
    reads: [] as number[],
    renders: 0,
    responses: [] as ServerResponse[],
    warnings,
    streams,
    stop: () => stopping.abort(),
    page,
    publish: (given: EventPage) => feed.published("job", given.firstSeq, given.lines),
    /** Commits `count` events in batches and publishes them. */
    grow(count: number, batch = count) {
      for (const end = job.committed + count; job.committed < end; ) {
        const firstSeq = job.committed + 1;
        job.committed = Math.min(end, job.committed + batch);
        job.publish(page(firstSeq, job.committed));
      }
    },
  };
  const common: EventView = {
    key: "job",
    jobId: "job",
    read: async (afterSeq) => {
      job.reads.push(afterSeq);
      return page(afterSeq + 1, Math.min(job.committed, afterSeq + 500));
    },
    exists: async () => true,
    render(seq, line) {
      job.renders++;
      return frame(seq, eventType(line), line);
    },
  };
  const server = createServer((request, response) => {
    job.responses.push(response);
    streams.serve(response, { ...common, ...view }, Number(request.headers["last-event-id"] ?? 0));
  });
  // Or a connection could be closed just as the next request goes out on it.
  server.keepAliveTimeout = 0;
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const close = async () => {
    server.closeAllConnections();
    server.close();
    await once(server, "close");
  };
  return { ...job, job, port, [Symbol.asyncDispose]: close };
}

type Served = Awaited<ReturnType<typeof serve>>;

/** Opens a stream; resolves once its head has come. */
async function open({ port }: Served, lastEventId = 0) {
  const answer = await fetch(`http://127.0.0.1:${port}/`, {
    headers: { "last-event-id": String(lastEventId) },
  });
  return { text: () => answer.text(), ids: async () => idsOf(await answer.text()) };
}

/** A stream's bytes as they come, on a socket that the test may cut or leave unread. */
async function openSocket({ port }: Served, lastEventId = 0): Promise<Socket> {
  const socket = connect(port, "127.0.0.1");
  socket.on("error", () => {});
  socket.write(`GET / HTTP/1.0\r\nhost: localhost\r\nlast-event-id: ${lastEventId}\r\n\r\n`);
  await once(socket, "readable");
  return socket;
}

const idsOf = (text: string) =>
  [...text.matchAll(/^id: (\d+)\nevent: \S+\ndata: .*\n\n/gm)].map((match) => Number(match[1]));
const upTo = (last: number, from = 1) => Array.from({ length: last - from + 1 }, (_, i) => from + i);

/** How long a broken stream can hold up a test; no test asserts on it. */
const LIMIT_MS = 60_000;

async function holds(fact: () => boolean): Promise<void> {
  const limitMs = performance.now() + LIMIT_MS;
  while (!fact()) {
    if (performance.now() > limitMs) throw new Error(`It did not come true: ${fact}`);
    await turn();
  }
}

/** A promise that the test settles by hand. */
const gate = <T>() => Promise.withResolvers<T>();

/** Time as the test sets it; the streams' work itself is done at once. */
function manualTime() {
  const time = { nowMs: 0, timers: [] as (() => void)[] };
  const thread: Partial<Thread> = {
    nowMs: () => time.nowMs,
    busyMs: () => 0,
    after: (_delayMs, run) => {
      time.timers.push(run);
      return () => {
        time.timers = time.timers.filter((one) => one !== run);
      };
    },
  };
  const pass = (ms: number) => {
    time.nowMs += ms;
    for (const run of time.timers.splice(0)) run();
  };
  return { time, thread, pass };
}

test("what is published while the store is read, and was read as well, is sent once", async () => {
  const [asked, read] = [gate<void>(), gate<EventPage>()];
  await using served = await serve({
    last: 4,
    view: {
      read: () => {
        asked.resolve();
        return read.promise;
      },
    },
  });
  const stream = await open(served);
  await asked.promise;
  served.publish(served.page(1, 3));
  served.publish(served.page(2, 4));
  read.resolve(served.page(1, 2));
  assert.deepEqual(await stream.ids(), upTo(4));
});

test("an empty answer of the store does not outweigh what was published meanwhile", async () => {
  const [asked, read] = [gate<void>(), gate<EventPage>()];
  await using served = await serve({
    last: 3,
    view: {
      read: () => {
        asked.resolve();
        return read.promise;
      },
    },
  });
  const stream = await open(served);
  await asked.promise;
  served.publish(served.page(1, 3));
  read.resolve({ firstSeq: 1, lines: [] });
  assert.deepEqual(await stream.ids(), upTo(3));
});

test("a reader that comes back gets what follows its id, also from the middle of what others share", async () => {
  await using served = await serve({ last: 300 });
  const first = await open(served);
  served.grow(200);
  const others = await Promise.all([0, 1, 57, 199, 200].map((id) => open(served, id)));
  served.grow(100, 7);
  assert.deepEqual(await first.ids(), upTo(300));
  for (const [i, id] of [0, 1, 57, 199, 200].entries()) {
    assert.deepEqual(await others[i]?.ids(), upTo(300, id + 1));
  }
});

test("a reader that fell behind what is kept gets the rest from the store, without a gap", async () => {
  const padding = "x".repeat(1_000);
  await using served = await serve({ last: 12_000, padding, thread: manualTime().thread });
  const socket = await openSocket(served);
  await holds(() => served.reads.length > 0);
  // More than the sockets between the two hold, and much more than is kept.
  served.grow(11_999, 100);
  await holds(() => (served.responses[0]?.writableLength ?? 0) > 0);
  const before = served.reads.length;
  served.grow(1);
  let text = "";
  for await (const chunk of socket) text += chunk;
  assert.deepEqual(idsOf(text), upTo(12_000));
  assert.ok(served.reads.length > before);
});

test("readers that do not read cost one write each, and the others get everything", async () => {
  // Nor is anybody cut off for not reading, however long the others take.
  const { thread } = manualTime();
  await using served = await serve({ last: 12_000, padding: "x".repeat(1_000), thread });
  for (let i = 0; i < 10; i++) await openSocket(served);
  const reading = await Promise.all(Array.from({ length: 5 }, () => open(served)));
  served.grow(12_000, 100);
  for (const stream of reading) assert.deepEqual(await stream.ids(), upTo(12_000));
  const stuck = () => served.responses.filter((response) => response.writableLength > 0);
  await holds(() => stuck().length === 10);
  for (const response of stuck())
    assert.ok(response.writableLength < 70_000, String(response.writableLength));
});

test("nothing is sent after the terminal event, though more is published", async () => {
  await using served = await serve({ last: 2 });
  const stream = await open(served);
  served.grow(2);
  served.publish(served.page(3, 5));
  assert.deepEqual(await stream.ids(), upTo(2));
});

test("an event is rendered once for all readers of a view", async () => {
  await using served = await serve({ last: 2_000, thread: manualTime().thread });
  const streams = await Promise.all(Array.from({ length: 30 }, () => open(served)));
  served.grow(2_000, 10);
  for (const stream of streams) assert.deepEqual(await stream.ids(), upTo(2_000));
  assert.equal(served.job.renders, 2_000);
});

test("readers at one place of the history share one read", async () => {
  const [asked, read] = [gate<void>(), gate<EventPage>()];
  let reads = 0;
  await using served = await serve({
    last: 100,
    view: {
      read: () => {
        reads++;
        asked.resolve();
        return read.promise;
      },
    },
  });
  const streams = await Promise.all(Array.from({ length: 30 }, () => open(served)));
  await asked.promise;
  read.resolve(served.page(1, 100));
  for (const stream of streams) assert.deepEqual(await stream.ids(), upTo(100));
  assert.equal(reads, 1);
});

test("few reads run at once, and who left while they ran does not hold up the others", async () => {
  const reads: { readonly afterSeq: number; readonly answer: (page: EventPage) => void }[] = [];
  await using served = await serve({
    last: 9,
    // All who have come have asked for their read before the first one is answered, which would do for some of them.
    thread: manualTime().thread,
    view: { read: (afterSeq) => new Promise((answer) => reads.push({ afterSeq, answer })) },
  });
  const leaving = [await openSocket(served, 1), await openSocket(served, 2)];
  await holds(() => reads.length === 2);
  const staying = await Promise.all([3, 4, 5].map((id) => open(served, id)));
  for (const socket of leaving) socket.destroy();
  await holds(() => served.responses.filter((response) => response.closed).length === 2);
  for (let i = 0; i < 5; i++) {
    assert.ok(reads.length <= i + 2, String(reads.length));
    await holds(() => reads.length > i);
    const { afterSeq, answer } = reads[i]!;
    answer(served.page(afterSeq + 1, 9));
    await turn();
  }
  for (const [i, stream] of staying.entries()) assert.deepEqual(await stream.ids(), upTo(9, i + 4));
});

test("an event that is larger than what is kept is sent all the same", async () => {
  await using served = await serve({ last: 3, padding: "x".repeat(1_200_000) });
  const stream = await open(served);
  served.grow(3);
  assert.deepEqual(await stream.ids(), upTo(3));
});

test("an event that the view leaves out is passed over, the terminal one is never", async () => {
  await using served = await serve({
    last: 100,
    view: { render: (seq, line) => (seq % 10 === 0 ? frame(seq, `own_${eventType(line)}`, "{}") : null) },
  });
  const live = await open(served);
  served.grow(50, 3);
  const later = await open(served, 12);
  served.grow(50);
  assert.deepEqual(await live.ids(), [10, 20, 30, 40, 50, 60, 70, 80, 90, 100]);
  const text = await later.text();
  assert.deepEqual(idsOf(text), [20, 30, 40, 50, 60, 70, 80, 90, 100]);
  assert.match(text, /id: 100\nevent: own_job_completed\ndata: \{\}\n\n$/);
});

test("a reader to whom its view has shown nothing yet goes on waiting", async () => {
  let passed = 0;
  const render = (seq: number) => {
    passed = seq;
    return seq === 3 ? frame(seq, "shown", "{}") : null;
  };
  await using served = await serve({ last: 3, view: { render } });
  const stream = await open(served);
  for (const seq of [1, 2]) {
    served.grow(1);
    await holds(() => passed === seq);
  }
  served.grow(1);
  assert.deepEqual(await stream.ids(), [3]);
});

test("a view that leaves nearly everything out looks at no more in one turn than one that shows it", async () => {
  let sinceTurn = 0;
  let most = 0;
  await using served = await serve({
    last: 901,
    padding: "x".repeat(1_000),
    thread: {
      nowMs: () => {
        sinceTurn = 0;
        return realThread.nowMs();
      },
    },
    view: {
      render: () => {
        most = Math.max(most, ++sinceTurn);
        return null;
      },
    },
  });
  const answer = await open(served);
  served.grow(901, 300);
  assert.match(await answer.text(), /id: 901\n\n$/);
  assert.ok(most > 0 && most <= 2 * 64, `${most} events in one turn`);
});

test("a view that leaves the terminal event out still ends, and tells its id", async () => {
  await using served = await serve({ last: 5, view: { render: () => null } });
  const stream = await open(served);
  served.grow(5);
  assert.equal(await stream.text(), "retry: 1000\n\nid: 5\n\n");
});

test("a stream of a job that is not in the store yet waits for its first event", async () => {
  await using served = await serve({ last: 3 });
  const stream = await open(served);
  await holds(() => served.reads.length === 1);
  await turn();
  served.grow(3);
  assert.deepEqual(await stream.ids(), upTo(3));
  assert.deepEqual(served.reads, [0]);
});

test("streams of a job that was removed end, those that wait as well", async () => {
  let isThere = true;
  let reads = 0;
  await using served = await serve({
    last: 10,
    view: {
      read: async (afterSeq) => {
        reads++;
        return served.page(afterSeq + 1, isThere ? Math.max(afterSeq, 4) : afterSeq);
      },
      exists: async () => isThere,
    },
  });
  const waiting = await open(served);
  await holds(() => reads === 2);
  isThere = false;
  await (await open(served, 2)).text();
  assert.deepEqual(await waiting.ids(), upTo(4));
});

test("readers whose events cannot be read are cut off, and the next ones are served", async () => {
  let isBroken = true;
  await using served = await serve({
    last: 3,
    view: {
      read: async (afterSeq) => {
        if (isBroken) throw new Error("no store");
        return { firstSeq: afterSeq + 1, lines: [] };
      },
    },
  });
  await assert.rejects(async () => (await open(served)).text());
  assert.equal(served.warnings.length, 1);
  isBroken = false;
  const stream = await open(served);
  served.grow(3);
  assert.deepEqual(await stream.ids(), upTo(3));
});

test("a reader that left before its stream began is not served, and holds nothing", async () => {
  await using served = await serve({ last: 3 });
  const socket = await openSocket(served);
  socket.destroy();
  const [response] = served.responses;
  await once(response!, "close");
  const never = () => assert.fail("nobody reads this");
  served.streams.serve(
    response!,
    { key: "late", jobId: "job", read: never, exists: never, render: never },
    0,
  );
  assert.equal(served.streams.readers, 0);
  served.grow(3);
  assert.deepEqual(await (await open(served)).ids(), upTo(3));
});

test("readers are counted over all streams, each until its connection is closed", async () => {
  let opened = 0;
  const view: Partial<EventView> = {
    get key() {
      return `view ${opened++ % 2}`;
    },
  };
  await using served = await serve({ last: 2, view });
  assert.equal(served.streams.readers, 0);
  const leaving = [await openSocket(served), await openSocket(served)];
  const staying = [await open(served), await open(served), await open(served)];
  assert.equal(served.streams.readers, 5);
  for (const socket of leaving) socket.destroy();
  await holds(() => served.streams.readers === 3);
  served.grow(2);
  for (const stream of staying) assert.deepEqual(await stream.ids(), upTo(2));
  await holds(() => served.streams.readers === 0);
});

test("shutdown ends all streams, those that come late too", async () => {
  await using served = await serve({ last: 10 });
  const streams = await Promise.all(Array.from({ length: 5 }, () => open(served)));
  served.grow(4);
  const some = await open(served, 4);
  served.stop();
  for (const stream of [...streams, some]) await stream.text();
  assert.equal(await (await open(served)).text(), "retry: 1000\n\n");
});

test("every reader that waits gets a comment every 15 s, by one timer", async () => {
  const { time, thread, pass } = manualTime();
  await using served = await serve({ last: 2, thread });
  const streams = await Promise.all(Array.from({ length: 8 }, () => open(served)));
  served.grow(1);
  // Time stands still, so that all have their turn in one slice.
  await holds(() => served.job.renders === 1);
  assert.equal(time.timers.length, 1);
  const sent = () => served.responses.map((response) => response.socket?.bytesWritten ?? 0);
  const before = sent();
  pass(15_000);
  await holds(() => sent().every((bytes, i) => bytes > before[i]!));
  served.grow(1);
  for (const stream of streams) {
    const text = await stream.text();
    assert.equal(text.match(/^: still here\n\n/gm)?.length, 1);
    assert.deepEqual(idsOf(text), [1, 2]);
  }
  await holds(() => time.timers.length === 0);
});

test("a reader that takes nothing for a minute is cut off, and comes back with its id", async () => {
  const { thread, pass } = manualTime();
  await using served = await serve({ last: 12_000, padding: "x".repeat(1_000), thread });
  const socket = await openSocket(served);
  served.grow(12_000, 100);
  const [response] = served.responses;
  await holds(() => (response?.writableLength ?? 0) > 0);
  pass(15_000);
  pass(44_000);
  assert.equal(response?.destroyed, false);
  pass(15_000);
  assert.equal(response?.destroyed, true);
  let text = "";
  for await (const chunk of socket) text += chunk;
  const seen = idsOf(text);
  assert.deepEqual([...seen, ...(await (await open(served, seen.length)).ids())], upTo(12_000));
});

/** Reads `bytes` of a stream, then cuts it. @returns the whole events among them */
async function idsUntilCut(served: Served, lastEventId: number, bytes: number): Promise<number[]> {
  const socket = await openSocket(served, lastEventId);
  const parts: Buffer[] = [];
  let size = 0;
  for await (const part of socket) {
    parts.push(part);
    size += part.length;
    if (size >= bytes) break;
  }
  socket.destroy();
  return idsOf(Buffer.concat(parts).subarray(0, bytes).toString());
}

test("readers that are cut at any byte and come back have, joined, exactly the history", async () => {
  const last = 2_000;
  const anyCuts = fc.array(fc.integer({ min: 1, max: 40_000 }), { minLength: 5, maxLength: 15 });
  const anyWalk = fc.record({
    batch: fc.integer({ min: 1, max: 150 }),
    readers: fc.array(anyCuts, { minLength: 3, maxLength: 3 }),
  });
  await fc.assert(
    fc.asyncProperty(anyWalk, async ({ batch, readers }) => {
      await using served = await serve({ last, padding: "é".repeat(20) });
      const grow = async () => {
        while (served.job.committed < last) {
          served.grow(Math.min(batch, last - served.job.committed));
          await turn();
        }
      };
      const walk = async (cuts: readonly number[]) => {
        const ids: number[] = [];
        for (const bytes of [...cuts, Number.POSITIVE_INFINITY]) {
          if (ids.at(-1) !== last) ids.push(...(await idsUntilCut(served, ids.at(-1) ?? 0, bytes)));
        }
        return ids;
      };
      const [, ...walks] = await Promise.all([grow(), ...readers.map(walk)]);
      for (const ids of walks) assert.deepEqual(ids, upTo(last));
    }),
    { numRuns: 15 },
  );
});
