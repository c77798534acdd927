// GET /runs/{run_id}/dashboard: the page of any run at the gateway, and what it is made of. How it looks and behaves is
// tested in test/browser.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { ask, assertProblem, createJob, ended, startRun, walk } from "../support/gateway-api.ts";
import { executor, graph, router } from "../support/graphs.ts";
import { startGatewayHere } from "../support/in-process.ts";
import type { Program } from "../support/program.ts";

let program: Program;
let runId: string;
before(async () => {
  program = await startGatewayHere();
  const write =
    'mkdir -p "$SVC_OUTPUT_DIR"; echo "<h1>x</h1>" > "$SVC_OUTPUT_DIR/a.html"; echo x > "$SVC_OUTPUT_DIR/b.txt"';
  const nodes = [router("in"), { ...executor("writer", write), role: "Writes" }];
  const jobId = await createJob(program, graph("shown", nodes, [["in", "writer", "init"]]), {
    name: "A <b>name</b>",
  });
  runId = String((await ended(program, await startRun(program, jobId))).run.run_id);
});
after(() => program.stop());

test("the page and all its parts come from below its own path, and nothing else does", async () => {
  const page = await ask(program, "GET", `/runs/${runId}/dashboard`);
  assert.equal(page.status, 200);
  assert.match(page.headers.get("content-type") ?? "", /^text\/html/);
  assert.match(page.headers.get("content-security-policy") ?? "", /^default-src 'none'; script-src 'self';/);
  const names = [...page.text.matchAll(/="dashboard\/([^"]+)"/g)].map(([, name]) => String(name));
  assert.deepEqual(names.sort(), ["base.css", "page.css", "page.js"]);
  for (const name of names) {
    const part = await ask(program, "GET", `/runs/${runId}/dashboard/${name}`);
    assert.equal(part.status, 200);
    const headers = { "if-none-match": part.headers.get("etag") ?? "" };
    assert.equal((await ask(program, "GET", `/runs/${runId}/dashboard/${name}`, { headers })).status, 304);
  }
  for (const name of ["server.mjs", "model.test.ts", "none.js", "..%2f..%2fwrite-web-ui.ts"]) {
    assertProblem(await ask(program, "GET", `/runs/${runId}/dashboard/${name}`), 404, "not_found");
  }
  const slash = await ask(program, "GET", `/runs/${runId}/dashboard/`);
  assert.deepEqual([slash.status, slash.headers.get("location")], [308, `/api/v1/runs/${runId}/dashboard`]);
});

test("what the page shows, and where it reads it, leads to this run, and tells no other id", async () => {
  const config = await ask(program, "GET", `/runs/${runId}/dashboard/config.json`);
  const { title, run_id, graph: drawn, ...links } = config.body;
  assert.deepEqual([title, run_id], ["A <b>name</b>", runId]);
  assert.deepEqual(drawn, {
    nodes: [
      { node_id: "in", agent_type: "router", role: null },
      { node_id: "writer", agent_type: "executor", role: "Writes" },
    ],
    edges: [{ from_node: "in", to_node: "writer", message_type: "init" }],
  });
  const at = (link: unknown) => new URL(String(link), `${program.api}/runs/${runId}/dashboard/config.json`);
  assert.equal(at(links.console).pathname, `/console/runs/${runId}`);
  assert.equal(at(links.run).href, `${program.api}/runs/${runId}`);
  assert.equal(at(links.outputs).pathname, `/api/v1/runs/${runId}/outputs`);
  assert.equal(at(links.events).pathname, `/api/v1/runs/${runId}/events/stream`);
});

test("a page that a worker wrote is shown without scripts and rights; what is no page is not shown", async () => {
  const artifacts = await walk(program, `/runs/${runId}/artifacts?evidence=false`);
  const idOf = (name: string) => String(artifacts.find((artifact) => artifact.name === name)?.artifact_id);
  const preview = await ask(program, "GET", `/runs/${runId}/dashboard/preview/${idOf("a.html")}`);
  assert.equal(preview.text, "<h1>x</h1>\n");
  assert.match(preview.headers.get("content-security-policy") ?? "", /^default-src 'none'.*; sandbox$/);
  assert.equal(preview.headers.get("content-disposition"), null);
  for (const id of [idOf("b.txt"), "none"]) {
    assertProblem(
      await ask(program, "GET", `/runs/${runId}/dashboard/preview/${id}`),
      404,
      "artifact_not_found",
    );
  }
});

test("a run that is not there has no page", async () => {
  for (const path of ["", "/config.json", "/preview/x"]) {
    assertProblem(await ask(program, "GET", `/runs/none/dashboard${path}`), 404, "run_not_found");
  }
});
