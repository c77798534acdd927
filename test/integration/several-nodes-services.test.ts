// Two real programs on one PostgreSQL: what the runs of one of them offer and have left, asked for at the other one.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import type { JsonObject } from "../../src/engine/json.ts";
import { ask, call, createJob, ended, happens, startRun, walk } from "../support/gateway-api.ts";
import { executor, graph, sensor } from "../support/graphs.ts";
import { freePorts } from "../support/ports.ts";
import type { Program } from "../support/program.ts";
import { Nodes } from "../support/several-nodes.ts";
import { until } from "../support/until.ts";

let firstPort: number;
let nodes: Nodes<"a" | "b">;
let a: Program;
let b: Program;

before(async () => {
  firstPort = await freePorts(5);
  const env = (name: "a" | "b") => {
    const [port, host] = name === "a" ? [firstPort, "127.0.0.1"] : [firstPort + 2, "localhost"];
    return {
      SVC_BLUEPRINT_WEB_UI_PORT_START: String(port),
      SVC_BLUEPRINT_WEB_UI_PORT_END: String(port + 1),
      SVC_BLUEPRINT_WEB_UI_PUBLIC_URL: `http://${host}:{port}/`,
    };
  };
  nodes = await Nodes.start(["a", "b"], { filesAreShared: true, env });
  [a, b] = [nodes.of("a"), nodes.of("b")];
});
after(() => nodes[Symbol.asyncDispose]());

const passing = (at: Program, path: string) =>
  until(`${path} has one`, async () => (await walk(at, `${path}&status=passing`))[0] ?? null);

const resolved = (at: Program, name: string, query = "") =>
  until(`${name} is resolved`, async () => {
    const { status, body } = await ask(at, "GET", `/services/${name}/resolve${query}`);
    return status === 200 ? body : null;
  });

describe("two programs on one database", () => {
  test("find a service of a run wherever it is, start what requires it, and lose it with its run", async () => {
    const port = firstPort + 4;
    const listen = `require("node:net").createServer().listen(${port}, "127.0.0.1")`;
    const offering = {
      ...executor("web", [process.execPath, "-e", listen], { lifecycle: "long_lived" }),
      services: [{ name: "index", port, tags: ["x"], checks: [{ type: "tcp", interval_ms: 100 }] }],
    };
    const policies = { placement_policy: "spread" };
    const jobId = await createJob(a, graph("offering", [offering], [], { type: "service", policies }));
    const runId = await startRun(a, jobId);
    const there = await resolved(b, "index", "?tag=x&node=a");
    assert.deepEqual([there.run_id, there.job_id, there.node, there.port], [runId, jobId, "a", port]);
    const [here] = await walk(a, `/services?run_id=${runId}`);
    const [listed] = await walk(b, `/services?run_id=${runId}`);
    assert.deepEqual([listed?.service_id, listed?.node], [here?.service_id, "a"]);
    assert.equal((await ask(b, "GET", "/services/index/resolve?node=b")).status, 404);
    const needs = graph("needing", [executor("w", ["true"])], [], { required_services: ["index"] });
    assert.equal((await ended(a, await startRun(b, await createJob(b, needs)))).run.status, "completed");
    await call(b, "PATCH", `/runs/${runId}`, { desired_state: "cancelled" });
    await ended(b, runId);
    assert.equal((await ask(b, "GET", "/services/index/resolve")).status, 404);
    const late = await ask(b, "POST", `/jobs/${await createJob(b, needs)}/runs`, { body: {} });
    assert.equal(late.status, 409, late.text);
  });

  test("name the one that does not answer, and do not say what it may have is not there", async () => {
    process.kill(a.pid, "SIGSTOP");
    try {
      const [list, one] = await Promise.all([
        ask(b, "GET", "/services"),
        ask(b, "GET", "/services/any/resolve"),
      ]);
      assert.deepEqual(
        [list.status, list.body],
        [200, { items: [], next_page_token: null, unreachable_nodes: ["a"] }],
      );
      assert.equal(one.status, 503);
      assert.match(String(one.body.detail), /these nodes do not answer now: "a"/);
    } finally {
      process.kill(a.pid, "SIGCONT");
    }
    await until("it answers again", async () => {
      const { body } = await ask(b, "GET", "/services");
      return (body.unreachable_nodes as readonly string[]).length === 0;
    });
  });

  test("show the events, logs, timeline, artifacts and dashboard of a run alike", async () => {
    const script = 'echo said; echo kept > "$SVC_OUTPUT_DIR/kept.txt"';
    const manifest = graph("leaving", [executor("w", ["/bin/sh", "-c", script])]);
    const runId = await startRun(a, await createJob(a, manifest));
    await ended(b, runId);
    for (const path of ["events", "logs", "timeline", "artifacts", "outputs", "human", "dead-letters"]) {
      assert.deepEqual(
        await walk(b, `/runs/${runId}/${path}`),
        await walk(a, `/runs/${runId}/${path}`),
        path,
      );
    }
    const artifacts = await walk(b, `/runs/${runId}/artifacts`);
    assert.ok(artifacts.some(({ name }) => name === "kept.txt"));
    for (const { artifact_id: id } of artifacts) {
      const [there, here] = [await bytesOf(a, runId, id), await bytesOf(b, runId, id)];
      assert.equal(here, there, String(id));
    }
    const pages = [a, b].map(async (at) => (await ask(at, "GET", `/runs/${runId}/dashboard`)).status);
    assert.deepEqual(await Promise.all(pages), [200, 200]);
  });

  test("show a run's dashboard where it is, and where it is after its node was killed", async () => {
    const config: JsonObject = { web_ui: { enabled: true, output: { title: "Held" } } };
    const policies = { recovery_mode: "cluster_recover" };
    const held = graph("held", [sensor("wait")], [], { policies });
    const jobId = await createJob(a, held, {}, { "config/default.json": config });
    const runId = await startRun(a, jobId);
    const services = `/services?name=blueprint-web-ui&run_id=${runId}`;
    const before = await passing(b, services);
    assert.deepEqual([before.node, before.port], ["a", firstPort]);
    assert.equal(before.public_url, `http://127.0.0.1:${firstPort}/`);
    await a.kill();
    await happens(b, runId, "job_recovered");
    const now = await passing(b, services);
    assert.deepEqual([now.node, now.service_id], ["b", before.service_id]);
    assert.equal(now.public_url, `http://localhost:${firstPort}/`);
    assert.match(await (await fetch(new URL("healthz", String(now.public_url)))).text(), new RegExp(runId));
    // The port stays its own: another run on its new node gets one of that node's.
    const other = await startRun(b, jobId);
    assert.equal((await passing(b, `/services?run_id=${other}`)).port, firstPort + 2);
    await call(b, "POST", `/jobs/${jobId}/cancel`);
    await Promise.all([runId, other].map((one) => ended(b, one)));
  });
});

async function bytesOf(at: Program, runId: string, artifactId: unknown): Promise<string> {
  const { status, text } = await ask(at, "GET", `/runs/${runId}/artifacts/${String(artifactId)}`);
  assert.equal(status, 200, text);
  return text;
}
