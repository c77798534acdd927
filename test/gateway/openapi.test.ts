// The program's answers against the document that describes them: whatever a session meets has a documented status,
// documented headers, and a body with exactly the documented fields.

import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { after, before, test } from "node:test";
import type { JsonObject } from "../../src/engine/json.ts";
import { askingGraph } from "../support/asking.ts";
import { type TestCatalog, testCatalog } from "../support/blueprint-catalog.ts";
import { zipOf } from "../support/bundle-files.ts";
import { type Answer, type Asked, ask, ended, happens, sendBundle } from "../support/gateway-api.ts";
import { makeGivingUp } from "../support/giving-up.ts";
import { executor, graph, router, sensor } from "../support/graphs.ts";
import { startGatewayHere } from "../support/in-process.ts";
import { completion, sendJson, startUpstream } from "../support/llm.ts";
import { Judge, openApiOf } from "../support/openapi.ts";
import type { Program } from "../support/program.ts";
import { until } from "../support/until.ts";

let catalog: TestCatalog;
let program: Program;
let judge: Judge;
before(async () => {
  catalog = await testCatalog();
  await catalog.write("digest", graph("digest", [router("in")]));
  await catalog.write("broken", { graph_id: "broken" });
  await catalog.write("needy", { ...graph("needy", [router("in")]), required_services: ["index"] });
  const env = { SVC_BLUEPRINT_CATALOG: catalog.folder };
  program = await startGatewayHere({ command: "gateway", env });
  judge = new Judge(await openApiOf(program));
});
after(async () => {
  await program.stop();
  await catalog[Symbol.asyncDispose]();
});

async function judged(method: string, path: string, asked: Asked = {}): Promise<Answer> {
  const answer = await ask(program, method, path, asked);
  judge.check(method, `/api/v1${path}`, answer);
  return answer;
}

async function uploaded(manifest: ReturnType<typeof graph>): Promise<string> {
  const answer = await sendBundle(program, await zipOf({ "manifest.json": manifest }));
  judge.check("POST", "/api/v1/bundles", answer);
  return String(answer.body.bundle_id);
}

test("a session from the upload to the outputs, with every mistake on the way, is as the document says", async () => {
  const write =
    'echo hello; echo bad >&2; mkdir -p "$SVC_OUTPUT_DIR"; echo digest > "$SVC_OUTPUT_DIR/final_artifact.md"';
  const bundleId = await uploaded(
    graph("session", [router("in"), executor("writer", write)], [["in", "writer"]]),
  );
  const broken = await sendBundle(program, await zipOf({ "manifest.json": {} }));
  judge.check("POST", "/api/v1/bundles", broken);
  await judged("GET", "/bundles");
  await judged("GET", `/bundles/${bundleId}`);
  await judged("GET", "/bundles/none");
  await judged("DELETE", "/bundles/none");

  const body = {
    bundle_id: bundleId,
    name: "session",
    resolved_configuration: { language: "en", api_key: "k", extensions: ["svc.response"] },
  };
  const key = { "idempotency-key": "session-1" };
  const created = await judged("POST", "/jobs", { body, headers: key });
  await judged("POST", "/jobs", { body, headers: key });
  await judged("POST", "/jobs", { body: { ...body, name: "other" }, headers: key });
  await judged("POST", "/jobs", { body: { ...body, unknown: 1 } });
  await judged("POST", "/jobs", { body: {}, headers: { "content-type": "text/plain" } });
  const jobPath = `/jobs/${created.body.job_id}`;
  const etag = created.headers.get("etag") ?? "";
  await judged("GET", "/jobs?page_size=1");
  await judged("GET", "/jobs?page_size=0");
  await judged("GET", "/jobs?page_token=x");
  await judged("GET", jobPath);
  await judged("GET", "/jobs/none");
  await judged("PATCH", jobPath, { body: { name: "renamed" } });
  await judged("PATCH", jobPath, { body: { name: "renamed" }, headers: { "if-match": '"99"' } });
  await judged("PATCH", jobPath, { body: { name: "renamed" }, headers: { "if-match": etag } });
  await judged("POST", `${jobPath}/pause`);

  const accepted = await judged("POST", `${jobPath}/runs`, { body: { inputs: { topic: "bees" } } });
  await judged("POST", `${jobPath}/runs`, { body: { inputs: 7 } });
  await judged("POST", "/jobs/none/runs", { body: {} });
  const wait = { prefer: "wait=60" };
  await judged("POST", `${jobPath}/runs`, { body: {}, headers: wait });
  const items = [{ inputs: { topic: "bees" } }, { inputs: 7 }];
  await judged("POST", `${jobPath}/runs:batch`, { body: { items } });
  await judged("POST", `${jobPath}/runs:batch`, { body: { items }, headers: wait });
  await judged("POST", `${jobPath}/runs:batch`, { body: { items: 7 } });
  const runId = String(accepted.body.run_id);
  const runPath = `/runs/${runId}`;
  await judged("GET", runPath);
  assert.equal((await ended(program, runId)).run.status, "completed");
  const views = [
    "",
    "/result",
    "/observability-summary",
    "/events",
    "/logs",
    "/logs/histogram",
    "/timeline",
    "/artifacts",
    "/outputs",
  ];
  for (const path of views) {
    await judged("GET", runPath + path);
    await judged("GET", `/runs/none${path}`);
  }
  await judged("PATCH", runPath, { body: { desired_state: "paused" } });
  await judged("PATCH", runPath, { body: { desired_state: "flying" } });
  await judged("GET", `${runPath}/logs?level=loud`);
  await judged("GET", `${runPath}/logs/histogram?buckets=3`);
  await judged("GET", `${runPath}/events/stream`);
  await judged("GET", `${runPath}/stream?channels=logs`);
  await judged("GET", `${runPath}/logs/stream?level=warn`);
  const { items: events } = (await judged("GET", `${runPath}/events?page_size=200`)).body as {
    items: { id: number }[];
  };
  await judged("GET", `${runPath}/events/stream`, {
    headers: { "last-event-id": String(events.at(-1)?.id) },
  });
  await judged("GET", `${runPath}/events/stream`, { headers: { "last-event-id": "9999" } });
  const outputs = (await judged("GET", `${runPath}/outputs`)).body.items as unknown as { url: string }[];
  const file = outputs[0]!.url.replace("/api/v1", "");
  const whole = await judged("GET", file);
  await judged("GET", file, { headers: { range: "bytes=0-2" } });
  await judged("GET", file, { headers: { range: "bytes=99-" } });
  await judged("GET", file, { headers: { "if-none-match": whole.headers.get("etag") ?? "" } });

  for (const path of ["", "?view=full", "/events", "/dead-letters", "/workflow-progress", "/runs", "/grid"]) {
    await judged("GET", jobPath + path);
  }
  const told = { jsonrpc: "2.0", method: "notifications/initialized" };
  for (const sent of [
    { jsonrpc: "2.0", id: 1, method: "tools/list" },
    told,
    { method: 1 },
    { jsonrpc: "2.0", id: 1, method: "none/such" },
  ])
    await judged("POST", `${jobPath}/mcp`, { body: sent });
  await judged("GET", `/runs?job_id=${created.body.job_id}&status=completed,failed&q=session`);
  await judged("GET", "/runs?status=never");
  await judged("DELETE", `/bundles/${bundleId}`);
  await judged("DELETE", jobPath);
  const now = (await judged("GET", jobPath)).headers.get("etag") ?? "";
  await judged("DELETE", jobPath, { headers: { "if-match": now } });
  await judged("DELETE", `/bundles/${bundleId}`);
});

test("a job whose run waits, is paused, resumed and cancelled, is as the document says", async () => {
  const bundleId = await uploaded(graph("waiting", [sensor("ear")]));
  const { body } = await judged("POST", "/jobs", { body: { bundle_id: bundleId } });
  const jobPath = `/jobs/${body.job_id}`;
  const run = await judged("POST", `${jobPath}/runs`, { body: {} });
  await judged("GET", `${jobPath}/workflow-progress`);
  for (const action of ["pause", "resume", "cancel", "cancel"]) await judged("POST", `${jobPath}/${action}`);
  await ended(program, String(run.body.run_id));
  for (const path of ["", "/result", "/events", "/timeline"])
    await judged("GET", `/runs/${run.body.run_id}${path}`);
});

test("a run that fails is as the document says, its failure included", async () => {
  const bundleId = await uploaded(graph("failing", [executor("in", ["false"])]));
  const { body } = await judged("POST", "/jobs", { body: { bundle_id: bundleId } });
  const run = await judged("POST", `/jobs/${body.job_id}/runs`, { body: {} });
  assert.equal((await ended(program, String(run.body.run_id))).run.status, "failed");
  for (const path of ["", "/result", "/observability-summary", "/logs", "/timeline"])
    await judged("GET", `/runs/${run.body.run_id}${path}`);
  await judged("GET", `/jobs/${body.job_id}/workflow-progress`);
  await judged("GET", `/jobs/${body.job_id}/dead-letters`);
});

test("a run that asks a person is as the document says, and so is its answer", async () => {
  const questions = [{ request_id: "ship", prompt: "Ship it?", allowed_decisions: ["yes", "no"] }];
  const bundleId = await uploaded(askingGraph("asking", questions));
  const { body } = await judged("POST", "/jobs", { body: { bundle_id: bundleId } });
  const run = await judged("POST", `/jobs/${body.job_id}/runs`, { body: {} });
  const runPath = `/runs/${run.body.run_id}`;
  await happens(program, String(run.body.run_id), "human_input_requested");
  await judged("GET", runPath);
  await judged("GET", `${runPath}/human?status=pending`);
  await judged("GET", `${runPath}/human?status=never`);
  await judged("GET", "/runs/none/human");
  for (const query of ["", "?status=timed_out", "?status=never"]) await judged("GET", `/human${query}`);
  for (const path of ["ship", "nothing"]) await judged("GET", `${runPath}/human/${path}`);
  const respond = (decision: string, id = "ship") =>
    judged("POST", `${runPath}/human/${id}/response`, { body: { decision, data: { n: 1 } } });
  for (const decision of ["perhaps", "yes", "no"]) await respond(decision);
  await respond("yes", "nothing");
  await ended(program, String(run.body.run_id));
  await judged("GET", `${runPath}/human`);
});

test("dead letters are as the document says, and so is sending them again", async () => {
  const givingUp = await makeGivingUp();
  const bundleId = await uploaded(givingUp.manifest);
  const { body } = await judged("POST", "/jobs", { body: { bundle_id: bundleId } });
  const run = await judged("POST", `/jobs/${body.job_id}/runs`, { body: {} });
  const letters = `/runs/${run.body.run_id}/dead-letters`;
  for (const query of ["", "?reason=never"]) await judged("GET", `/dead-letters${query}`);
  await happens(program, String(run.body.run_id), "message_dead_lettered");
  await givingUp.fix();
  const { items } = (await judged("GET", `${letters}?status=open`)).body as {
    items: { dead_letter_id: string }[];
  };
  const one = `${letters}/${items[0]?.dead_letter_id}`;
  await judged("GET", one);
  await judged("GET", `${letters}/none`);
  for (const path of [`${one}/retry`, `${one}/retry`, `${letters}/none/retry`, `${letters}/retry`]) {
    await judged("POST", path);
  }
  await judged("GET", one);
  await judged("GET", `/jobs/${body.job_id}/dead-letters?status=retried`);
  await judged("POST", `/jobs/${body.job_id}/cancel`);
  await judged("POST", `${letters}/retry`);
  await givingUp.remove();
});

test("a schedule, from its creation to its deletion, is as the document says", async () => {
  const bundleId = await uploaded(graph("scheduled", [router("in")]));
  const { body: job } = await judged("POST", "/jobs", { body: { bundle_id: bundleId } });
  const body = { job_id: job.job_id, cron: { expressions: ["30 7 * * *"] } };
  const headers = { "idempotency-key": "schedule-1" };
  const created = await judged("POST", "/schedules", { body, headers });
  await judged("POST", "/schedules", { body, headers });
  await judged("POST", "/schedules", { body: { ...body, cron: { expressions: ["x"] } } });
  await judged("POST", "/schedules", { body: { ...body, job_id: "none" } });
  const path = `/schedules/${created.body.schedule_id}`;
  const { body: dispatched } = await judged("POST", `${path}/dispatch`);
  await ended(program, String(dispatched.run_id));
  for (const action of ["pause", "resume"]) await judged("POST", `${path}/${action}`);
  await judged("GET", "/schedules?page_size=1&kind=cron");
  await judged("GET", "/schedules?kind=none");
  const etag = (await judged("GET", path)).headers.get("etag") ?? "";
  await judged("GET", path, { headers: { "if-none-match": etag } });
  await judged("PATCH", path, { body: { name: "renamed" } });
  await judged("PATCH", path, { body: { name: "renamed" }, headers: { "if-match": etag } });
  await judged("PATCH", path, { body: { name: "again" }, headers: { "if-match": etag } });
  await judged("DELETE", path, { headers: { "if-match": "*" } });
  for (const action of ["pause", "resume", "dispatch"]) await judged("POST", `/schedules/none/${action}`);
  for (const method of ["GET", "DELETE"])
    await judged(method, "/schedules/none", { headers: { "if-match": "*" } });
});

test("a deployment, from its creation to its deletion, is as the document says", async () => {
  const bundleId = await uploaded(graph("deployed", [router("in")], [], { type: "service" }));
  const source = { bundle_id: bundleId };
  const strategy = { kind: "canary", min_healthy_seconds: 0, drain_seconds: 0 };
  const body = { name: "deployed", source, count: 2, strategy };
  const headers = { "idempotency-key": "deployment-1" };
  const created = await judged("POST", "/deployments", { body, headers });
  await judged("POST", "/deployments", { body, headers });
  await judged("POST", "/deployments", { body: { name: "x", source: {} } });
  const path = `/deployments/${created.body.deployment_id}`;
  const is = (status: string) =>
    until(`it is ${status}`, async () => (await judged("GET", path)).body.status === status);
  await is("succeeded");
  await judged("GET", "/deployments?page_size=1&status=succeeded");
  await judged("GET", "/deployments?status=none");
  const etag = (await judged("GET", path)).headers.get("etag") ?? "";
  await judged("GET", path, { headers: { "if-none-match": etag } });
  await judged("PATCH", path, { body: { config: { n: 2 } } });
  await judged("PATCH", path, { body: { config: { n: 2 } }, headers: { "if-match": etag } });
  await judged("PATCH", path, { body: { config: { n: 3 } }, headers: { "if-match": etag } });
  await is("awaiting_promotion");
  for (const action of ["pause", "resume", "rollback", "promote"]) await judged("POST", `${path}/${action}`);
  await is("rolled_back");
  await judged("PATCH", path, { body: { config: { n: 4 } }, headers: { "if-match": "*" } });
  await judged("POST", `${path}/fail`, { body: { rollback: true } });
  await judged("POST", `${path}/rollback`, { body: { version: 99 } });
  for (const method of ["GET", "DELETE"])
    await judged(method, "/deployments/none", { headers: { "if-match": "*" } });
  await judged("GET", "/deployments/none/events/stream");
  await judged("GET", `${path}/events/stream`, { headers: { "last-event-id": "x" } });
  const streamed = judged("GET", `${path}/events/stream`);
  await judged("DELETE", path, { headers: { "if-match": "*" } });
  assert.match((await streamed).text, /event: deployment_deleted/);
});

test("a model that is served is as the document says, and so are requests for it", async () => {
  await using upstream = await startUpstream(sendJson({ data: [] }), sendJson(completion("Yes.")));
  const source = { openai: { base_url: upstream.url, model: "m", api_key: "sk-upstream-key" } };
  await judged("POST", "/models", { body: { model_id: "asked", source } });
  await judged("POST", "/models/none/serve");
  await judged("POST", "/models/asked/stop");
  const served = await judged("POST", "/models/asked/serve", { body: { concurrency: 2, queue: 0 } });
  const path = `/operations/${served.body.operation_id}`;
  await until("it is served", async () => (await judged("GET", path)).body.status === "completed");
  const { result } = (await judged("GET", path)).body;
  assert.deepEqual(result, { model_id: "asked", base_url: `${program.api}/llm/v1` });
  await judged("GET", "/models/asked/serving");
  await judged("GET", "/llm/v1/models");
  const body = { model: "asked", messages: [{ role: "user", content: "Is it raining?" }] };
  for (const one of ["chat/completions", "completions", "embeddings"])
    assert.equal((await judged("POST", `/llm/v1/${one}`, { body })).status, 200);
  await judged("POST", "/llm/v1/chat/completions", { body: { model: "none" } });
  await judged("POST", "/llm/v1/chat/completions");
  const key = { authorization: "Bearer trl_forged" };
  const forged = await judged("POST", "/llm/v1/chat/completions", { body, headers: key });
  assert.equal(forged.status, 401);
  await judged("POST", "/models/asked/stop");
});

test("a model, from its registration to its deletion, is as the document says", async () => {
  const file = "/nowhere.gguf";
  const body = { model_id: "documented", source: { file } };
  const headers = { "idempotency-key": "model-1" };
  await judged("POST", "/models", { body, headers });
  await judged("POST", "/models", { body, headers });
  await judged("POST", "/models", { body });
  await judged("POST", "/models", { body: { source: {} } });
  await judged("GET", "/models?page_size=1");
  const etag = (await judged("GET", "/models/documented")).headers.get("etag") ?? "";
  await judged("GET", "/models/documented", { headers: { "if-none-match": etag } });
  await judged("PATCH", "/models/documented", { body: { name: "Documented" } });
  await judged("PATCH", "/models/documented", {
    body: { name: "Documented" },
    headers: { "if-match": etag },
  });
  await judged("PATCH", "/models/documented", { body: { name: "Again" }, headers: { "if-match": etag } });
  await judged("POST", "/models/documented/validate", { body: { context: 4096 } });
  const path = `/operations/${(await judged("POST", "/models/documented/install")).body.operation_id}`;
  await until("it has failed", async () => (await judged("GET", path)).body.status === "failed");
  await judged("POST", "/models/documented/update", { body: { force: true } });
  const { items } = (await judged("GET", "/models/documented/installations")).body;
  const place = `/models/documented/installations/${(items as readonly JsonObject[])[0]?.installation_id}`;
  const tag = (await judged("GET", place)).headers.get("etag") ?? "";
  await judged("GET", place, { headers: { "if-none-match": tag } });
  await judged("PATCH", place, { body: { pinned: true }, headers: { "if-match": "*" } });
  await judged("POST", "/models/documented/remove", { body: { dry_run: true } });
  await judged("DELETE", place, { headers: { "if-match": tag } });
  await judged("DELETE", "/models/documented", { headers: { "if-match": etag } });
  await judged("GET", "/models/none");
  await judged("DELETE", "/models/documented/installations/none", { headers: { "if-match": "*" } });
});

test("the stream of lists is refused as the document says", async () => {
  await judged("GET", "/stream?topics=cats");
});

test("the machine's resources, and their limits, are as the document says", async () => {
  const etag = (await judged("GET", "/resource")).headers.get("etag") ?? "";
  const headers = { "if-match": etag };
  await judged("POST", "/resource", { body: { limits: { cpu_percent: 50, gpu_indices: [0] } }, headers });
  await judged("POST", "/resource", { body: { limits: { cpu_percent: null } }, headers });
  await judged("PUT", "/resource", { body: { limits: { cpu_percent: 0 } } });
  await judged("PUT", "/resource", { body: { limits: {} }, headers });
  await judged("PUT", "/resource", { body: { limits: {} } });
  await judged("DELETE", "/resource/volumes/none");
});

test("an event, and a schedule that reacts to it, are as the document says", async () => {
  const bundleId = await uploaded(graph("reacting", [router("in")]));
  const { body: job } = await judged("POST", "/jobs", { body: { bundle_id: bundleId } });
  const filters = [{ path: "/payload/n", op: "gte", value: 1 }];
  const rule = { type: "document.test", filters, throttle_seconds: 60 };
  const made = await judged("POST", "/schedules", { body: { job_id: job.job_id, event: rule } });
  await judged("POST", "/schedules", { body: { job_id: job.job_id, event: { type: "No" } } });
  const hooked = { job_id: job.job_id, event: rule, webhook: { scheme: "github" } };
  const { path, secret } = (await judged("POST", "/schedules", { body: hooked })).body.webhook as JsonObject;
  const signature = createHmac("sha256", String(secret)).update("{}").digest("hex");
  const origin = { ...program, api: program.url };
  for (const [at, signed] of [
    [path, signature],
    [path, "no"],
    ["/hooks/none", signature],
  ]) {
    const headers = { "x-hub-signature-256": `sha256=${signed}` };
    judge.check("POST", String(at), await ask(origin, "POST", String(at), { body: {}, headers }));
  }
  const event = { type: "document.test", payload: { n: 1 }, source: "test", event_id: "document-1" };
  const headers = { "idempotency-key": "event-1" };
  for (const body of [event, event]) await judged("POST", "/events", { body, headers });
  const throttled = await judged("POST", "/events", { body: { ...event, event_id: "document-2" } });
  assert.match(throttled.text, /"throttled"/);
  await judged("POST", "/events", { body: { type: "" } });
  await judged("POST", "/events", { body: { ...event, payload: "x".repeat(300_000) } });
  await judged("GET", "/events?type=document.test&source=test&page_size=1");
  await judged("GET", "/events?type=No");
  for (const id of ["document-1", "none"]) await judged("GET", `/events/${id}`);
  await judged("GET", `/schedules/${made.body.schedule_id}`);
});

test("the views of the system are as the document says", async () => {
  for (const path of [
    "/health",
    "/runtime/status",
    "/runtime/health",
    "/runtime/doctor",
    "/system/settings",
    "/system/summary",
    "/nodes/none",
    "/metrics",
    "/metrics?format=prometheus",
    "/metrics?format=none",
  ]) {
    await judged("GET", path);
  }
  const { items } = (await judged("GET", "/nodes")).body;
  await judged("GET", `/nodes/${(items as readonly JsonObject[])[0]?.node_id}`);
});

test("a comparison of a node with its jobs is answered as the document says", async () => {
  const { items } = (await judged("GET", "/nodes")).body;
  const path = `/nodes/${(items as readonly JsonObject[])[0]?.node_id}/reconcile`;
  for (const body of [{}, { fix: true }, { fix: 1 }]) await judged("POST", path, { body });
  await judged("POST", "/nodes/none/reconcile");
});

test("what takes a node out of work is answered as the document says", async () => {
  await judged("GET", "/nodes/none/drain");
  for (const body of [{}, { deadline_seconds: 5 }, { deadline_seconds: -1 }])
    await judged("POST", "/nodes/none/drain", { body });
  await judged("POST", "/nodes/none/undrain");
  for (const body of [{ enabled: true }, {}]) await judged("POST", "/nodes/none/maintenance", { body });
  for (const body of [{ name: "n" }, { name: "n", labels: { a: "b" } }, {}])
    await judged("POST", "/system/cluster/nodes:add", { body });
  for (const body of [{ name: "n", force: true }, {}])
    await judged("POST", "/system/cluster/nodes:remove", { body });
  await judged("POST", "/system/cluster/nodes:leave", { body: {} });
  for (const token of ["x", `node_x.${"a".repeat(64)}`])
    await judged("POST", "/system/cluster/nodes:join", { body: { token, cluster_address: "127.0.0.1:1" } });
});

test("what is removed, and what would be, is told as the document says", async () => {
  for (const body of [{ dry_run: true }, {}, { older_than_days: 7, max_bytes: 1_000 }, { max_bytes: -1 }]) {
    await judged("POST", "/system/gc", { body });
  }
});

test("a session with a blueprint, from the catalog to its removal, is as the document says", async () => {
  await judged("GET", "/blueprints");
  await judged("GET", "/blueprints?page_size=0");
  for (const id of ["digest", "broken", "none"]) await judged("GET", `/blueprints/${id}`);
  for (const id of ["digest", "broken", "needy", "none"]) {
    await judged("POST", `/blueprints/${id}/validate`, { body: { config: { token: "********" } } });
  }
  await judged("POST", "/blueprints/digest/validate", { body: { unknown: 1 } });

  const added = await judged("POST", "/blueprints/digest/additions", { body: {} });
  const operation = `/operations/${added.body.operation_id}`;
  await judged("GET", `${operation}/events/stream`);
  await judged("GET", operation);
  await judged("GET", "/operations/none");
  await judged("GET", "/operations?page_size=1");

  const key = { "idempotency-key": "launch-1" };
  const launch = { body: { config_overrides: { api_key: "k" }, name: "Launched" }, headers: key };
  const launched = await judged("POST", "/blueprints/digest/runs", launch);
  await judged("POST", "/blueprints/digest/runs", launch);
  await judged("POST", "/blueprints/digest/runs", { body: {}, headers: key });
  for (const id of ["broken", "needy", "none"]) await judged("POST", `/blueprints/${id}/runs`, { body: {} });
  await judged("POST", "/blueprints/digest/runs", { body: { config_overrides: { a_token: "********" } } });
  const runId = String(launched.body.run_id);
  await ended(program, runId);
  await judged("GET", `/runs/${runId}`);
  await judged("GET", `/runs/${runId}/dashboard`);
  await judged("GET", "/services");
  await judged("POST", "/services:check");
  await judged("GET", "/services/index/resolve");
  await judged("GET", "/jobs?blueprint_id=digest");
  await judged("POST", "/jobs", { body: { blueprint_id: "digest" } });
  await judged("POST", "/jobs", { body: { blueprint_id: "broken" } });
  await judged("POST", "/blueprints/digest/removals", { body: { dry_run: true } });
  await judged("POST", "/blueprints/none/removals", { body: {} });
});

test("what a browser asks for that needs no sign-in is as the document says", async () => {
  await judged("GET", "/sessions");
  await judged("GET", "/sessions?kind=x");
  await judged("POST", "/sessions", { body: { kind: "link" } });
  await judged("GET", "/sessions/none");
  await judged("DELETE", "/sessions/none");
  const root = { ...program, api: program.url };
  for (const [method, path, body] of [
    ["GET", "/console/session", undefined],
    ["POST", "/console/session", { token: "none" }],
    ["POST", "/console/session", { token: 7 }],
    ["DELETE", "/console/session", undefined],
    ["POST", "/console/tickets", { path: "/api/v1/runs" }],
  ] as const) {
    judge.check(method, path, await ask(root, method, path, body === undefined ? {} : { body }));
  }
});

test("these sessions have met every operation that the document has", async () => {
  const { paths } = await openApiOf(program);
  const met = new Set([...judge.seen].map((what) => what.split(" ")[0]));
  const operations = Object.values(paths).flatMap((methods) => Object.values(methods));
  assert.deepEqual(
    operations.map(({ operationId }) => operationId).filter((id) => !met.has(id)),
    [],
  );
});
