// The gateway's views of itself: the runtime, the node, the summary, the metrics; and what they say while the store
// takes no writes.

import assert from "node:assert/strict";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { after, before, describe, test } from "node:test";
import type { JsonObject } from "../../src/engine/json.ts";
import { type Gates, makeGates } from "../support/gates.ts";
import { ask, assertProblem, call, createJob, ended, happens, startRun } from "../support/gateway-api.ts";
import { executor, graph, router } from "../support/graphs.ts";
import { databaseKind, startGatewayHere, unlessOnPostgres } from "../support/in-process.ts";
import type { Program } from "../support/program.ts";
import { sandboxLabels } from "../support/sandboxes.ts";
import { until } from "../support/until.ts";

const idle = (capacity: number) => ({ capacity, available: capacity, in_use: 0, queued: 0, active: 0 });
const idlePools = { default: idle(3), gpu: idle(1), "@web-ui": idle(50) };

let program: Program;
let gates: Gates;
before(async () => {
  gates = await makeGates();
  program = await startGatewayHere({
    command: "gateway",
    env: {
      SVC_EXECUTOR_POOL_CAPACITIES: "default=3,gpu=1",
      SVC_NODE_NAME: "here",
      SVC_NODE_LABELS: "zone=a",
    },
  });
});
after(async () => {
  await program.stop();
  await gates.remove();
});

/** A run that holds a slot of pool gpu until its gate is opened. */
async function heldRun(name: string) {
  const gate = gates.pipe(name);
  const jobId = await createJob(program, graph(name, [executor("holder", ["cat", gate], { pool: "gpu" })]));
  const runId = await startRun(program, jobId);
  await happens(program, runId, "sandbox_job_started");
  return {
    async end() {
      await gates.open(gate);
      await ended(program, runId);
    },
  };
}

describe("the runtime", () => {
  test("its status follows what it does", async () => {
    const before = await call(program, "GET", "/runtime/status");
    assert.equal(before.status, "running");
    assert.equal(before.open_jobs, 0);
    assert.deepEqual(before.executor_pools, idlePools);
    const held = await heldRun("status");
    const during = await call(program, "GET", "/runtime/status");
    assert.equal(during.open_jobs, 1);
    assert.equal(during.launches_waiting, 0);
    assert.deepEqual((during.executor_pools as JsonObject).gpu, {
      capacity: 1,
      available: 0,
      in_use: 1,
      queued: 0,
      active: 1,
    });
    await held.end();
    await until("the job is closed", async () => {
      const { open_jobs } = await call(program, "GET", "/runtime/status");
      return open_jobs === 0;
    });
  });

  test("its health is 200 while it takes work", async () => {
    const { status, body } = await ask(program, "GET", "/runtime/health");
    assert.deepEqual([status, body], [200, { status: "ok", checks: { store: "ok", runtime: "ok" } }]);
  });

  test("its doctor checks the machine, names a fix for each problem, and shows no path of it", async () => {
    const { text, body } = await ask(program, "GET", "/runtime/doctor");
    const checks = body.checks as readonly JsonObject[];
    const names = checks.map(({ name }) => name);
    for (const name of ["node", "store", "home", "disk", "disk sync", "ports", "sh", "python3", "sandbox"]) {
      assert.ok(names.includes(name), `${name} in ${names}`);
    }
    for (const check of checks) {
      assert.match(String(check.status), /^(ok|warn|fail)$/);
      assert.ok(String(check.text).length > 0);
      if (check.status !== "ok") assert.ok(String(check.fix).length > 10, String(check.name));
    }
    assert.equal(checks.find(({ name }) => name === "store")?.status, "ok");
    assert.ok(!text.includes(program.home) && !text.includes("troupe home"), text);
    assert.match(String(body.status), /^(ok|warn|fail)$/);
  });

  test("who asks the doctor again within five seconds gets the same findings", async () => {
    const first = await call(program, "GET", "/runtime/doctor");
    const many = await Promise.all(Array.from({ length: 20 }, () => call(program, "GET", "/runtime/doctor")));
    const checkedAt = [first, ...many].map((one) => Date.parse(String(one.checked_at)));
    const times = [...new Set(checkedAt)].sort((a, b) => a - b);
    // Seldom more than one: findings may have become too old in between.
    for (const [i, time] of times.entries()) assert.ok(i === 0 || time - times[i - 1]! >= 5_000, `${times}`);
  });
});

describe("the cluster", () => {
  test("nodes are this one, in the collection envelope", async () => {
    const { items, next_page_token: next } = await call(program, "GET", "/nodes");
    const [node, ...others] = items as readonly JsonObject[];
    assert.deepEqual([others, next], [[], null]);
    const {
      node_id: id,
      address,
      totals,
      version,
      started_at: startedAt,
      heartbeat_at,
      ...rest
    } = node ?? {};
    assert.deepEqual(rest, {
      name: "here",
      status: "ready",
      labels: { zone: "a", ...sandboxLabels },
      pools: idlePools,
      reserved: { default: 0, gpu: 0, "@web-ui": 0 },
      jobs_owned: 0,
      tasks_running: 0,
      self: true,
      connected_nodes: [],
    });
    assert.ok(address === null || databaseKind === "postgresql", "nobody else reaches it");
    const { cpu_cores: cores, memory_bytes: memory } = totals as JsonObject;
    assert.ok(Number(cores) >= 1 && Number(memory) > 100_000_000);
    assert.match(String(version), /^\d+\.\d+\.\d+$/);
    for (const time of [startedAt, heartbeat_at])
      assert.match(String(time), /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
    const found = await call(program, "GET", `/nodes/${id}`);
    assert.deepEqual({ ...found, heartbeat_at }, node);
    assertProblem(await ask(program, "GET", "/nodes/node_none"), 404, "node_not_found");
    assertProblem(await ask(program, "GET", "/nodes?page_size=0"), 400, "invalid_parameter");
    assertProblem(await ask(program, "GET", "/nodes?page_token=x"), 400, "invalid_page_token");
    assertProblem(await ask(program, "GET", "/nodes?unknown=1"), 400, "invalid_parameter");
  });

  test("the summary counts jobs, and runs by status", async () => {
    const before = await call(program, "GET", "/system/summary?hours=2");
    const counts = (of: JsonObject) => ({ ...(of.runs as Record<string, number>) });
    const jobId = await createJob(program, graph("counted", [router("in")]));
    await ended(program, await startRun(program, jobId));
    const failing = await createJob(program, graph("failing", [executor("in", ["false"])]));
    await ended(program, await startRun(program, failing));
    const held = await heldRun("summary");
    const during = await call(program, "GET", "/system/summary?hours=2");
    const [from, to] = [counts(before), counts(during)];
    // Two hours, so that a test at the turn of one sees the same runs.
    const endsOf = ({ ends }: JsonObject) =>
      (ends as readonly { readonly completed: number; readonly failed: number }[]).reduce(
        (sum, { completed, failed }) => [sum[0]! + completed, sum[1]! + failed],
        [0, 0],
      );
    const [completed = 0, failed = 0] = endsOf(before);
    assert.deepEqual(endsOf(during), [completed + 1, failed + 1]);
    assert.deepEqual((await call(program, "GET", "/system/summary")).ends, []);
    assertProblem(await ask(program, "GET", "/system/summary?hours=25"), 400, "invalid_parameter");
    assert.deepEqual(to, {
      ...from,
      completed: from.completed! + 1,
      failed: from.failed! + 1,
      running: from.running! + 1,
    });
    const [jobsBefore, jobs] = [before.jobs, during.jobs] as unknown as readonly {
      total: number;
      open: number;
    }[];
    assert.equal(jobs!.total, jobsBefore!.total + 3);
    assert.equal(jobs!.open, jobsBefore!.open + 1);
    const [node, ...others] = during.nodes as readonly JsonObject[];
    assert.deepEqual(others, []);
    const { jobs_owned: owned, tasks_running: tasks, reserved } = node ?? {};
    assert.deepEqual([owned, tasks, reserved], [1, 1, { default: 0, gpu: 1, "@web-ui": 0 }]);
    assert.deepEqual([during.executor_pools, during.tasks_running], [node?.pools, 1]);
    assert.deepEqual([before.executor_pools, before.tasks_running], [idlePools, 0]);
    await held.end();
  });
});

describe("metrics", () => {
  const requests = async () => {
    const { http } = await call(program, "GET", "/metrics");
    return http as {
      requests: Record<string, number>;
      connections: number;
      duration_ms: { count: number; sum: number; buckets: { le: number; count: number }[] };
    };
  };

  test("requests count by the class of their answer", async () => {
    const before = await requests();
    for (let i = 0; i < 5; i++) await ask(program, "GET", "/runs/run_none");
    // The last of them is counted when its answer has been handed over, which may be after it has arrived.
    await until(
      "all are counted",
      async () => (await requests()).requests["4xx"] === before.requests["4xx"]! + 5,
    );
    const after = await requests();
    assert.ok(after.requests["2xx"]! > before.requests["2xx"]!);
    assert.equal(after.requests["5xx"], before.requests["5xx"]);
    assert.ok(after.connections >= 1);
    const { count, buckets } = after.duration_ms;
    assert.ok(count >= before.duration_ms.count + 6);
    for (const [i, bucket] of buckets.entries()) {
      assert.ok(bucket.count <= count && bucket.count >= (buckets[i - 1]?.count ?? 0));
    }
  });

  test("an event stream counts as a request without a duration", async () => {
    const jobId = await createJob(program, graph("streamed", [router("in")]));
    const before = await requests();
    const runId = await startRun(program, jobId);
    await ended(program, runId);
    for (let i = 0; i < 3; i++) await ask(program, "GET", `/runs/${runId}/events/stream`);
    const total = (of: typeof before) => Object.values(of.requests).reduce((sum, n) => sum + n, 0);
    const withoutDuration = (of: typeof before) => total(of) - of.duration_ms.count;
    await until("all are counted", async () => {
      // The one to the run's end is one more.
      return withoutDuration(await requests()) === withoutDuration(before) + 4;
    });
  });

  test("the JSON has the process, the runtime and its pools", async () => {
    const { process: own, runtime, cluster } = await call(program, "GET", "/metrics");
    const { rss_bytes: rss, cpu_user_seconds: cpu, event_loop_lag_ms: lag } = own as JsonObject;
    assert.ok(Number(rss) > 20_000_000 && Number(cpu) > 0);
    assert.deepEqual(Object.keys(lag as JsonObject), ["p50", "p99", "max"]);
    const { available, executor_pools: pools } = runtime as JsonObject;
    assert.equal(available, true);
    assert.deepEqual(pools, idlePools);
    assert.deepEqual(cluster, {
      nodes: { ready: 1, draining: 0, maintenance: 0, lost: 0, left: 0 },
      open_jobs: 0,
      tasks_running: 0,
      executor_pools: idlePools,
    });
  });

  test("Prometheus's text is there with Accept, and with format=prometheus", async () => {
    const plain = await ask(program, "GET", "/metrics", { headers: { accept: "text/plain" } });
    assert.equal(plain.headers.get("content-type"), "text/plain; version=0.0.4; charset=utf-8");
    assert.match(plain.text, /^troupe_pool_slots\{pool="gpu"\} 1$/m);
    assert.match(plain.text, /^troupe_cluster_nodes\{status="ready"\} 1$/m);
    assert.match(plain.text, /^troupe_cluster_pool_slots\{pool="gpu"\} 1$/m);
    assert.match(plain.text, /^troupe_cluster_tasks_running 0$/m);
    assert.match(plain.text, /^troupe_http_requests_total\{status="2xx"\} \d+$/m);
    assert.match(plain.text, /^troupe_http_request_duration_seconds_bucket\{le="\+Inf"\} \d+$/m);
    assert.match(plain.text, /^process_resident_memory_bytes \d+$/m);
    for (const line of plain.text.trimEnd().split("\n")) {
      assert.match(line, /^(# (HELP|TYPE) \w+ .+|\w+(\{\w+="[^"]*"(,\w+="[^"]*")*\})? [\d.e+-]+)$/);
    }
    const asked = await ask(program, "GET", "/metrics?format=prometheus");
    assert.equal(asked.headers.get("content-type"), plain.headers.get("content-type"));
    const open = await ask(program, "GET", "/metrics", {
      headers: { accept: "application/openmetrics-text; version=1.0.0" },
    });
    assert.match(open.headers.get("content-type") ?? "", /^application\/openmetrics-text; version=1\.0\.0/);
    assert.match(open.text, /\n# EOF\n$/);
    assertProblem(await ask(program, "GET", "/metrics?format=xml"), 400, "invalid_parameter");
  });
});

test(
  "while the store takes no writes: health is 503 degraded, the views say why, and reading goes on",
  unlessOnPostgres,
  async () => {
    const jobId = await createJob(program, graph("locked", [router("in")]));
    {
      // The program may be writing at this very moment.
      using other = new DatabaseSync(join(program.home, "troupe.db"), { timeout: 60_000 });
      other.exec("BEGIN EXCLUSIVE");
      assertProblem(await ask(program, "POST", `/jobs/${jobId}/runs`, { body: {} }), 503, "unavailable");
      for (const path of ["/health", "/runtime/health"]) {
        const { status, headers, body, text } = await ask(program, "GET", path);
        assert.equal(status, 503);
        assert.ok(Number(headers.get("retry-after")) >= 1);
        assert.equal(body.status, "degraded");
        assert.deepEqual(body.checks, { store: "failing", runtime: "ok" });
        assert.match(String(body.detail), /locked by another program/);
        assert.ok(!text.includes(program.home), "no path leaves the machine");
      }
      assert.equal((await call(program, "GET", "/runtime/status")).status, "degraded");
      const { items } = await call(program, "GET", "/nodes");
      assert.equal((items as readonly JsonObject[])[0]?.status, "ready", "health tells of the store");
      const { runtime } = await call(program, "GET", "/metrics");
      assert.equal((runtime as JsonObject).available, false);
      const { checks } = await call(program, "GET", "/runtime/doctor");
      const found = (checks as readonly JsonObject[]).find(({ name }) => name === "store");
      assert.ok(
        found?.status === "fail" || found?.status === "ok",
        "the findings of a moment ago may still be good",
      );
      assert.equal((await ask(program, "GET", `/jobs/${jobId}`)).status, 200);
      other.exec("ROLLBACK");
    }
    // Nobody writes anything: asking is enough.
    await until("health is well again", async () => (await ask(program, "GET", "/health")).status === 200);
    assert.equal((await call(program, "GET", "/runtime/status")).status, "running");
  },
);
