// The gateway as a whole: what the service does, its health, its version, and the routes that are gone. Sentences in
// quotes are the specification's own, shortened.

import assert from "node:assert/strict";
import { readFile, rm } from "node:fs/promises";
import type { Server } from "node:net";
import { after, before, describe, test } from "node:test";
import type { JsonObject } from "../../src/engine/json.ts";
import { type Gates, makeGates } from "../support/gates.ts";
import { ask, assertProblem, call, createJob, ended, happens, startRun } from "../support/gateway-api.ts";
import { executor, graph, router } from "../support/graphs.ts";
import { databaseKind, refusedStartHere, startGatewayHere } from "../support/in-process.ts";
import { closed, freePorts, listenAt } from "../support/ports.ts";
import { type Program, temporaryHome } from "../support/program.ts";
import { dial, read, request } from "../support/raw-http.ts";

let program: Program;
let gates: Gates;
before(async () => {
  gates = await makeGates();
  program = await startGatewayHere({ env: { SVC_EXECUTOR_MAX_CONCURRENCY: "4" } });
});
after(async () => {
  await program.stop();
  await gates.remove();
});

describe("what the service does", () => {
  test('"A job is a durable definition. A run is one execution of a job": a job has any number of runs', async () => {
    const jobId = await createJob(program, graph("many", [router("in")]));
    const runIds = [await startRun(program, jobId), await startRun(program, jobId)];
    assert.equal(new Set(runIds).size, 2);
    for (const runId of runIds) {
      const { run } = await ended(program, runId);
      assert.deepEqual([run.job_id, run.status], [jobId, "completed"]);
    }
  });

  test('"Starting a run is accepted asynchronously: acceptance does not mean completion"', async () => {
    const gate = gates.pipe("later");
    const jobId = await createJob(program, graph("later", [executor("in", ["cat", gate])]));
    const accepted = await ask(program, "POST", `/jobs/${jobId}/runs`, { body: {} });
    assert.equal(accepted.status, 202);
    const runId = String(accepted.body.run_id);
    await happens(program, runId, "sandbox_job_started");
    const { status, finished_at, result } = await call(program, "GET", `/runs/${runId}`);
    assert.deepEqual({ status, finished_at, result }, { status: "running", finished_at: null, result: null });
    await gates.open(gate);
    assert.equal((await ended(program, runId)).run.status, "completed");
  });

  test('"a bundle may run code and perform external actions. Cancelling a run cannot reverse" them', async () => {
    const [performed, mark] = [gates.pipe("performed"), `${gates.folder}/mark`];
    const command = `echo performed > ${mark}; echo > ${performed}; sleep 600`;
    const jobId = await createJob(program, graph("external", [executor("in", command)]));
    const runId = await startRun(program, jobId);
    await gates.released(performed);
    await call(program, "PATCH", `/runs/${runId}`, { desired_state: "cancelled" });
    assert.equal((await ended(program, runId)).run.status, "cancelled");
    assert.equal(await readFile(mark, "utf8"), "performed\n");
  });

  test('"The running service serves interactive API documentation at the path /docs of its origin"', async () => {
    const docs = await fetch(`${program.url}/docs`);
    assert.equal(docs.status, 200);
    assert.match(docs.headers.get("content-type") ?? "", /^text\/html/);
    const page = await docs.text();
    assert.match(page, /\/openapi\.json/);
    assert.doesNotMatch(page, /(?:src|href)="https?:/, "everything it needs comes from this server");
  });

  test('"It is the authoritative contract for the exact version that runs": the document names that version', async () => {
    const document = (await (await fetch(`${program.url}/openapi.json`)).json()) as {
      readonly openapi: string;
      readonly info: { readonly version: string };
    };
    assert.match(document.openapi, /^3\.1\./);
    assert.equal(document.info.version, (await call(program, "GET", "/health")).version);
  });
});

describe("settings", () => {
  let holder: Server;
  let port = 0;
  before(async () => {
    port = await freePorts(1);
    holder = await listenAt(port);
  });
  after(() => holder.close());

  test('"a taken port names the port and who to ask", "exit code 1 for anything else that stops the start"', async () => {
    const home = await temporaryHome();
    try {
      const { code, text } = await refusedStartHere({
        args: ["gateway"],
        home,
        env: { SVC_API_PORT: String(port) },
      });
      assert.equal(code, 1);
      assert.match(text, new RegExp(`\\b${port}\\b`));
      assert.match(text, /SVC_API_PORT/);
    } finally {
      await rm(home, { recursive: true, force: true });
    }
  });

  test('"The port is set by the environment variable SVC_API_PORT", for `troupe gateway` too', async () => {
    await closed(holder);
    await using gateway = await startGatewayHere({
      command: "gateway",
      env: { SVC_API_PORT: String(port), SVC_ENV: "test" },
    });
    assert.equal(gateway.url, `http://127.0.0.1:${port}`);
    const { configuration } = await call(gateway, "GET", "/health");
    assert.equal((configuration as JsonObject).environment, "test");
  });

  test('"rate_limited 429 with Retry-After": off by default, by setting; health is never counted', async () => {
    await using gateway = await startGatewayHere({ command: "gateway", env: { SVC_RATE_LIMIT: "3" } });
    for (let i = 0; i < 3; i++) assert.equal((await ask(gateway, "GET", "/jobs")).status, 200);
    const limited = await ask(gateway, "GET", "/jobs");
    assertProblem(limited, 429, "rate_limited");
    assert.ok(Number(limited.headers.get("retry-after")) >= 1);
    assert.equal((await ask(gateway, "GET", "/health")).status, 200);
  });
});

describe("health", () => {
  test('"The health response carries a liveness indication, a summary of the active configuration, and api_contract"', async () => {
    const { status, body } = await ask(program, "GET", "/health");
    assert.equal(status, 200);
    assert.equal(body.status, "ok");
    assert.equal(typeof body.version, "string");
    assert.ok(Number.isInteger(body.uptime_seconds));
    const { environment, auth, store, executor_pools } = body.configuration as JsonObject;
    assert.deepEqual(
      { environment, auth, store, executor_pools },
      { environment: "dev", auth: "none", store: databaseKind, executor_pools: { default: 4 } },
    );
    assert.equal(typeof body.checks, "object");
  });

  test('"The value of api_contract is svc.rest.v1"', async () => {
    assert.equal((await call(program, "GET", "/health")).api_contract, "svc.rest.v1");
  });

  test('health shows "no secret, no path"', async () => {
    const { text } = await ask(program, "GET", "/health");
    assert.ok(!text.includes(program.home), text);
    assert.doesNotMatch(text, /[^:]\/(?:tmp|home|root|usr|var)\b/);
  });
});

describe("versioning", () => {
  test('"All routes are under the prefix /api/v1"', async () => {
    const document = (await (await fetch(`${program.url}/openapi.json`)).json()) as {
      readonly paths: object;
    };
    const paths = Object.keys(document.paths);
    assert.ok(paths.length > 25, `${paths.length} paths`);
    // Other programs' door, and that of browsers: they are none of the API's routes.
    const ofApi = paths.filter((path) => path !== "/hooks/{token}" && !path.startsWith("/console/"));
    for (const path of ofApi) assert.ok(path.startsWith("/api/v1/"), path);
    assertProblem(await askAt("GET", "/jobs"), 404, "not_found");
    assertProblem(await askAt("GET", "/health"), 404, "not_found");
  });

  for (const path of [
    "/api/v2",
    "/api/v2/health",
    "/api/v2/jobs",
    "/api/v1/runtime-runs",
    "/api/v1/runtime-runs/run_1",
    "/runtime-runs",
    "/api/v1/blueprints/any/install",
    "/api/v1/blueprints/any/uninstall",
    "/api/v1/ws",
    "/ws",
  ]) {
    test(`"Removed routes": ${path} is answered with 404`, async () => {
      for (const method of ["GET", "POST", "PUT", "PATCH", "DELETE"]) {
        assertProblem(await askAt(method, path), 404, "not_found");
      }
    });
  }

  test('"all WebSocket routes" are removed: a handshake is answered with 404 and a problem body', async () => {
    const headers = [
      "Connection: Upgrade",
      "Upgrade: websocket",
      "Sec-WebSocket-Version: 13",
      "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
    ];
    for (const path of ["/ws", "/api/v1/ws", "/api/v1/jobs", "/api/v1/runs/run_1/events/stream"]) {
      const socket = await dial(program);
      socket.write(request("GET", path, headers));
      const [answer] = await read(socket, 1);
      socket.destroy();
      assert.equal(answer?.status, 404, path);
      assert.equal(answer?.headers.get("content-type"), "application/problem+json");
      assert.equal((JSON.parse(answer?.body ?? "{}") as JsonObject).code, "not_found");
    }
  });
});

/** A request to a path of the origin, wherever it is. */
async function askAt(method: string, path: string) {
  return ask({ ...program, api: program.url }, method, path);
}
