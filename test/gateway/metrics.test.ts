// Metrics during load: what is scraped adds up, and agrees with what the histories say.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Scraped } from "../support/exposition.ts";
import {
  ask,
  call,
  createJob,
  ended,
  follow,
  happens,
  runtimeApiOf,
  startRun,
} from "../support/gateway-api.ts";
import { executor, graph, router, sensor } from "../support/graphs.ts";
import { startGatewayHere } from "../support/in-process.ts";
import type { Program } from "../support/program.ts";
import { until } from "../support/until.ts";

let program: Program;
before(async () => {
  program = await startGatewayHere({ env: { SVC_EXECUTOR_POOL_CAPACITIES: "default=2,io=1" } });
});
after(() => program.stop());

async function scrape(): Promise<Scraped> {
  const answer = await ask(program, "GET", "/metrics?format=prometheus");
  assert.equal(answer.status, 200);
  return new Scraped(answer.text);
}

const ends = (scraped: Scraped, status: string) =>
  scraped.value("troupe_runs_ended_total", `{status="${status}"}`);

test("runs, attempts, waits and commits add up while they happen and afterwards", async () => {
  const jobs = {
    quick: await createJob(program, graph("quick", [router("in")])),
    works: await createJob(program, graph("works", [executor("work", ["true"])])),
    fails: await createJob(program, graph("fails", [executor("work", ["false"], { pool: "io" })])),
    waits: await createJob(program, graph("waits", [sensor("wait")])),
  };
  const start = (jobId: string, count: number) =>
    Promise.all(Array.from({ length: count }, () => startRun(program, jobId)));
  const waiting = await start(jobs.waits, 5);
  const others = (
    await Promise.all([start(jobs.quick, 60), start(jobs.works, 20), start(jobs.fails, 6)])
  ).flat();

  // Under way, whatever has happened so far.
  for (let i = 0; i < 5; i++) {
    const scraped = await scrape();
    const open = scraped.value("troupe_runs_started_total") - scraped.sum("troupe_runs_ended_total");
    assert.ok(open >= 0 && open <= 91, `${open} runs are open`);
    assert.equal(scraped.value("troupe_run_duration_seconds_count"), scraped.sum("troupe_runs_ended_total"));
  }

  const histories = await Promise.all(others.map((runId) => ended(program, runId)));
  for (const runId of waiting) await happens(program, runId, "agent_started");
  for (const runId of waiting.slice(0, 2)) {
    await call(program, "PATCH", `/runs/${runId}`, { desired_state: "cancelled" });
  }
  const cancelled = await Promise.all(waiting.slice(0, 2).map((runId) => ended(program, runId)));

  await until(
    "the three that wait are open alone",
    async () => (await scrape()).value("troupe_open_jobs") === 3,
  );
  const scraped = await scrape();
  assert.equal(scraped.value("troupe_runs_started_total"), 91);
  assert.deepEqual(
    ["completed", "failed", "cancelled"].map((status) => ends(scraped, status)),
    [80, 6, 2],
  );
  assert.equal(scraped.value("troupe_run_duration_seconds_count"), 88);

  const ofType = (type: string) =>
    [...histories, ...cancelled].reduce((sum, history) => sum + history.of(type).length, 0);
  assert.equal(scraped.sum("troupe_lease_wait_seconds_count"), ofType("executor_lease_acquired"));
  assert.equal(scraped.value("troupe_lease_wait_seconds_count", '{pool="io"}'), 6);
  assert.equal(
    scraped.value("troupe_attempts_total", '{outcome="succeeded"}'),
    ofType("sandbox_job_completed"),
  );
  assert.equal(scraped.value("troupe_attempts_total", '{outcome="failed"}'), ofType("sandbox_job_failed"));
  assert.equal(scraped.value("troupe_dead_letters_total"), ofType("message_dead_lettered"));

  const open = await Promise.all(
    waiting.slice(2).map((runId) => call(program, "GET", `/runs/${runId}/events`)),
  );
  const openEvents = open.reduce((sum, page) => sum + (page.items as unknown[]).length, 0);
  const allEvents = [...histories, ...cancelled].reduce((sum, { events }) => sum + events.length, openEvents);
  assert.equal(scraped.value("troupe_events_total"), allEvents);
  assert.equal(scraped.value("troupe_batch_events_sum"), allEvents);
  assert.equal(scraped.value("troupe_batch_events_count"), scraped.value("troupe_commit_seconds_count"));
  assert.equal(scraped.value("troupe_commit_failures_total"), 0);
  assert.equal(scraped.value("troupe_retention_failures_total"), 0);
  assert.ok(scraped.value("troupe_store_database_bytes") > 0);
  assert.ok(scraped.value("troupe_store_disk_free_bytes") > 0);
  assert.equal(scraped.value("troupe_event_loop_lag_seconds", '{percentile="100"}') >= 0, true);
});

test("readers of streams are counted while they read, and what waits while it waits", async () => {
  const runId = await startRun(program, await createJob(program, graph("held", [sensor("wait")])));
  const subscribers = async () => (await scrape()).value("troupe_sse_subscribers");
  // Those who have stopped listening count until the server notices.
  await until("earlier readers are gone", async () => (await subscribers()) === 0);
  const readers = Array.from({ length: 4 }, () => follow(program, runId));
  for (const reader of readers) await reader.next();
  assert.equal(await subscribers(), 4);
  for (const reader of readers) await reader.return(undefined);
  await until("the readers are gone", async () => (await subscribers()) === 0);

  const worker = executor("work", ["sleep", "600"], { pool: "io" });
  const job = await createJob(program, graph("queue", [worker]));
  const runs = [await startRun(program, job), await startRun(program, job)];
  await until("one waits for the other's slot", async () => {
    const scraped = await scrape();
    const io = '{pool="io"}';
    return (
      scraped.value("troupe_pool_slots_in_use", io) === 1 &&
      scraped.value("troupe_pool_requests_queued", io) === 1
    );
  });
  for (const id of [...runs, runId])
    await call(program, "PATCH", `/runs/${id}`, { desired_state: "cancelled" });
});

test("the runtime API shows the same, without what only the gateway has", async () => {
  const runtime = await runtimeApiOf(program);
  const answer = await fetch(`${runtime.api}/metrics`);
  assert.match(answer.headers.get("content-type") ?? "", /^text\/plain; version=0\.0\.4/);
  const scraped = new Scraped(await answer.text());
  const ofGateway = new Set([
    "troupe_launches_waiting",
    "troupe_http_requests_total",
    "troupe_http_connections",
  ]);
  assert.deepEqual(
    scraped.names.filter((name) => ofGateway.has(name)),
    [],
  );
  assert.ok(scraped.value("troupe_runs_started_total") >= 91);
});

test("OpenMetrics is answered to scrapers that prefer it", async () => {
  const headers = { accept: "application/openmetrics-text;version=1.0.0,text/plain;q=0.5" };
  const answer = await ask(program, "GET", "/metrics", { headers });
  assert.match(answer.headers.get("content-type") ?? "", /^application\/openmetrics-text/);
  assert.ok(answer.text.endsWith("# EOF\n"));
});
