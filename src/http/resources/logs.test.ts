// A run's logs over a real socket: filtered, forwards and backwards, by time, and live.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { problemIn } from "../../../test/support/api.ts";
import { failed, startGateway, succeeded, type TestGateway } from "../../../test/support/gateway.ts";
import { aggregator, executor, graph, router } from "../../../test/support/graphs.ts";
import { until } from "../../../test/support/until.ts";

interface Log {
  readonly id: number;
  readonly ts: string;
  readonly level: string;
  readonly message: string;
}

interface LogPage {
  readonly items: readonly Log[];
  readonly next_page_token: string | null;
  readonly last_event_id: number;
}

const manifest = graph(
  "g",
  [router("in"), executor("work", ["true"]), aggregator("out")],
  [
    ["in", "work"],
    ["work", "out"],
  ],
);

async function runningRun(gateway: TestGateway) {
  const run = await gateway.createRun(await gateway.createJob(manifest));
  await gateway.launch(run);
  const { ref } = await gateway.started("work");
  const log = (level: string, stream: string, message: string) =>
    gateway.engine.taskEvents(ref, [{ type: "log", payload: { level, stream, message, attempt: 1 } }]);
  return { ...run, ref, log, path: `/runs/${run.runId}/logs` };
}

/** All pages of a list, and what the last one said. */
async function walk(gateway: TestGateway, path: string, query = "") {
  const messages: string[] = [];
  const lastIds: number[] = [];
  for (let token: string | null = ""; token !== null; ) {
    const given: string = token === "" ? "" : `&page_token=${encodeURIComponent(token)}`;
    const page: LogPage = await gateway.json<LogPage>(`${path}?page_size=2&${query}${given}`);
    messages.push(...page.items.map((record) => record.message));
    lastIds.push(page.last_event_id);
    token = page.next_page_token;
  }
  return { messages, lastIds };
}

const messagesOf = async (gateway: TestGateway, path: string, query = "") =>
  (await walk(gateway, path, query)).messages;

/** What a stream sends: the messages of its records, and every id. */
function framesIn(text: string) {
  const ids = [...text.matchAll(/^id: (\d+)$/gm)].map(([, id]) => Number(id));
  const records = [...text.matchAll(/^event: \w+\ndata: (.+)$/gm)].map(
    ([, data]) => JSON.parse(data!) as Log,
  );
  return { ids, messages: records.map((record) => record.message) };
}

const FAILURE = [
  'An attempt of "work" failed: it failed',
  'Agent "work" failed: it failed',
  'A message for "work" became a dead letter: processing_failed',
  "The run failed: it failed",
];

async function failedRun(gateway: TestGateway) {
  const run = await runningRun(gateway);
  run.log("debug", "worker", "Anton");
  run.log("info", "stdout", "berta says ANTON");
  run.log("warn", "stderr", "caesar");
  gateway.engine.taskEnded(run.ref, failed);
  const { progress } = await gateway.ended(run.runId);
  return { ...run, eventCount: progress.eventCount };
}

describe("GET /runs/{run_id}/logs", () => {
  test("are filtered by least level, agent, stream and text", async () => {
    await using gateway = await startGateway();
    const { path } = await failedRun(gateway);
    const shown = (query: string) => messagesOf(gateway, path, query);
    assert.deepEqual(await shown(""), ["Anton", "berta says ANTON", "caesar", ...FAILURE]);
    assert.deepEqual(await shown("level=info"), ["berta says ANTON", "caesar", ...FAILURE]);
    assert.deepEqual(await shown("level=error"), [FAILURE[1], FAILURE[3]]);
    assert.deepEqual(await shown("stream=stdout"), ["berta says ANTON"]);
    assert.deepEqual(await shown("agent_id=work&level=warn&stream=runtime"), FAILURE.slice(0, 3));
    assert.deepEqual(await shown("agent_id=out"), []);
    assert.deepEqual(await shown("text=anton"), ["Anton", "berta says ANTON"]);
    assert.deepEqual(await shown("text=DEAD%20letter&level=warn"), [FAILURE[2]]);
    assert.deepEqual(await shown("text=%22level"), []);
  });

  test("newest first, pages go on to older records, and all of them name the same last event", async () => {
    await using gateway = await startGateway();
    const { path, eventCount } = await failedRun(gateway);
    const { messages, lastIds } = await walk(gateway, path, "order=desc");
    assert.deepEqual(messages, ["Anton", "berta says ANTON", "caesar", ...FAILURE].reverse());
    assert.deepEqual(new Set(lastIds), new Set([eventCount]));
    assert.deepEqual(await messagesOf(gateway, path, "order=desc&level=error"), [FAILURE[3], FAILURE[1]]);
  });

  test("since takes records of that time or later, until those before it, in both orders", async () => {
    await using gateway = await startGateway();
    const run = await runningRun(gateway);
    const { path } = run;
    const times: string[] = [];
    for (const message of ["one", "two", "three"]) {
      run.log("info", "stdout", message);
      const found = await until(`the record of ${message}`, async () => {
        const { items } = await gateway.json<LogPage>(`${path}?text=${message}`);
        return items[0] ?? null;
      });
      times.push(found.ts);
      // The next one gets a later time.
      await until("the next millisecond", () => (Date.now() > Date.parse(found.ts) ? true : null));
    }
    const [, second = "", third = ""] = times;
    for (const order of ["asc", "desc"]) {
      const shown = async (query: string) =>
        (await messagesOf(gateway, path, `order=${order}&${query}`)).toSorted();
      assert.deepEqual(await shown(`since=${second}`), ["three", "two"]);
      assert.deepEqual(await shown(`until=${second}`), ["one"]);
      assert.deepEqual(await shown(`since=${second}&until=${third}`), ["two"]);
      assert.deepEqual(await shown("since=2999-01-01T00:00:00Z"), []);
      assert.deepEqual(await shown("until=2999-01-01T00:00:00%2B02:00"), ["one", "three", "two"]);
    }
  });

  test("the ids of records are those of their events, and cut the log in two, in both orders", async () => {
    await using gateway = await startGateway();
    const { path, runId, eventCount } = await failedRun(gateway);
    const { items } = await gateway.json<LogPage>(`${path}?text=caesar`);
    const id = items[0]?.id ?? 0;
    const { items: events } = await gateway.json<{ items: { id: number; payload: { message: string } }[] }>(
      `/runs/${runId}/events?type=log`,
    );
    assert.equal(events.find((event) => event.id === id)?.payload.message, "caesar");
    const before = ["Anton", "berta says ANTON"];
    for (const order of ["asc", "desc"]) {
      const shown = async (query: string) =>
        (await messagesOf(gateway, path, `order=${order}&${query}`)).toSorted();
      assert.deepEqual(await shown(`until_id=${id}`), before);
      assert.deepEqual(await shown(`since_id=${id}`), ["caesar", ...FAILURE].toSorted());
      assert.deepEqual(await shown(`since_id=${id}&until_id=${id + 1}`), ["caesar"]);
      assert.deepEqual(await shown(`since_id=${id}&text=anton`), []);
      assert.deepEqual(await shown(`since_id=${eventCount + 1}`), []);
    }
  });

  test("refuses what is no level, time, order or text, and a token of the other order", async () => {
    await using gateway = await startGateway();
    const { path } = await failedRun(gateway);
    for (const query of [
      "level=loud",
      "since=yesterday",
      "until=2026-11-21",
      "order=newest",
      "text=",
      `text=${"x".repeat(201)}`,
      "tail=3",
      "since_id=0",
    ]) {
      await problemIn(await gateway.get(`${path}?${query}`), 400, "invalid_parameter");
    }
    const { next_page_token: token } = await gateway.json<LogPage>(`${path}?page_size=2`);
    const given = `page_token=${encodeURIComponent(token ?? "")}`;
    await problemIn(await gateway.get(`${path}?order=desc&${given}`), 400, "invalid_page_token");
    await problemIn(await gateway.get("/runs/run_none/logs"), 404, "run_not_found");
  });

  test("of a run that ended before its launch are its end", async () => {
    await using gateway = await startGateway();
    const { runId } = await gateway.createRun(await gateway.createJob(manifest));
    const path = `/runs/${runId}/logs`;
    assert.deepEqual(await gateway.json(path), { items: [], next_page_token: null, last_event_id: 0 });
    await gateway.ends.cancelled(runId);
    for (const order of ["asc", "desc"]) {
      const page = await gateway.json<LogPage>(`${path}?order=${order}&since=2020-01-01T00:00:00Z`);
      assert.deepEqual(page, { items: [], next_page_token: null, last_event_id: 1 });
    }
  });
});

describe("GET /runs/{run_id}/logs/histogram", () => {
  interface Histogram {
    readonly bucket_ms: number;
    readonly from: string | null;
    readonly buckets: readonly {
      readonly start: string;
      readonly counts: Readonly<Record<string, number>>;
    }[];
    readonly next_page_token: string | null;
    readonly last_event_id: number;
  }

  test("counts by level what the filters let through, and on from an event", async () => {
    await using gateway = await startGateway();
    const { path, eventCount } = await failedRun(gateway);
    const counts = async (query: string) => {
      const answer = await gateway.json<Histogram>(`${path}/histogram?${query}`);
      assert.equal(answer.next_page_token, null);
      assert.equal(answer.last_event_id, eventCount);
      const sums: Record<string, number> = {};
      for (const { start, counts: numbers } of answer.buckets) {
        assert.equal(Date.parse(start) % answer.bucket_ms, 0);
        for (const [level, number] of Object.entries(numbers)) {
          if (number > 0) sums[level] = (sums[level] ?? 0) + number;
        }
      }
      return sums;
    };
    assert.deepEqual(await counts(""), { debug: 1, info: 1, warn: 3, error: 2 });
    assert.deepEqual(await counts("level=warn&buckets=10"), { warn: 3, error: 2 });
    assert.deepEqual(await counts("text=anton"), { debug: 1, info: 1 });
    assert.deepEqual(await counts("stream=stderr"), { warn: 1 });
    const { items } = await gateway.json<LogPage>(`${path}?text=caesar`);
    assert.deepEqual(await counts(`since_id=${(items[0]?.id ?? 0) + 1}`), { warn: 2, error: 2 });
    assert.deepEqual(await counts(`since_id=${eventCount + 1}`), {});
  });

  test("of a run without a history is empty, and it refuses what is no number of buckets", async () => {
    await using gateway = await startGateway();
    const { runId } = await gateway.createRun(await gateway.createJob(manifest));
    const path = `/runs/${runId}/logs/histogram`;
    const { from, buckets, last_event_id } = await gateway.json<Histogram>(path);
    assert.deepEqual([from, buckets, last_event_id], [null, [], 0]);
    for (const query of ["buckets=9", "buckets=201", "order=desc", "since=yesterday"]) {
      await problemIn(await gateway.get(`${path}?${query}`), 400, "invalid_parameter");
    }
    await problemIn(await gateway.get("/runs/run_none/logs/histogram"), 404, "run_not_found");
  });
});

describe("GET /runs/{run_id}/logs/stream", () => {
  test("goes on behind the last event of a page: nothing is missed, nothing sent twice", async () => {
    await using gateway = await startGateway();
    const run = await runningRun(gateway);
    for (const message of ["1", "2", "3"]) run.log("info", "stdout", message);
    const page = await until("three records", async () => {
      const found = await gateway.json<LogPage>(`${run.path}?order=desc&page_size=2`);
      return found.items[0]?.message === "3" ? found : null;
    });
    const answer = await gateway.get(`${run.path}/stream`, { "last-event-id": String(page.last_event_id) });
    assert.equal(answer.headers.get("content-type"), "text/event-stream; charset=utf-8");
    run.log("info", "stdout", "4");
    gateway.engine.taskEnded(run.ref, failed);
    const { ids, messages } = framesIn(await answer.text());
    assert.deepEqual(messages, ["4", ...FAILURE]);
    assert.ok(ids.every((id) => id > page.last_event_id));
  });

  test("leaves out what the filters leave out, and still ends with the id of the terminal event", async () => {
    await using gateway = await startGateway();
    const run = await runningRun(gateway);
    const streams = await Promise.all(
      ["level=warn&stream=stderr", "text=BERTA", "agent_id=out"].map((query) =>
        gateway.get(`${run.path}/stream?${query}`),
      ),
    );
    run.log("info", "stderr", "anton");
    run.log("warn", "stdout", "berta");
    run.log("error", "stderr", "caesar");
    gateway.engine.taskEnded(run.ref, succeeded());
    const { progress } = await gateway.ended(run.runId);
    const seen = await Promise.all(streams.map(async (stream) => framesIn(await stream.text())));
    assert.deepEqual(
      seen.map(({ messages }) => messages),
      [["caesar"], ["berta"], []],
    );
    for (const { ids } of seen) assert.equal(ids.at(-1), progress.eventCount);
    const again = await gateway.get(`${run.path}/stream?agent_id=out`, {
      "last-event-id": String(progress.eventCount),
    });
    assert.equal(again.status, 204);
  });

  test("begins at a time, and is refused for filters that pages are refused for", async () => {
    await using gateway = await startGateway();
    const run = await failedRun(gateway);
    const [first] = (await gateway.json<LogPage>(`${run.path}?text=dead%20letter`)).items;
    const since = await gateway.get(`${run.path}/stream?since=${first?.ts ?? ""}`);
    const { messages } = framesIn(await since.text());
    assert.ok(messages.includes(FAILURE[3]!));
    const future = await gateway.get(`${run.path}/stream?since=2999-01-01T00:00:00Z`);
    assert.deepEqual(framesIn(await future.text()).messages, []);
    for (const query of ["since=now", "order=desc", "page_size=3"]) {
      await problemIn(await gateway.get(`${run.path}/stream?${query}`), 400, "invalid_parameter");
    }
  });
});
