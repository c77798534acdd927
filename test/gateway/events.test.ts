// The live streams of a run, and its history. How streams behave under fire is tested elsewhere; here it is the
// contract. Sentences in quotes are the specification's own, shortened.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import type { JsonObject } from "../../src/engine/json.ts";
import { type Gates, makeGates } from "../support/gates.ts";
import {
  ask,
  assertProblem,
  call,
  createJob,
  type EndedRun,
  ended,
  type Frame,
  frames,
  happens,
  pathsOf,
  startRun,
  walk,
} from "../support/gateway-api.ts";
import { executor, graph, router, sensor } from "../support/graphs.ts";
import { startGatewayHere } from "../support/in-process.ts";
import type { Program } from "../support/program.ts";

const REPORT = [
  { type: "log", payload: { level: "warn", message: "look here" } },
  {
    type: "human_input_requested",
    payload: { request_id: "go", prompt: "Go on?", allowed_decisions: ["yes", "no"] },
  },
  { type: "my.own", payload: { n: 1 } },
];

let program: Program;
let gates: Gates;
let jobId = "";
let runId = "";
let history: readonly JsonObject[] = [];
before(async () => {
  gates = await makeGates();
  program = await startGatewayHere({ env: { SVC_EXECUTOR_MAX_CONCURRENCY: "4" } });
  const lines = REPORT.map((event) => `'${JSON.stringify(event)}'`).join(" ");
  const answered = 'until [ -s "$SVC_HUMAN_RESPONSES" ]; do sleep 0.05; done';
  const command = `printf '%s\\n' ${lines} > $SVC_EVENT_STREAM; ${answered}; echo printed`;
  const nodes = [router("in"), executor("work", command)];
  jobId = await createJob(program, graph("told", nodes, [["in", "work"]]));
  const { run, events } = await toldRun();
  runId = String(run.run_id);
  history = events as unknown as readonly JsonObject[];
});
after(async () => {
  await program.stop();
  await gates.remove();
});

/** A run of the job, whose question is answered, from its start to its end. */
async function toldRun(): Promise<EndedRun> {
  const id = await startRun(program, jobId);
  await happens(program, id, "human_input_requested");
  await call(program, "POST", `/runs/${id}/human/go/response`, { decision: "yes" });
  return ended(program, id);
}

const stream = `/runs/:run/events/stream`;
const pathOf = (path: string, run = runId) => path.replace(":run", run);
const all = (path: string, lastEventId?: number) =>
  Array.fromAsync(
    frames(program, pathOf(path), lastEventId === undefined ? {} : { "last-event-id": String(lastEventId) }),
  );
const dataOf = (seen: readonly Frame[]) => seen.map(({ data }) => data);

describe("GET /runs/{run_id}/events/stream", () => {
  test('"text/event-stream; id: the event\'s sequence, event: its type, data: one line of JSON; first retry: 1000"', async () => {
    const answer = await fetch(program.api + pathOf(stream));
    assert.equal(answer.status, 200);
    assert.match(answer.headers.get("content-type") ?? "", /^text\/event-stream/);
    assert.match(answer.headers.get("cache-control") ?? "", /no-(?:cache|store)/);
    assert.match(answer.headers.get("x-request-id") ?? "", /./);
    const [first, ...blocks] = (await answer.text()).split("\n\n");
    assert.equal(first, "retry: 1000");
    assert.equal(blocks.pop(), "", "it ends with a whole event");
    for (const [i, block] of blocks.entries()) {
      const event = history[i] ?? {};
      assert.equal(block, `id: ${i + 1}\nevent: ${event.type}\ndata: ${JSON.stringify(event)}`);
    }
    assert.equal(blocks.length, history.length);
  });

  test('"Each event has an ID": its place in the history, and events carry public ids', async () => {
    for (const [i, event] of history.entries()) {
      assert.deepEqual(Object.keys(event).slice(0, 6), [
        "id",
        "run_id",
        "timestamp",
        "type",
        "agent_id",
        "payload",
      ]);
      assert.deepEqual([event.id, event.run_id], [i + 1, runId]);
    }
    const types = history.map(({ type }) => type);
    for (const type of ["job_pending", "job_running", "agent_started", "sandbox_job_started", "my.own"]) {
      assert.ok(types.includes(type), type);
    }
  });

  test('"reconnects with the Last-Event-ID header": "the stream starts right after that one"', async () => {
    for (const last of [0, 1, 5, history.length - 1]) {
      assert.deepEqual(dataOf(await all(stream, last)), history.slice(last));
    }
  });

  test('"The stream closes after terminal events", and the last one tells how the run ended', async () => {
    const seen = await all(stream);
    assert.equal(seen.at(-1)?.event, "job_completed");
    const broken = await createJob(program, graph("broken", [executor("in", "exit 1")]));
    const { events } = await ended(program, await startRun(program, broken));
    assert.equal(events.at(-1)?.type, "job_failed");
    assert.equal(events.at(-1)?.error?.schema_version, "svc.error.v1");
  });

  test('"A reconnect that already has the terminal event gets 204"', async () => {
    for (const path of [stream, "/runs/:run/stream"]) {
      const headers = { "last-event-id": String(history.length) };
      const answer = await ask(program, "GET", pathOf(path), { headers });
      assert.deepEqual([answer.status, answer.text], [204, ""]);
    }
  });

  test('"A bad Last-Event-ID: 400", "beyond the last event: 400"', async () => {
    for (const bad of [String(history.length + 1), "-1", "x", "1.5", "1e3", "99999999999999999999"]) {
      const headers = { "last-event-id": bad };
      const answer = await ask(program, "GET", pathOf(stream), { headers });
      assertProblem(answer, 400, "invalid_parameter");
      assert.deepEqual(pathsOf(answer), ["last-event-id"], bad);
    }
  });

  test('"Any number of subscribers, each sees all", while the run goes on, from whatever place', async () => {
    const gate = gates.pipe("watched");
    const watched = await createJob(program, graph("watched", [executor("in", ["cat", gate])]));
    const run = await startRun(program, watched);
    const { id } = await happens(program, run, "sandbox_job_started");
    const follow = (after: number) => {
      const { promise: isLive, resolve } = Promise.withResolvers<void>();
      const read = async () => {
        const seen: Frame[] = [];
        for await (const frame of frames(program, pathOf(stream, run), { "last-event-id": String(after) })) {
          seen.push(frame);
          if (frame.id === id) resolve();
        }
        return seen;
      };
      return { after, isLive, seen: read() };
    };
    const places = [...Array.from({ length: 20 }, () => 0), ...Array.from({ length: 5 }, () => id - 1)];
    const readers = places.map(follow);
    // All have what there is so far, and wait for the rest; these others have it already.
    await Promise.all(readers.map(({ isLive, seen }) => Promise.race([isLive, seen])));
    readers.push(...Array.from({ length: 5 }, () => follow(id)));
    await gates.open(gate);
    await ended(program, run);
    const whole = await walk(program, `/runs/${run}/events`);
    for (const { after, seen } of readers) assert.deepEqual(dataOf(await seen), whole.slice(after));
  });

  test("a run that is not there: 404 run_not_found, on every route below it", async () => {
    const below = [
      "",
      "/events",
      "/events/stream",
      "/stream",
      "/result",
      "/logs",
      "/timeline",
      "/artifacts",
      "/outputs",
      "/human",
      "/human/go",
      "/dead-letters",
      "/dead-letters/dl_1",
    ];
    for (const path of below) {
      assertProblem(await ask(program, "GET", `/runs/run_none${path}`), 404, "run_not_found");
    }
    assertProblem(await ask(program, "GET", "/runs/run_none/artifacts/art_none"), 404, "run_not_found");
  });
});

describe("GET /runs/{run_id}/stream", () => {
  const merged = (channels?: string) =>
    all(channels === undefined ? "/runs/:run/stream" : `/runs/:run/stream?channels=${channels}`);
  const viewsOf = ({ data }: Frame) => data.channels as JsonObject;

  test('"?channels=events,logs,timeline,human; all are views of one journal and share its ids"', async () => {
    const seen = await merged();
    assert.deepEqual(
      seen.map(({ id }) => id),
      history.map(({ id }) => id),
    );
    for (const frame of seen) {
      const event = history[frame.id - 1] ?? {};
      assert.deepEqual([frame.event, frame.data.id, frame.data.run_id], [event.type, frame.id, runId]);
      assert.deepEqual(viewsOf(frame).events, event);
    }
    const logs = seen.flatMap((frame) => viewsOf(frame).logs ?? []);
    assert.deepEqual(logs, await walk(program, `/runs/${runId}/logs`));
    const timeline = seen.flatMap((frame) => viewsOf(frame).timeline ?? []);
    assert.deepEqual(timeline, await walk(program, `/runs/${runId}/timeline`));
    const [human, answer, ...more] = seen.flatMap((frame): readonly JsonObject[] => {
      const view = viewsOf(frame).human as JsonObject | undefined;
      return view === undefined ? [] : [view];
    });
    assert.deepEqual(
      [human?.run_id, human?.agent_id, human?.prompt, human?.allowed_decisions, human?.status],
      [runId, "work", "Go on?", ["yes", "no"], "pending"],
    );
    assert.deepEqual([answer?.request_id, answer?.status, more], ["go", "answered", []]);
  });

  test("a stream of some channels has what they show, and always the terminal event", async () => {
    const everything = await merged();
    for (const channels of [["logs"], ["human"], ["logs", "human"], ["timeline"], ["events"]]) {
      const seen = await merged(channels.join(","));
      const expected = everything.flatMap(({ id, event, data }) => {
        const views = Object.entries(data.channels as JsonObject).filter(([name]) => channels.includes(name));
        if (views.length === 0 && event !== "job_completed") return [];
        return [{ id, event, data: { ...data, channels: Object.fromEntries(views) } }];
      });
      assert.deepEqual(seen, expected, channels.join());
    }
  });

  test("it goes on right behind the Last-Event-ID, though the reader's channels did not show that event", async () => {
    const logs = await merged("logs");
    const first = logs[0]?.id ?? 0;
    const path = pathOf("/runs/:run/stream?channels=logs");
    const rest = await Array.fromAsync(frames(program, path, { "last-event-id": String(first - 1) }));
    assert.deepEqual(rest, logs);
  });

  test("an unknown channel: 400 invalid_parameter", async () => {
    for (const channels of ["none", "events,none", "", "Events"]) {
      const answer = await ask(program, "GET", pathOf(`/runs/:run/stream?channels=${channels}`));
      assertProblem(answer, 400, "invalid_parameter");
      assert.deepEqual(pathsOf(answer), ["channels"]);
    }
  });
});

describe("event history", () => {
  test('"State can also be recovered with ordinary GETs of the run and with event history"', async () => {
    assert.deepEqual(await walk(program, `/runs/${runId}/events`, 7), history);
    assert.equal((await call(program, "GET", `/runs/${runId}`)).status, "completed");
  });

  test("its filters: of some types, of one agent", async () => {
    const of = (query: string) => walk(program, `/runs/${runId}/events?${query}`, 3);
    const pick = (test: (event: JsonObject) => boolean) => history.filter(test);
    assert.deepEqual(
      await of("agent_id=work"),
      pick(({ agent_id }) => agent_id === "work"),
    );
    assert.deepEqual(
      await of("type=my.own,job_running"),
      pick(({ type }) => type === "my.own" || type === "job_running"),
    );
    const both = pick(({ type, agent_id }) => type === "agent_started" && agent_id === "in");
    assert.deepEqual(await of("type=agent_started&agent_id=in"), both);
    assert.deepEqual(await of("type=nothing"), []);
  });

  test("GET /jobs/{job_id}/events is that of the latest run, or of the one that run_id names", async () => {
    assert.deepEqual(await walk(program, `/jobs/${jobId}/events`, 7), history);
    const { run } = await toldRun();
    const latest = await walk(program, `/jobs/${jobId}/events`);
    assert.equal(latest[0]?.run_id, run.run_id);
    assert.deepEqual(await walk(program, `/jobs/${jobId}/events?run_id=${runId}`), history);
    const none = await createJob(program, graph("none", [sensor("wait")]));
    assert.deepEqual(await walk(program, `/jobs/${none}/events`), []);
    const foreign = await ask(program, "GET", `/jobs/${none}/events?run_id=${runId}`);
    assertProblem(foreign, 404, "run_not_found");
  });
});
