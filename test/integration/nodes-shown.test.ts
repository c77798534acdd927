// Two programs on one PostgreSQL, as each shows both: in lists, sums, metrics and jobs; and what is placed by labels.

import assert from "node:assert/strict";
import { rm } from "node:fs/promises";
import { after, before, describe, test } from "node:test";
import type { JsonObject } from "../../src/engine/json.ts";
import { startHere } from "../support/command-line.ts";
import { type Gates, makeGates } from "../support/gates.ts";
import {
  ask,
  assertProblem,
  call,
  createJob,
  ended,
  frames,
  happens,
  runtimeApiOf,
  startRun,
  walk,
} from "../support/gateway-api.ts";
import { executor, graph } from "../support/graphs.ts";
import { startGatewayHere } from "../support/in-process.ts";
import { inPostgres, returnPostgres, takePostgres } from "../support/postgres.ts";
import { type Program, temporaryHome } from "../support/program.ts";
import { sandboxLabels } from "../support/sandboxes.ts";
import { until } from "../support/until.ts";

const LEASE_SECONDS = 10;

interface ShownNode extends JsonObject {
  readonly node_id: string;
  readonly name: string;
  readonly pools: Record<string, { capacity: number; in_use: number }>;
  readonly connected_nodes: readonly string[];
}

let url: string;
let gates: Gates;
let a: Program;
let b: Program;
const homes: string[] = [];

async function start(name: string, labels: string, pools = "default=2"): Promise<Program> {
  const home = await temporaryHome();
  homes.push(home);
  const cluster = { SVC_DATABASE_URL: url, SVC_SECRET_KEY: "00".repeat(32) };
  const node = { SVC_NODE_NAME: name, SVC_NODE_LABELS: labels, SVC_EXECUTOR_POOL_CAPACITIES: pools };
  return startGatewayHere({ home, env: { ...cluster, ...node, SVC_NODE_LEASE_SECONDS: `${LEASE_SECONDS}` } });
}

before(async () => {
  [url, gates] = await Promise.all([takePostgres(), makeGates()]);
  b = await start("b", "zone=b", "default=2,gpu=1");
  a = await start("a", "zone=a");
});
after(async () => {
  await Promise.all([a.stop(), b.stop()]);
  await Promise.all([gates.remove(), ...homes.map((home) => rm(home, { recursive: true }))]);
  await returnPostgres(url);
});

/** What a node is shown to have, at a program. */
async function resourceAt(program: Program, name: string): Promise<JsonObject> {
  const { nodes } = await call(program, "GET", "/resource");
  return (nodes as readonly JsonObject[]).find((node) => node.name === name) ?? {};
}

async function nodesAt(program: Program): Promise<readonly ShownNode[]> {
  return (await call(program, "GET", "/nodes")).items as unknown as readonly ShownNode[];
}

/** A run whose command waits until it is ended. */
async function heldRun(name: string, config: JsonObject, at = a, resources: JsonObject = {}) {
  const gate = gates.pipe(name);
  const node = { ...executor("holder", ["cat", gate], config), resources };
  const jobId = await createJob(at, graph(name, [node]));
  const runId = await startRun(at, jobId);
  return {
    runId,
    async end() {
      await gates.open(gate);
      return ended(at, runId);
    },
  };
}

describe("each of two nodes", () => {
  test("lists both by name, a page at a time too, and knows which one it is", async () => {
    for (const [program, name] of [
      [a, "a"],
      [b, "b"],
    ] as const) {
      const nodes = await nodesAt(program);
      assert.deepEqual(
        nodes.map((node) => [node.name, node.status, node.self, node.labels]),
        ["a", "b"].map((one) => [one, "ready", one === name, { zone: one, ...sandboxLabels }]),
      );
      const ids = nodes.map(({ node_id: id }) => id);
      assert.deepEqual(
        (await walk(program, "/nodes", 1)).map(({ node_id: id }) => id),
        ids,
      );
      for (const id of ids) assert.equal((await call(program, "GET", `/nodes/${id}`)).node_id, id);
    }
    const { out, err } = await startHere(["node", "list", "--url", a.api], a.home).ended;
    assert.deepEqual(
      out
        .trimEnd()
        .split("\n")
        .slice(1)
        .map((line) => /^node_\w+ +([ab](?: \*)?) +ready +127\.0\.0\.1:\d+ /.exec(line)?.[1]),
      ["a *", "b"],
    );
    assert.equal(err, "");
  });

  test("streams what changes at the other one: a run's start and end, and what it asks", async () => {
    const question = { request_id: "go", prompt: "Go on?", allowed_decisions: ["yes"] };
    const asks = `printf '%s\\n' '${JSON.stringify({ type: "human_input_requested", payload: question })}' > "$SVC_EVENT_STREAM"; until [ -s "$SVC_HUMAN_RESPONSES" ]; do sleep 0.1; done`;
    const jobId = await createJob(a, graph("streamed", [executor("asks", asks)]));
    const changes = frames(b, "/stream?topics=runs,human");
    // From the reset on, nothing is missed.
    const { value: first } = await changes.next();
    assert.equal(first?.event, "reset");
    const runId = await startRun(a, jobId);
    const missing = new Set(["human pending", "human answered", "runs completed"]);
    for await (const { data } of changes) {
      const {
        topic,
        id,
        changes: now,
      } = data as never as {
        readonly topic: string;
        readonly id: string;
        readonly changes: { readonly run_id?: string; readonly status: string };
      };
      if (id !== runId && now.run_id !== runId) continue;
      missing.delete(`${topic} ${now.status}`);
      if (topic === "human" && now.status === "pending")
        await call(a, "POST", `/runs/${runId}/human/go/response`, { decision: "yes" });
      if (missing.size === 0) break;
    }
    assert.equal(missing.size, 0, `${[...missing]}`);
  });

  test("shows what the other one does, and what both do together", async () => {
    const held = await heldRun("held", {});
    await happens(a, held.runId, "sandbox_job_started");
    const atB = await until("the other one has told of it", async () => {
      const nodes = await nodesAt(b);
      return nodes[0]?.tasks_running === 1 && nodes;
    });
    assert.deepEqual([atB[0]?.jobs_owned, atB[0]?.reserved], [1, { "@web-ui": 0, default: 1 }]);
    assert.equal(atB[0]?.pools.default?.in_use, 1);
    const summary = await call(b, "GET", "/system/summary");
    assert.deepEqual(
      (summary.nodes as ShownNode[]).map(({ heartbeat_at: _, ...node }) => node),
      atB.map(({ heartbeat_at: _, ...node }) => node),
    );
    const pools = summary.executor_pools as ShownNode["pools"];
    assert.deepEqual(
      [pools.default?.capacity, pools.default?.in_use, pools.gpu?.capacity, summary.tasks_running],
      [4, 1, 1, 1],
    );
    const { cluster } = (await call(b, "GET", "/metrics")) as { cluster: JsonObject };
    assert.deepEqual([cluster.open_jobs, cluster.tasks_running], [1, 1]);
    assert.deepEqual(cluster.executor_pools, pools);
    const runtime = await runtimeApiOf(b);
    const { nodes } = (await call(runtime, "GET", "/system/summary")) as { nodes: JsonObject[] };
    assert.deepEqual(
      nodes.map((node) => [node.name, node["self?"], node.scheduler_hint]),
      [
        ["a", false, "remote"],
        ["b", true, "local"],
      ],
    );
    assert.deepEqual(nodes[0]?.executor_pools, atB[0]?.pools);
    const [job] = (await call(runtime, "GET", "/jobs?include_terminal=false")).data as JsonObject[];
    assert.deepEqual(job?.nodes, ["a"]);
    const { agents } = (await call(runtime, "GET", `/jobs/${job?.job_id}`)) as { agents: JsonObject[] };
    assert.equal(agents[0]?.assigned_node, "a");
    await held.end();
  });

  test("shows to whom the other one is connected", async () => {
    const held = await heldRun("connected", {});
    await happens(a, held.runId, "sandbox_job_started");
    await call(b, "PATCH", `/runs/${held.runId}`, { desired_state: "paused" });
    await until("it has told of it", async () => {
      const [first, second] = await nodesAt(a);
      return second?.connected_nodes.includes(first!.node_id);
    });
    await call(b, "PATCH", `/runs/${held.runId}`, { desired_state: "running" });
    await held.end();
  });

  test("counts a node whose lease is over as lost, with nothing in sums", async () => {
    await inPostgres(
      url,
      `INSERT INTO nodes (node_id, owner, name, version, status, labels_json, pools_json, totals_json, reserved_json,
          jobs_owned, tasks_running, started_at, heartbeat_at, lease_until)
        VALUES ('node_gone', 'node_gone/1', 'gone', '1.0.0', 'ready', '{}', '{"default": 100}', '{}', '{}', 7, 7, 0, 0, 0)`,
    );
    const gone = await call(a, "GET", "/nodes/node_gone");
    assert.deepEqual(
      [gone.status, gone.address, gone.started_at],
      ["lost", null, "1970-01-01T00:00:00.000Z"],
    );
    const { executor_pools: pools, nodes } = await call(a, "GET", "/system/summary");
    assert.equal((pools as ShownNode["pools"]).default?.capacity, 4);
    assert.equal((nodes as ShownNode[]).at(-1)?.name, "gone");
    const { text } = await ask(a, "GET", "/metrics?format=prometheus");
    assert.match(text, /^troupe_cluster_nodes\{status="ready"\} 2$/m);
    assert.match(text, /^troupe_cluster_nodes\{status="lost"\} 1$/m);
  });
});

describe("an executor with node_labels", () => {
  test("runs on the node that has them, which its job names", async () => {
    const held = await heldRun("labelled", { node_labels: { zone: "b" } });
    await happens(a, held.runId, "sandbox_job_started");
    const runtime = await runtimeApiOf(a);
    const [job] = (await call(runtime, "GET", "/jobs?include_terminal=false")).data as JsonObject[];
    const detail = (await call(runtime, "GET", `/jobs/${job?.job_id}`)) as {
      summary: JsonObject;
      agents: JsonObject[];
    };
    assert.deepEqual([detail.summary.nodes, detail.agents[0]?.assigned_node], [["a", "b"], "b"]);
    assert.equal((await held.end()).run.status, "completed");
  });

  test("waits for a node that has them, and its event says that none does", async () => {
    const held = await heldRun("waiting", { node_labels: { zone: "c" } });
    const requested = await happens(a, held.runId, "executor_lease_requested");
    assert.equal(
      requested.payload.hint,
      'No node that is ready has a slot of pool "default" and the label zone=c. It waits for one that has.',
    );
    const c = await start("c", "zone=c");
    try {
      await happens(a, held.runId, "sandbox_job_started");
      assert.equal((await held.end()).run.status, "completed");
    } finally {
      await c.stop();
    }
    const left = (await nodesAt(a)).find(({ name }) => name === "c");
    assert.equal(left?.status, "left");
  });
});

test("limits that one node is told hold on the other within a few seconds, and both show both", async () => {
  const cores = (node: JsonObject) => (node.effective as JsonObject | undefined)?.cpu_cores;
  const whole = await call(a, "GET", "/resource");
  assert.equal((whole.nodes as readonly JsonObject[]).length, 2);
  const all = (whole.totals as JsonObject).cpu_cores as number;
  const limited = await call(a, "POST", "/resource", { limits: { cpu_percent: 50 } });
  assert.equal(limited.revision, 2);
  assert.equal(cores(await resourceAt(a, "a")), all / 4);
  await until("b goes by the limits", async () => cores(await resourceAt(b, "b")) === all / 4);
  await until("a sees that b goes by them", async () => cores(await resourceAt(a, "b")) === all / 4);
  assert.equal((await call(b, "PUT", "/resource", { limits: {} })).revision, 3);
  await until("a goes by the new ones", async () => cores(await resourceAt(a, "a")) === all / 2);
});

test("a name is that of nodes which have not left, for requests and commands", async () => {
  const add = (nodeId: string, status: string) =>
    inPostgres(
      url,
      `INSERT INTO nodes SELECT (jsonb_populate_record(nodes, '{"node_id": "${nodeId}", "owner": "${nodeId}/1",
        "name": "twin", "status": "${status}", "lease_until": 0}')).* FROM nodes WHERE name = 'b'`,
    );
  const named = async () =>
    ((await call(a, "GET", "/nodes?name=twin")).items as unknown as readonly ShownNode[]).map(
      ({ node_id: id }) => id,
    );
  const status = () => startHere(["node", "status", "twin", "--json", "--url", a.api], a.home).ended;
  await add("node_t0", "left");
  assert.deepEqual(await named(), ["node_t0"]);
  for (const nodeId of ["node_t1", "node_t2"]) await add(nodeId, "ready");
  assert.deepEqual(await named(), ["node_t1", "node_t2"]);
  assert.match((await status()).err, /Several nodes are named twin.*node_t1, node_t2/);
  const body = { name: "twin" };
  assertProblem(await ask(a, "POST", "/system/cluster/nodes:remove", { body }), 409, "conflict");
  await inPostgres(url, "DELETE FROM nodes WHERE node_id = 'node_t2'");
  assert.equal((JSON.parse((await status()).out) as JsonObject).node_id, "node_t1");
  await inPostgres(url, "DELETE FROM nodes WHERE name = 'twin'");
});

test("commands with memory of their own are placed where it is free, and wait when it is free nowhere", async () => {
  const MiB = 1024 ** 2;
  await call(a, "PUT", "/resource", { limits: { memory_bytes: 100 * MiB } });
  const allows = async (program: Program, name: string) =>
    ((await resourceAt(program, name)).effective as JsonObject | undefined)?.memory_bytes === 100 * MiB;
  for (const program of [a, b])
    for (const name of ["a", "b"])
      await until(`${name} is limited, as another node sees it`, () => allows(program, name));
  const held = (name: string) => heldRun(name, {}, a, { memory_mb: 60 });
  const [first, second] = [await held("first"), await held("second")];
  for (const { runId } of [first, second]) await happens(a, runId, "sandbox_job_started");
  const third = await held("third");
  // What it waits for is told only if this node knows by then that the other one has none left.
  await happens(a, third.runId, "executor_lease_requested");
  for (const name of ["a", "b"])
    await until(`${name} has one of them`, async () => {
      const { reserved } = await resourceAt(b, name);
      return (reserved as JsonObject | undefined)?.memory_bytes === 60 * MiB;
    });
  assert.equal((await call(a, "GET", `/runs/${third.runId}`)).status, "queued");
  assert.equal((await second.end()).run.status, "completed");
  await happens(a, third.runId, "sandbox_job_started");
  for (const run of [first, third]) assert.equal((await run.end()).run.status, "completed");
  await call(a, "PUT", "/resource", { limits: {} });
});
