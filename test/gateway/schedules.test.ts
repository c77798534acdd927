// Schedules over HTTP. No test waits for a due time: runs are started by hand, or by a delay of 0 seconds.

import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import type { JsonObject } from "../../src/engine/json.ts";
import { jobIs, readyJob, type TestCatalog, testCatalog } from "../support/blueprint-catalog.ts";
import {
  type Answer,
  ask,
  assertProblem,
  call,
  createJob,
  ended,
  pathsOf,
  walk,
} from "../support/gateway-api.ts";
import { executor, graph, router, sensor } from "../support/graphs.ts";
import { startGatewayHere, unlessOnPostgres } from "../support/in-process.ts";
import type { Program } from "../support/program.ts";
import { until } from "../support/until.ts";

const DAILY = { expressions: ["0 9 * * *"] };
const LATER = "2199-01-01T00:00:00.000Z";

let catalog: TestCatalog;
let program: Program;
let jobId = "";
before(async () => {
  catalog = await testCatalog();
  await catalog.write("digest", graph("digest", [router("in")]));
  program = await startGatewayHere({ env: { SVC_BLUEPRINT_CATALOG: catalog.folder } });
  jobId = await newJob();
});
after(async () => {
  await program.stop();
  await catalog[Symbol.asyncDispose]();
});

const newJob = () => createJob(program, graph("quick", [router("in")]));
const post = (body: unknown, headers: Record<string, string> = {}) =>
  ask(program, "POST", "/schedules", { body, headers });
/** A daily one of the job, unless the body says something else. */
const make = async (body: JsonObject = {}): Promise<JsonObject> => {
  const rule = body.delayed === undefined ? { cron: DAILY } : {};
  const answer = await post({ job_id: jobId, ...rule, ...body });
  assert.equal(answer.status, 201, answer.text);
  return answer.body;
};
const idOf = async (body: JsonObject = {}) => String((await make(body)).schedule_id);
const get = (id: string, headers: Record<string, string> = {}) =>
  ask(program, "GET", `/schedules/${id}`, { headers });
const patch = (id: string, body: unknown, ifMatch?: string) =>
  ask(program, "PATCH", `/schedules/${id}`, { body, headers: onlyIf(ifMatch) });
const remove = (id: string, ifMatch?: string) =>
  ask(program, "DELETE", `/schedules/${id}`, { headers: onlyIf(ifMatch) });
const steer = (id: string, action: string, headers: Record<string, string> = {}) =>
  ask(program, "POST", `/schedules/${id}/${action}`, { headers });
const onlyIf = (etag?: string) => ({ ...(etag !== undefined && { "if-match": etag }) });
const etagOf = ({ headers }: Answer) => headers.get("etag") ?? "";

/** Waits until a schedule is what a test wants it to be. */
const scheduleIs = (id: string, what: string, wanted: (schedule: JsonObject) => boolean) =>
  until(`schedule ${id} ${what}`, async () => {
    const { body } = await get(id);
    return wanted(body) && body;
  });
const hasStatus = (id: string, status: string) =>
  scheduleIs(id, `is ${status}`, (schedule) => schedule.status === status);

describe("POST /schedules", () => {
  test("answers 201 with the schedule, its place, its ETag, its next five times and its rule in English", async () => {
    const cron = { expressions: ["30 7 * * MON-FRI"], timezone: "Europe/Berlin", jitter_seconds: 0 };
    const answer = await post({ job_id: jobId, name: "Mornings", cron });
    assert.equal(answer.status, 201, answer.text);
    const { body } = answer;
    assert.equal(answer.headers.get("location"), `/api/v1/schedules/${body.schedule_id}`);
    assert.equal(etagOf(answer), etagOf(await get(String(body.schedule_id))));
    const times = body.next_runs as readonly string[];
    assert.equal(times.length, 5);
    const berlin = new Intl.DateTimeFormat("en", {
      timeZone: "Europe/Berlin",
      timeStyle: "short",
      hourCycle: "h23",
    });
    for (const time of times) assert.equal(berlin.format(new Date(time)), "07:30");
    const { schedule_id: _id, next_runs: _times, next_run_at: next, created_at, updated_at, ...rest } = body;
    assert.equal(next, times[0]);
    assert.equal(created_at, updated_at);
    assert.deepEqual(rest, {
      name: "Mornings",
      kind: "cron",
      status: "active",
      status_reason: null,
      target: { job_id: jobId },
      job_id: jobId,
      inputs: {},
      config_overrides: null,
      cron,
      delayed: null,
      event: null,
      webhook: null,
      overlap: "skip",
      missed: "run_once",
      catchup_limit: 100,
      until: null,
      max_runs: null,
      pause_after_failures: null,
      priority: "normal",
      description: "At 07:30, Monday through Friday (Europe/Berlin)",
      last_dispatch: null,
      counts: { dispatched: 0, skipped: 0, missed: 0, failed: 0 },
      revision: 1,
    });
  });

  test("a delay of 0 seconds starts its one run now, and is completed", async () => {
    const id = await idOf({ delayed: { delay_seconds: 0 }, inputs: { topic: "bees" } });
    const {
      last_dispatch: last,
      counts,
      next_run_at: next,
      next_runs: times,
    } = await hasStatus(id, "completed");
    const { run_id: runId, outcome, reason } = last as JsonObject;
    assert.deepEqual([outcome, reason, next, times], ["dispatched", null, null, []]);
    assert.equal((counts as JsonObject).dispatched, 1);
    const { run } = await ended(program, String(runId));
    assert.deepEqual([run.status, run.job_id, run.inputs], ["completed", jobId, { topic: "bees" }]);
    assert.deepEqual(run.trigger, { kind: "schedule", id });
  });

  test("takes a time, a target, several expressions, seconds and nicknames", async () => {
    const at = await make({ delayed: { at: "2199-01-01T01:00:00+01:00" } });
    assert.deepEqual([at.kind, at.delayed, at.next_runs], ["delayed", { at: LATER }, [LATER]]);
    const target = await post({
      target: { job_id: jobId },
      cron: { expressions: ["*/10 * * * * *", "@daily"] },
    });
    assert.deepEqual([target.status, target.body.kind, target.body.job_id], [201, "cron", jobId]);
    for (const name of ["@hourly", "@daily", "@weekly", "@monthly", "@yearly"])
      assert.equal(((await make({ cron: { expressions: [name] } })).next_runs as unknown[]).length, 5, name);
  });

  test("of a blueprint makes its job with it", async () => {
    await readyJob(program, "digest");
    const answer = await post({
      blueprint_id: "digest",
      name: "Digests",
      delayed: { delay_seconds: 0 },
      config_overrides: { depth: 3 },
    });
    assert.equal(answer.status, 201, answer.text);
    const { schedule_id: id, job_id: made, target, config_overrides } = answer.body;
    assert.deepEqual([target, config_overrides], [{ blueprint_id: "digest" }, { depth: 3 }]);
    const job = await jobIs(program, String(made), "ready");
    assert.deepEqual([job.name, job.source], ["Digests", { blueprint_id: "digest" }]);
    const { last_dispatch: last } = await hasStatus(String(id), "completed");
    const { run } = await ended(program, String((last as JsonObject).run_id));
    assert.deepEqual([run.status, run.job_id, run.config_overrides], ["completed", made, { depth: 3 }]);
  });

  const both = { cron: DAILY, delayed: { at: LATER } };
  const mistakes: readonly (readonly [string, JsonObject, readonly string[]])[] = [
    ["no rule", {}, ["/cron"]],
    ["two rules", both, ["/delayed"]],
    ["a kind that the rule is not", { cron: DAILY, kind: "delayed" }, ["/kind"]],
    ["a kind that there is not", { cron: DAILY, kind: "sometimes" }, ["/kind"]],
    ["no expressions", { cron: { timezone: "UTC" } }, ["/cron/expressions"]],
    ["an empty list of expressions", { cron: { expressions: [] } }, ["/cron/expressions"]],
    [
      "expressions and a zone that are none",
      { cron: { expressions: ["@daily", "99 9 * * *", "x"], timezone: "Mars/Base" } },
      ["/cron/expressions/1", "/cron/expressions/2", "/cron/timezone"],
    ],
    ["a date that never comes", { cron: { expressions: ["0 0 30 2 *"] } }, ["/cron/expressions/0"]],
    [
      "an expression of 201 characters",
      { cron: { expressions: ["1".repeat(201)] } },
      ["/cron/expressions/0"],
    ],
    ["a negative jitter", { cron: { ...DAILY, jitter_seconds: -1 } }, ["/cron/jitter_seconds"]],
    ["no time", { delayed: {} }, ["/delayed/at"]],
    ["two times", { delayed: { at: LATER, delay_seconds: 1 } }, ["/delayed/at"]],
    ["a time that is over", { delayed: { at: "2020-01-01T00:00:00Z" } }, ["/delayed/at"]],
    ["a time that is none", { delayed: { at: "tomorrow" } }, ["/delayed/at"]],
    ["a delay of centuries", { delayed: { delay_seconds: 1e10 } }, ["/delayed/delay_seconds"]],
    ["an unknown policy", { cron: DAILY, overlap: "queue" }, ["/overlap"]],
    ["an unknown policy for missed times", { cron: DAILY, missed: "all" }, ["/missed"]],
    ["a limit of nothing", { cron: DAILY, catchup_limit: 0 }, ["/catchup_limit"]],
    ["a limit above the highest", { cron: DAILY, catchup_limit: 101 }, ["/catchup_limit"]],
    ["no runs", { cron: DAILY, max_runs: 0 }, ["/max_runs"]],
    ["no failures", { cron: DAILY, pause_after_failures: 0 }, ["/pause_after_failures"]],
    ["a day that no calendar has", { cron: DAILY, until: "2199-02-29T00:00:00Z" }, ["/until"]],
    ["an end that is over", { cron: DAILY, until: "2020-01-01T00:00:00Z" }, [""]],
    ["a name without a character", { cron: DAILY, name: "" }, ["/name"]],
    ["inputs that are no object", { cron: DAILY, inputs: [] }, ["/inputs"]],
    ["a placeholder of a secret", { cron: DAILY, inputs: { api_key: "********" } }, ["/inputs/api_key"]],
    ["overrides for a job of a bundle", { cron: DAILY, config_overrides: { a: 1 } }, ["/config_overrides"]],
    ["an unknown field", { cron: DAILY, when: "soon" }, ["/when"]],
  ];
  for (const [what, body, paths] of mistakes) {
    test(`refuses ${what} at its place, and makes nothing`, async () => {
      const before = (await walk(program, "/schedules")).length;
      const answer = await post({ job_id: jobId, ...body });
      assertProblem(answer, 422, "validation_failed");
      assert.deepEqual(pathsOf(answer), paths);
      assert.equal((await walk(program, "/schedules")).length, before);
    });
  }

  test("refuses no target, two targets, and those that are not there", async () => {
    for (const target of [
      {},
      { job_id: jobId, blueprint_id: "digest" },
      { job_id: jobId, target: { job_id: jobId } },
    ]) {
      const answer = await post({ cron: DAILY, ...target });
      assertProblem(answer, 422, "validation_failed");
      assert.deepEqual(pathsOf(answer), ["/target"]);
    }
    assertProblem(await post({ cron: DAILY, job_id: "job_none" }), 404, "job_not_found");
    const unknown = await post({ cron: DAILY, blueprint_id: "nothing" });
    assertProblem(unknown, 422, "validation_failed");
    assert.deepEqual(pathsOf(unknown), ["/blueprint_id"]);
  });

  test("a key makes one schedule, and with it one job of a blueprint", async () => {
    const body = { blueprint_id: "digest", cron: DAILY };
    const headers = { "idempotency-key": "one-schedule" };
    const jobs = (await walk(program, "/jobs")).length;
    const together = await Promise.all([post(body, headers), post(body, headers)]);
    const again = await post(body, headers);
    const answers = [...together, again];
    assert.deepEqual(new Set(answers.map(({ text }) => text)).size, 1);
    assert.deepEqual(new Set(answers.map(etagOf)).size, 1);
    assert.equal(again.headers.get("idempotency-replayed"), "true");
    assert.equal((await walk(program, "/jobs")).length, jobs + 1);
  });

  test("keeps hostile texts as they are, and survives expressions that are made to be slow", async () => {
    const name = '<script>"\u202e\\ 😀';
    assert.equal((await get(await idOf({ name }))).body.name, name);
    for (const expression of [
      "* ".repeat(100),
      "*/0 * * * *",
      "1-1000000 * * * *",
      `${"1,".repeat(99)}1 * * *`,
      "\u0000",
    ]) {
      assertProblem(
        await post({ job_id: jobId, cron: { expressions: [expression] } }),
        422,
        "validation_failed",
      );
    }
    for (const id of ["none", "..%2Fjobs", "%00", "a".repeat(500)])
      assert.ok([400, 404, 414].includes((await get(id)).status), id);
  });
});

describe("GET /schedules", () => {
  test("lists the newest first, in pages, by kind, status and job", async () => {
    const other = await newJob();
    const ids: string[] = [];
    for (let i = 0; i < 5; i++) ids.push(await idOf({ job_id: other, name: `n${i}` }));
    const delayed = await idOf({ job_id: other, delayed: { at: LATER } });
    await steer(ids[1]!, "pause");
    const listed = async (query: string) =>
      (await walk(program, `/schedules?job_id=${other}${query}`, 2)).map(({ schedule_id }) => schedule_id);
    assert.deepEqual(await listed(""), [...ids, delayed].toReversed());
    assert.deepEqual(await listed("&kind=delayed"), [delayed]);
    assert.deepEqual(await listed("&status=paused"), [ids[1]]);
    assert.deepEqual(await listed("&kind=cron&status=active"), [ids[4], ids[3], ids[2], ids[0]]);
    assert.deepEqual(await listed("&status=failed"), []);
    assertProblem(await ask(program, "GET", "/schedules?kind=none"), 400, "invalid_parameter");
  });
});

describe("an ETag", () => {
  test("is known again by If-None-Match until anything that is shown has changed", async () => {
    const id = await idOf();
    const before = etagOf(await get(id));
    const known = await get(id, { "if-none-match": before });
    assert.deepEqual([known.status, known.text, etagOf(known)], [304, "", before]);
    const { run_id: runId } = (await steer(id, "dispatch")).body;
    assert.notEqual(etagOf(await get(id)), before);
    assert.equal(
      (await patch(id, { name: "Still mine" }, before)).status,
      200,
      "the definition was the same",
    );
    await ended(program, String(runId));
  });

  test("is needed for a change and a deletion: 428 without, 412 with an old one, which names the current", async () => {
    const id = await idOf({ name: "first" });
    const old = etagOf(await get(id));
    assertProblem(await patch(id, { name: "no" }), 428, "precondition_required");
    assertProblem(await remove(id), 428, "precondition_required");
    const changed = await patch(id, { name: "second" }, old);
    assert.deepEqual([changed.status, changed.body.revision, changed.body.name], [200, 2, "second"]);
    assert.equal(etagOf(changed), etagOf(await get(id)));
    for (const answer of [await patch(id, { name: "no" }, old), await remove(id, old)]) {
      assertProblem(answer, 412, "precondition_failed");
      assert.equal(etagOf(answer), etagOf(changed));
    }
    assert.equal((await remove(id, etagOf(changed))).status, 204);
    assertProblem(await get(id), 404, "schedule_not_found");
  });

  test("lets one of several changes at one moment through", async () => {
    const id = await idOf();
    const etag = etagOf(await get(id));
    const names = Array.from({ length: 8 }, (_, i) => `name ${i}`);
    const answers = await Promise.all(names.map((name) => patch(id, { name }, etag)));
    assert.deepEqual(answers.map(({ status }) => status).toSorted(), [200, ...Array(7).fill(412)]);
    assert.equal((await get(id)).body.revision, 2);
  });
});

describe("PATCH /schedules/{schedule_id}", () => {
  test("changes each field alone, and leaves all others as they are", async () => {
    const id = await idOf({
      name: "all",
      cron: { expressions: ["0 9 * * *"], timezone: "Asia/Tokyo", jitter_seconds: 30 },
      overlap: "allow",
      missed: "run_all",
      catchup_limit: 7,
      inputs: { keep: 1, drop: 2 },
      until: LATER,
      max_runs: 5,
      pause_after_failures: 2,
    });
    const changes: readonly (readonly [JsonObject, JsonObject?])[] = [
      [{ name: "renamed" }],
      [{ overlap: "queue_one" }],
      [{ missed: "skip" }],
      [{ catchup_limit: 9 }],
      [{ until: null }],
      [{ max_runs: null }],
      [{ pause_after_failures: null }],
      [{ inputs: { drop: null, more: 3 } }, { inputs: { keep: 1, more: 3 } }],
      [
        { cron: { expressions: ["0 8 * * *"] } },
        { cron: { expressions: ["0 8 * * *"], timezone: "Asia/Tokyo", jitter_seconds: 30 } },
      ],
      [
        { cron: { timezone: "UTC" } },
        { cron: { expressions: ["0 8 * * *"], timezone: "UTC", jitter_seconds: 30 } },
      ],
    ];
    const derived = ["updated_at", "revision", "next_run_at", "next_runs", "description"];
    const settled = (schedule: JsonObject) =>
      Object.fromEntries(Object.entries(schedule).filter(([name]) => !derived.includes(name)));
    let before = (await get(id)).body;
    for (const [body, expected = body] of changes) {
      const answer = await patch(id, body, "*");
      assert.equal(answer.status, 200, answer.text);
      assert.deepEqual(settled(answer.body), { ...settled(before), ...expected });
      assert.equal(answer.body.revision, Number(before.revision) + 1);
      before = answer.body;
    }
    assert.match(String(before.description), /^At 08:00 \(UTC\)/);
  });

  test("a new rule counts from now on, also of a schedule that was completed, but its kind stays", async () => {
    const id = await idOf({ delayed: { delay_seconds: 0 } });
    await hasStatus(id, "completed");
    const again = await patch(id, { delayed: { at: LATER } }, "*");
    assert.deepEqual([again.body.status, again.body.next_runs], ["active", [LATER]]);
    const wrong = await patch(id, { cron: DAILY }, "*");
    assertProblem(wrong, 422, "validation_failed");
    assert.deepEqual(pathsOf(wrong), ["/cron"]);
  });

  test("a mistake is refused at its place and changes nothing", async () => {
    const id = await idOf();
    const before = (await get(id)).text;
    const mistakes: readonly (readonly [JsonObject, string])[] = [
      [{ cron: { expressions: ["x"] } }, "/cron/expressions/0"],
      [{ cron: { timezone: "x" } }, "/cron/timezone"],
      [{ until: "2020-01-01T00:00:00Z" }, ""],
      [{ overlap: "x" }, "/overlap"],
      [{ job_id: jobId }, "/job_id"],
      [{ config_overrides: { a: 1 } }, "/config_overrides"],
      [{ inputs: { api_key: "********" } }, "/inputs/api_key"],
    ];
    for (const [body, path] of mistakes) {
      const answer = await patch(id, body, "*");
      assertProblem(answer, 422, "validation_failed");
      assert.deepEqual(pathsOf(answer), [path], JSON.stringify(body));
    }
    assert.equal((await get(id)).text, before);
  });

  test("secrets are masked, stay with ********, and reach the run", async () => {
    const secret = "hush-5f0c1a77e2d94b";
    const command = `grep -q ${secret} "$SVC_INPUT_FILE" && echo '{"complete_run":{"has":"it"}}'`;
    const looking = await createJob(program, graph("looking", [executor("in", command)]));
    const body = await make({ job_id: looking, inputs: { topic: "bees", api_key: secret } });
    const id = String(body.schedule_id);
    assert.deepEqual(body.inputs, { topic: "bees", api_key: "********" });
    const changed = await patch(id, { inputs: { topic: "ants", api_key: "********" } }, "*");
    assert.deepEqual(changed.body.inputs, { topic: "ants", api_key: "********" });
    const { run_id: runId } = (await steer(id, "dispatch")).body;
    const { run } = await ended(program, String(runId));
    assert.deepEqual([run.result, run.inputs], [{ has: "it" }, { topic: "ants", api_key: "********" }]);
    for (const answer of [await get(id), await ask(program, "GET", "/schedules")])
      assert.ok(!answer.text.includes(secret));
  });

  test("no secret of a schedule is in a file of the database", unlessOnPostgres, async () => {
    const secret = "planted-8d3e6b2f90c14a";
    const id = await idOf({ inputs: { api_key: secret, topic: "planted-topic-77" } });
    await patch(id, { inputs: { other_token: secret } }, "*");
    const files = readdirSync(program.home).filter((name) => name.startsWith("troupe.db"));
    const stored = Buffer.concat(files.map((name) => readFileSync(join(program.home, name)))).toString(
      "latin1",
    );
    assert.ok(stored.includes("planted-topic-77"), "the files are those with the schedule");
    assert.ok(!stored.includes(secret));
  });
});

describe("pause, resume and dispatch", () => {
  test("a paused schedule has no next run; resumed it has one again; both twice change nothing", async () => {
    const id = await idOf();
    const paused = (await steer(id, "pause")).body;
    assert.deepEqual([paused.status, paused.next_run_at, paused.next_runs], ["paused", null, []]);
    assert.equal((await steer(id, "pause")).body.revision, paused.revision);
    const resumed = (await steer(id, "resume")).body;
    assert.deepEqual([resumed.status, resumed.status_reason], ["active", null]);
    assert.equal(resumed.next_run_at, (resumed.next_runs as readonly string[])[0]);
    assert.equal((await steer(id, "resume")).body.revision, resumed.revision);
  });

  test("a key repeats the answer and does nothing a second time", async () => {
    const id = await idOf();
    for (const [action, status] of [
      ["pause", 200],
      ["resume", 200],
      ["dispatch", 202],
    ] as const) {
      const headers = { "idempotency-key": `${action}-${id}` };
      const first = await steer(id, action, headers);
      const again = await steer(id, action, headers);
      assert.deepEqual([first.status, again.status, again.text], [status, status, first.text], action);
      assert.equal(again.headers.get("idempotency-replayed"), "true");
    }
    const { counts, last_dispatch: last } = (await get(id)).body;
    assert.equal((counts as JsonObject).dispatched, 1);
    await ended(program, String((last as JsonObject).run_id));
  });

  test("a run is started by hand whatever the status: 202 with its id and place", async () => {
    const id = await idOf();
    await steer(id, "pause");
    const answer = await steer(id, "dispatch");
    const runId = String(answer.body.run_id);
    assert.deepEqual([answer.status, answer.body], [202, { run_id: runId }]);
    assert.equal(answer.headers.get("location"), `/api/v1/runs/${runId}`);
    const { run } = await ended(program, runId);
    assert.deepEqual(run.trigger, { kind: "schedule", id });
    assert.equal((await get(id)).body.status, "paused");
  });

  test("one that is completed is neither paused nor resumed", async () => {
    const id = await idOf({ delayed: { delay_seconds: 0 } });
    await hasStatus(id, "completed");
    for (const action of ["pause", "resume"])
      assertProblem(await steer(id, action), 409, "invalid_transition");
  });

  test("one that is not there is 404 for each of them", async () => {
    for (const action of ["pause", "resume", "dispatch"])
      assertProblem(await steer("schedule_none", action), 404, "schedule_not_found");
    assertProblem(await patch("schedule_none", { name: "x" }, "*"), 404, "schedule_not_found");
    assertProblem(await remove("schedule_none", "*"), 404, "schedule_not_found");
  });
});

describe("what becomes of schedules", () => {
  test("one whose job was deleted fails with the reason at its next time", async () => {
    const gone = await newJob();
    const id = await idOf({ job_id: gone, delayed: { at: LATER } });
    await ask(program, "DELETE", `/jobs/${gone}`, { headers: { "if-match": "*" } });
    assertProblem(await steer(id, "dispatch"), 404, "job_not_found");
    assert.equal((await get(id)).body.status, "active", "until then");
    await patch(id, { delayed: { delay_seconds: 0 } }, "*");
    const failed = await hasStatus(id, "failed");
    assert.match(String(failed.status_reason), new RegExp(`${gone} was not found`));
    assert.deepEqual([failed.next_run_at, (failed.last_dispatch as JsonObject).outcome], [null, "failed"]);
    assertProblem(await steer(id, "resume"), 409, "invalid_transition");
  });

  test("after max_runs it is completed, and its runs stay when it is deleted", async () => {
    const id = await idOf({ delayed: { delay_seconds: 0 }, max_runs: 1 });
    const { last_dispatch: last } = await hasStatus(id, "completed");
    const runId = String((last as JsonObject).run_id);
    await ended(program, runId);
    assert.equal((await remove(id, "*")).status, 204);
    assert.equal((await call(program, "GET", `/runs/${runId}`)).status, "completed");
  });

  test("one whose runs are held open counts a start by hand beside them", async () => {
    const held = await createJob(program, graph("held", [sensor("wait")]));
    const id = await idOf({ job_id: held });
    const runs = [(await steer(id, "dispatch")).body.run_id, (await steer(id, "dispatch")).body.run_id];
    assert.equal(new Set(runs).size, 2);
    const { counts } = (await get(id)).body;
    assert.equal((counts as JsonObject).dispatched, 2);
    await call(program, "POST", `/jobs/${held}/cancel`);
    for (const runId of runs) await ended(program, String(runId));
  });
});
