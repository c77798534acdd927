// A run's history over a real socket: pages and live streams, whatever the run is doing meanwhile.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { problemIn } from "../../../test/support/api.ts";
import { startGateway, succeeded, type TestGateway } from "../../../test/support/gateway.ts";
import { aggregator, executor, graph, router } from "../../../test/support/graphs.ts";

interface Event {
  readonly id: number;
  readonly run_id: string;
  readonly type: string;
  readonly timestamp: string;
  readonly agent_id: string | null;
  readonly payload: unknown;
}

interface Page<Item> {
  readonly items: readonly Item[];
  readonly next_page_token: string | null;
}

interface Frame {
  readonly id: number;
  readonly event: string;
  readonly data: { readonly id: number; readonly channels?: Readonly<Record<string, object>> };
}

const manifest = graph(
  "g",
  [router("in"), executor("work", ["true"]), aggregator("out")],
  [
    ["in", "work"],
    ["work", "out"],
  ],
);

/** A run that has begun its one command. */
async function runningRun(gateway: TestGateway) {
  const run = await gateway.createRun(await gateway.createJob(manifest));
  await gateway.launch(run);
  const { ref } = await gateway.started("work");
  return { run, ref };
}

async function endedRun(gateway: TestGateway) {
  const { run, ref } = await runningRun(gateway);
  gateway.engine.taskEvents(ref, [
    { type: "log", payload: { level: "info", stream: "stdout", message: "hello" } },
  ]);
  gateway.engine.taskEnded(ref, succeeded());
  return await gateway.ended(run.runId);
}

async function walk<Item>(gateway: TestGateway, path: string): Promise<Item[]> {
  const items: Item[] = [];
  const more = path.includes("?") ? "&" : "?";
  for (let token: string | null = ""; token !== null; ) {
    const next: string = token === "" ? path : `${path}${more}page_token=${encodeURIComponent(token)}`;
    const page: Page<Item> = await gateway.json<Page<Item>>(next);
    items.push(...page.items);
    token = page.next_page_token;
  }
  return items;
}

function framesIn(text: string): Frame[] {
  return [...text.matchAll(/^id: (\d+)\nevent: (.+)\ndata: (.+)\n$/gm)].map(
    ([, id, event = "", data = "{}"]) => ({
      id: Number(id),
      event,
      data: JSON.parse(data),
    }),
  );
}

describe("GET /runs/{run_id}/events", () => {
  test("is the whole history in pages, oldest first, under public ids", async () => {
    await using gateway = await startGateway();
    const run = await endedRun(gateway);
    const events = await walk<Event>(gateway, `/runs/${run.runId}/events?page_size=3`);
    assert.deepEqual(
      events.map((event) => event.id),
      Array.from({ length: run.progress.eventCount }, (_, i) => i + 1),
    );
    assert.equal(events[0]?.type, "job_pending");
    assert.equal(events.at(-1)?.type, "job_completed");
    for (const event of events) {
      assert.deepEqual(Object.keys(event), ["id", "run_id", "timestamp", "type", "agent_id", "payload"]);
      assert.equal(event.run_id, run.runId);
    }
    assert.doesNotMatch(JSON.stringify(events), /secret-/);
  });

  test("shows some types and one agent only, when asked", async () => {
    await using gateway = await startGateway();
    const run = await endedRun(gateway);
    const path = `/runs/${run.runId}/events`;
    const typesOf = async (query: string) =>
      (await walk<Event>(gateway, `${path}?page_size=1&${query}`)).map((event) => event.type);
    assert.deepEqual(await typesOf("type=log,job_completed"), ["log", "job_completed"]);
    assert.deepEqual(await typesOf("agent_id=in"), [
      "agent_started",
      "agent_message_received",
      "agent_completed",
    ]);
    assert.deepEqual(await typesOf("agent_id=in&type=agent_started"), ["agent_started"]);
    assert.deepEqual(await typesOf("agent_id=i"), []);
  });

  test("refuses tokens of other runs and filters, unknown parameters and unknown runs", async () => {
    await using gateway = await startGateway();
    const [one, other] = [
      await endedRun(gateway),
      await gateway.createRun(await gateway.createJob(manifest)),
    ];
    const path = `/runs/${one.runId}/events`;
    const { next_page_token: token } = await gateway.json<Page<Event>>(`${path}?page_size=2`);
    assert.ok(token !== null);
    const given = `page_token=${encodeURIComponent(token)}`;
    for (const wrong of [`/runs/${other.runId}/events?${given}`, `${path}?type=log&${given}`]) {
      await problemIn(await gateway.get(wrong), 400, "invalid_page_token");
    }
    for (const size of ["0", "201", "-1", "1.5", "", "ten", "1e2", "1&page_size=2"]) {
      const answer = await gateway.get(`${path}?page_size=${size}`);
      const problem = await problemIn(answer, 400, "invalid_parameter");
      assert.deepEqual(
        problem.errors?.map((error) => error.path),
        ["page_size"],
      );
    }
    await problemIn(await gateway.get(`${path}?typ=log`), 400, "invalid_parameter");
    await problemIn(await gateway.get("/runs/run_none/events"), 404, "run_not_found");
  });

  test("of a run that waits is empty, and of one that ended before its launch is its end", async () => {
    await using gateway = await startGateway();
    const { runId } = await gateway.createRun(await gateway.createJob(manifest));
    assert.deepEqual(await gateway.json(`/runs/${runId}/events`), { items: [], next_page_token: null });
    await gateway.ends.cancelled(runId);
    const [event, ...more] = await walk<Event>(gateway, `/runs/${runId}/events`);
    assert.deepEqual(more, []);
    assert.equal(event?.type, "job_cancelled");
    assert.equal(event.id, 1);
  });
});

describe("GET /runs/{run_id}/events/stream", () => {
  test("sends every event of a run that is yet to be launched, and ends with the run", async () => {
    await using gateway = await startGateway();
    const run = await gateway.createRun(await gateway.createJob(manifest));
    const answer = await gateway.get(`/runs/${run.runId}/events/stream`);
    assert.equal(answer.headers.get("content-type"), "text/event-stream; charset=utf-8");
    assert.ok(answer.headers.get("x-request-id"));
    await gateway.launch(run);
    gateway.engine.taskEnded((await gateway.started("work")).ref, succeeded());
    const text = await answer.text();
    assert.ok(text.startsWith("retry: 1000\n\n"));
    const frames = framesIn(text);
    const events = await walk<Event>(gateway, `/runs/${run.runId}/events`);
    assert.deepEqual(
      frames.map(({ id, event, data }) => ({ id, event, data })),
      events.map((event) => ({ id: event.id, event: event.type, data: event })),
    );
  });

  test("goes on right behind Last-Event-ID, and tells who has everything not to come back", async () => {
    await using gateway = await startGateway();
    const { runId, progress } = await endedRun(gateway);
    const path = `/runs/${runId}/events/stream`;
    for (const lastId of [1, 7, progress.eventCount - 1]) {
      const answer = await gateway.get(path, { "last-event-id": String(lastId) });
      const ids = framesIn(await answer.text()).map((frame) => frame.id);
      assert.deepEqual(
        ids,
        Array.from({ length: progress.eventCount - lastId }, (_, i) => lastId + 1 + i),
      );
    }
    assert.equal((await gateway.get(path, { "last-event-id": String(progress.eventCount) })).status, 204);
  });

  test("refuses a Last-Event-ID that is no number or beyond the last event", async () => {
    await using gateway = await startGateway();
    const { runId, progress } = await endedRun(gateway);
    for (const wrong of ["x", "-1", "1.5", "1e2", String(progress.eventCount + 1), "9".repeat(40)]) {
      const answer = await gateway.get(`/runs/${runId}/events/stream`, { "last-event-id": wrong });
      const problem = await problemIn(answer, 400, "invalid_parameter");
      assert.equal(problem.errors?.[0]?.path, "last-event-id");
    }
    await problemIn(await gateway.get("/runs/run_none/events/stream"), 404, "run_not_found");
  });

  test("ends for a run that ends before its launch, for early readers and for late ones", async () => {
    await using gateway = await startGateway();
    const { runId } = await gateway.createRun(await gateway.createJob(manifest));
    const path = `/runs/${runId}/events/stream`;
    const early = await gateway.get(path);
    await gateway.ends.cancelled(runId);
    const late = await gateway.get(path);
    for (const answer of [early, late]) {
      const frames = framesIn(await answer.text());
      assert.deepEqual(
        frames.map(({ id, event }) => [id, event]),
        [[1, "job_cancelled"]],
      );
    }
    assert.equal((await gateway.get(path, { "last-event-id": "1" })).status, 204);
  });

  test("answers HEAD without staying open", async () => {
    await using gateway = await startGateway();
    const { run } = await runningRun(gateway);
    const answer = await fetch(`${gateway.url}/runs/${run.runId}/events/stream`, { method: "HEAD" });
    assert.equal(answer.status, 200);
    assert.equal(answer.headers.get("content-type"), "text/event-stream; charset=utf-8");
  });
});

describe("GET /runs/{run_id}/stream", () => {
  test("sends one frame per event with all its views, under the event's own id", async () => {
    await using gateway = await startGateway();
    const { runId, progress } = await endedRun(gateway);
    const frames = framesIn(await (await gateway.get(`/runs/${runId}/stream`)).text());
    assert.equal(frames.length, progress.eventCount);
    assert.ok(frames.every((frame) => frame.data.id === frame.id));
    const channelsOf = (event: string) =>
      Object.keys(frames.find((frame) => frame.event === event)?.data.channels ?? {});
    assert.deepEqual(channelsOf("log"), ["events", "logs"]);
    assert.deepEqual(channelsOf("agent_started"), ["events", "timeline"]);
    assert.deepEqual(channelsOf("agent_message_received"), ["events"]);
  });

  test("leaves out events that no asked channel shows, but never the terminal one", async () => {
    await using gateway = await startGateway();
    const { runId, progress } = await endedRun(gateway);
    const frames = framesIn(await (await gateway.get(`/runs/${runId}/stream?channels=logs`)).text());
    assert.deepEqual(
      frames.map(({ event, data }) => [event, Object.keys(data.channels ?? {})]),
      [
        ["log", ["logs"]],
        ["job_completed", []],
      ],
    );
    const last = await gateway.get(`/runs/${runId}/stream?channels=logs`, {
      "last-event-id": String(progress.eventCount - 1),
    });
    assert.deepEqual(
      framesIn(await last.text()).map((frame) => frame.event),
      ["job_completed"],
    );
  });

  test("what it sends in a view is what the view's own pages show", async () => {
    await using gateway = await startGateway();
    const { runId } = await endedRun(gateway);
    const frames = framesIn(await (await gateway.get(`/runs/${runId}/stream?channels=timeline,logs`)).text());
    for (const channel of ["logs", "timeline"]) {
      const streamed = frames.flatMap(({ data }) => data.channels?.[channel] ?? []);
      assert.deepEqual(streamed, await walk(gateway, `/runs/${runId}/${channel}?page_size=2`));
      assert.ok(streamed.length > 0);
    }
  });

  test("readers of different views of one run at once each get their own", async () => {
    await using gateway = await startGateway();
    const { run, ref } = await runningRun(gateway);
    const queries = ["/events/stream", "/stream?channels=logs", "/stream?channels=timeline"];
    const answers = await Promise.all(queries.map((query) => gateway.get(`/runs/${run.runId}${query}`)));
    gateway.engine.taskEvents(ref, [{ type: "log", payload: { message: "hello" } }]);
    gateway.engine.taskEnded(ref, succeeded());
    const [events, logs, timeline] = await Promise.all(
      answers.map(async (answer) => framesIn(await answer.text()).map((frame) => frame.event)),
    );
    assert.deepEqual(logs, ["log", "job_completed"]);
    assert.ok(events?.includes("log") && events.includes("agent_message_received"));
    assert.ok(timeline?.includes("agent_started") && !timeline.includes("log"));
  });

  test("one channel alone is not the plain stream of that name, though both are read at once", async () => {
    await using gateway = await startGateway();
    const { run, ref } = await runningRun(gateway);
    const queries = ["/events/stream", "/stream?channels=events"];
    const answers = await Promise.all(queries.map((query) => gateway.get(`/runs/${run.runId}${query}`)));
    gateway.engine.taskEnded(ref, succeeded());
    const [plain, merged] = await Promise.all(answers.map(async (answer) => framesIn(await answer.text())));
    assert.ok(plain && plain.length > 0 && plain.every(({ data }) => data.channels === undefined));
    assert.deepEqual(
      merged?.map(({ data }) => data.channels?.events),
      plain.map(({ data }) => data),
    );
  });

  test("refuses channels that do not exist", async () => {
    await using gateway = await startGateway();
    const { runId } = await endedRun(gateway);
    for (const channels of ["metrics", "events,", "", "events%20logs"]) {
      const answer = await gateway.get(`/runs/${runId}/stream?channels=${channels}`);
      await problemIn(answer, 400, "invalid_parameter");
    }
  });
});
