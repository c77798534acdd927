// How the agents of a run ended, as both APIs tell it: one that was cancelled early, and a graph that stops short.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { JsonObject } from "../../src/engine/json.ts";
import { call, createJob, ended, runtimeApiOf, startRun, walk } from "../support/gateway-api.ts";
import { executor, graph, router } from "../support/graphs.ts";
import { startGatewayHere } from "../support/in-process.ts";
import type { Program } from "../support/program.ts";
import * as runtimeApi from "../support/runtime-api.ts";
import { until } from "../support/until.ts";

const none = { done: 0, failed: 0, cancelled: 0, skipped: 0, not_reached: 0 };

/** "in" sends nothing that "work" listens to. */
const short = graph(
  "short",
  [router("in", { emit_type: "no" }), executor("work", ["true"])],
  [["in", "work", "yes"]],
  {
    outputs: ["report.md"],
  },
);

let program: Program;
let runtime: Program;
before(async () => {
  program = await startGatewayHere();
  runtime = await runtimeApiOf(program);
});
after(() => program.stop());

const progressOf = (jobId: string) => call(program, "GET", `/jobs/${jobId}/workflow-progress`);

interface Grid {
  readonly items: readonly { readonly agent_id: string; readonly states: readonly string[] }[];
  readonly runs: readonly JsonObject[];
  readonly next_page_token: string | null;
}

const gridOf = async (jobId: string, query = "") =>
  (await call(program, "GET", `/jobs/${jobId}/grid${query}`)) as never as Grid;
const statesOf = ({ agent_id, states }: Grid["items"][number]) => [agent_id, ...states];

test("a run that is cancelled early counts as done what ended well, and nothing else", async () => {
  const ids = Array.from({ length: 30 }, (_, i) => `n${i}`);
  const nodes = ids.map((id) => executor(id, ["sleep", id === "n0" ? "0" : "600"]));
  const jobId = await createJob(program, graph("wide", nodes, [], { entrypoints: ids }));
  const runId = await startRun(program, jobId);
  await until("one agent is done", async () => ((await progressOf(jobId)).progress as JsonObject).done === 1);
  await call(program, "PATCH", `/runs/${runId}`, { desired_state: "cancelled" });
  const { run } = await ended(program, runId);
  const agents = { ...none, done: 1, cancelled: 29 };
  const progress = run.progress as JsonObject;
  assert.deepEqual([progress.agents_done, progress.agents_total, progress.agents], [1, 30, agents]);
  const shown = (await progressOf(jobId)).progress as JsonObject;
  assert.deepEqual([shown.done, shown.percent, shown.agents], [1, 3, agents]);
  const listed = await walk(program, "/runs");
  const found = listed.find((one) => one.run_id === runId)?.progress as JsonObject;
  assert.deepEqual(found, progress);
  const grid = await gridOf(jobId, "?page_size=2");
  assert.deepEqual(grid.runs[0], { ...grid.runs[0], run_id: runId, status: "cancelled" });
  assert.deepEqual(grid.items.map(statesOf), [
    ["n0", "done"],
    ["n1", "cancelled"],
  ]);
});

test("the grid has what each agent was in the newest runs, page by page of the same runs", async () => {
  const jobId = await createJob(
    program,
    graph(
      "grid",
      [router("in"), executor("Build", "exit 3"), router("after")],
      [
        ["in", "Build"],
        ["Build", "after"],
      ],
    ),
  );
  assert.deepEqual(await gridOf(jobId), {
    items: ["in", "Build", "after"].map((agent_id) => ({
      agent_id,
      agent_type: agent_id === "Build" ? "executor" : "router",
      role: null,
      states: [],
    })),
    next_page_token: null,
    runs: [],
  });
  const first = await startRun(program, jobId);
  await ended(program, first);
  const second = await startRun(program, jobId);
  await ended(program, second);
  const page = await gridOf(jobId, "?page_size=2");
  assert.deepEqual(
    page.runs.map(({ run_id }) => run_id),
    [second, first],
  );
  assert.deepEqual(page.items.map(statesOf), [
    ["in", "done", "done"],
    ["Build", "failed", "failed"],
  ]);
  // A run that begins meanwhile is on no page of this walk.
  await ended(program, await startRun(program, jobId));
  const rest = await gridOf(jobId, `?page_size=2&page_token=${page.next_page_token}`);
  assert.deepEqual(
    [rest.runs, rest.items.map(statesOf), rest.next_page_token],
    [page.runs, [["after", "skipped", "skipped"]], null],
  );
  const found = await gridOf(jobId, "?q=bUIL&runs=1");
  assert.deepEqual(found.items.map(statesOf), [["Build", "failed"]]);
  const failed = await gridOf(jobId, "?state=failed&runs=1&page_size=1");
  assert.deepEqual([failed.items.map(statesOf), failed.next_page_token], [[["Build", "failed"]], null]);
  assert.deepEqual((await gridOf(jobId, "?state=failed&q=after")).items, []);
});

test("a page of the grid has two thousand states at most, and the walk has every agent once", async () => {
  const names = Array.from({ length: 120 }, (_, i) => `w${i}`);
  const edges = names.map((name) => ["in", name] as const);
  const jobId = await createJob(
    program,
    graph("wide", [router("in"), ...names.map((name) => router(name))], edges),
  );
  for (let run = 0; run < 20; run++) await ended(program, await startRun(program, jobId));
  const seen: unknown[] = [];
  const sizes: number[] = [];
  let token: unknown = null;
  do {
    const page: Grid = await gridOf(jobId, `?page_size=200${token === null ? "" : `&page_token=${token}`}`);
    seen.push(...page.items.map(({ agent_id: id }) => id));
    sizes.push(page.items.length);
    token = page.next_page_token;
  } while (token !== null);
  assert.deepEqual(seen, ["in", ...names]);
  assert.deepEqual(sizes, [100, 21]);
});

test("a graph that stops short says which agents nothing reached and which output is missing", async () => {
  const jobId = await createJob(program, short);
  const runId = await startRun(program, jobId);
  const { run } = await ended(program, runId);
  assert.equal(run.status, "completed");
  const progress = run.progress as JsonObject;
  assert.deepEqual(progress.agents, { ...none, done: 1, not_reached: 1 });
  assert.equal(progress.label, "Completed, 1 of 2 agents not reached");
  const { steps } = await progressOf(jobId);
  assert.deepEqual(
    (steps as readonly JsonObject[]).map(({ step_id, state }) => [step_id, state]),
    [
      ["in", "done"],
      ["work", "not_reached"],
    ],
  );
  const summary = await call(program, "GET", `/runs/${runId}/observability-summary`);
  assert.deepEqual(summary.warnings, [
    { code: "agents_not_reached", message: 'No message reached "work".' },
    { code: "outputs_missing", message: 'No worker wrote "report.md", which the manifest lists as output.' },
  ]);
  assert.deepEqual(
    [summary.agents, (summary.counts as JsonObject).warnings],
    [{ ...none, done: 1, not_reached: 1 }, 2],
  );
  const logs = await walk(program, `/runs/${runId}/logs`);
  assert.deepEqual(
    logs.map(({ level, agent_id }) => [level, agent_id]),
    [
      ["warn", null],
      ["warn", null],
    ],
  );
  const timeline = await walk(program, `/runs/${runId}/timeline`);
  assert.match(String(timeline.at(-1)?.summary), /completed.*no message reached "work"/);
  const result = await call(program, "GET", `/runs/${runId}/result`);
  assert.equal(result.partial, true);
});

test("the runtime API tells the same of its jobs", async () => {
  const body = await runtimeApi.call(runtime, "POST", "/jobs", short);
  const jobId = String(body.id);
  await runtimeApi.historyOf(runtime, jobId);
  const detail = await runtimeApi.jobDetail(runtime, jobId);
  assert.deepEqual(
    detail.agents.map(({ status }) => status),
    ["done", "not_reached"],
  );
  const [first] = detail.agents as readonly JsonObject[];
  assert.equal(first?.type, "generic");
  assert.deepEqual(await runtimeApi.call(runtime, "GET", `/jobs/${jobId}/agent-graph`), {
    nodes: [
      { node_id: "in", agent_type: "router", type: "generic" },
      { node_id: "work", agent_type: "executor", type: "generic" },
    ],
    edges: [{ from_node: "in", to_node: "work", message_type: "yes" }],
  });
  const unknown = await runtimeApi.request(runtime, "GET", "/jobs/nope/agent-graph");
  assert.equal(unknown.status, 404);
  assert.equal((detail.job as unknown as JsonObject).partial, true);
  const progress = await runtimeApi.call(runtime, "GET", `/jobs/${jobId}/workflow-progress`);
  assert.deepEqual((progress.progress as JsonObject).agents, { ...none, done: 1, not_reached: 1 });
});
