// Following a run, against servers that cut, repeat, skip and fall silent.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { terminalEventTypes as engineTerminalTypes } from "../../src/engine/event-types.ts";
import { freePorts } from "../../test/support/ports.ts";
import {
  type Answer,
  clientOf,
  event,
  frame,
  hangUp,
  json,
  problem,
  serving,
  stream,
} from "../test/server.ts";
import { terminalEventTypes } from "./follow.ts";

async function collect(
  events: AsyncIterable<{ readonly id: number; readonly type?: string }>,
): Promise<string[]> {
  const seen: string[] = [];
  for await (const { id, type } of events) seen.push(`${id} ${type}`);
  return seen;
}

const nothing: Answer = (_request, response) => void response.writeHead(204).end();

test("the terminal types are the engine's", () => {
  assert.deepEqual(terminalEventTypes, engineTerminalTypes);
});

describe("following a run", () => {
  test("ends with the terminal event, though the stream stays open", async (t) => {
    const { client, requests } = await serving(t, stream(frame(1) + frame(2, "job_completed"), "open"));
    assert.deepEqual(await Array.fromAsync(client.runs.follow("r")), [event(1), event(2, "job_completed")]);
    assert.equal(requests[0]?.url, "/api/v1/runs/r/events/stream");
    assert.equal(requests.length, 1);
  });

  test("ends at an id that stands alone: a view left the terminal event out", async (t) => {
    const { client, requests } = await serving(t, stream(`${frame(3)}id: 7\n\n`, "open"));
    const seen = await Array.fromAsync(client.runs.followLogs("r", { filters: { level: "warn" }, after: 2 }));
    assert.deepEqual(seen, [event(3)]);
    assert.equal(requests[0]?.url, "/api/v1/runs/r/logs/stream?level=warn");
    assert.equal(requests[0]?.headers["last-event-id"], "2");
    assert.equal(requests.length, 1);
  });

  test("asks again from the last event when the connection is lost, and shows nothing twice", async (t) => {
    const { client, requests, pauses } = await serving(
      t,
      stream(`retry: 1000\n\n${frame(1)}${frame(2)}id: 3\ndata: {"ty`, "cut"),
      stream(`: keep-alive\n\n${frame(2)}${frame(3)}`),
      stream(frame(4, "job_failed")),
    );
    assert.deepEqual(await collect(client.runs.follow("r")), ["1 log", "2 log", "3 log", "4 job_failed"]);
    assert.deepEqual(
      requests.map(({ headers }) => headers["last-event-id"]),
      [undefined, "2", "3"],
    );
    assert.deepEqual(pauses, [250, 250], "an event in between starts the pauses anew");
  });

  test("continues after the event that the caller names, and ends at 204", async (t) => {
    const { client, requests } = await serving(t, stream(frame(6)), nothing);
    assert.deepEqual(await collect(client.runs.follow("r", { after: 5 })), ["6 log"]);
    assert.deepEqual(
      requests.map(({ headers }) => headers["last-event-id"]),
      ["5", "6"],
    );
  });

  test("an event that is missing is asked for again, not skipped", async (t) => {
    const { client, requests } = await serving(
      t,
      stream(frame(1) + frame(3, "job_completed"), "open"),
      stream(frame(2) + frame(3, "job_completed")),
    );
    assert.deepEqual(await collect(client.runs.follow("r")), ["1 log", "2 log", "3 job_completed"]);
    assert.equal(requests[1]?.headers["last-event-id"], "1");
  });

  test("an event that is no JSON is asked for again", async (t) => {
    const { client } = await serving(t, stream("id: 1\ndata: {oops\n\n"), stream(frame(1, "job_completed")));
    assert.deepEqual(await collect(client.runs.follow("r")), ["1 job_completed"]);
  });

  test("a connection that falls silent is lost", async (t) => {
    const { client, requests, beSilent } = await serving(
      t,
      stream(frame(1), "open"),
      stream(frame(2, "job_completed")),
    );
    const seen: number[] = [];
    const following = client.runs.follow("r");
    seen.push((await following.next()).value?.id ?? 0);
    const next = following.next();
    // The reading of the next chunk begins in a later turn.
    setImmediate(beSilent);
    seen.push((await next).value?.id ?? 0);
    assert.deepEqual(seen, [1, 2]);
    assert.equal(requests.length, 2);
  });

  test("waits longer and longer while the gateway is unreachable, then fails", async (t) => {
    const { client, pauses } = await serving(t, stream(frame(1)), hangUp);
    await assert.rejects(collect(client.runs.follow("r")), { name: "TroupeUnreachable" });
    assert.deepEqual(pauses.slice(0, 7), [250, 500, 1_000, 2_000, 4_000, 8_000, 8_000]);
    assert.equal(pauses.length, 12);
  });

  test("streams that keep ending without an event are an error", async (t) => {
    const { client, requests } = await serving(t, stream(": nothing\n\n"));
    await assert.rejects(collect(client.runs.follow("r")), {
      name: "TroupeUnreachable",
      message: /keeps ending/,
    });
    assert.equal(requests.length, 13);
  });

  test("a busy gateway is waited for, as long as it asks", async (t) => {
    const stopping = problem(503, "unavailable", { "retry-after": "3" });
    const limited = problem(429, "rate_limited", { "retry-after": "2" });
    const { client, pauses } = await serving(
      t,
      stopping,
      stream(frame(1)),
      limited,
      stopping,
      stream(frame(2, "job_completed")),
    );
    assert.deepEqual(await collect(client.runs.follow("r")), ["1 log", "2 job_completed"]);
    assert.deepEqual(pauses, [3_250, 250, 2_500, 4_000]);
  });

  test("a refusal ends it, at first and later: the run may have been deleted", async (t) => {
    const gone = problem(404, "run_not_found");
    for (const answers of [[gone], [stream(frame(1)), gone]]) {
      const { client, requests } = await serving(t, ...answers);
      await assert.rejects(collect(client.runs.follow("r")), { code: "run_not_found" });
      assert.equal(requests.length, answers.length);
    }
  });

  test("a gateway that was never there is an error after the usual retries", async () => {
    const { client, pauses } = clientOf(`http://127.0.0.1:${await freePorts(1)}`);
    await assert.rejects(collect(client.runs.follow("r")), { name: "TroupeUnreachable" });
    assert.equal(pauses.length, 4);
  });

  test("a signal ends it, also between two events that are there already", async (t) => {
    const controller = new AbortController();
    const { client } = await serving(t, stream(frame(1) + frame(2) + frame(3), "open"));
    const seen: number[] = [];
    await assert.rejects(
      async () => {
        for await (const { id } of client.runs.follow("r", { signal: controller.signal })) {
          seen.push(id);
          controller.abort(new Error("enough"));
        }
      },
      { message: "enough" },
    );
    assert.deepEqual(seen, [1]);
  });

  test("a caller that stops early lets the connection go", async (t) => {
    let closed: Promise<void> = Promise.reject(new Error("no request came"));
    closed.catch(() => {});
    const { client } = await serving(t, (request, response) => {
      closed = new Promise((resolve) => response.on("close", () => resolve()));
      stream(frame(1), "open")(request, response);
    });
    for await (const _event of client.runs.follow("r")) break;
    await closed;
  });

  test("cut at 500 places of a history, it has exactly the history", async (t) => {
    const count = 2_000;
    const frames = Array.from({ length: count }, (_, i) =>
      frame(i + 1, i + 1 === count ? "job_completed" : "log"),
    );
    const history = Buffer.from(frames.join(""));
    const starts = [0];
    for (const one of frames) starts.push(starts.at(-1)! + Buffer.byteLength(one));
    const random = seeded(20_261_121);
    let cuts = 0;
    const cutting: Answer = (request, response) => {
      const last = Number(request.headers["last-event-id"] ?? 0);
      const rest = history.subarray(starts[last]);
      response.writeHead(200, { "content-type": "text/event-stream" });
      if (cuts++ >= 500) response.end(rest);
      else response.write(rest.subarray(0, Math.floor(random() * 1_200)), () => response.destroy());
    };
    const { client, requests } = await serving(t, cutting);
    const seen = await Array.fromAsync(client.runs.follow("r"));
    assert.deepEqual(
      seen,
      frames.map((_, i) => event(i + 1, i + 1 === count ? "job_completed" : "log")),
    );
    assert.ok(requests.length > 300, `${requests.length} connections`);
  });
});

describe("following several channels", () => {
  const merged = (id: number, type: string) =>
    `id: ${id}\nevent: ${type}\ndata: {"id":${id},"run_id":"r","channels":{}}\n\n`;

  test("events that no channel shows are no gap, and the end is known by the event's type", async (t) => {
    const { client, requests } = await serving(
      t,
      stream(merged(2, "log")),
      stream(merged(7, "log") + merged(9, "job_cancelled"), "open"),
    );
    const seen = await collect(client.runs.stream("r", { channels: ["logs", "timeline"] }));
    assert.deepEqual(
      seen.map((line) => line.split(" ")[0]),
      ["2", "7", "9"],
    );
    assert.equal(requests[1]?.url, "/api/v1/runs/r/stream?channels=logs%2Ctimeline");
    assert.equal(requests[1]?.headers["last-event-id"], "2");
  });

  test("waiting for a run reads it once it has ended", async (t) => {
    const { client, requests } = await serving(
      t,
      stream(merged(9, "job_failed")),
      json(200, { status: "failed" }),
    );
    assert.equal((await client.runs.wait("r")).status, "failed");
    assert.deepEqual(
      requests.map(({ url }) => url),
      ["/api/v1/runs/r/stream?channels=human", "/api/v1/runs/r"],
    );
  });
});

test("lists are followed behind the last id that came, with an event or without", async (t) => {
  const change = '{"topic":"runs","id":"run_1","changes":null}';
  const { client, requests } = await serving(
    t,
    stream("id: p-1\nevent: reset\ndata: {}\n\n"),
    stream(`id: p-2\nevent: change\ndata: ${change}\n\nid: p-7\n\n`),
    stream("id: q-0\nevent: reset\ndata: {}\n\n", "open"),
  );
  const seen: unknown[] = [];
  for await (const one of client.system.follow({ topics: ["runs", "human"], after: "p-0" })) {
    seen.push(one);
    if (seen.length === 3) break;
  }
  assert.deepEqual(seen, [
    { event_id: "p-1", type: "reset" },
    { event_id: "p-2", type: "change", topic: "runs", id: "run_1", changes: null },
    { event_id: "q-0", type: "reset" },
  ]);
  assert.equal(requests[0]?.url, "/api/v1/stream?topics=runs%2Chuman");
  assert.deepEqual(
    requests.map(({ headers }) => headers["last-event-id"]),
    ["p-0", "p-1", "p-7"],
  );
});

/** Numbers from 0 to 1, the same for the same seed (mulberry32). */
function seeded(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}
