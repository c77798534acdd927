// The whole way out, from a published event to a collector, through the real exporter.

import assert from "node:assert/strict";
import { test } from "node:test";
import { startCollector } from "../../../test/support/collector.ts";
import { EngineHarness } from "../../../test/support/engine-harness.ts";
import { executor, graph } from "../../../test/support/graphs.ts";
import { systemClock } from "../../app/clock.ts";
import { EventFeed } from "../../runs/feed.ts";
import { readTelemetry } from "./settings.ts";
import { startTelemetry } from "./telemetry.ts";

const LIMIT_MS = 60_000;

/** A run that has ended, and everything that exports it. */
async function exporting(env: Record<string, string>) {
  const h = new EngineHarness();
  const jobId = await h.submit(graph("g", [executor("work", ["true"])]));
  await h.end("work");
  const { insert, events } = h.job(jobId);
  const settings = readTelemetry(env);
  assert.ok(settings.kind === "on");
  const warnings: [string, object][] = [];
  const feed = new EventFeed();
  const telemetry = startTelemetry({
    settings,
    env,
    feed,
    records: {
      find: async () => ({ jobId, ...insert }),
      events: async () => ({ firstSeq: 1, lines: [] }),
    },
    clock: systemClock,
    log: { warn: (fields, message) => warnings.push([message, fields]), error: () => {} },
    version: "1.2.3",
  });
  return { telemetry, warnings, publish: () => feed.published(jobId, 1, events) };
}

test("closing sends what was published right before it, and what is published later is dropped", async () => {
  await using collector = await startCollector();
  const env = { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url, OTEL_BSP_SCHEDULE_DELAY: "60000" };
  const { telemetry, publish, warnings } = await exporting(env);
  publish();
  await telemetry.close(LIMIT_MS);
  assert.deepEqual(collector.spans.map(({ name }) => name).sort(), [
    "agent work",
    "attempt work",
    "lease default",
    "run g",
    "task work",
  ]);
  publish();
  await telemetry.close(LIMIT_MS);
  assert.equal(collector.spans.length, 5);
  assert.deepEqual(warnings, []);
});

test("the SDK's own settings count: name, attributes, headers, compression, ratio", async () => {
  await using collector = await startCollector();
  const env = {
    OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: `${collector.url}/elsewhere`,
    OTEL_EXPORTER_OTLP_TRACES_HEADERS: "x-tenant=a%20b",
    OTEL_SERVICE_NAME: "digest",
    OTEL_RESOURCE_ATTRIBUTES: "team=blue,service.name=never",
    OTEL_TRACES_SAMPLER: "traceidratio",
    OTEL_TRACES_SAMPLER_ARG: "1",
  };
  const { telemetry, publish } = await exporting(env);
  publish();
  await telemetry.close(LIMIT_MS);
  const [request] = collector.requests;
  assert.deepEqual([request?.path, request?.headers["x-tenant"]], ["/elsewhere", "a b"]);
  const { resource } = collector.spans[0]!;
  assert.equal(resource["service.name"], "digest");
  assert.equal(resource["service.version"], "1.2.3");
  assert.equal(resource.team, "blue");
  const none = await exporting({ ...env, OTEL_TRACES_SAMPLER_ARG: "0" });
  none.publish();
  await none.telemetry.close(LIMIT_MS);
  assert.equal(collector.spans.length, 5);
  assert.deepEqual(none.warnings, []);
});

test("a wrong value of the SDK's own is warned of, and traces are sent all the same", async () => {
  await using collector = await startCollector();
  const env = { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url, OTEL_EXPORTER_OTLP_COMPRESSION: "brotli" };
  const { telemetry, publish, warnings } = await exporting(env);
  publish();
  await telemetry.close(LIMIT_MS);
  assert.equal(collector.spans.length, 5);
  assert.equal(warnings.length, 1);
  assert.match(JSON.stringify(warnings[0]), /OTEL_EXPORTER_OTLP_COMPRESSION is invalid/);
});
