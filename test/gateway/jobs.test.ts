// Jobs: create, look up, list. Sentences in quotes are the specification's own, shortened.

import assert from "node:assert/strict";
import { after, describe, test } from "node:test";
import type { JsonObject } from "../../src/engine/json.ts";
import {
  ask,
  assertProblem,
  call,
  completed,
  createJob,
  ended,
  happens,
  pathsOf,
  startRun,
  walk,
} from "../support/gateway-api.ts";
import { executor, graph, router } from "../support/graphs.ts";
import { startJobsGateway } from "../support/jobs-gateway.ts";

const { program, quick, held, create, jobOf, get, remove, patch } = await startJobsGateway();
after(() => program.stop());

describe("POST /jobs", () => {
  test('"Object with job_id; ETag header", and 201 with Location', async () => {
    const answer = await create({
      bundle_id: quick,
      name: "Weekly",
      resolved_configuration: { language: "en" },
    });
    assert.equal(answer.status, 201, answer.text);
    const { job_id, created_at, updated_at, ...rest } = answer.body;
    assert.deepEqual(rest, {
      name: "Weekly",
      status: "ready",
      source: { bundle_id: quick },
      graph_id: "quick",
      resolved_configuration: { language: "en" },
      weight: 1,
      extensions: [],
      revision: 1,
      latest_run: null,
      active_runs: 0,
      links: {
        self: `/api/v1/jobs/${job_id}`,
        runs: `/api/v1/jobs/${job_id}/runs`,
        workflow_progress: `/api/v1/jobs/${job_id}/workflow-progress`,
      },
    });
    assert.equal(created_at, updated_at);
    assert.match(String(created_at), /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
    assert.match(answer.headers.get("etag") ?? "", /^"[^"]+"$/);
    assert.equal(answer.headers.get("location"), `/api/v1/jobs/${job_id}`);
  });

  test('"bundle_id or blueprint_id" ("neither or both: 422")', async () => {
    assertProblem(await create({}), 422, "validation_failed");
    assertProblem(await create({ bundle_id: quick, blueprint_id: "x" }), 422, "validation_failed");
  });

  test('"Unknown bundle_id or blueprint_id in a body: 422 at that path"', async () => {
    const noBundle = await create({ bundle_id: "bundle_none" });
    assertProblem(noBundle, 422, "validation_failed");
    assert.deepEqual(pathsOf(noBundle), ["/bundle_id"]);
    const noBlueprint = await create({ blueprint_id: "none" });
    assertProblem(noBlueprint, 422, "validation_failed");
    assert.deepEqual(pathsOf(noBlueprint), ["/blueprint_id"]);
  });

  test('"optionally resolved_configuration": an object and nothing else', async () => {
    for (const resolved_configuration of [[], "text", 1, null]) {
      const answer = await create({ bundle_id: quick, resolved_configuration });
      assertProblem(answer, 422, "validation_failed");
      assert.deepEqual(pathsOf(answer), ["/resolved_configuration"]);
    }
  });
});

describe("GET /jobs/{job_id}", () => {
  test('"ETag: returned with the job", and If-None-Match gets 304 with it', async () => {
    const jobId = await jobOf(quick);
    const first = await get(jobId);
    const etag = first.headers.get("etag") ?? "";
    assert.match(etag, /^"[^"]+"$/, "strong");
    const headers = { "if-none-match": etag };
    const same = await ask(program, "GET", `/jobs/${jobId}`, { headers });
    assert.deepEqual([same.status, same.text, same.headers.get("etag")], [304, "", etag]);
    await completed(program, jobId);
    const changed = await ask(program, "GET", `/jobs/${jobId}`, { headers });
    assert.equal(changed.status, 200, "a run has begun and ended since");
  });

  test('"Compact or full job detail": compact by default', async () => {
    const manifest = graph("views", [router("in"), executor("work", "echo done")], [["in", "work", "todo"]], {
      extensions: ["svc.response"],
      services: [{ name: "web", port: 80 }],
    });
    const jobId = await createJob(program, manifest);
    const { run } = await completed(program, jobId);
    const compact = (await get(jobId)).body;
    assert.deepEqual((await get(jobId, "?view=compact")).body, compact);
    const full = (await get(jobId, "?view=full")).body;
    for (const same of ["?include=full", "?include=full&view=full"]) {
      assert.deepEqual((await get(jobId, same)).body, full, same);
    }
    assert.deepEqual((await get(jobId, "?include=compact")).body, compact);
    assertProblem(await get(jobId, "?include=full&view=compact"), 400, "invalid_parameter");
    assertProblem(await get(jobId, "?include=all"), 400, "invalid_parameter");
    assert.equal((compact.latest_run as JsonObject).run_id, run.run_id);
    assert.equal((compact.latest_run as JsonObject).status, "completed");
    const {
      manifest: shown,
      graph: drawn,
      recent_runs,
      recent_events,
      services,
      ...rest
    } = (await get(jobId, "?view=full")).body;
    assert.deepEqual(rest, compact);
    const { failure, reason, status_reason, trace_id } = compact;
    assert.deepEqual([failure, reason, status_reason, trace_id], [null, null, null, run.trace_id]);
    const summary = await call(program, "GET", `/runs/${run.run_id}/observability-summary`);
    assert.deepEqual(compact.observability_summary, summary);
    assert.deepEqual(shown, manifest);
    assert.deepEqual((drawn as JsonObject).edges, [
      { edge_id: null, from_node: "in", to_node: "work", message_type: "todo" },
    ]);
    assert.deepEqual(
      ((drawn as JsonObject).nodes as readonly JsonObject[]).map(({ node_id, agent_type }) => [
        node_id,
        agent_type,
      ]),
      [
        ["in", "router"],
        ["work", "executor"],
      ],
    );
    assert.deepEqual(recent_runs, [compact.latest_run]);
    assert.equal((recent_events as readonly JsonObject[])[0]?.type, "job_completed", "newest first");
    assert.deepEqual(compact.extensions, ["svc.response"]);
    assert.deepEqual(services, [{ name: "web", port: 80 }]);
    assertProblem(await get(jobId, "?view=other"), 400, "invalid_parameter");
  });

  test("active_runs counts the runs that have not ended, and latest_run is the newest", async () => {
    const jobId = await jobOf(held);
    const runIds = [await startRun(program, jobId), await startRun(program, jobId)];
    for (const runId of runIds) await happens(program, runId, "agent_started");
    const { active_runs, latest_run } = (await get(jobId)).body;
    assert.deepEqual([active_runs, (latest_run as JsonObject).run_id], [2, runIds[1]]);
    await call(program, "POST", `/jobs/${jobId}/cancel`);
    for (const runId of runIds) await ended(program, runId);
    assert.equal((await get(jobId)).body.active_runs, 0);
  });

  test("a job that is not there: 404 job_not_found, on every route below it", async () => {
    for (const path of ["", "/runs", "/events", "/dead-letters", "/workflow-progress", "/grid"]) {
      assertProblem(await get("job_none", path), 404, "job_not_found");
    }
    for (const path of ["runs", "mcp", "pause", "resume", "cancel"]) {
      const body = path === "runs" ? {} : path === "mcp" ? { jsonrpc: "2.0", method: "ping" } : undefined;
      assertProblem(await ask(program, "POST", `/jobs/job_none/${path}`, { body }), 404, "job_not_found");
    }
    assertProblem(await patch("job_none", { name: "x" }, "*"), 404, "job_not_found");
    assertProblem(await remove("job_none", "*"), 404, "job_not_found");
  });
});

describe("GET /jobs", () => {
  test('"List: newest first; include_terminal=false leaves out jobs whose latest run is terminal"', async () => {
    const [never, over, open] = [await jobOf(quick), await jobOf(quick), await jobOf(held)];
    await completed(program, over);
    const runId = await startRun(program, open);
    const ids = async (query: string) =>
      (await walk(program, `/jobs?${query}`, 2))
        .map(({ job_id }) => job_id)
        .filter((id) => id === never || id === over || id === open);
    assert.deepEqual(await ids("include_terminal=true"), [open, over, never]);
    assert.deepEqual(await ids("limit=1000"), [open, over, never], "with them by default");
    assert.deepEqual(await ids("include_terminal=false"), [open, never]);
    await call(program, "PATCH", `/runs/${runId}`, { desired_state: "cancelled" });
    await ended(program, runId);
    assert.deepEqual(await ids("include_terminal=false"), [never]);
  });

  test('"limit caps the items of the whole walk"', async () => {
    for (let i = 0; i < 4; i++) await jobOf(quick);
    assert.equal((await walk(program, "/jobs?limit=3", 2)).length, 3);
    assert.equal((await walk(program, "/jobs?limit=2", 2)).length, 2);
    assert.equal((await walk(program, "/jobs?limit=1", 50)).length, 1);
    for (const limit of ["0", "-1", "1.5", "x", ""]) {
      const answer = await ask(program, "GET", `/jobs?limit=${limit}`);
      assertProblem(answer, 400, "invalid_parameter");
      assert.deepEqual(pathsOf(answer), ["limit"]);
    }
    assertProblem(await ask(program, "GET", "/jobs?include_terminal=maybe"), 400, "invalid_parameter");
  });
});
