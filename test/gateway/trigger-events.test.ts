// Trigger events over HTTP, and the schedules that react to them. What starts later is due at once, or after a second.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import type { JsonObject, JsonValue } from "../../src/engine/json.ts";
import { type TestCatalog, testCatalog } from "../support/blueprint-catalog.ts";
import { ask, assertProblem, call, createJob, ended, pathsOf, walk } from "../support/gateway-api.ts";
import { graph, router, sensor } from "../support/graphs.ts";
import { startGatewayHere } from "../support/in-process.ts";
import type { Program } from "../support/program.ts";
import { until } from "../support/until.ts";

let catalog: TestCatalog;
let program: Program;
let jobId = "";
/** Its runs do not end by themselves. */
let heldJobId = "";
let types = 0;
before(async () => {
  catalog = await testCatalog();
  program = await startGatewayHere({ env: { SVC_BLUEPRINT_CATALOG: catalog.folder } });
  jobId = await createJob(program, graph("quick", [router("in")]));
  heldJobId = await createJob(program, graph("held", [sensor("wait")]));
});
after(async () => {
  await program.stop();
  await catalog[Symbol.asyncDispose]();
});

/** Of each test its own, so that no other's schedule reacts. */
const newType = () => `test.${++types}`;
const emit = (body: unknown, headers: Record<string, string> = {}) =>
  ask(program, "POST", "/events", { body, headers });
const emitted = async (type: string, payload: JsonValue = null) => {
  const answer = await emit({ type, payload });
  assert.equal(answer.status, 202, answer.text);
  return answer.body;
};
const matchedBy = async (type: string, payload: JsonValue = null) =>
  (await emitted(type, payload)).matched as readonly JsonObject[];
const listen = async (event: JsonObject, body: JsonObject = {}) => {
  const answer = await ask(program, "POST", "/schedules", { body: { job_id: jobId, event, ...body } });
  assert.equal(answer.status, 201, answer.text);
  return String(answer.body.schedule_id);
};
const get = async (id: string) => (await ask(program, "GET", `/schedules/${id}`)).body;
const steer = (id: string, action: string) => ask(program, "POST", `/schedules/${id}/${action}`);
const patch = (id: string, body: unknown) =>
  ask(program, "PATCH", `/schedules/${id}`, { body, headers: { "if-match": "*" } });
const cancelRuns = () => call(program, "POST", `/jobs/${heldJobId}/cancel`);
/** Of the newest event of a type, once they are as wanted. */
const matchesAre = (type: string, what: string, wanted: (matched: readonly JsonObject[]) => boolean) =>
  until(`the events ${type} ${what}`, async () => {
    const { items } = await call(program, "GET", `/events?type=${type}`);
    const matched = (items as readonly JsonObject[]).flatMap(
      (event) => event.matched as readonly JsonObject[],
    );
    return wanted(matched) && matched;
  });
const runOf = async (runId: unknown) => (await ended(program, String(runId))).run;

describe("POST /events", () => {
  test("answers 202 with the event, and with nothing matched when nobody listens", async () => {
    const type = newType();
    const answer = await emit({
      type,
      payload: { a: [1, null] },
      source: "warehouse",
      event_id: `${type}-1`,
    });
    const { received_at: at, ...rest } = answer.body;
    assert.equal(answer.status, 202, answer.text);
    assert.ok(Date.parse(String(at)) > 0);
    assert.deepEqual(rest, {
      event_id: `${type}-1`,
      type,
      source: "warehouse",
      payload: { a: [1, null] },
      matched: [],
    });
    const small = await emitted(newType());
    assert.match(String(small.event_id), /^event_/);
    assert.deepEqual([small.source, small.payload], [null, null]);
  });

  test("starts a run of each schedule that reacts, with the event in its inputs", async () => {
    const type = newType();
    const inputs = {
      file: { $event: "/payload/path" },
      event: { $event: "" },
      at: { $schedule: "due_at" },
      fixed: 1,
    };
    const ids = [
      await listen({ type }, { inputs }),
      await listen({ type, filters: [{ path: "/payload/size", op: "gt", value: 5 }] }),
    ];
    await listen({ type, filters: [{ path: "/payload/size", op: "gt", value: 500 }] });
    const event = await emitted(type, { path: "/in/a.pdf", size: 7 });
    const matched = event.matched as readonly JsonObject[];
    assert.deepEqual(
      matched.map(({ schedule_id }) => schedule_id),
      ids,
    );
    const run = await runOf(matched[0]?.run_id);
    const { at, ...given } = run.inputs as JsonObject;
    const { matched: _matched, ...whole } = event;
    assert.deepEqual(given, { file: "/in/a.pdf", event: whole, fixed: 1 });
    assert.ok(Date.parse(String(at)) >= Date.parse(String(event.received_at)));
    assert.deepEqual(
      [run.status, run.job_id, run.trigger],
      ["completed", jobId, { kind: "event", id: ids[0] }],
    );
    assert.equal((await runOf(matched[1]?.run_id)).status, "completed");
    const { last_dispatch: last, counts, status } = await get(ids[0] ?? "");
    const { run_id: runId, outcome, due_at: due } = last as JsonObject;
    assert.deepEqual(
      [runId, outcome, due, status],
      [matched[0]?.run_id, "dispatched", event.received_at, "active"],
    );
    assert.deepEqual(counts, { dispatched: 1, skipped: 0, missed: 0, failed: 0 });
  });

  test("the same event_id again has no effect and gets the first answer, also at the same moment", async () => {
    const type = newType();
    const id = await listen({ type }, { overlap: "allow" });
    const body = { type, event_id: `${type}!` };
    const together = await Promise.all([emit(body), emit(body), emit(body)]);
    const again = await emit({ ...body, payload: "another" });
    assert.deepEqual(
      [...together, again].map(({ status }) => status),
      [202, 202, 202, 202],
    );
    assert.equal(new Set([...together, again].map(({ text }) => text)).size, 1);
    assert.equal((await walk(program, `/events?type=${type}`)).length, 1);
    assert.equal(((await get(id)).counts as JsonObject).dispatched, 1);
  });

  test("an Idempotency-Key makes one event", async () => {
    const type = newType();
    const headers = { "idempotency-key": type };
    const [first, second] = [await emit({ type }, headers), await emit({ type }, headers)];
    assert.equal(first.text, second.text);
    assert.equal(second.headers.get("idempotency-replayed"), "true");
    assert.equal((await walk(program, `/events?type=${type}`)).length, 1);
  });

  const mistakes: readonly (readonly [string, JsonValue, readonly string[]])[] = [
    ["no type", {}, ["/type"]],
    ["an empty type", { type: "" }, ["/type"]],
    ["a type in upper case", { type: "File" }, ["/type"]],
    ["a type with a space", { type: "a b" }, ["/type"]],
    ["a type of 201 characters", { type: "a".repeat(201) }, ["/type"]],
    ["an empty source", { type: "a", source: "" }, ["/source"]],
    ["an event_id with a space", { type: "a", event_id: "a b" }, ["/event_id"]],
    ["an unknown field", { type: "a", when: 1 }, ["/when"]],
  ];
  for (const [what, body, paths] of mistakes) {
    test(`refuses ${what} at its place`, async () => {
      const answer = await emit(body);
      assertProblem(answer, 422, "validation_failed");
      assert.deepEqual(pathsOf(answer), paths);
    });
  }

  test("takes a payload of 256 KiB, and answers 413 to a larger one", async () => {
    const type = newType();
    const bytes = 256 * 1024 - 2;
    assert.equal((await emit({ type, payload: "x".repeat(bytes) })).status, 202);
    for (const payload of ["x".repeat(bytes + 1), "ä".repeat(bytes / 2 + 1)])
      assertProblem(await emit({ type, payload }), 413, "payload_too_large");
    assert.equal((await walk(program, `/events?type=${type}`)).length, 1);
  });

  test("a start that is refused is told with its reason, and counts as failed", async () => {
    const gone = await createJob(program, graph("gone", [router("in")]));
    const type = newType();
    const id = await listen({ type }, { job_id: gone });
    const shaped = await listen({ type }, { inputs: { $event: "/payload" } });
    await ask(program, "DELETE", `/jobs/${gone}`, { headers: { "if-match": "*" } });
    const matched = await matchedBy(type, "no object");
    assert.deepEqual(
      matched.map(({ schedule_id, skipped }) => [schedule_id, skipped]),
      [
        [id, "refused"],
        [shaped, "refused"],
      ],
    );
    assert.match(String(matched[0]?.reason), /was not found/);
    assert.match(String(matched[1]?.reason), /no object/);
    assert.equal((await get(id)).status, "failed");
    assert.deepEqual((await get(shaped)).counts, { dispatched: 1, skipped: 0, missed: 0, failed: 1 });
    assert.deepEqual(
      (await matchedBy(type, {})).map(({ schedule_id }) => schedule_id),
      [shaped],
      "a failed one listens no more",
    );
  });

  test("starts all of many at once, some of them a moment later", async () => {
    const type = newType();
    const ids = await Promise.all(Array.from({ length: 40 }, () => listen({ type })));
    const matched = await matchedBy(type);
    assert.equal(matched.length, ids.length);
    assert.deepEqual(new Set(matched.map(({ skipped }) => skipped)), new Set([undefined, "queued"]));
    const later = await matchesAre(type, "have all their runs", (all) =>
      all.every(({ run_id }) => run_id !== undefined),
    );
    assert.equal(new Set(later.map(({ run_id }) => run_id)).size, ids.length);
    const [last] = later.filter(({ skipped }) => skipped === "queued");
    assert.equal((await runOf(last?.run_id)).status, "completed");
  });
});

describe("a schedule that reacts to events", () => {
  test("shows its rule, in English too, and no times", async () => {
    const type = newType();
    const filters = [{ path: "/payload/ok", op: "exists" }];
    const body = await get(await listen({ type, filters }, { name: "Mine" }));
    assert.deepEqual(
      [body.kind, body.cron, body.delayed, body.next_run_at, body.next_runs],
      ["event", null, null, null, []],
    );
    assert.deepEqual(body.event, {
      type,
      filters: [{ path: "/payload/ok", op: "exists", value: true }],
      debounce_seconds: null,
      throttle_seconds: null,
      batch: null,
    });
    assert.equal(body.description, `When an event ${type} comes and /payload/ok exists: true`);
    assert.deepEqual(
      (await walk(program, "/schedules?kind=event")).map(({ name }) => name).includes("Mine"),
      true,
    );
  });

  const rule = { type: "a" };
  const mistakes: readonly (readonly [string, JsonObject, readonly string[]])[] = [
    ["no type", { event: {} }, ["/event/type"]],
    ["a type that is none", { event: { type: "A" } }, ["/event/type"]],
    [
      "a path that is no pointer",
      { event: { type: "a", filters: [{ path: "payload", op: "eq", value: 1 }] } },
      ["/event/filters/0/path"],
    ],
    [
      "an unknown comparison",
      { event: { type: "a", filters: [{ path: "", op: "like" }] } },
      ["/event/filters/0/op"],
    ],
    [
      "a list that is none",
      { event: { type: "a", filters: [{ path: "", op: "in", value: 1 }] } },
      ["/event/filters/0/value"],
    ],
    [
      "21 filters",
      { event: { type: "a", filters: Array(21).fill({ path: "", op: "exists" }) } },
      ["/event/filters"],
    ],
    ["two paces", { event: { type: "a", debounce_seconds: 1, throttle_seconds: 1 } }, ["/event"]],
    ["a batch of none", { event: { type: "a", batch: { max: 0, seconds: 1 } } }, ["/event/batch/max"]],
    ["a batch without an end", { event: { type: "a", batch: { max: 3 } } }, ["/event/batch/seconds"]],
    ["a template that is no pointer", { event: rule, inputs: { a: { $event: "payload" } } }, ["/inputs/a"]],
    ["an unknown value of the schedule", { event: rule, inputs: { a: { $schedule: "x" } } }, ["/inputs/a"]],
    [
      "an event without one",
      { cron: { expressions: ["@daily"] }, inputs: { a: { $event: "" } } },
      ["/inputs/a"],
    ],
    ["two rules", { event: rule, delayed: { delay_seconds: 1 } }, ["/event"]],
    ["an end that is over", { event: rule, until: "2020-01-01T00:00:00Z" }, [""]],
  ];
  for (const [what, body, paths] of mistakes) {
    test(`is refused with ${what} at its place`, async () => {
      const answer = await ask(program, "POST", "/schedules", { body: { job_id: jobId, ...body } });
      assertProblem(answer, 422, "validation_failed");
      assert.deepEqual(pathsOf(answer), paths);
    });
  }

  test("skips events while it is paused, reacts again when it goes on, and no more when it is gone", async () => {
    const type = newType();
    const id = await listen({ type });
    await steer(id, "pause");
    assert.deepEqual(await matchedBy(type), [
      { schedule_id: id, skipped: "paused", reason: "the schedule is paused" },
    ]);
    await steer(id, "resume");
    assert.ok((await matchedBy(type))[0]?.run_id);
    await ask(program, "DELETE", `/schedules/${id}`, { headers: { "if-match": "*" } });
    assert.deepEqual(await matchedBy(type), []);
  });

  test("reacts by its new rule once it was changed; what was not mentioned stays", async () => {
    const [type, other] = [newType(), newType()];
    const id = await listen({
      type,
      filters: [{ path: "/payload", op: "eq", value: 1 }],
      throttle_seconds: 9,
    });
    assert.equal((await patch(id, { event: { type: other, throttle_seconds: null } })).status, 200);
    assert.deepEqual((await get(id)).event, {
      type: other,
      filters: [{ path: "/payload", op: "eq", value: 1 }],
      debounce_seconds: null,
      throttle_seconds: null,
      batch: null,
    });
    assert.deepEqual([await matchedBy(type, 1), await matchedBy(other, 2)], [[], []]);
    assert.equal((await matchedBy(other, 1)).length, 1);
    assertProblem(await patch(id, { cron: { expressions: ["@daily"] } }), 422, "validation_failed");
  });

  test("is completed after max_runs, and dispatched by hand without an event", async () => {
    const type = newType();
    const id = await listen({ type }, { max_runs: 2, inputs: { of: { $event: "/payload" } } });
    const byHand = await runOf((await steer(id, "dispatch")).body.run_id);
    assert.deepEqual([byHand.inputs, byHand.trigger], [{ of: null }, { kind: "event", id }]);
    assert.deepEqual((await runOf((await matchedBy(type, 7))[0]?.run_id)).inputs, { of: 7 });
    assert.equal((await get(id)).status, "completed");
    assert.deepEqual(await matchedBy(type), []);
  });
});

describe("while a run of the schedule is open", () => {
  const held = (overlap: string, event: JsonObject) => listen(event, { job_id: heldJobId, overlap });

  test("skip skips the event", async () => {
    const type = newType();
    const id = await held("skip", { type });
    const [first] = await matchedBy(type);
    assert.ok(first?.run_id);
    assert.deepEqual(await matchedBy(type), [
      { schedule_id: id, skipped: "overlap", reason: "the run before has not ended" },
    ]);
    await cancelRuns();
    await runOf(first?.run_id);
    assert.ok((await matchedBy(type))[0]?.run_id);
    await cancelRuns();
  });

  test("allow starts a run all the same", async () => {
    const type = newType();
    await held("allow", { type });
    const runs = [...(await matchedBy(type)), ...(await matchedBy(type))].map(({ run_id }) => run_id);
    assert.equal(new Set(runs).size, 2);
    await cancelRuns();
  });

  test("queue_one lets one event wait for the end, and skips others meanwhile", async () => {
    const type = newType();
    const id = await held("queue_one", { type });
    const [first] = await matchedBy(type, 1);
    assert.deepEqual(await matchedBy(type, 2), [{ schedule_id: id, skipped: "queued" }]);
    assert.equal((await matchedBy(type, 3))[0]?.skipped, "overlap");
    assert.equal(((await get(id)).last_dispatch as JsonObject).outcome, "skipped");
    await cancelRuns();
    await runOf(first?.run_id);
    const [, queued] = await matchesAre(type, "has a run", ([, one]) => one?.run_id !== undefined);
    assert.notEqual(queued?.run_id, first?.run_id);
    assert.deepEqual((await get(id)).counts, { dispatched: 2, skipped: 1, missed: 0, failed: 0 });
    await cancelRuns();
  });

  test("cancel_previous cancels it for the new one", async () => {
    const type = newType();
    await held("cancel_previous", { type });
    const [first] = await matchedBy(type);
    const [second] = await matchedBy(type);
    assert.equal((await runOf(first?.run_id)).status, "cancelled");
    assert.ok(second?.run_id);
    await cancelRuns();
  });
});

describe("several events", () => {
  test("of a burst start one run for the last, once none has come for the time of debounce", async () => {
    const type = newType();
    const id = await listen({ type, debounce_seconds: 1 }, { inputs: { of: { $event: "/payload" } } });
    for (const n of [1, 2, 3])
      assert.deepEqual(await matchedBy(type, n), [{ schedule_id: id, skipped: "debounced" }]);
    assert.ok((await get(id)).next_run_at);
    const [last, ...others] = await matchesAre(type, "have a run", ([one]) => one?.run_id !== undefined);
    assert.deepEqual((await runOf(last?.run_id)).inputs, { of: 3 });
    const superseded = { schedule_id: id, skipped: "debounced", reason: "a later event came" };
    assert.deepEqual(others, [superseded, superseded]);
    const { counts, next_run_at: next } = await get(id);
    assert.deepEqual([counts, next], [{ dispatched: 1, skipped: 2, missed: 0, failed: 0 }, null]);
  });

  test("start one run within the time of throttle, for the first", async () => {
    const type = newType();
    const id = await listen({ type, throttle_seconds: 3_600 });
    assert.ok((await matchedBy(type))[0]?.run_id);
    const [second] = await matchedBy(type);
    assert.deepEqual([second?.skipped, second?.run_id], ["throttled", undefined]);
    assert.equal(((await get(id)).counts as JsonObject).skipped, 1);
  });

  test("of a batch start one run with all of them: as soon as there are enough", async () => {
    const type = newType();
    const inputs = { all: { $event: "/events" }, second: { $event: "/events/1/payload" } };
    const id = await listen({ type, batch: { max: 3, seconds: 3_600 } }, { inputs });
    const body = { type, event_id: `${type}-first` };
    const first = await emit(body);
    assert.deepEqual(first.body.matched, [{ schedule_id: id, skipped: "batched" }]);
    for (const n of [2, 3]) await emitted(type, n);
    const all = await matchesAre(type, "have a run", (matches) =>
      matches.every(({ run_id }) => run_id !== undefined),
    );
    const runIds = new Set(all.map(({ run_id }) => run_id));
    assert.deepEqual([all.length, runIds.size], [3, 1]);
    const { inputs: given } = await runOf([...runIds][0]);
    const { all: events, second } = given as { all: readonly JsonObject[]; second: number };
    assert.deepEqual([events.map(({ payload }) => payload), second], [[null, 2, 3], 2]);
    assert.equal((await emit(body)).text, first.text, "the first answer stays as it was");
    assert.deepEqual((await get(id)).counts, { dispatched: 1, skipped: 0, missed: 0, failed: 0 });
  });

  test("of a batch that is not full start it when its time is over", async () => {
    const type = newType();
    await listen({ type, batch: { max: 3, seconds: 1 } }, { inputs: { $event: "" } });
    for (const n of [1, 2]) await emitted(type, n);
    const [one] = await matchesAre(type, "have a run", ([last]) => last?.run_id !== undefined);
    const { inputs } = await runOf(one?.run_id);
    assert.equal(((inputs as JsonObject).events as readonly unknown[]).length, 2);
  });

  test("that wait survive a pause: they start their run when the schedule goes on", async () => {
    const type = newType();
    const id = await listen({ type, batch: { max: 9, seconds: 3_600 } });
    await emitted(type);
    await steer(id, "pause");
    assert.equal((await matchedBy(type))[0]?.skipped, "paused");
    await steer(id, "resume");
    await matchesAre(type, "has a run", ([, first]) => first?.run_id !== undefined);
  });

  test("that wait are told the reason when their schedule is deleted", async () => {
    const type = newType();
    const id = await listen({ type, batch: { max: 9, seconds: 3_600 } });
    await emitted(type);
    await ask(program, "DELETE", `/schedules/${id}`, { headers: { "if-match": "*" } });
    const [match] = await matchesAre(type, "have a reason", ([one]) => one?.reason !== undefined);
    assert.deepEqual(match, { schedule_id: id, skipped: "batched", reason: "the schedule was deleted" });
  });
});

describe("GET /events", () => {
  test("of an id, which is the place of the answer, tells what has become of it; of another is 404", async () => {
    const answer = await emit({ type: newType(), event_id: "a/b?c%#" });
    const place = answer.headers.get("location") ?? "";
    assert.equal(place, "/api/v1/events/a%2Fb%3Fc%25%23");
    assert.deepEqual((await ask(program, "GET", place.slice("/api/v1".length))).body, answer.body);
    assertProblem(await ask(program, "GET", "/events/none"), 404, "event_not_found");
  });

  test("lists the newest first, in pages, by type and source", async () => {
    const [type, other] = [newType(), newType()];
    for (let i = 0; i < 5; i++)
      await emit({ type: i === 2 ? other : type, payload: i, source: i > 2 ? type : "else" });
    const payloads = async (query: string) =>
      (await walk(program, `/events?${query}`, 2)).map(({ payload }) => payload);
    assert.deepEqual(await payloads(`type=${type}`), [4, 3, 1, 0]);
    assert.deepEqual(await payloads(`source=${type}`), [4, 3]);
    assert.deepEqual(await payloads(`type=${type}&source=else`), [1, 0]);
    assert.deepEqual(await payloads(`type=${newType()}`), []);
    assertProblem(await ask(program, "GET", "/events?type=NO"), 400, "invalid_parameter");
  });

  test("shows hostile payloads as they were sent", async () => {
    const type = newType();
    const payload = {
      "<script>": "\u202e\\\u0000 😀",
      __proto__: null,
      constructor: { $event: "" },
      n: -0.1e-7,
    };
    await emitted(type, payload as JsonObject);
    const [event] = await walk(program, `/events?type=${type}`);
    assert.deepEqual(event?.payload, JSON.parse(JSON.stringify(payload)));
  });
});
