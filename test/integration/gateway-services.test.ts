// Services through the program: real workers that listen, real checks, real kills.

import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import type { JsonObject } from "../../src/engine/json.ts";
import {
  ask,
  assertProblem,
  call,
  createJob,
  happens,
  runtimeApiOf,
  startGateway,
  startRun,
  walk,
} from "../support/gateway-api.ts";
import { executor, graph } from "../support/graphs.ts";
import { startGatewayHere } from "../support/in-process.ts";
import { Judge, openApiOf } from "../support/openapi.ts";
import { freePorts } from "../support/ports.ts";
import { processesWith } from "../support/processes.ts";
import { type Program, temporaryHome } from "../support/program.ts";
import { until } from "../support/until.ts";

let program: Program;
let runtime: Program;
let judge: Judge;
before(async () => {
  program = await startGatewayHere({ env: { SVC_EXECUTOR_MAX_CONCURRENCY: "16" } });
  runtime = await runtimeApiOf(program);
  judge = new Judge(await openApiOf(program));
});
after(() => program.stop());

const offer = (nodeId: string, command: readonly string[], service: JsonObject, config: JsonObject = {}) => ({
  ...executor(nodeId, [...command], { lifecycle: "long_lived", ...config }),
  services: [service],
});

/** Often, and with time enough: on a machine that stands still for a moment nothing becomes critical. */
const quick = (type: string, more: JsonObject = {}) => ({
  type,
  interval_ms: 100,
  timeout_ms: 60_000,
  ...more,
});

async function judged(path: string) {
  const answer = await ask(program, "GET", path);
  judge.check("GET", `/api/v1${path}`, answer);
  return answer;
}

const passing = (of: Program, name: string) =>
  until(`${name} is passing`, async () => {
    const { status, body } = await ask(of, "GET", `/services/${name}/resolve`);
    return status === 200 ? body : null;
  });

/** Waits until a service is answered with this status. */
const answered = (status: number, name: string) =>
  until(`${name} is answered with ${status}`, async () => {
    return (await ask(program, "GET", `/services/${name}/resolve`)).status === status;
  });

const healthServer = `
import { createServer } from "node:http2";
createServer().on("stream", (stream) => {
  stream.respond({ ":status": 200, "content-type": "application/grpc" }, { waitForTrailers: true });
  stream.on("wantTrailers", () => stream.sendTrailers({ "grpc-status": "0" }));
  stream.end(Buffer.from([0, 0, 0, 0, 2, 8, 1]));
}).listen(Number(process.argv[1]), "127.0.0.1");
`;

test("services of real workers pass once they listen, and those whose worker is killed are gone", async () => {
  const http = await freePorts(3);
  const [tcp, grpc] = [http + 1, http + 2];
  const python = ["python3", "-m", "http.server", "--bind", "127.0.0.1", String(http)];
  const listen = `require("node:net").createServer().listen(${tcp}, "127.0.0.1")`;
  const node = process.execPath;
  const idle = ["sleep", "600"];
  const script = { type: "script", command: ["python3", "well.py"], interval_ms: 1_000, timeout_ms: 60_000 };
  const manifest = graph(
    "offering",
    [
      offer("pages", python, {
        name: "pages",
        port: http,
        tags: ["blueprint", "html"],
        public_url: "http://pages.example/",
        meta: { team: "one" },
        checks: [quick("http", { path: "/", contains: "Directory" }), quick("tcp")],
      }),
      offer("echo", [node, "-e", listen], { name: "echo", port: tcp, checks: [quick("tcp")] }),
      offer("health", [node, "--input-type=module", "-e", healthServer, String(grpc)], {
        name: "health",
        port: grpc,
        checks: [quick("grpc", { service: "x" })],
      }),
      offer("scripted", idle, { name: "scripted", checks: [script] }),
    ],
    [],
    { type: "service", policies: { failure_policy: "continue" }, services: [{ name: "whole" }] },
  );
  const files = { "payloads/well.py": "import os\nprint(os.environ['SVC_SERVICE_NAME'])\n" };
  const jobId = await createJob(program, manifest, {}, files);
  const runId = await startRun(program, jobId);
  for (const name of ["pages", "echo", "health", "scripted", "whole"]) await passing(program, name);

  const { body: pages } = await judged("/services/pages/resolve?tag=html&tag=blueprint");
  assert.deepEqual(
    { name: pages.name, status: pages.status, tags: pages.tags, port: pages.port, address: pages.address },
    { name: "pages", status: "passing", tags: ["blueprint", "html"], port: http, address: "127.0.0.1" },
  );
  assert.deepEqual([pages.run_id, pages.job_id, pages.agent_id], [runId, jobId, "pages"]);
  assert.equal(pages.public_url, "http://pages.example/");
  assert.deepEqual(pages.meta, {
    team: "one",
    public_url: "http://pages.example/",
    run_id: runId,
    job_id: jobId,
    node: pages.node,
  });
  const [scripted] = (await judged("/services?name=scripted")).body.items as unknown as readonly {
    checks: readonly { output: string }[];
  }[];
  assert.equal(scripted?.checks[0]?.output, "exit code 0: scripted");

  const walked = await walk(program, `/services?run_id=${runId}`, 2);
  assert.deepEqual(
    walked.map(({ name }) => name),
    ["echo", "health", "pages", "scripted", "whole"],
  );
  const [tagged] = await walk(program, "/services?tag=html&status=passing");
  assert.equal(tagged?.name, "pages");
  for (const both of ["tag=html,blueprint", "tag=html&tag=blueprint"]) {
    assert.deepEqual(
      (await walk(program, `/services?${both}`)).map(({ name }) => name),
      ["pages"],
    );
    assert.deepEqual(await walk(program, `/services?${both}&tag=none`), []);
  }

  for (const pid of processesWith(`SVC_RUN_ID=${runId}`)) {
    if (processesWith("SVC_AGENT_ID=pages").includes(pid)) process.kill(pid, "SIGKILL");
  }
  await answered(404, "pages");
  assertProblem(await judged("/services/pages/resolve"), 404, "service_not_found");
  await happens(program, runId, (event) => {
    return event.type === "service_deregistered" && event.payload.name === "pages";
  });
  await call(program, "PATCH", `/runs/${runId}`, { desired_state: "cancelled" });
  const ended = await happens(program, runId, "job_cancelled");
  const events = await walk(program, `/runs/${runId}/events`);
  assert.equal(events.at(-1)?.id, ended.id);
  const of = (type: string) => events.filter((event) => event.type === type).length;
  assert.deepEqual([of("service_registered"), of("service_deregistered")], [5, 5]);
  assert.ok(of("service_passing") >= 5);
  assert.deepEqual(await walk(program, `/services?run_id=${runId}`), []);
});

test("a service that is there and does not answer is critical, and so are callers told", async (t) => {
  const port = await freePorts(1);
  const folder = await mkdtemp(join(tmpdir(), "services-"));
  t.after(() => rm(folder, { recursive: true }));
  const door = join(folder, "closed");
  // It stops listening as soon as the file is there, and goes on living.
  const closing = `
    const server = require("node:net").createServer().listen(${port}, "127.0.0.1");
    const { existsSync } = require("node:fs");
    setInterval(() => existsSync(${JSON.stringify(door)}) && server.close(), 20);
  `;
  const service = { name: "closing", port, checks: [quick("tcp")] };
  const manifest = graph("closing", [offer("w", [process.execPath, "-e", closing], service)], [], {
    type: "service",
  });
  const runId = await startRun(program, await createJob(program, manifest));
  await passing(program, "closing");
  await writeFile(door, "");
  await answered(503, "closing");
  const answer = await judged("/services/closing/resolve");
  const problem = assertProblem(answer, 503, "service_not_passing");
  assert.match(String(problem.detail), /ECONNREFUSED/);
  assert.ok(Number(answer.headers.get("retry-after")) > 0);
  const refused = await ask(runtime, "GET", "/services/closing/resolve");
  assert.deepEqual([refused.status, Object.keys(refused.body)], [503, ["error"]]);
  await call(program, "PATCH", `/runs/${runId}`, { desired_state: "cancelled" });
});

test("what the routes refuse, they refuse as all routes do", async () => {
  for (const query of ["status=well", "colour=red", "page_size=0", "name=a&name=b"]) {
    assertProblem(await judged(`/services?${query}`), 400, "invalid_parameter");
  }
  assertProblem(await judged("/services?page_token=x"), 400, "invalid_page_token");
  assertProblem(await judged("/services/x/resolve?colour=red"), 400, "invalid_parameter");
  assertProblem(await judged("/services/x/resolve?tag=a,b&node=elsewhere"), 404, "service_not_found");
  assert.equal((await ask(runtime, "GET", "/services?status=well")).status, 400);
  assert.equal((await ask(runtime, "GET", "/services/x/resolve")).status, 404);
});

test("a graph whose services are not passing is refused by both APIs, and taken once they are", async () => {
  const needs = graph("needing", [executor("w", ["true"])], [], {
    required_services: ["needed", { name: "other", tags: ["x"] }],
  });
  const refused = await ask(runtime, "POST", "/jobs", { body: needs });
  assert.deepEqual([refused.status, Object.keys(refused.body)], [409, ["error"]]);
  assert.match(String(refused.body.error), /"needed".*"other" with the tags x/);
  const run = await ask(program, "POST", `/jobs/${await createJob(program, needs)}/runs`, { body: {} });
  assert.match(String(assertProblem(run, 409, "requirements_not_met").detail), /"needed"/);
  const services = [{ name: "needed" }, { name: "other", tags: ["x", "y"] }];
  const offering = graph("needed", [executor("w", ["true"])], [], { type: "service", services });
  const { id } = await call(runtime, "POST", "/jobs", offering);
  await passing(runtime, "other");
  assert.equal((await ask(runtime, "POST", "/jobs", { body: needs })).status, 201);
  const listed = (await call(runtime, "GET", "/services?tag=y&tag=x"))
    .data as unknown as readonly JsonObject[];
  assert.deepEqual(
    listed.map(({ name, job_id }) => [name, job_id]),
    [["other", id]],
  );
  // The gateway knows the service, but not the ids of a job that is not its own.
  const { body } = await judged("/services/other/resolve");
  assert.deepEqual([body.name, body.job_id, body.run_id], ["other", null, null]);
  await call(runtime, "POST", `/jobs/${id}/cancel`);
  await answered(404, "other");
});

test("after kill -9 a service is not passing before it was reached again, and has the same id", async (t) => {
  const home = await temporaryHome();
  t.after(() => rm(home, { recursive: true, force: true }));
  const port = await freePorts(1);
  const gate = join(home, "may listen");
  // From the second life on it listens only once it may.
  const patient = `
    const { existsSync } = require("node:fs");
    const listen = () => require("node:net").createServer().listen(${port}, "127.0.0.1");
    const isFirst = process.env.SVC_ATTEMPT === "1";
    const timer = setInterval(() => {
      if (!isFirst && !existsSync(${JSON.stringify(gate)})) return;
      clearInterval(timer);
      listen();
    }, 20);
  `;
  const service = { name: "lasting", port, checks: [quick("tcp")] };
  const manifest = graph("lasting", [offer("w", [process.execPath, "-e", patient], service)], [], {
    type: "service",
    services: [{ name: "job-wide" }],
  });
  await using first = await startGateway({ home });
  const runId = await startRun(first, await createJob(first, manifest));
  const { service_id: id } = await passing(first, "lasting");
  // The registry knows it first; what the history has not taken in yet would be gone with the process.
  await happens(first, runId, (event) => event.type === "service_passing" && event.agent_id === "w");
  await first.kill();
  {
    await using second = await startGatewayHere({ home });
    await passing(second, "job-wide");
    await happens(
      second,
      runId,
      (event) => event.type === "sandbox_job_started" && event.payload.attempt === 2,
    );
    const [listed] = await until("the service is registered again", async () => {
      const items = await walk(second, "/services?name=lasting");
      return items.length > 0 ? items : null;
    });
    assert.deepEqual([listed?.service_id, listed?.status], [id, "critical"]);
    assertProblem(await ask(second, "GET", "/services/lasting/resolve"), 503, "service_not_passing");
    await writeFile(gate, "");
    assert.equal((await passing(second, "lasting")).service_id, id);
    await until("both lives of it are told", async () => {
      const events = await walk(second, `/runs/${runId}/events`);
      return events.filter((one) => one.type === "service_passing" && one.agent_id === "w").length >= 2;
    });
    await call(second, "PATCH", `/runs/${runId}`, { desired_state: "cancelled" });
  }
});
