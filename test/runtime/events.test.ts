// A job's history and its live stream. Sentences in quotes are the specification's own, shortened.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import type { JsonObject } from "../../src/engine/json.ts";
import { type Block, idsOf, openStream } from "../support/event-stream.ts";
import { aggregator, executor, graph, router, sensor } from "../support/graphs.ts";
import { startRuntimeHere } from "../support/in-process.ts";
import { ended, happens, path, run, submit } from "../support/job-watch.ts";
import type { Program } from "../support/program.ts";
import { call, request, type SeenEvent } from "../support/runtime-api.ts";

let program: Program;
before(async () => {
  program = await startRuntimeHere();
});
after(() => program.stop());

interface SeenView {
  readonly channels: { readonly events: JsonObject };
}

const history = async (jobId: string) =>
  (await call(program, "GET", path(jobId, "/events"))).data as unknown as readonly Omit<SeenEvent, "id">[];
const waiting = (graphId: string, observations = 1) =>
  graph(graphId, [sensor("s", { complete_after: observations }), router("r")], [["s", "r"]]);
const send = (jobId: string, body: unknown = {}) =>
  call(program, "POST", path(jobId, "/messages"), { agent_id: "s", body });
/** A job with more events than one page of the store or of the stream holds. */
const long = (graphId: string) =>
  graph(
    graphId,
    [router("a"), router("b"), aggregator("all")],
    [
      ["a", "b"],
      ["b", "all"],
    ],
    {
      initial_inputs: { a: Array.from({ length: 3_000 }, (_, i) => ({ i, padding: "x".repeat(100) })) },
    },
  );

describe("GET /jobs/:job_id/events", () => {
  test('"Event: timestamp, type, agent_id, payload (object)"; events of the whole job have no agent_id', async () => {
    const { jobId } = await run(program, graph("shape", [router("r")]));
    for (const event of await history(jobId)) {
      const agent = event.type.startsWith("job_") ? [] : ["agent_id"];
      assert.deepEqual(Object.keys(event), ["timestamp", "type", ...agent, "payload"]);
      assert.match(
        String((event as unknown as JsonObject).timestamp),
        /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/,
      );
      assert.equal(typeof event.payload, "object");
    }
  });

  test('"chronological order", from job_pending to the terminal event', async () => {
    const { jobId } = await run(program, graph("order", [router("r"), aggregator("all")], [["r", "all"]]));
    const events = await history(jobId);
    assert.deepEqual(
      events.map((event) => event.type),
      [
        "job_pending",
        "job_validated",
        "job_scheduled",
        "job_running",
        "agent_started",
        "agent_message_received",
        "agent_started",
        "agent_message_received",
        "aggregator_received",
        "agent_completed",
        "agent_completed",
        "job_completed",
      ],
    );
    const times = events.map((event) => String((event as unknown as JsonObject).timestamp));
    assert.deepEqual(times, times.toSorted());
  });

  test('"agent_id of job-level events is left out" wherever events are shown; agents\' events name their agent', async () => {
    const { jobId, events, detail } = await run(program, graph("agents", [router("r")]));
    const assertAgent = (event: JsonObject) =>
      assert.equal(
        event.agent_id,
        String(event.type).startsWith("job_") ? undefined : "r",
        String(event.type),
      );
    const recent = detail.recent_events as readonly JsonObject[];
    const { last_event } = detail.summary as { last_event: JsonObject };
    for (const event of [...(await history(jobId)), ...events, ...recent, last_event]) {
      assertAgent(event as unknown as JsonObject);
    }
    const { run_id } = detail.job as JsonObject;
    const stream = await fetch(`${program.api}/runs/${run_id}/stream?channels=events`);
    const frames = (await stream.text()).matchAll(/^data: (.*)$/gm);
    const shown = [...frames].map(([, data]) => (JSON.parse(data!) as SeenView).channels.events);
    assert.equal(shown.length, events.length);
    for (const event of shown) assertAgent(event);
  });

  test('"append-only": what was read once is the beginning of what is read later', async () => {
    const jobId = await submit(program, waiting("append"));
    await happens(program, jobId, "agent_started");
    const first = await history(jobId);
    await send(jobId);
    const { events } = await ended(program, jobId);
    const second = await history(jobId);
    assert.deepEqual(second.slice(0, first.length), first);
    assert.equal(second.length, events.length);
  });

  test('"sandbox_job_completed: sandbox_name (string), exit_code (integer), pool (string)"', async () => {
    const { of } = await run(program, graph("sandbox", [executor("e", ["true"])]));
    const [completed] = of("sandbox_job_completed", "e");
    const { sandbox_name, exit_code, pool } = completed?.payload ?? {};
    assert.equal(sandbox_name, of("sandbox_job_started", "e")[0]?.payload.sandbox_name);
    assert.equal(typeof sandbox_name, "string");
    assert.equal(exit_code, 0);
    assert.equal(pool, "default");
  });

  test('"runtime events carry the failure as error", of schema svc.error.v1', async () => {
    const { of } = await run(program, graph("failing", [executor("e", "echo why >&2; exit 9")]));
    for (const type of ["sandbox_job_failed", "agent_failed", "job_failed"]) {
      const error = of(type)[0]?.error;
      assert.equal(error?.schema_version, "svc.error.v1", type);
      assert.equal(error?.code, "executor.exit_nonzero");
    }
  });

  test("a history of more than ten thousand events comes whole, and equals the stream, which has no gap", async () => {
    const jobId = await submit(program, long("long"));
    const { events } = await ended(program, jobId);
    assert.deepEqual(
      events.map((event) => event.id),
      Array.from({ length: events.length }, (_, i) => i + 1),
    );
    assert.ok(events.length > 12_000);
    const whole = await history(jobId);
    assert.equal(whole.length, events.length);
    for (const i of [0, 1, 512, 4_095, 10_000, events.length - 1]) {
      const { id, ...event } = events[i] as SeenEvent;
      assert.deepEqual(whole[i], event, String(id));
    }
  });
});

describe("GET /jobs/:job_id/events/stream", () => {
  test('"text/event-stream; first retry: 1000; id the sequence, event the type, data one line of JSON"', async () => {
    const { jobId } = await run(program, graph("stream", [router("r")]));
    const stream = await openStream(program, jobId);
    assert.equal(stream.status, 200);
    assert.match(stream.headers.get("content-type") ?? "", /^text\/event-stream/);
    assert.match(stream.headers.get("cache-control") ?? "", /no-store/);
    const [first, ...blocks] = await stream.rest();
    assert.equal(first?.text, "retry: 1000");
    const stored = await history(jobId);
    assert.deepEqual(
      blocks.map(({ text }) => text),
      stored.map((event, i) => `id: ${i + 1}\nevent: ${event.type}\ndata: ${JSON.stringify(event)}`),
    );
  });

  test('"without Last-Event-ID the stream starts with the first event; with it, right after that one"', async () => {
    const { jobId, events } = await run(program, graph("resume", [router("r")]));
    const all = events.map((event) => event.id);
    for (const id of [0, 1, 4, all.length - 1]) {
      const stream = await openStream(program, jobId, String(id));
      assert.deepEqual(idsOf(await stream.rest()), all.slice(id), String(id));
    }
    assert.deepEqual(idsOf(await (await openStream(program, jobId, "")).rest()), all);
  });

  test("a reader that was cut off and comes back with its last id misses nothing and sees nothing twice", async () => {
    const jobId = await submit(program, waiting("cut", 30));
    const ids: number[] = [];
    for (let round = 0; round < 10; round++) {
      const stream = await openStream(program, jobId, ids.length === 0 ? undefined : String(ids.at(-1)));
      for (let i = 0; i < 3; i++) await send(jobId, { round, i });
      ids.push(...idsOf(await stream.take(4)));
      await stream.close();
    }
    ids.push(...idsOf(await (await openStream(program, jobId, String(ids.at(-1)))).rest()));
    assert.deepEqual(
      ids,
      Array.from({ length: (await history(jobId)).length }, (_, i) => i + 1),
    );
  });

  test('"it ends after the terminal event"; "a reconnect that has it gets 204"', async () => {
    const { jobId, events } = await run(program, graph("ends", [router("r")]));
    const blocks = await (await openStream(program, jobId)).rest();
    assert.equal(blocks.at(-1)?.fields.get("event"), "job_completed");
    const again = await openStream(program, jobId, String(events.length));
    assert.equal(again.status, 204);
    assert.deepEqual(await again.rest(), []);
  });

  test("a reader that has every event of an open job waits for the next one", async () => {
    const jobId = await submit(program, waiting("next"));
    await happens(program, jobId, (event) => event.type === "agent_message_received");
    const stream = await openStream(program, jobId, String((await history(jobId)).length));
    assert.equal(stream.status, 200);
    await send(jobId);
    const blocks = await stream.rest();
    assert.equal(blocks.at(-1)?.fields.get("event"), "job_completed");
    assert.equal(blocks[1]?.fields.get("event"), "agent_message_received");
  });

  test('"a bad Last-Event-ID: 400", also one beyond the last event', async () => {
    const { jobId, events } = await run(program, graph("bad-id", [router("r")]));
    for (const id of ["x", "-1", "1.5", "1e1", "0x1", " 1 2", "9".repeat(300), String(events.length + 1)]) {
      const answer = await fetch(`${program.api}${path(jobId, "/events/stream")}`, {
        headers: { "last-event-id": id },
      });
      assert.equal(answer.status, 400, id);
      const body = (await answer.json()) as JsonObject;
      assert.deepEqual(Object.keys(body), ["error"]);
      assert.match(String(body.error), /Last-Event-ID/);
    }
    assert.equal((await request(program, "GET", "/jobs/none/events/stream")).status, 404);
  });

  test('"any number of subscribers, each sees all"', async () => {
    const jobId = await submit(program, waiting("many", 20));
    const streams = await Promise.all(Array.from({ length: 25 }, () => openStream(program, jobId)));
    const readings = streams.map((stream) => stream.rest());
    for (let i = 0; i < 20; i++) await send(jobId, { i });
    const [first, ...others] = (await Promise.all(readings)).map((blocks: Block[]) =>
      blocks.map(({ text }) => text),
    );
    assert.equal(first?.length, (await history(jobId)).length + 1);
    for (const other of others) assert.deepEqual(other, first);
  });

  test('"a slow reader never slows a run": it is fed from the store once it reads again, without a gap', async () => {
    // Ten megabytes of events: more than the sockets between the two will hold.
    const lines = `i=0; while [ $i -lt 2600 ]; do i=$((i+1)); printf '%04000d\\n' $i; done`;
    const jobId = await submit(program, graph("loud", [sensor("s"), executor("e", lines)], [["s", "e"]]));
    const slow = await openStream(program, jobId);
    await slow.take(2);
    await send(jobId);
    const { status, of, events } = await ended(program, jobId);
    assert.equal(status, "completed");
    assert.equal(of("log").length, 2_600);
    assert.deepEqual(
      idsOf(await slow.rest()),
      events.slice(1).map((event) => event.id),
    );
  });
});
