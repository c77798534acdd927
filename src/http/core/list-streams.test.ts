// The stream of lists over real sockets, at moments that the test chooses: notes and timers by hand.

import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import { until } from "../../../test/support/until.ts";
import { everything, type Note, type NoteListener, NoteQueue } from "../../runs/change-notes.ts";
import { ListStreams } from "./list-streams.ts";

const KEPT_MS = 600_000;

async function serve({ processId = "p1" } = {}) {
  const timers = new Map<() => void, number>();
  const listeners = new Set<NoteListener>();
  const reads: (readonly Note[])[] = [];
  const values = new Map<string, string>();
  const warnings: string[] = [];
  const stopping = new AbortController();
  const world = { nowMs: 0, busyMs: 0, failure: null as Error | null, ready: Promise.resolve(), costMs: 0 };
  const streams = new ListStreams({
    notes: {
      listen(listener) {
        listeners.add(listener);
        return { ready: world.ready, stop: () => void listeners.delete(listener) };
      },
    },
    async read(notes) {
      if (world.failure !== null) throw world.failure;
      reads.push(notes);
      world.busyMs += world.costMs;
      return notes.map(({ topic, id }) => ({ topic, key: id, json: values.get(id) ?? `"${id}"` }));
    },
    processId,
    stopping: stopping.signal,
    log: { warn: (_fields, message) => void warnings.push(message) },
    thread: {
      nowMs: () => world.nowMs,
      busyMs: () => world.busyMs,
      soon: (run) => void setImmediate(run),
      after(delayMs, run) {
        timers.set(run, world.nowMs + delayMs);
        return () => void timers.delete(run);
      },
    },
  });
  const responses: ServerResponse[] = [];
  const server = createServer((request, response) => {
    responses.push(response);
    const topics = new URL(request.url ?? "", "http://x").searchParams.get("topics") ?? "runs,human";
    const lastId = request.headers["last-event-id"];
    streams.serve(response, new Set(topics.split(",")), typeof lastId === "string" ? lastId : null);
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  /** Lets time pass, and what is due happen. */
  const pass = async (ms: number) => {
    world.nowMs += ms;
    for (const [run, dueMs] of [...timers]) {
      if (dueMs > world.nowMs || !timers.delete(run)) continue;
      run();
      await turn();
    }
    await turn();
  };
  const note = (id: string, topic: Note["topic"] = "runs") => {
    for (const listener of listeners) listener({ topic, id, jobId: "", status: "" });
  };
  async function open(path = "/", lastId?: string) {
    const socket = connect(port, "127.0.0.1");
    const count = responses.length;
    socket.write(
      `GET ${path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n${lastId === undefined ? "" : `Last-Event-ID: ${lastId}\r\n`}\r\n`,
    );
    let text = "";
    socket.on("data", (bytes) => {
      text += bytes;
    });
    socket.on("error", () => {});
    while (responses.length === count) await turn();
    /** Its frames so far, as "id data" or "id reset". */
    const seen = () =>
      [...text.matchAll(/id: (\S+)\r?\nevent: (\w+)\r?\ndata: (.*)\r?\n/g)].map(
        ([, id, event, data]) => `${id} ${event === "reset" ? event : data}`,
      );
    const sees = async (count: number) => {
      await until(`${count} events are seen`, () => seen().length >= count);
      return seen();
    };
    const leave = async () => {
      const response = responses[count]!;
      socket.destroy();
      await until("the server notices", () => response.closed);
      await turn();
    };
    return { socket, response: responses[count]!, seen, sees, leave, text: () => text };
  }
  return {
    world,
    streams,
    listeners,
    reads,
    values,
    warnings,
    stopping,
    pass,
    note,
    open,
    reset: () => {
      for (const listener of listeners) listener(everything);
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}

test("of a record that changes a thousand times a second, ten changes a second are sent, the newest last", async () => {
  await using s = await serve();
  const reader = await s.open();
  await reader.sees(1);
  for (let ms = 0; ms < 1_000; ms++) {
    s.values.set("a", `${ms}`);
    s.note("a");
    s.note("b");
    await s.pass(1);
  }
  await s.pass(100);
  const seen = await reader.sees(2);
  const ofA = seen.filter((one) => !one.endsWith('"b"')).slice(1);
  assert.ok(ofA.length <= 11, `${ofA.length}`);
  assert.match(ofA.at(-1) ?? "", / 999$/);
});

test("each record is read once for all readers, and each gets its topics alone", async () => {
  await using s = await serve();
  const [all, people] = [await s.open(), await s.open("/?topics=human")];
  await Promise.all([all.sees(1), people.sees(1)]);
  s.note("a");
  s.note("q", "human");
  await s.pass(0);
  assert.deepEqual(await all.sees(3), ["p1-0 reset", 'p1-1 "a"', 'p1-2 "q"']);
  assert.deepEqual(await people.sees(2), ["p1-0 reset", 'p1-2 "q"']);
  assert.equal(s.reads.length, 1);
});

test("a reader that comes back gets what has changed meanwhile, each record once as it is now, and no reset", async () => {
  await using s = await serve();
  const first = await s.open();
  s.note("a");
  await s.pass(0);
  assert.deepEqual(await first.sees(2), ["p1-0 reset", 'p1-1 "a"']);
  await first.leave();
  s.values.set("a", "2");
  for (const id of ["a", "b", "a"]) s.note(id);
  await s.pass(200);
  assert.equal(s.reads.length, 1, "nobody listens, so nothing is read");
  const again = await s.open("/", "p1-1");
  await s.pass(200);
  assert.deepEqual(await again.sees(2), ["p1-2 2", 'p1-3 "b"']);
});

test("an id of another process, of the future, or that is none, gets one reset, and what follows", async () => {
  await using s = await serve();
  for (const lastId of ["p2-0", "p1-9", "0", "p1-", "p1--1", "x p1-0"]) {
    const reader = await s.open("/", lastId);
    assert.deepEqual(await reader.sees(1), ["p1-0 reset"], lastId);
    await reader.leave();
  }
  const reader = await s.open("/", "p2-17");
  await reader.sees(1);
  s.note("a");
  await s.pass(100);
  assert.deepEqual(await reader.sees(2), ["p1-0 reset", 'p1-1 "a"']);
});

test("what everything may have changed in is told with a reset, and what is behind it follows", async () => {
  await using s = await serve();
  const reader = await s.open();
  s.note("a");
  s.reset();
  s.note("b");
  await s.pass(0);
  s.note("c");
  await s.pass(100);
  assert.deepEqual(await reader.sees(3), ["p1-0 reset", "p1-1 reset", 'p1-2 "c"']);
});

test("ten minutes after the last reader has left nothing is noted any more, and its id is forgotten", async () => {
  await using s = await serve();
  const reader = await s.open();
  await reader.sees(1);
  await reader.leave();
  await s.pass(KEPT_MS - 1);
  assert.equal(s.listeners.size, 1);
  await s.pass(1);
  assert.equal(s.listeners.size, 0);
  const again = await s.open("/", "p1-0");
  assert.deepEqual(await again.sees(1), ["p1-1 reset"]);
  assert.equal(s.listeners.size, 1);
});

test("a reader that takes nothing costs one write, gets the newest state when it takes more, and is cut off when it does not", async () => {
  await using s = await serve();
  const slow = await s.open();
  await slow.sees(1);
  slow.socket.pause();
  const large = "x".repeat(60_000);
  for (let i = 0; i < 300; i++) {
    s.values.set("a", `"${large}${i}"`);
    s.note("a");
    await s.pass(100);
  }
  assert.ok(slow.response.writableLength < 200_000, `${slow.response.writableLength}`);
  slow.socket.resume();
  while (!slow.text().includes('299"\n\n')) await turn();
  assert.ok(slow.seen().length < 300);
  slow.socket.pause();
  for (let i = 0; !slow.response.writableNeedDrain; i++) {
    s.values.set("a", `"${large}${i}"`);
    s.note("a");
    await s.pass(100);
  }
  for (let beats = 0; beats < 5; beats++) await s.pass(15_000);
  while (!slow.response.closed) await turn();
  assert.equal(s.streams.readers, 0);
});

test("a reader of quiet topics learns the newest id with each sign of life", async () => {
  await using s = await serve();
  const reader = await s.open("/?topics=human");
  await reader.sees(1);
  s.note("a");
  await s.pass(0);
  await s.pass(15_000);
  while (!reader.text().includes("id: p1-1\n\n")) await turn();
});

test("records that cannot be read are read again, and nothing is lost", async () => {
  await using s = await serve();
  const reader = await s.open();
  s.world.failure = new Error("no database");
  s.note("a");
  await s.pass(0);
  await s.pass(1_000);
  assert.equal(s.warnings.length, 1);
  s.world.failure = null;
  await s.pass(1_000);
  assert.deepEqual(await reader.sees(2), ["p1-0 reset", 'p1-1 "a"']);
});

test("of a record that is noted again while it cannot be read, the newer note stands", () => {
  const queue = new NoteQueue();
  const note = (status: string): Note => ({ topic: "human", id: "ship", jobId: "job-1", status });
  queue.add(note("pending"));
  const taken = queue.take(1);
  queue.add(note("answered"));
  queue.giveBack(taken);
  assert.deepEqual(queue.take(2), [note("answered")]);
  queue.giveBack(taken);
  assert.deepEqual(queue.take(2), [note("pending")]);
});

test("what is expensive to read is read more rarely, and once a second all the same", async () => {
  await using s = await serve();
  await s.open();
  for (const [costMs, pauseMs] of [
    [30, 600],
    [50, 1_000],
    [5_000, 1_000],
  ] as const) {
    const before = s.reads.length;
    s.world.costMs = costMs;
    s.note("a");
    await s.pass(0);
    s.note("a");
    await s.pass(pauseMs - 1);
    assert.equal(s.reads.length, before + 1);
    await s.pass(1);
    assert.equal(s.reads.length, before + 2);
    await s.pass(pauseMs);
  }
});

test("no reader begins before notes come from everywhere, and a stop ends all of them", async () => {
  await using s = await serve();
  const ready = Promise.withResolvers<void>();
  s.world.ready = ready.promise;
  const reader = await s.open();
  s.note("a");
  await s.pass(0);
  await turn();
  assert.deepEqual(reader.seen(), []);
  ready.resolve();
  assert.deepEqual(await reader.sees(1), ["p1-1 reset"]);
  s.stopping.abort();
  await once(reader.socket, "end");
  const late = await s.open();
  await once(late.socket, "end");
  assert.equal(s.listeners.size, 0);
});
