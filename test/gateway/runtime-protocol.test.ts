// The runtime protocol, as clients that are not ours use it: @grpc/grpc-js from the .proto files, buf through reflection, and
// fetch with JSON.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { type IncomingMessage, request } from "node:http";
import { connect } from "node:net";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import { credentials, type ServiceError, status } from "@grpc/grpc-js";
import { Health } from "../../src/grpc/gen/grpc/health/v1/health_pb.ts";
import { ServerReflection } from "../../src/grpc/gen/grpc/reflection/v1/reflection_pb.ts";
import { protocol } from "../../src/grpc/rules.ts";
import { ask, createJob, uploadBundle } from "../support/gateway-api.ts";
import { graph, router } from "../support/graphs.ts";
import { type Fields, type GrpcClient, grpcAddress, grpcClient, reasonOf } from "../support/grpc.ts";
import { startGatewayHere } from "../support/in-process.ts";
import { hasOpenssl, makeAuthority } from "../support/node-certificates.ts";
import { until } from "../support/until.ts";

const run = promisify(execFile);
const TOKEN = "a-token-of-sixteen-characters";

const manifest = (command: readonly string[]) => ({
  manifest_version: "1.0",
  graph_id: "protocol",
  entrypoints: ["work"],
  initial_inputs: { work: [{}] },
  nodes: [{ node_id: "work", agent_type: "executor", config: { command } }],
  edges: [],
});

/** As google.protobuf.Struct, which @grpc/proto-loader does not make of objects. */
function struct(value: object): Fields {
  return { fields: Object.fromEntries(Object.entries(value).map(([key, one]) => [key, toValue(one)])) };
}

function toValue(value: unknown): Fields {
  if (value === null) return { nullValue: 0 };
  if (typeof value === "string") return { stringValue: value };
  if (typeof value === "number") return { numberValue: value };
  if (typeof value === "boolean") return { boolValue: value };
  if (Array.isArray(value)) return { listValue: { values: value.map(toValue) } };
  return { structValue: struct(value as object) };
}

async function failure(call: Promise<unknown>): Promise<ServiceError> {
  return await call.then(
    () => assert.fail("the call succeeded"),
    (error: ServiceError) => error,
  );
}

async function refused(call: Promise<unknown>, code: status, reason: string): Promise<void> {
  const error = await failure(call);
  assert.equal(error.code, code, error.message);
  assert.equal(reasonOf(error), reason);
}

const submit = async (jobs: GrpcClient, command: readonly string[]) =>
  (await jobs.call("SubmitJob", { manifest: struct(manifest(command)) })) as { id: string; run_id: string };

test("a job is submitted, watched to its end, read, listed and cancelled", async () => {
  await using program = await startGatewayHere();
  using jobs = grpcClient(grpcAddress(program.output()), "svc.runtime.v1.JobService");
  const { id } = await submit(jobs, ["echo", "hello"]);
  const events: Fields[] = [];
  for await (const event of jobs.stream("WatchJob", { job_id: id })) events.push(event);
  assert.equal(events.at(-1)?.type, "job_completed");
  assert.deepEqual(
    events.map(({ event_id }) => Number(event_id)),
    events.map((_event, i) => i + 1),
  );
  const later: Fields[] = [];
  const after_event_id = String(events.length - 2);
  for await (const event of jobs.stream("WatchJob", { job_id: id, after_event_id })) later.push(event);
  assert.deepEqual(later, events.slice(-2));
  const { job, agents } = await jobs.call("GetJob", { job_id: id });
  assert.equal(job.status, "completed");
  assert.deepEqual(
    agents.map(({ agent_id, status }: Fields) => [agent_id, status]),
    [["work", "done"]],
  );
  const { id: second } = await submit(jobs, ["sleep", "1000"]);
  assert.equal((await jobs.call("CancelJob", { job_id: second })).status, "cancelled");
  const { data } = await jobs.call("ListJobs", { include_terminal: true, limit: 10 });
  assert.deepEqual(data.map(({ job_id }: Fields) => job_id).sort(), [id, second].sort());
  await refused(jobs.call("GetJob", { job_id: "nobody" }), status.NOT_FOUND, "not_found");
  await refused(jobs.call("CancelJob", { job_id: id }), status.INVALID_ARGUMENT, "validation_failed");
  await refused(jobs.call("SubmitJob", {}), status.INVALID_ARGUMENT, "validation_failed");
});

test("a watch that its client leaves has left the server too", async () => {
  await using program = await startGatewayHere();
  using jobs = grpcClient(grpcAddress(program.output()), "svc.runtime.v1.JobService");
  const { id } = await submit(jobs, ["sleep", "1000"]);
  const readers = async () => {
    const { text } = await ask(program, "GET", "/metrics", { headers: { accept: "text/plain" } });
    return Number(/^troupe_sse_subscribers (\d+)$/m.exec(text)?.[1]);
  };
  for await (const { type } of jobs.stream("WatchJob", { job_id: id })) {
    if (type !== "executor_lease_acquired") continue;
    assert.equal(await readers(), 1);
    break;
  }
  await until("the stream has no readers", async () => (await readers()) === 0);
  await jobs.call("CancelJob", { job_id: id });
});

test("a deadline ends a watch, and one beyond the longest timer is refused", async () => {
  await using program = await startGatewayHere();
  using jobs = grpcClient(grpcAddress(program.output()), "svc.runtime.v1.JobService");
  const { id } = await submit(jobs, ["sleep", "1000"]);
  const watch = (deadlineMs: number) =>
    failure(Array.fromAsync(jobs.stream("WatchJob", { job_id: id }, { deadline: Date.now() + deadlineMs })));
  assert.equal((await watch(300)).code, status.DEADLINE_EXCEEDED);
  const { code, details } = await watch(60 * 86_400_000);
  assert.deepEqual([code, /timeout/.test(details)], [status.INVALID_ARGUMENT, true]);
  await jobs.call("CancelJob", { job_id: id });
});

test("a watch of a job that has not ended reports that when the program stops, and health is told before", async () => {
  const program = await startGatewayHere();
  const address = grpcAddress(program.output());
  using jobs = grpcClient(address, "svc.runtime.v1.JobService");
  using health = grpcClient(address, "grpc.health.v1.Health");
  const { id } = await submit(jobs, ["sleep", "1000"]);
  const states = health.stream("Watch", {});
  assert.equal((await states.next()).value?.status, "SERVING");
  const next = states.next();
  next.catch(() => {});
  const seen: string[] = [];
  const watched = (async () => {
    for await (const { type } of jobs.stream("WatchJob", { job_id: id })) seen.push(type);
  })();
  watched.catch(() => {});
  await until("the command has slots", () => seen.includes("executor_lease_acquired"));
  await program.stop();
  const error = await failure(watched);
  assert.equal(error.code, status.UNAVAILABLE);
  assert.match(error.details, /ended before the job/);
  assert.equal((await next).value?.status, "NOT_SERVING");
});

test("an event starts a run of the schedule that reacts to it, and is listed", async () => {
  await using program = await startGatewayHere();
  const jobId = await createJob(program, manifest(["true"]));
  const filters = [{ path: "/payload/n", op: "eq", value: 1 }];
  const event = { type: "grpc.test", filters };
  const made = await json(program, "ScheduleService/Create", { target: { job_id: jobId }, event });
  assert.deepEqual(made.schedule.event.filters, filters);
  const told = { type: "grpc.test", payload: { n: 1 }, event_id: "grpc-1" };
  const emitted = await json(program, "ScheduleService/EmitEvent", told);
  assert.equal(emitted.event.matched[0].schedule_id, made.schedule.schedule_id);
  const listed = await json(program, "ScheduleService/ListEvents", { type: "grpc.test" });
  assert.deepEqual(listed.items, [emitted.event]);
});

test("a schedule is made, changed by who knows it, paused, resumed, dispatched and deleted", async () => {
  await using program = await startGatewayHere();
  const jobId = await createJob(program, manifest(["true"]));
  using schedules = grpcClient(grpcAddress(program.output()), "svc.runtime.v1.ScheduleService");
  const { schedule } = await schedules.call("Create", {
    name: "each morning",
    target: { job_id: jobId },
    cron: { expressions: ["0 9 * * *"], timezone: "Europe/Berlin" },
    inputs: struct({ topic: "bees" }),
  });
  const { schedule_id } = schedule;
  assert.equal(schedule.cron.timezone, "Europe/Berlin");
  assert.equal(schedule.next_runs.length, 5);
  const http = await ask(program, "GET", `/schedules/${schedule_id}`);
  const etag = http.headers.get("etag")!;
  const changes = struct({ cron: { timezone: "UTC" } });
  const changed = await schedules.call("Update", { schedule_id, etag, changes });
  assert.equal(changed.schedule.cron.timezone, "UTC");
  const stale = schedules.call("Update", { schedule_id, etag: '"schedule-0"', changes });
  await refused(stale, status.ABORTED, "precondition_failed");
  await refused(
    schedules.call("Update", { schedule_id, changes }),
    status.INVALID_ARGUMENT,
    "precondition_required",
  );
  assert.equal((await schedules.call("Pause", { schedule_id })).schedule.status, "paused");
  assert.equal((await schedules.call("Resume", { schedule_id })).schedule.status, "active");
  const key = { "idempotency-key": "once" };
  const first = await schedules.call("Dispatch", { schedule_id }, key);
  assert.deepEqual(await schedules.call("Dispatch", { schedule_id }, key), first);
  const { items } = await schedules.call("List", { kind: "cron", page_size: 10 });
  assert.deepEqual(
    items.map((one: Fields) => one.schedule_id),
    [schedule_id],
  );
  const now = await ask(program, "GET", `/schedules/${schedule_id}`);
  assert.equal((await schedules.call("GetStatus", { schedule_id })).schedule.counts.dispatched, 1);
  await schedules.call("Delete", { schedule_id, etag: now.headers.get("etag")! });
  await refused(schedules.call("GetStatus", { schedule_id }), status.NOT_FOUND, "schedule_not_found");
});

test("what is wrong with a request is told field by field", async () => {
  await using program = await startGatewayHere();
  const { details } = await json(program, "ScheduleService/Create", { cron: { expressions: ["never"] } });
  assert.deepEqual(
    details.map(({ type, debug }: Fields) => [type, debug.reason ?? debug.fieldViolations[0].field]),
    [
      ["google.rpc.ErrorInfo", "validation_failed"],
      ["google.rpc.BadRequest", "/cron/expressions/0"],
    ],
  );
  using deployments = grpcClient(grpcAddress(program.output()), "svc.runtime.v1.DeploymentService");
  const none = await failure(deployments.call("Deploy", { source: { bundle_id: "a" } }));
  assert.equal(none.details, "/name: is required. Nothing was changed.");
  const unknown = await failure(deployments.call("GetStatus", { deployment_id: "a/%2F ö" }));
  assert.match(unknown.details, /^Deployment a\/%2F ö was not found/);
  // Quotations are cut off, here within one of the characters.
  for (const bundle_id of ["😀".repeat(3_000), `a${"😀".repeat(3_000)}`]) {
    const quoting = await failure(deployments.call("Deploy", { name: "x", source: { bundle_id } }));
    assert.match(quoting.details, /there is no bundle "a?😀/);
  }
});

test("nodes are listed, read and reconciled, and one that is alone says what makes a cluster", async () => {
  await using program = await startGatewayHere();
  using nodes = grpcClient(grpcAddress(program.output()), "svc.runtime.v1.NodeService");
  const { items } = await nodes.call("ListNodes");
  const { node_id } = items[0];
  assert.equal(items[0].self, true);
  assert.deepEqual((await nodes.call("GetNode", { node_id })).node.node_id, node_id);
  assert.deepEqual((await nodes.call("ReconcileNode", { node_id, fix: true })).differences, []);
  for (const method of ["DrainNode", "CancelNodeDrain", "GetNodeDrainStatus"])
    await refused(nodes.call(method, { node_id }), status.FAILED_PRECONDITION, "not_clustered");
  const maintenance = nodes.call("SetNodeMaintenance", { node_id, enabled: true });
  await refused(maintenance, status.FAILED_PRECONDITION, "not_clustered");
});

test("services are listed and resolved", async () => {
  await using program = await startGatewayHere();
  using services = grpcClient(grpcAddress(program.output()), "svc.runtime.v1.ServiceService");
  using jobs = grpcClient(grpcAddress(program.output()), "svc.runtime.v1.JobService");
  await refused(services.call("ResolveService", { name: "index" }), status.NOT_FOUND, "service_not_found");
  // The gateway's own.
  const port = Number(new URL(program.url).port);
  const graph = { ...manifest(["sleep", "1000"]), services: [{ name: "index", port }] };
  const { id } = await jobs.call("SubmitJob", { manifest: struct(graph) });
  await until("the service is passing", async () => {
    const { items } = await services.call("ListServices", { name: "index", status: "passing" });
    return items.length === 1;
  });
  const { service } = await services.call("ResolveService", { name: "index" });
  assert.deepEqual([service.name, service.port, service.status], ["index", port, "passing"]);
  const checkedAt = ({ checks }: Fields) =>
    Number(checks[0].last_checked_at.seconds) * 1e9 + checks[0].last_checked_at.nanos;
  const { items } = await services.call("CheckServices", { name: "index" });
  assert.ok(checkedAt(items[0]) > checkedAt(service));
  await jobs.call("CancelJob", { job_id: id });
});

test("limits are set by who knows them, and read", async () => {
  await using program = await startGatewayHere();
  using resources = grpcClient(grpcAddress(program.output()), "svc.runtime.v1.ResourceService");
  const etag = (await ask(program, "GET", "/resource")).headers.get("etag")!;
  const limits = struct({ cpu_percent: 50, gpu_indices: [] });
  const set = await resources.call("SetResource", { limits, etag });
  assert.equal(set.resource.revision, 2);
  const { resource } = await resources.call("GetResource");
  assert.equal(resource.effective.cpu_cores, resource.totals.cpu_cores / 2);
  await refused(resources.call("SetResource", { limits, etag }), status.ABORTED, "precondition_failed");
  const wrong = resources.call("SetResource", { limits: struct({ cpu_percent: 101 }) });
  await refused(wrong, status.INVALID_ARGUMENT, "validation_failed");
});

test("with a token nobody is served without it, and what is wrong is said in the caller's protocol", async () => {
  await using program = await startGatewayHere({ env: { SVC_API_TOKEN: TOKEN } });
  const address = grpcAddress(program.output());
  for (const token of [undefined, "another-token-of-16"]) {
    using nodes = grpcClient(address, "svc.runtime.v1.NodeService", token === undefined ? {} : { token });
    const error = await failure(nodes.call("ListNodes"));
    assert.deepEqual([error.code, reasonOf(error)], [status.UNAUTHENTICATED, "unauthorized"]);
    assert.match(error.details, /wants the token: send .* SVC_API_TOKEN/);
    using health = grpcClient(address, "grpc.health.v1.Health", token === undefined ? {} : { token });
    assert.equal((await failure(health.call("Check"))).code, status.UNAUTHENTICATED);
  }
  const { code, details } = await json(program, "NodeService/ListNodes", {});
  assert.deepEqual([code, details[0].debug.reason], ["unauthenticated", "unauthorized"]);
  for (const name of ["Node", "Job"]) {
    using client = grpcClient(address, `svc.runtime.v1.${name}Service`, { token: TOKEN });
    await client.call(`List${name}s`);
  }
});

test("with TLS it is served over TLS only, and to those with a certificate where one is asked for", {
  skip: hasOpenssl() ? false : "there is no openssl",
}, async () => {
  using authority = makeAuthority();
  const server = authority.files("DNS:localhost");
  const client = authority.files("DNS:client");
  const [ca, clientKey, clientCert] = [server.ca, client.key, client.cert].map((file) => readFileSync(file));
  for (const asked of [{}, { SVC_TLS_CLIENT_CA: server.ca }]) {
    const env = { SVC_TLS_CERT: server.cert, SVC_TLS_KEY: server.key, ...asked };
    await using program = await startGatewayHere({ env });
    const address = grpcAddress(program.output());
    const known = credentials.createSsl(ca, clientKey, clientCert);
    using trusted = grpcClient(address, "svc.runtime.v1.NodeService", { channel: known });
    assert.equal((await trusted.call("ListNodes")).items.length, 1);
    using unknown = grpcClient(address, "svc.runtime.v1.NodeService", {
      channel: credentials.createSsl(ca!),
    });
    if ("SVC_TLS_CLIENT_CA" in asked) await failure(unknown.call("ListNodes"));
    else await unknown.call("ListNodes");
    using plain = grpcClient(address, "svc.runtime.v1.NodeService");
    await failure(plain.call("ListNodes"));
  }
});

test("a certificate and a key that do not fit together end the start", {
  skip: hasOpenssl() ? false : "there is no openssl",
}, async () => {
  using authority = makeAuthority();
  const [one, other] = [authority.files("IP:127.0.0.1"), authority.files("IP:127.0.0.1")];
  await assert.rejects(
    startGatewayHere({ env: { SVC_TLS_CERT: one.cert, SVC_TLS_KEY: other.key } }),
    /SVC_TLS_CERT/,
  );
});

test("pages of other sites are refused", async () => {
  await using program = await startGatewayHere({ env: { SVC_CORS_ORIGINS: "https://console.example.org" } });
  const allowed = { origin: "https://console.example.org" };
  assert.equal((await json(program, "NodeService/ListNodes", {}, allowed)).items.length, 1);
  const headers = { origin: "https://evil.example.org" };
  assert.equal((await json(program, "NodeService/ListNodes", {}, headers)).code, "permission_denied");
  const renamed = { host: "evil.example.org" };
  assert.equal((await json(program, "NodeService/ListNodes", {}, renamed)).code, "permission_denied");
});

test("health and reflection answer, for buf too", async () => {
  await using program = await startGatewayHere();
  const address = grpcAddress(program.output());
  using health = grpcClient(address, "grpc.health.v1.Health");
  assert.equal((await health.call("Check", { service: "svc.runtime.v1.JobService" })).status, "SERVING");
  assert.equal((await failure(health.call("Check", { service: "nobody" }))).code, status.NOT_FOUND);
  const buf = join(import.meta.dirname, "../../node_modules/.bin/buf");
  const words = ["curl", "--http2-prior-knowledge", "--protocol", "grpc"];
  const { stdout } = await run(buf, [...words, "--list-methods", `http://${address}`]);
  const described = [...protocol.map(({ service }) => service), Health, ServerReflection];
  const methods = described.flatMap((service) =>
    service.methods.map(({ name }) => `${service.typeName}/${name}`),
  );
  assert.deepEqual(stdout.trim().split("\n").sort(), methods.sort());
  const called = await run(buf, [
    ...words,
    "-d",
    "{}",
    `http://${address}/svc.runtime.v1.NodeService/ListNodes`,
  ]);
  assert.equal(JSON.parse(called.stdout).items.length, 1);
});

test("what is too large, unknown or no HTTP at all is refused, and the port serves on", async () => {
  await using program = await startGatewayHere({ env: { SVC_BODY_MAX_BYTES: "65536" } });
  const address = grpcAddress(program.output());
  using jobs = grpcClient(address, "svc.runtime.v1.JobService");
  const large = jobs.call("SubmitJob", { manifest: struct({ ...manifest([]), note: "x".repeat(100_000) }) });
  assert.equal((await failure(large)).code, status.RESOURCE_EXHAUSTED);
  const misspelt = await json(program, "DeploymentService/Deploy", { name: "x", cuont: 3 });
  assert.deepEqual([misspelt.code, /cuont/.test(misspelt.message)], ["invalid_argument", true]);
  const answer = await fetch(`http://${address}/svc.runtime.v1.JobService/Nothing`, { method: "POST" });
  assert.equal(answer.status, 404);
  const [host, port] = address.split(":");
  for (const bytes of ["PRI * HTTP/2.0\r\n\r\nnonsense", "\x16\x03\x01\x00", "GET\r\n\r\n"]) {
    const socket = connect(Number(port), host);
    socket.on("error", () => {});
    socket.write(bytes);
    socket.resume();
    await new Promise((resolve) => {
      socket.once("close", resolve);
      socket.end();
    });
  }
  await jobs.call("ListJobs");
});

async function json(
  program: { output(): string },
  method: string,
  body: object,
  headers: Record<string, string> = {},
): Promise<Fields> {
  const path = `/svc.runtime.v1.${method}`;
  const [host, port] = grpcAddress(program.output()).split(":");
  const asked = {
    method: "POST",
    host,
    port,
    path,
    headers: { "content-type": "application/json", ...headers },
  };
  const sent = request(asked).end(JSON.stringify(body));
  const [answer] = (await once(sent, "response")) as [IncomingMessage];
  return JSON.parse((await answer.toArray()).join("")) as Fields;
}

test("a deployment is deployed, updated, promoted, rolled back, paused, resumed and failed", async () => {
  await using program = await startGatewayHere();
  const bundleId = await uploadBundle(program, graph("deployed", [router("in")], [], { type: "service" }));
  using client = grpcClient(grpcAddress(program.output()), "svc.runtime.v1.DeploymentService");
  const strategy = { kind: "canary", min_healthy_seconds: 0, drain_seconds: 0 };
  const asked = { name: "deployed", source: { bundle_id: bundleId }, count: 2, strategy };
  const { deployment_id } = (await client.call("Deploy", asked)).deployment;
  const is = (wanted: string) =>
    until(`it is ${wanted}`, async () => {
      const { deployment } = await client.call("GetStatus", { deployment_id });
      return deployment.status === wanted && deployment;
    });
  const made = await is("succeeded");
  assert.deepEqual([made.healthy, made.instances.length, made.strategy.kind], [2, 2, "canary"]);
  const update = (n: number) =>
    client.call("Update", { deployment_id, etag: "*", changes: struct({ config: { n } }) });
  await update(2);
  await is("awaiting_promotion");
  assert.equal((await client.call("Promote", { deployment_id })).deployment.status, "running");
  await is("succeeded");
  await client.call("Rollback", { deployment_id, version: 1 });
  assert.equal(Number((await is("rolled_back")).version), 1);
  await update(3);
  await is("awaiting_promotion");
  assert.equal((await client.call("Pause", { deployment_id })).deployment.status, "paused");
  await client.call("Resume", { deployment_id });
  await is("awaiting_promotion");
  assert.equal(
    (await client.call("Fail", { deployment_id, rollback: true })).deployment.is_rolling_back,
    true,
  );
  await is("rolled_back");
  const { items } = await client.call("List", { status: "rolled_back", page_token: "" });
  assert.deepEqual(
    items.map((one: Fields) => one.deployment_id),
    [deployment_id],
  );
  await refused(client.call("Promote", { deployment_id }), status.FAILED_PRECONDITION, "invalid_transition");
});
