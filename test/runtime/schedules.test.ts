// Schedules and trigger events of the runtime API: the gateway's records, with targets of its own and 400 {error}.

import assert from "node:assert/strict";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { TroupeRuntime } from "../../sdk/src/index.ts";
import type { JsonObject, JsonValue } from "../../src/engine/json.ts";
import { type Answer, ask, createJob, ended, runtimeApiOf } from "../support/gateway-api.ts";
import { executor, graph, router } from "../support/graphs.ts";
import { startGatewayHere } from "../support/in-process.ts";
import type { Program } from "../support/program.ts";
import { until } from "../support/until.ts";

let gateway: Program;
let runtime: Program;
let folder: string;
before(async () => {
  gateway = await startGatewayHere();
  runtime = await runtimeApiOf(gateway);
  folder = await mkdtemp(join(tmpdir(), "troupe-schedules-"));
});
after(async () => {
  await gateway.stop();
  await rm(folder, { recursive: true, force: true });
});

const DAILY = { expressions: ["0 9 * * *"] };
const post = (path: string, body?: JsonValue, headers: Record<string, string> = {}) =>
  ask(runtime, "POST", path, { body, headers });
const get = (path: string) => ask(runtime, "GET", path);
const make = async (body: JsonObject) => {
  const answer = await post("/schedules", body);
  assert.equal(answer.status, 201, answer.text);
  return answer.body;
};
const refused = (answer: Answer, status: number, message: RegExp) => {
  assert.equal(answer.status, status, answer.text);
  assert.deepEqual(Object.keys(answer.body), ["error"]);
  assert.match(String(answer.body.error), message);
};
/** The end of the one run of a schedule. */
const runOf = async ({ schedule_id: id }: JsonObject) => {
  const last = await until(`schedule ${id} has a run`, async () => {
    const { last_dispatch } = (await get(`/schedules/${id}`)).body;
    return last_dispatch as JsonObject | null;
  });
  return (await ended(gateway, String(last.run_id))).run;
};
const once = { delay_seconds: 0 };

describe("POST /schedules", () => {
  test("of a manifest with payloads makes a job, whose commands have them", async () => {
    const command = executor("a", ["./hello.sh"], { upload_path: "tools/hello.sh" });
    const manifest = graph("payloads", [command], []);
    const payloads = { "tools/hello.sh": Buffer.from("#!/bin/sh\nexit 0\n").toString("base64") };
    const schedule = await make({ manifest, payloads, delayed: once, name: "hello" });
    assert.deepEqual([schedule.kind, schedule.name], ["delayed", "hello"]);
    assert.deepEqual(schedule.target, { job_id: schedule.job_id });
    const run = await runOf(schedule);
    assert.deepEqual(
      [run.status, run.trigger],
      ["completed", { kind: "schedule", id: schedule.schedule_id }],
    );
  });

  test("of a bundle, by its id, its folder or its target, starts its runs", async () => {
    const path = join(folder, "package");
    await mkdir(path);
    await writeFile(join(path, "manifest.json"), JSON.stringify(graph("packed", [router("in")])));
    const byPath = await make({ bundle_path: path, delayed: once });
    assert.equal((await runOf(byPath)).status, "completed");
    for (const target of [{ bundle_id: "package" }, { target: { bundle_id: "package" } }])
      assert.equal((await make({ ...target, cron: DAILY })).kind, "cron");
    const manifest = graph("targeted", [router("in")]);
    assert.equal((await runOf(await make({ target: { manifest }, delayed: once }))).status, "completed");
  });

  test("of a job of the gateway is the same schedule there", async () => {
    const jobId = await createJob(gateway, graph("shared", [router("in")]));
    const schedule = await make({ job_id: jobId, cron: DAILY });
    const shown = await ask(gateway, "GET", `/schedules/${schedule.schedule_id}`);
    assert.deepEqual(shown.body, schedule);
    assert.deepEqual((await get(`/schedules/${schedule.schedule_id}`)).body, schedule);
  });

  const manifest = graph("refused", [router("in")]);
  const mistakes: readonly (readonly [string, JsonValue, RegExp])[] = [
    ["no body", null, /JSON/],
    ["no target", { cron: DAILY }, /exactly one of manifest/],
    ["two targets", { manifest, bundle_id: "b", cron: DAILY }, /exactly one of manifest/],
    ["payloads alone", { bundle_id: "b", payloads: {}, cron: DAILY }, /manifest/],
    ["payloads that are no base64", { manifest, payloads: { a: "%" }, cron: DAILY }, /a is no base64/],
    ["payloads that lead out", { manifest, payloads: { "../a": "" }, cron: DAILY }, /\.\./],
    ["a payload in another", { manifest, payloads: { a: "", "a/b": "" }, cron: DAILY }, /lies in a file/],
    ["a manifest that is none", { manifest: { nodes: 1 }, cron: DAILY }, /nodes/],
    ["a relative path", { bundle_path: "x", cron: DAILY }, /absolute/],
    ["a bundle that is not there", { bundle_id: "none", cron: DAILY }, /none/],
    ["no rule", { manifest }, /exactly one of cron/],
    ["a bad rule", { manifest, cron: { expressions: ["x"] } }, /x/],
    ["a field of another type", { manifest, cron: DAILY, max_runs: "1" }, /\/max_runs/],
    ["an unknown field", { manifest, cron: DAILY, when: 1 }, /\/when/],
  ];
  for (const [what, body, message] of mistakes) {
    test(`refuses ${what} with 400 {error}`, async () => {
      refused(await post("/schedules", body ?? undefined), 400, message);
    });
  }
});

test("schedules are listed whole, by kind and status, changed, steered and deleted", async () => {
  const manifest = graph("steered", [router("in")]);
  const { schedule_id: id } = await make({ manifest, event: { type: "none" }, name: "first" });
  const ids = async (query: string) =>
    ((await get(`/schedules${query}`)).body.data as readonly JsonObject[]).map((one) => one.schedule_id);
  assert.equal((await ids("")).includes(id), true);
  assert.deepEqual(await ids("?kind=event"), [id]);
  assert.deepEqual(await ids("?status=paused"), []);
  refused(await get("/schedules?kind=none"), 400, /kind must be one of cron, delayed, event/);
  const patch = (body: JsonObject, headers: Record<string, string> = {}) =>
    ask(runtime, "PATCH", `/schedules/${id}`, { body, headers });
  const changed = await patch({ name: "second" });
  assert.deepEqual([changed.status, changed.body.name, changed.body.revision], [200, "second", 2]);
  refused(await patch({ name: "third" }, { "if-match": '"1-0"' }), 412, /current ETag/);
  refused(await patch({ name: 1 }), 400, /\/name/);
  assert.equal((await post(`/schedules/${id}/pause`)).body.status, "paused");
  assert.deepEqual(await ids("?status=paused"), [id]);
  assert.equal((await post(`/schedules/${id}/resume`)).body.status, "active");
  const dispatched = await post(`/schedules/${id}/dispatch`);
  assert.equal(dispatched.status, 202);
  assert.equal((await ended(gateway, String(dispatched.body.run_id))).run.status, "completed");
  assert.equal((await ask(runtime, "DELETE", `/schedules/${id}`)).status, 204);
  for (const answer of [await get(`/schedules/${id}`), await post(`/schedules/${id}/pause`)])
    refused(answer, 404, /was not found/);
});

test("events start runs, are answered again by their id, and the newest are listed", async () => {
  const manifest = graph("reacting", [router("in")]);
  const made = await make({
    manifest,
    event: { type: "runtime.test" },
    inputs: { of: { $event: "/payload" } },
  });
  const body = { type: "runtime.test", payload: [1], event_id: "runtime-1" };
  const first = await post("/events", body);
  assert.equal(first.status, 202, first.text);
  const [match] = first.body.matched as readonly JsonObject[];
  assert.equal(match?.schedule_id, made.schedule_id);
  assert.deepEqual((await ended(gateway, String(match?.run_id))).run.inputs, { of: [1] });
  assert.equal((await post("/events", body)).text, first.text);
  assert.deepEqual((await get("/events?type=runtime.test")).body.data, [first.body]);
  assert.deepEqual((await get("/events/runtime-1")).body, first.body);
  for (let n = 0; n < 3; n++) await post("/events", { type: "runtime.many", payload: n });
  const { data } = (await get("/events?type=runtime.many&limit=2")).body as { data: JsonObject[] };
  assert.deepEqual(
    data.map(({ payload }) => payload),
    [2, 1],
  );
  refused(await post("/events", { type: "No" }), 400, /\/type/);
  refused(await post("/events", { type: "a", payload: "x".repeat(300_000) }), 413, /256 KiB/);
  refused(await get("/events/none"), 404, /was not found/);
});

test("the client of the runtime API has schedules, events and limits", async () => {
  const client = new TroupeRuntime({ baseUrl: runtime.url });
  const { schedule_id: id, job_id: jobId } = await client.createSchedule({
    manifest: graph("by-client", [router("in")]),
    event: { type: "client.test" },
  });
  assert.equal((await client.updateSchedule(id, { name: "renamed" })).name, "renamed");
  assert.equal((await client.controlSchedule(id, "pause")).status, "paused");
  assert.equal((await client.controlSchedule(id, "resume")).status, "active");
  const { event_id: eventId, matched } = await client.emit({ type: "client.test", payload: { n: 1 } });
  const [{ run_id: started = "" } = {}] = matched;
  const { run_id: dispatched } = await client.dispatchSchedule(id);
  for (const runId of [started, dispatched]) assert.equal((await ended(gateway, runId)).run.job_id, jobId);
  assert.deepEqual((await client.triggerEvent(eventId)).payload, { n: 1 });
  assert.deepEqual(
    (await client.triggerEvents({ type: "client.test", limit: 5 })).map((event) => event.event_id),
    [eventId],
  );
  assert.equal((await client.schedules({ job_id: jobId! }))[0]?.schedule_id, id);
  await client.deleteSchedule(id);
  await assert.rejects(client.schedule(id), { name: "TroupeProblem", status: 404 });
  assert.equal((await client.changeLimits({ cpu_percent: 50 })).limits.cpu_percent, 50);
  assert.deepEqual((await client.setLimits({})).limits, {});
  assert.ok((await client.resource()).totals.cpu_cores > 0);
});
