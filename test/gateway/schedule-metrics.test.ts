// Metrics of schedules, trigger events and webhooks, as they are scraped.

import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { after, before, test } from "node:test";
import type { JsonObject } from "../../src/engine/json.ts";
import { Scraped } from "../support/exposition.ts";
import { ask, call, createJob, ended } from "../support/gateway-api.ts";
import { graph, router, sensor } from "../support/graphs.ts";
import { startGatewayHere } from "../support/in-process.ts";
import type { Program } from "../support/program.ts";
import { until } from "../support/until.ts";

let program: Program;
before(async () => {
  program = await startGatewayHere();
});
after(() => program.stop());

async function scrape(): Promise<Scraped> {
  const answer = await ask(program, "GET", "/metrics?format=prometheus");
  assert.equal(answer.status, 200);
  return new Scraped(answer.text);
}

const schedule = (body: JsonObject) => call(program, "POST", "/schedules", body);
const emit = (body: JsonObject) => call(program, "POST", "/events", body);

test("due times, events and requests to webhooks are counted by what became of them", async () => {
  const jobId = await createJob(program, graph("quick", [router("in")]));
  const heldId = await createJob(program, graph("held", [sensor("wait")]));
  const delayed = await schedule({ job_id: jobId, delayed: { delay_seconds: 0 } });
  const runId = await until("the delayed run is started", async () => {
    const { last_dispatch: last } = await call(program, "GET", `/schedules/${delayed.schedule_id}`);
    return (last as JsonObject | null)?.run_id ?? false;
  });
  await ended(program, String(runId));
  await schedule({ job_id: heldId, event: { type: "held" } });
  await schedule({ job_id: heldId, event: { type: "later", debounce_seconds: 3_600 } });
  // What it would be given is no object.
  const inputs = { $event: "/payload" };
  await schedule({ job_id: jobId, event: { type: "refused" }, inputs });
  const hooked = await schedule({ job_id: jobId, event: { type: "hooked" }, webhook: { scheme: "github" } });
  for (const body of [
    { type: "nobody" },
    { type: "nobody", event_id: "one" },
    { type: "nobody", event_id: "one" },
    { type: "held" },
    { type: "held" },
    { type: "later" },
    { type: "refused", payload: 1 },
  ])
    await emit(body);
  const { path, secret } = hooked.webhook as { path: string; secret: string };
  const signature = `sha256=${createHmac("sha256", secret).update("{}").digest("hex")}`;
  const send = (to: string, signed: string, type = "application/json") =>
    fetch(program.url + to, {
      method: "POST",
      body: "{}",
      headers: { "content-type": type, "x-hub-signature-256": signed },
    });
  for (const [to, signed, type] of [
    [path, signature, undefined],
    [path, signature, undefined],
    [path, "no", undefined],
    ["/hooks/none", signature, undefined],
    [path, signature, "text/plain"],
  ] as const)
    await send(to, signed, type);
  const scraped = await until("everything is counted", async () => {
    const scraped = await scrape();
    return scraped.sum("troupe_webhook_requests_total") === 5 && scraped;
  });
  const counted = (name: string, wanted: Readonly<Record<string, number>>) => {
    const label = name.includes("webhook") ? "result" : "outcome";
    for (const [value, count] of Object.entries(wanted))
      assert.equal(scraped.value(name, `{${label}="${value}"}`), count, `${name} ${value}`);
    assert.equal(
      scraped.sum(name),
      Object.values(wanted).reduce((a, b) => a + b, 0),
      name,
    );
  };
  const webhooks = { accepted: 1, repeated: 1, invalid_signature: 1, not_found: 1, invalid_body: 1 };
  counted("troupe_webhook_requests_total", webhooks);
  counted("troupe_trigger_events_total", { unmatched: 2, repeated: 1, matched: 5 });
  counted("troupe_trigger_matches_total", { started: 2, overlap: 1, debounced: 1, refused: 1 });
  counted("troupe_schedule_dispatches_total", { dispatched: 3, failed: 1 });
  assert.equal(scraped.value("troupe_schedule_delay_seconds_count"), 1);
  assert.equal(scraped.value("troupe_cluster_trigger_events_waiting"), 1);
});
