// "runtime_run_id: Internal. It must never appear in client URLs", and the runtime job's id "in no public body": a
// session that calls every route there is, with runs that fail, leave dead letters, and print all that a worker can
// see, is searched for the ids that are in the database.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { JsonObject } from "../../src/engine/json.ts";
import { askingGraph } from "../support/asking.ts";
import { type TestCatalog, testCatalog } from "../support/blueprint-catalog.ts";
import { zipOf } from "../support/bundle-files.ts";
import {
  type Answer,
  type Asked,
  ask,
  createJob,
  ended,
  happens,
  sendBundle,
  startRun,
  uploadBundle,
} from "../support/gateway-api.ts";
import { makeGivingUp } from "../support/giving-up.ts";
import { executor, graph, module, router, sensor } from "../support/graphs.ts";
import { startGatewayHere, unlessOnPostgres } from "../support/in-process.ts";
import type { Program } from "../support/program.ts";
import { rowsOf } from "../support/stored-rows.ts";
import { until } from "../support/until.ts";

let catalog: TestCatalog;
let program: Program;
before(async () => {
  catalog = await testCatalog();
  const env = { SVC_EXECUTOR_MAX_CONCURRENCY: "4", SVC_BLUEPRINT_CATALOG: catalog.folder };
  program = await startGatewayHere({ env });
});
after(async () => {
  await program.stop();
  await catalog[Symbol.asyncDispose]();
});

/** Everything that was answered: status, headers and body or stream. */
const heard: string[] = [];
const asked: { readonly method: string; readonly path: string }[] = [];

function hear(method: string, path: string, answer: Answer): Answer {
  heard.push(`${method} ${path}\n${JSON.stringify([...answer.headers])}\n${answer.text}`);
  asked.push({ method, path: path.split("?", 1)[0] ?? "" });
  return answer;
}

/** @param path from the origin's root */
async function say(method: string, path: string, given: Asked = {}): Promise<Answer> {
  return hear(method, path, await ask({ ...program, api: program.url }, method, path, given));
}

/** The stream of lists, which ends with its reader. */
async function followLists() {
  const over = new AbortController();
  const path = "/api/v1/stream";
  const answer = await fetch(`${program.url}${path}`, { signal: over.signal });
  let text = "";
  const reading = (async () => {
    for await (const part of answer.body?.pipeThrough(new TextDecoderStream()) ?? []) text += part;
  })();
  return {
    async end() {
      over.abort();
      await reading.catch(() => {});
      heard.push(`GET ${path}\n${JSON.stringify([...answer.headers])}\n${text}`);
      asked.push({ method: "GET", path });
    },
  };
}

const SHOW_ALL = [
  'cd "$SVC_OUTPUT_DIR"',
  "env | sort | tee env.txt",
  'cp "$SVC_INPUT_FILE" input.json; cp "$SVC_MESSAGE_FILE" message.json',
  'cp "$SVC_BODY_FILE" body; cp "$SVC_CONTEXT_FILE" context.json; cat context.json >&2',
  '(pwd; ls -laR "$SVC_RUN_DIR" "$SVC_WORKDIR") > places.txt',
  `printf '{"type":"log","payload":{"message":"%s %s"}}\\n' "$SVC_JOB_ID" "$SVC_IDEMPOTENCY_KEY" > $SVC_EVENT_STREAM`,
].join("; ");

const MODULE = `export async function handle(message, context) {
  return { emit: [{ type: "seen", body: { message, context: JSON.parse(JSON.stringify(context)) } }] };
}`;

/** Runs that end in every way, each of a job of its own. @returns the jobs' ids */
async function makeRuns(): Promise<readonly string[]> {
  const continuing = { policies: { failure_policy: "continue" } };
  const nodes = [router("in"), executor("show", SHOW_ALL), module("mod", { module: "mod.mjs" })];
  const edges = [["in", "show"] as const, ["show", "mod"] as const];
  const shown = graph("shown", nodes, edges, { extensions: ["svc.response"] });
  const jobs = [
    await createJob(program, shown, {}, { "payloads/mod.mjs": MODULE }),
    await createJob(program, graph("failing", [executor("bad", `${SHOW_ALL}; exit 3`, { max_attempts: 2 })])),
    await createJob(program, graph("dead", [executor("bad", "exit 1")], [], continuing)),
  ];
  for (const jobId of jobs) await ended(program, await startRun(program, jobId, { inputs: { a: 1 } }));
  return jobs;
}

test(
  "the runtime job's id appears in no answer, header or stream of a whole session",
  unlessOnPostgres,
  async () => {
    const lists = await followLists();
    const jobs = await makeRuns();
    await lists.end();
    const held = await createJob(program, graph("held", [sensor("wait")]));
    await say("GET", "/api/v1/jobs");
    for (const jobId of [...jobs, held]) await session(jobId);
    await people();
    await blueprints();
    await schedules(held);
    await deployments();
    await models();
    await browsers();
    await conventions(held);
    await system();
    const runtimeJobIds = rowsOf(program.home, "SELECT runtime_job_id FROM runs").map((row) =>
      String(row.runtime_job_id),
    );
    assert.ok(runtimeJobIds.length >= 5);
    for (const seen of [
      "SVC_JOB_ID=job_",
      '"agent_state"',
      "dead_letter_id",
      "event: job_failed",
      "event: change",
    ]) {
      assert.ok(
        heard.some((text) => text.includes(seen)),
        `the session shows ${seen}`,
      );
    }
    // What makes it unique, with and without the graph's name in front.
    const unique = runtimeJobIds.map((id) => id.slice(id.lastIndexOf("-") + 1));
    for (const id of unique) {
      assert.match(id, /^\w{20,}$/);
      for (const text of heard) assert.ok(!text.includes(id), `${id} in ${around(text, id)}`);
    }
    for (const text of heard) assert.doesNotMatch(text, /runtime_(?:run|job)_id|runtimeJobId/);
    await assertEveryRouteWasCalled();
  },
);

/** Calls everything that a job and its runs have. */
async function session(jobId: string): Promise<void> {
  const job = `/api/v1/jobs/${jobId}`;
  const started = await say("POST", `${job}/runs`, {
    body: {},
    headers: { "idempotency-key": `of-${jobId}` },
  });
  await say("POST", `${job}/runs`, { body: {}, headers: { "idempotency-key": `of-${jobId}` } });
  await say("POST", `${job}/runs:batch`, {
    body: { items: [{}, { inputs: 1 }] },
    headers: { "idempotency-key": `batch-of-${jobId}` },
  });
  await say("PATCH", `/api/v1/runs/${started.body.run_id}`, { body: { desired_state: "paused" } });
  for (const action of ["pause", "resume", "cancel"]) await say("POST", `${job}/${action}`);
  await ended(program, String(started.body.run_id));
  await say("POST", `${job}/mcp`, {
    body: { jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: "get_job_context" } },
  });
  for (const path of ["", "?view=full", "/events", "/dead-letters", "/workflow-progress", "/grid"])
    await say("GET", job + path);
  const listed = await say("GET", `${job}/runs`);
  await say("GET", `/api/v1/runs?job_id=${jobId}&page_size=1`);
  for (const { run_id, links } of listed.body.items as readonly JsonObject[]) {
    await say("GET", `/api/v1/runs/${run_id}`);
    for (const link of Object.values(links as Readonly<Record<string, string>>)) await say("GET", link);
    for (const path of ["stream", "histogram"]) await say("GET", `/api/v1/runs/${run_id}/logs/${path}`);
    await say("GET", `/api/v1/jobs/${jobId}/workflow-progress?run_id=${run_id}`);
    const refused = { body: { desired_state: "running" } };
    await say("PATCH", `/api/v1/runs/${run_id}`, refused);
    const files = await say("GET", `/api/v1/runs/${run_id}/artifacts?page_size=200`);
    for (const { url } of files.body.items as readonly JsonObject[]) await say("GET", String(url));
  }
}

/** What runs ask people, and messages that are sent again. */
async function people(): Promise<void> {
  const question = { request_id: "ship", prompt: "Ship it?", allowed_decisions: ["yes"] };
  const asking = await startRun(program, await createJob(program, askingGraph("asking", [question])));
  await happens(program, asking, "human_input_requested");
  const human = `/api/v1/runs/${asking}/human`;
  for (const path of ["", "/ship", "/none"]) await say("GET", human + path);
  await say("GET", "/api/v1/human");
  for (const decision of ["no", "yes", "yes", "late"]) {
    await say("POST", `${human}/ship/response`, { body: { decision, data: { n: 1 } } });
  }
  await ended(program, asking);
  await say("GET", `/api/v1/runs/${asking}`);

  const givingUp = await makeGivingUp();
  const open = await startRun(program, await createJob(program, givingUp.manifest));
  await happens(program, open, "message_dead_lettered");
  const letters = `/api/v1/runs/${open}/dead-letters`;
  const { items } = (await say("GET", letters)).body as { readonly items: readonly JsonObject[] };
  const one = `${letters}/${items[0]?.dead_letter_id}`;
  await say("GET", "/api/v1/dead-letters");
  await say("GET", one);
  for (const path of [one, one, `${letters}/none`, letters]) await say("POST", `${path}/retry`);
  await say("PATCH", `/api/v1/runs/${open}`, { body: { desired_state: "cancelled" } });
  await say("POST", `${letters}/retry`);
  await givingUp.remove();
}

/** A blueprint from its addition to its removal, with a run that is prepared, has a validator and offers a service. */
async function blueprints(): Promise<void> {
  const show = { ...executor("show", SHOW_ALL), services: [{ name: "shown", port: 1 }] };
  const validator = 'env | sort >&2; [ "$SVC_VALIDATION_STAGE" = native ] || exit 1\n';
  await catalog.write("shown", graph("shown", [show]), { "payloads/own.txt": "own" });
  await catalog.write("checked", graph("checked", [show]), { "payloads/validators/all.sh": validator });
  for (const id of ["shown", "checked"]) {
    const blueprint = `/api/v1/blueprints/${id}`;
    await until("a catalog that was read again", async () => (await say("GET", blueprint)).status === 200);
    const added = await say("POST", `${blueprint}/additions`, { body: {} });
    const operation = String(added.headers.get("location"));
    await say("GET", `${operation}/events/stream`);
    await say("GET", operation);
    await say("POST", `${blueprint}/validate`, { body: {} });
    const launched = await say("POST", `${blueprint}/runs`, { body: { config_overrides: { a: 1 } } });
    const { run_id: runId, job_id: jobId } = launched.body;
    await happens(program, String(runId), ({ type }) => /^(job_failed|service_registered)$/.test(type));
    for (const path of ["services", "services/shown/resolve", `runs/${runId}`, `runs/${runId}/dashboard`]) {
      await say("GET", `/api/v1/${path}`);
    }
    await ended(program, String(runId));
    await session(String(jobId));
    await say("POST", `${blueprint}/removals`, { body: { dry_run: true } });
  }
  for (const list of ["blueprints", "operations"]) await say("GET", `/api/v1/${list}`);
}

async function browsers(): Promise<void> {
  await say("GET", "/console/session");
  await say("POST", "/console/session", { body: { token: "none" } });
  await say("DELETE", "/console/session");
  await say("POST", "/console/tickets", { body: { path: "/api/v1/runs" } });
  await say("POST", "/api/v1/sessions", { body: { kind: "link" } });
  await say("GET", "/api/v1/sessions");
  await say("GET", "/api/v1/sessions/none");
  await say("DELETE", "/api/v1/sessions/none");
}

async function schedules(jobId: string): Promise<void> {
  const cron = { expressions: ["@daily"] };
  const made = await say("POST", "/api/v1/schedules", { body: { job_id: jobId, cron } });
  const schedule = `/api/v1/schedules/${made.body.schedule_id}`;
  for (const action of ["dispatch", "pause", "resume"]) await say("POST", `${schedule}/${action}`);
  await say("GET", "/api/v1/schedules");
  await say("GET", schedule);
  await say("PATCH", schedule, { body: { name: "x" }, headers: { "if-match": "*" } });
  await say("DELETE", schedule, { headers: { "if-match": "*" } });
  const hooked = await say("POST", "/api/v1/schedules", {
    body: { job_id: jobId, event: { type: "public.ids" }, webhook: { scheme: "github" } },
  });
  await say("POST", (hooked.body.webhook as { readonly path: string }).path, { body: {} });
  await say("POST", "/api/v1/events", { body: { type: "public.ids", event_id: "public" } });
  await say("GET", "/api/v1/events/public");
  await say("GET", "/api/v1/events");
  await say("POST", `/api/v1/jobs/${jobId}/cancel`);
}

async function deployments(): Promise<void> {
  const web = executor("web", ["sleep", "600"], { lifecycle: "long_lived" });
  const bundleId = await uploadBundle(program, graph("web", [web], [], { type: "service" }));
  const strategy = { min_healthy_seconds: 0, drain_seconds: 0 };
  const made = await say("POST", "/api/v1/deployments", {
    body: { name: "web", source: { bundle_id: bundleId }, strategy },
  });
  const deployment = `/api/v1/deployments/${made.body.deployment_id}`;
  const headers = { "if-match": "*" };
  await until("a deployment that has succeeded", async () => {
    return (await say("GET", deployment)).body.status === "succeeded";
  });
  await say("PATCH", deployment, { body: { config: { n: 2 } }, headers });
  for (const verb of ["pause", "resume", "promote", "fail", "rollback"])
    await say("POST", `${deployment}/${verb}`);
  await say("GET", "/api/v1/deployments");
  await say("DELETE", deployment, { headers });
  await say("GET", `${deployment}/events/stream`);
}

async function models(): Promise<void> {
  const body = { model_id: "public", source: { file: "/nowhere.gguf" } };
  const headers = { "if-match": "*" };
  await say("POST", "/api/v1/models", { body });
  await say("GET", "/api/v1/models");
  const model = "/api/v1/models/public";
  await say("PATCH", model, { body: { name: "Public" }, headers });
  const operation = (await say("POST", `${model}/install`)).headers.get("location") ?? "";
  await until(
    "its installation has failed",
    async () => (await say("GET", operation)).body.status === "failed",
  );
  for (const verb of ["validate", "update", "remove", "serve", "stop"]) await say("POST", `${model}/${verb}`);
  await say("GET", `${model}/serving`);
  for (const path of ["chat/completions", "completions", "embeddings"])
    await say("POST", `/api/v1/llm/v1/${path}`, { body: { model: "public" } });
  await say("GET", "/api/v1/llm/v1/models");
  const { items } = (await say("GET", `${model}/installations`)).body;
  const place = `${model}/installations/${(items as readonly JsonObject[])[0]?.installation_id}`;
  await say("GET", place);
  await say("PATCH", place, { body: { pinned: true }, headers });
  await say("DELETE", place, { headers });
  await say("GET", model);
  await say("DELETE", model, { headers });
}

/** Bundles, definitions, and errors on purpose. */
async function conventions(jobId: string): Promise<void> {
  const bundleId = await uploadBundle(program, graph("conventions", [router("in")]));
  hear(
    "POST",
    "/api/v1/bundles",
    await sendBundle(program, await zipOf({ "manifest.json": graph("up", [router("in")]) })),
  );
  await say("GET", "/api/v1/bundles");
  await say("GET", `/api/v1/bundles/${bundleId}`);
  await say("DELETE", `/api/v1/bundles/${bundleId}`);
  const { source } = (await say("GET", `/api/v1/jobs/${jobId}`)).body;
  const made = await say("POST", "/api/v1/jobs", { body: { ...(source as JsonObject), name: "x" } });
  const job = `/api/v1/jobs/${made.body.job_id}`;
  await say("PATCH", job, { body: { name: "y" }, headers: { "if-match": "*" } });
  await say("POST", `${job}/runs`, { body: {} });
  await say("DELETE", job, { headers: { "if-match": "*" } });
  await say("DELETE", `${job}?force=true`, { headers: { "if-match": "*" } });
  await say("GET", "/api/v1/runs/run_none");
}

async function system(): Promise<void> {
  const views = [
    "health",
    "runtime/status",
    "runtime/health",
    "runtime/doctor",
    "system/settings",
    "system/summary",
    "metrics",
  ];
  for (const view of [...views, "metrics?format=prometheus"]) await say("GET", `/api/v1/${view}`);
  const { items } = (await say("GET", "/api/v1/nodes")).body;
  const node = `/api/v1/nodes/${(items as readonly JsonObject[])[0]?.node_id}`;
  await say("GET", node);
  await say("GET", `${node}/drain`);
  for (const verb of ["drain", "undrain"]) await say("POST", `${node}/${verb}`, { body: {} });
  await say("POST", `${node}/maintenance`, { body: { enabled: false } });
  await say("POST", `${node}/reconcile`, { body: {} });
  const changes = { add: { name: "n" }, join: { token: "x", cluster_address: "127.0.0.1:1" } };
  for (const [change, body] of Object.entries({ ...changes, remove: { name: "n" }, leave: {} }))
    await say("POST", `/api/v1/system/cluster/nodes:${change}`, { body });
  await say("POST", "/api/v1/system/gc", { body: { dry_run: true } });
  await say("GET", "/openapi.json");
  await say("GET", "/docs");
  await say("GET", "/api/v1/resource");
  await say("POST", "/api/v1/services:check");
  for (const method of ["POST", "PUT"] as const)
    await say(method, "/api/v1/resource", { body: { limits: {} } });
  await say("DELETE", "/api/v1/resource/volumes/none");
}

/** A route that is added has to be added to the session. */
async function assertEveryRouteWasCalled(): Promise<void> {
  const { paths } = (await say("GET", "/openapi.json")).body as {
    readonly paths: Readonly<Record<string, JsonObject>>;
  };
  for (const [path, item] of Object.entries(paths)) {
    const pattern = new RegExp(`^${path.replaceAll(/\{\w+\}/g, "[^/]+")}$`);
    for (const method of Object.keys(item).filter((key) => /^(get|put|post|patch|delete)$/.test(key))) {
      const wasCalled = asked.some((one) => one.method.toLowerCase() === method && pattern.test(one.path));
      assert.ok(wasCalled, `${method} ${path} belongs into this session`);
    }
  }
}

function around(text: string, id: string): string {
  const at = text.indexOf(id);
  return `${text.slice(0, text.indexOf("\n"))}: …${text.slice(Math.max(0, at - 100), at + 100)}`;
}
