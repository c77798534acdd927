// Deployments over HTTP, of instances without services: each is healthy while its run is running.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import type { JsonObject } from "../../src/engine/json.ts";
import { blocksOf } from "../support/event-stream.ts";
import {
  type Answer,
  ask,
  assertProblem,
  call,
  pathsOf,
  uploadBundle,
  walk,
} from "../support/gateway-api.ts";
import { graph, router } from "../support/graphs.ts";
import { startGatewayHere } from "../support/in-process.ts";
import type { Program } from "../support/program.ts";
import { until } from "../support/until.ts";

const QUICK = { min_healthy_seconds: 0, drain_seconds: 0 };
const service = (graphId: string) => graph(graphId, [router("in")], [], { type: "service" });

let program: Program;
let bundleId = "";
before(async () => {
  program = await startGatewayHere({});
  bundleId = await uploadBundle(program, service("web"));
});
after(() => program.stop());

const post = (body: unknown, headers: Record<string, string> = {}) =>
  ask(program, "POST", "/deployments", { body, headers });
const make = async (body: JsonObject = {}): Promise<JsonObject> => {
  const answer = await post({ name: "web", source: { bundle_id: bundleId }, strategy: QUICK, ...body });
  assert.equal(answer.status, 201, answer.text);
  return answer.body;
};
const get = (id: string, headers: Record<string, string> = {}) =>
  ask(program, "GET", `/deployments/${id}`, { headers });
const etagOf = ({ headers }: Answer) => headers.get("etag") ?? "";
const patch = async (id: string, body: unknown, ifMatch?: string) =>
  ask(program, "PATCH", `/deployments/${id}`, {
    body,
    headers: { "if-match": ifMatch ?? etagOf(await get(id)) },
  });
const act = (id: string, action: string, body?: unknown, headers: Record<string, string> = {}) =>
  ask(program, "POST", `/deployments/${id}/${action}`, { body, headers });
const remove = async (id: string) =>
  ask(program, "DELETE", `/deployments/${id}`, { headers: { "if-match": etagOf(await get(id)) } });
const is = (id: string, status: string) =>
  until(`deployment ${id} is ${status}`, async () => {
    const { body } = await get(id);
    return body.status === status && body;
  });
const made = async (body: JsonObject = {}) => {
  const id = String((await make(body)).deployment_id);
  await is(id, "succeeded");
  return id;
};
const instancesOf = (deployment: JsonObject) => deployment.instances as readonly JsonObject[];

describe("POST /deployments", () => {
  test("answers 201 with the deployment, its place and its ETag, and starts its instances", async () => {
    const answer = await post({ name: "web", source: { bundle_id: bundleId }, count: 2, strategy: QUICK });
    assert.equal(answer.status, 201, answer.text);
    const id = String(answer.body.deployment_id);
    assert.equal(answer.headers.get("location"), `/api/v1/deployments/${id}`);
    assert.match(etagOf(answer), /^"1-/);
    const { strategy, status, version, desired, healthy } = answer.body;
    assert.deepEqual([status, version, desired, healthy], ["pending", 1, 2, 0]);
    assert.deepEqual(strategy, {
      kind: "rolling",
      max_parallel: 1,
      canaries: 1,
      min_healthy_seconds: 0,
      healthy_deadline_seconds: 300,
      progress_deadline_seconds: 600,
      auto_promote: false,
      auto_rollback: true,
      drain_seconds: 0,
    });
    const body = await is(id, "succeeded");
    assert.equal(body.healthy, 2);
    for (const { run_id, phase, health } of instancesOf(body)) {
      assert.deepEqual([phase, health], ["serving", "passing"]);
      const run = await call(program, "GET", `/runs/${run_id}`);
      assert.deepEqual([run.status, run.trigger], ["running", { kind: "deployment", id }]);
    }
  });

  test("refuses what is no service, unknown sources and impossible settings, each with its place", async () => {
    const batch = await uploadBundle(program, graph("batch", [router("in")]));
    const none = await post({ name: "x", source: { bundle_id: batch } });
    assert.deepEqual([none.status, pathsOf(none)], [422, ["/source"]]);
    const unknown = await post({ name: "x", source: { bundle_id: "bundle_none" } });
    assert.deepEqual([unknown.status, pathsOf(unknown)], [422, ["/source/bundle_id"]]);
    assert.match(String(unknown.body.detail), /^Invalid deployment: there is no bundle/);
    const both = await post({ name: "x", source: { bundle_id: bundleId, blueprint_id: "y" } });
    assert.deepEqual([both.status, pathsOf(both)], [422, ["/source"]]);
    const late = { min_healthy_seconds: 60, healthy_deadline_seconds: 30 };
    const impossible = await post({ name: "x", source: { bundle_id: bundleId }, strategy: late });
    assert.deepEqual([impossible.status, pathsOf(impossible)], [422, ["/strategy/healthy_deadline_seconds"]]);
    const tooMany = await post({ name: "x", source: { bundle_id: bundleId }, count: 100_000 });
    assert.deepEqual([tooMany.status, pathsOf(tooMany)], [422, ["/count"]]);
  });

  test("the same Idempotency-Key makes one deployment", async () => {
    const headers = { "idempotency-key": "deploy-1" };
    const body = { name: "once", source: { bundle_id: bundleId }, strategy: QUICK };
    const [first, again] = [await post(body, headers), await post(body, headers)];
    assert.equal(first.text, again.text);
    assert.equal(again.headers.get("idempotency-replayed"), "true");
    const named = (await walk(program, "/deployments")).filter(({ name }) => name === "once");
    assert.equal(named.length, 1);
  });
});

describe("a deployment", () => {
  test("is listed newest first, by status and in pages, and found with its ETag", async () => {
    const [first, second] = [await made(), await made()];
    const ids = (await walk(program, "/deployments?status=succeeded", 1)).map(
      ({ deployment_id }) => deployment_id,
    );
    assert.ok(ids.indexOf(second) < ids.indexOf(first));
    const answer = await get(first);
    assert.equal((await get(first, { "if-none-match": etagOf(answer) })).status, 304);
    assertProblem(await get("deployment_none"), 404, "deployment_not_found");
  });

  test("PATCH needs If-Match, scales without a new version, and rolls out another configuration", async () => {
    const id = await made();
    assertProblem(
      await ask(program, "PATCH", `/deployments/${id}`, { body: { count: 2 } }),
      428,
      "precondition_required",
    );
    const etag = etagOf(await get(id));
    const scaled = await patch(id, { count: 3 }, etag);
    assert.deepEqual([scaled.status, scaled.body.version, scaled.body.count], [200, 1, 3]);
    assertProblem(await patch(id, { count: 4 }, etag), 412, "precondition_failed");
    await until("three are healthy", async () => (await get(id)).body.healthy === 3);
    const next = await patch(id, { config: { language: "de", api_key: "s3cret" } });
    assert.deepEqual([next.status, next.body.version, next.body.status], [200, 2, "running"]);
    assert.deepEqual(next.body.config, { language: "de", api_key: "********" });
    const body = await is(id, "succeeded");
    assert.deepEqual([body.stable_version, (body.versions as readonly unknown[]).length], [2, 2]);
    assert.ok(instancesOf(body).every(({ version, phase }) => version === 2 || phase === "stopping"));
    const job = await call(program, "GET", `/jobs/${(body.versions as readonly JsonObject[])[1]?.job_id}`);
    assert.deepEqual(job.resolved_configuration, { language: "de", api_key: "********" });
  });

  test("a canary awaits its promotion, and rolls back to the version before", async () => {
    const id = await made({ count: 2, strategy: { ...QUICK, kind: "canary" } });
    assertProblem(await act(id, "promote"), 409, "invalid_transition");
    await patch(id, { config: { n: 2 } });
    await is(id, "awaiting_promotion");
    const promoted = await act(id, "promote", undefined, { "idempotency-key": "promote-1" });
    assert.equal(promoted.status, 200, promoted.text);
    assert.equal(
      (await act(id, "promote", undefined, { "idempotency-key": "promote-1" })).text,
      promoted.text,
    );
    await is(id, "succeeded");
    assert.deepEqual(pathsOf(await act(id, "rollback", { version: 9 })), ["/version"]);
    assert.equal((await act(id, "rollback")).status, 200);
    const body = await is(id, "rolled_back");
    assert.deepEqual([body.version, body.stable_version], [1, 1]);
    assertProblem(await act(id, "rollback"), 409, "invalid_transition");
  });

  test("a rollout is paused, resumed, and failed with or without a rollback", async () => {
    const id = await made({ strategy: { ...QUICK, kind: "canary" } });
    assertProblem(await act(id, "pause"), 409, "invalid_transition");
    await patch(id, { config: { n: 2 } });
    await is(id, "awaiting_promotion");
    assert.equal((await act(id, "pause")).body.status, "paused");
    assert.equal((await act(id, "resume")).body.status, "running");
    await is(id, "awaiting_promotion");
    assert.equal((await act(id, "fail", { rollback: true })).body.is_rolling_back, true);
    const body = await is(id, "rolled_back");
    assert.equal((body.last_failure as JsonObject).version, 2);
    await patch(id, { config: { n: 3 } });
    assert.equal((await act(id, "fail")).body.status, "failed");
  });

  test("an instance whose run ends is replaced", async () => {
    const id = await made();
    const [first] = instancesOf((await get(id)).body);
    await call(program, "PATCH", `/runs/${first?.run_id}`, { desired_state: "cancelled" });
    await until("another one serves", async () => {
      const [now] = instancesOf((await get(id)).body);
      return now?.instance === 2 && now.phase === "serving";
    });
    assert.match(
      String(((await get(id)).body.last_failure as JsonObject).reason),
      /instance 1 ended: its run is cancelled/,
    );
  });

  test("rollouts and instances are counted in the metrics", async () => {
    const text = (await ask(program, "GET", "/metrics?format=prometheus")).text;
    const count = (name: string) => Number(new RegExp(`^${name} (\\d+)$`, "m").exec(text)?.[1]);
    assert.ok(count('troupe_deployment_rollouts_total{outcome="succeeded"}') > 0);
    assert.ok(count('troupe_deployment_rollouts_total{outcome="rolled_back"}') > 0);
    assert.ok(count('troupe_deployment_instances_total{event="started"}') > 0);
    assert.ok(count('troupe_deployment_instances_total{event="ended"}') > 0);
  });

  test("its events are streamed from the first one, or behind an id, until it is deleted and its runs have ended", async () => {
    const id = await made();
    const [instance] = instancesOf((await get(id)).body);
    const read = (headers: Record<string, string> = {}) =>
      fetch(`${program.api}/deployments/${id}/events/stream`, { headers });
    const [whole, behind] = [await read(), await read({ "last-event-id": "2" })];
    assert.equal((await read({ "last-event-id": "9999" })).status, 400);
    assert.equal((await remove(id)).status, 204);
    assertProblem(await get(id), 404, "deployment_not_found");
    const events = async (answer: Response) => {
      const seen: JsonObject[] = [];
      for await (const { fields } of blocksOf(answer))
        if (fields.has("data")) seen.push(JSON.parse(fields.get("data") ?? "") as JsonObject);
      return seen;
    };
    const all = await events(whole);
    assert.deepEqual(
      all.map((one) => one.id),
      all.map((_, i) => i + 1),
    );
    const types = all.map(({ type }) => type);
    assert.equal(types[0], "deployment_created");
    for (const type of [
      "instance_started",
      "instance_health",
      "instance_serving",
      "deployment_succeeded",
      "deployment_deleting",
      "instance_ended",
    ])
      assert.ok(types.includes(type), `${type} is missing among ${types.join(", ")}`);
    assert.equal(types.at(-1), "deployment_deleted");
    assert.deepEqual(await events(behind), all.slice(2));
    assert.equal((await call(program, "GET", `/runs/${instance?.run_id}`)).status, "cancelled");
  });
});
