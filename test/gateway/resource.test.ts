// The machine's resources and their limits, in both APIs.

import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { rm } from "node:fs/promises";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import type { JsonObject } from "../../src/engine/json.ts";
import {
  type Answer,
  ask,
  assertProblem,
  call,
  createJob,
  ended,
  happens,
  pathsOf,
  runtimeApiOf,
  startRun,
  uploadBundle,
} from "../support/gateway-api.ts";
import { executor, graph } from "../support/graphs.ts";
import { startGatewayHere } from "../support/in-process.ts";
import { type Program, temporaryHome } from "../support/program.ts";
import { until } from "../support/until.ts";

let home: string;
let program: Program;
before(async () => {
  home = await temporaryHome();
  program = await startGatewayHere({ home });
});
after(async () => {
  await program.stop();
  await rm(home, { recursive: true });
});

const get = () => ask(program, "GET", "/resource");
const post = (limits: unknown, headers: Record<string, string> = {}) =>
  ask(program, "POST", "/resource", { body: { limits }, headers });
const put = (limits: unknown, headers: Record<string, string> = {}) =>
  ask(program, "PUT", "/resource", { body: { limits }, headers });
const etagOf = ({ headers }: Answer) => headers.get("etag") ?? "";
const shown = ({ body }: Answer, name: string) => body[name] as JsonObject;

test("GET shows what the machine has, what of it commands may have, what is reserved and used, and the node", async () => {
  const answer = await get();
  assert.equal(answer.status, 200, answer.text);
  const totals = shown(answer, "totals");
  assert.equal(totals.cpu_cores, availableParallelism());
  assert.deepEqual(shown(answer, "effective"), totals);
  assert.deepEqual(shown(answer, "limits"), {});
  assert.deepEqual(shown(answer, "reserved"), {
    cpu_cores: 0,
    memory_bytes: 0,
    disk_bytes: 0,
    gpus: 0,
    ports: [],
    volumes: [],
    devices: [],
  });
  const used = shown(answer, "used");
  for (const name of ["memory_bytes", "disk_bytes"]) {
    assert.ok(
      Number(used[name]) > 0 && Number(used[name]) < Number(totals[name]),
      `${name} of ${answer.text}`,
    );
  }
  const [node] = answer.body.nodes as readonly JsonObject[];
  const [own] = (await call(program, "GET", "/nodes")).items as readonly JsonObject[];
  assert.equal(node?.node_id, own?.node_id);
  assert.deepEqual(node?.totals, own?.totals);
});

test("POST changes some limits, PUT sets all of them, and both answer what GET then shows", async () => {
  const { memory_bytes: memory } = shown(await put({}), "totals") as { memory_bytes: number };
  const first = await post({ cpu_percent: 50, memory_bytes: 1_000_000 });
  assert.equal(first.status, 200, first.text);
  assert.deepEqual(shown(first, "limits"), { cpu_percent: 50, memory_bytes: 1_000_000 });
  assert.equal(shown(first, "effective").cpu_cores, availableParallelism() / 2);
  assert.equal(shown(first, "effective").memory_bytes, 1_000_000);
  assert.equal((await get()).body.revision, first.body.revision);
  const second = await post({ memory_percent: 50 });
  assert.deepEqual(shown(second, "limits"), { cpu_percent: 50, memory_percent: 50 });
  assert.equal(shown(second, "effective").memory_bytes, Math.floor(memory / 2));
  assert.equal(second.body.revision, Number(first.body.revision) + 1);
  const third = await put({ gpu_indices: [] });
  assert.deepEqual(shown(third, "limits"), { gpu_indices: [] });
});

test("limits are kept over a restart", async () => {
  const { body } = await put({ disk_percent: 75 });
  await program.stop();
  program = await startGatewayHere({ home });
  const after = await get();
  assert.deepEqual(shown(after, "limits"), { disk_percent: 75 });
  assert.equal(after.body.revision, body.revision);
  const disk = (name: string) => shown(after, name).disk_bytes as number;
  assert.equal(disk("effective"), Math.floor(disk("totals") * 0.75));
});

test("If-Match is optional, and a stale one changes nothing", async () => {
  const before = await put({});
  const changed = await post({ cpu_percent: 10 }, { "if-match": etagOf(before) });
  assert.equal(changed.status, 200, changed.text);
  for (const refused of [
    await post({ cpu_percent: 20 }, { "if-match": etagOf(before) }),
    await put({ cpu_percent: 20 }, { "if-match": etagOf(before) }),
  ]) {
    assertProblem(refused, 412, "precondition_failed");
    assert.equal((await put({ cpu_percent: 10 }, { "if-match": etagOf(refused) })).status, 200);
  }
  const after = await get();
  assert.deepEqual(shown(after, "limits"), { cpu_percent: 10 });
  assert.equal(after.body.revision, changed.body.revision, "the same limits keep their revision");
  assert.equal((await put({}, { "if-match": etagOf(changed) })).status, 200);
});

test("a repeated POST under one key changes the limits once", async () => {
  const headers = { "idempotency-key": "limits-1" };
  const first = await post({ cpu_percent: 33 }, headers);
  await put({});
  const again = await post({ cpu_percent: 33 }, headers);
  assert.equal(again.text, first.text);
  assert.equal(again.headers.get("idempotency-replayed"), "true");
  assert.deepEqual(shown(await get(), "limits"), {});
});

test("limits that are wrong are refused, each by its place", async () => {
  const before = await get();
  const wrong = await post({ cpu_percent: 0, memory_percent: "x", gpu_indices: [0, 0], cores: 2 });
  assertProblem(wrong, 422, "validation_failed");
  assert.deepEqual(
    new Set(pathsOf(wrong)),
    new Set(["/limits/cores", "/limits/cpu_percent", "/limits/memory_percent", "/limits/gpu_indices"]),
  );
  const both = await put({ disk_percent: 5, disk_bytes: 5 });
  assertProblem(both, 422, "validation_failed");
  assert.deepEqual(pathsOf(both), ["/limits/disk_bytes"]);
  assertProblem(await ask(program, "POST", "/resource", { body: {} }), 422, "validation_failed");
  assert.equal((await get()).body.revision, before.body.revision);
});

test("the runtime API has the same record and sets the same limits", async () => {
  const runtime = await runtimeApiOf(program);
  const send = (method: string, limits?: unknown, headers = {}) =>
    ask(runtime, method, "/resource", { ...(limits !== undefined && { body: { limits } }), headers });
  const changed = await send("POST", { cpu_percent: 60 });
  assert.equal(changed.status, 200, changed.text);
  assert.deepEqual(shown(await get(), "limits"), { cpu_percent: 60 });
  const seen = await send("GET");
  assert.deepEqual(Object.keys(seen.body), Object.keys((await get()).body));
  assert.equal((await send("PUT", {}, { "if-match": etagOf(seen) })).status, 200);
  assert.equal((await send("PUT", { cpu_percent: 1 }, { "if-match": etagOf(seen) })).status, 412);
  const wrong = await send("PUT", { cpu_percent: 101, memory_percent: 5, memory_bytes: 5 });
  assert.equal(wrong.status, 400);
  assert.match(
    String(wrong.body.error),
    /\/limits\/cpu_percent must be a number from 1 to 100; \/limits\/memory_bytes/,
  );
  assert.equal((await send("POST", null)).status, 400);
  assert.deepEqual(shown(await get(), "limits"), {});
});

const asking = (name: string, resources: JsonObject, config: JsonObject = {}) =>
  graph(name, [{ ...executor("train", ["true"], config), resources }]);

test("a job that no machine could ever hold is refused, with what its node asks and what the machine has", async () => {
  await put({ memory_bytes: 1024 ** 3 });
  const large = asking("large", { cpu: 4_096, memory_mb: 2_048, gpu: 3 });
  const bundleId = await uploadBundle(program, large);
  const refused = await ask(program, "POST", "/jobs", { body: { bundle_id: bundleId } });
  assertProblem(refused, 409, "resource_unsatisfiable");
  const cores = `${availableParallelism()} core${availableParallelism() === 1 ? "" : "s"}`;
  const text =
    'Node "train" asks for 4096 cores, 2 GiB of memory and 3 GPUs; ' +
    `for commands the machine has ${cores}, 1 GiB of memory and 0 GPUs. `;
  assert.ok(String(refused.body.detail).startsWith(text), refused.text);

  const runtime = await runtimeApiOf(program);
  const submitted = await ask(runtime, "POST", "/jobs", { body: large });
  assert.equal(submitted.status, 400);
  assert.deepEqual(submitted.body, { error: refused.body.detail });
  const registered = await ask(runtime, "POST", "/jobs", { body: { bundle_id: bundleId } });
  assert.equal(registered.status, 400, registered.text);
  const batch = await ask(runtime, "POST", "/jobs:batch", {
    body: { items: [large, asking("s", { cpu: 0.1 })] },
  });
  const statuses = (batch.body.items as readonly JsonObject[]).map(({ status }) => status);
  assert.deepEqual(statuses, [400, 201]);
  await put({});
});

test("a run is refused once the limits are lower than what its job asks for, and accepted while they are not", async () => {
  const jobId = await createJob(program, asking("small", { memory_mb: 512, cpu: 0.5 }));
  assert.equal((await ended(program, await startRun(program, jobId))).run.status, "completed");
  await put({ memory_bytes: 512 * 1024 ** 2 - 1 });
  const refused = await ask(program, "POST", `/jobs/${jobId}/runs`, { body: {} });
  assertProblem(refused, 409, "resource_unsatisfiable");
  assert.match(
    String(refused.body.detail),
    /asks for 0.5 cores and 512 MiB of memory; .* 511.9 MiB of memory/,
  );
  await put({ memory_bytes: 512 * 1024 ** 2 });
  assert.equal((await ended(program, await startRun(program, jobId))).run.status, "completed");
  await put({});
});

test("two runs of a service on one machine have a port each, at which they are found", async () => {
  const serving = {
    ...executor("web", "exec python3 -m http.server --bind 127.0.0.1 $SVC_PORT_WEB", {
      lifecycle: "long_lived",
    }),
    resources: { ports: [{ label: "web", port: "auto" }] },
    services: [{ name: "pages", port_label: "web" }],
  };
  const jobId = await createJob(program, graph("served", [serving], [], { type: "service" }));
  const runIds = [await startRun(program, jobId), await startRun(program, jobId)];
  for (const runId of runIds) await happens(program, runId, "service_passing");
  const { items } = await call(program, "GET", "/services?name=pages");
  const ports = (items as readonly JsonObject[]).map(({ port }) => Number(port)).sort((a, b) => a - b);
  assert.equal(new Set(ports).size, 2);
  for (const port of ports) assert.equal((await fetch(`http://127.0.0.1:${port}/`)).status, 200);
  const { nodes, reserved } = (await get()).body as {
    nodes: readonly { reserved: JsonObject }[];
    reserved: JsonObject;
  };
  assert.deepEqual([reserved.ports, nodes[0]?.reserved.ports], [ports, ports]);
  await ask(program, "POST", `/jobs/${jobId}/cancel`, { body: {} });
  for (const runId of runIds) await ended(program, runId);
  const portsLeft = async () => shown(await get(), "reserved").ports as readonly number[];
  await until("the ports are given back", async () => (await portsLeft()).length === 0);
});

test("a run whose port another command has is queued with the reason, and starts when it is given back", async () => {
  const manifest = asking("fixed", { ports: [{ label: "http", port: 18_080 }] });
  const { nodes } = manifest as { nodes: readonly JsonObject[] };
  const holding = { ...manifest, nodes: [{ ...nodes[0], config: { command: "sleep 600" } }] };
  const first = await startRun(program, await createJob(program, holding));
  await happens(program, first, "sandbox_job_started");
  const second = await startRun(program, await createJob(program, manifest));
  await happens(program, second, "executor_lease_requested");
  const { status, status_reason } = await call(program, "GET", `/runs/${second}`);
  assert.equal(status, "queued");
  assert.match(String(status_reason), /It waits for port 18080 of the machine\./);
  await call(program, "PATCH", `/runs/${first}`, { desired_state: "cancelled" });
  assert.equal((await ended(program, second)).run.status, "completed");
});

test("a volume is kept over runs, one that writes has it alone, and it is removed once nobody has it", async () => {
  const withVolume = (name: string, command: string, more: JsonObject = {}) => {
    const resources = { volumes: [{ name: "data", path: "data", ...more }] };
    return graph(name, [{ ...executor("in", command), resources }]);
  };
  const remove = (name: string) => ask(program, "DELETE", `/resource/volumes/${name}`);
  const writes = withVolume("writes", "echo kept > data/file; exec sleep 600");
  const writer = await startRun(program, await createJob(program, writes));
  await happens(program, writer, "sandbox_job_started");
  const reads = await createJob(program, withVolume("reads", "test -f data/file", { read_only: true }));
  const reader = await startRun(program, reads);
  await happens(program, reader, "executor_lease_requested");
  const { status, status_reason } = await call(program, "GET", `/runs/${reader}`);
  assert.deepEqual(
    [status, /It waits for volume data of the machine\./.test(String(status_reason))],
    ["queued", true],
  );
  const { nodes, reserved } = (await get()).body as { nodes: readonly JsonObject[]; reserved: JsonObject };
  assert.deepEqual(reserved.volumes, [{ name: "data", read_only: false }]);
  assert.deepEqual(nodes[0]?.volumes, ["data"]);
  assertProblem(await remove("data"), 409, "volume_in_use");
  await until("the file is written", () => existsSync(join(home, "volumes/data/file")));
  await call(program, "PATCH", `/runs/${writer}`, { desired_state: "cancelled" });
  assert.equal((await ended(program, reader)).run.status, "completed");
  await program.stop();
  program = await startGatewayHere({ home });
  assert.equal((await ended(program, await startRun(program, reads))).run.status, "completed");
  assert.equal((await remove("data")).status, 204);
  assertProblem(await remove("data"), 404, "volume_not_found");
  assertProblem(await remove("..%2Fruns"), 404, "volume_not_found");
  assert.ok(!existsSync(join(home, "volumes/data")));
  assert.equal((await ended(program, await startRun(program, reads))).run.status, "failed", "it is empty");
});

test("a device is one command's, is told to it, and refused where there is none of its path", async () => {
  const asking = (name: string, command: string, devices: readonly string[]) =>
    graph(name, [{ ...executor("in", command), resources: { devices: [...devices] } }]);
  const missing = asking("missing", "true", ["/dev/null", "/dev/no-such-device"]);
  const bundleId = await uploadBundle(program, missing);
  const refused = await ask(program, "POST", "/jobs", { body: { bundle_id: bundleId } });
  assertProblem(refused, 409, "resource_unsatisfiable");
  assert.equal(
    refused.body.detail,
    'Node "in" asks for device /dev/null and device /dev/no-such-device; for commands the machine has no device ' +
      "/dev/no-such-device. Ask for less or something else, or raise the limits (GET /resource).",
  );
  const first = await startRun(
    program,
    await createJob(program, asking("holds", "exec sleep 600", ["/dev/full"])),
  );
  await happens(program, first, "sandbox_job_started");
  assert.deepEqual(shown(await get(), "reserved").devices, ["/dev/full"]);
  const told = `case "$SVC_ALLOCATION_JSON" in *'"devices":["/dev/full"]'*) exit 0;; esac; exit 1`;
  const second = await startRun(program, await createJob(program, asking("told", told, ["/dev/full"])));
  await happens(program, second, "executor_lease_requested");
  const { status, status_reason } = await call(program, "GET", `/runs/${second}`);
  assert.deepEqual([status, /It waits for device \/dev\/full/.test(String(status_reason))], ["queued", true]);
  await call(program, "PATCH", `/runs/${first}`, { desired_state: "cancelled" });
  assert.equal((await ended(program, second)).run.status, "completed");
});
