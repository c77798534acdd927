// The export of finished spans: batches, limits, failures, and the end. Method: the real thread, and a collector that
// answers as the test says.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { type Answering, startCollector } from "../../../test/support/collector.ts";
import { until } from "../../../test/support/until.ts";
import { systemClock } from "../../app/clock.ts";
import { SpanExporter } from "./exporter.ts";
import { readTelemetry } from "./settings.ts";
import type { FinishedSpan } from "./span.ts";

function span(n: number): FinishedSpan {
  return {
    traceId: "4bf92f3577b34da6a3ce929d0e0e4736",
    spanId: n.toString(16).padStart(16, "0"),
    parentSpanId: null,
    isParentRemote: false,
    isCallersTrace: false,
    name: `span ${n}`,
    startMs: 0,
    endMs: 1,
    error: null,
    attributes: {},
    events: [],
    droppedEvents: 0,
  };
}

const never = new Promise<void>(() => {});

/** An exporter that sends batches of ten, and the rest only when it is closed. */
async function exporting(answering: Answering, queueMax = 100) {
  const collector = await startCollector();
  collector.answering = answering;
  const env = {
    OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
    OTEL_EXPORTER_OTLP_TIMEOUT: "60000",
    OTEL_BSP_SCHEDULE_DELAY: "60000",
    OTEL_BSP_MAX_EXPORT_BATCH_SIZE: "10",
    OTEL_BSP_MAX_QUEUE_SIZE: String(queueMax),
  };
  const settings = readTelemetry(env);
  assert.ok(settings.kind === "on");
  const log: [message: string, fields: object][] = [];
  const warn = (fields: object, message: string) => log.push([message.replace(collector.url, "URL"), fields]);
  const exporter = new SpanExporter({
    settings,
    env,
    clock: systemClock,
    log: { warn, error: warn },
    version: "1.2.3",
  });
  return {
    collector,
    exporter,
    log,
    add(count: number) {
      for (let n = 1; n <= count; n++) exporter.add(span(n));
    },
    async [Symbol.asyncDispose]() {
      await exporter.close(Promise.resolve());
      await collector.stop();
    },
  };
}

const CANNOT = "traces cannot be sent to URL/v1/traces: spans are dropped until they can";
const AGAIN = "traces are sent to URL/v1/traces again; spans were lost";
const NOT_SENT = "spans were not sent to URL/v1/traces";

test("full batches are sent immediately; closing sends the rest, and accepts nothing more", async () => {
  await using sending = await exporting(200);
  const { collector, exporter } = sending;
  sending.add(25);
  await until("two batches have arrived", () => collector.spans.length === 20);
  await exporter.close(never);
  assert.equal(collector.spans.length, 25);
  sending.add(20);
  await exporter.close(never);
  assert.equal(collector.spans.length, 25);
  assert.deepEqual(sending.log, []);
});

test("closing sends a whole queue, however many batches it is", async () => {
  await using sending = await exporting(200, 1_000);
  sending.add(1_000);
  await sending.exporter.close(never);
  assert.equal(sending.collector.spans.length, 1_000);
  assert.deepEqual(sending.log, []);
});

describe("failures", () => {
  test("is logged once when it begins and once when it is over, with what was lost", async () => {
    await using sending = await exporting(400);
    const { collector, log } = sending;
    sending.add(20);
    await until("both batches were refused", () => collector.requests.length === 2);
    await until("it is logged", () => log.length > 0);
    assert.deepEqual(log, [[CANNOT, { reason: "Bad Request" }]]);
    collector.answering = 200;
    sending.add(10);
    await until("it is over", () => log.length > 1);
    assert.deepEqual(log.slice(1), [[AGAIN, { spans: 20 }]]);
  });

  test("is also that more spans end than may wait: they are dropped, and counted", async () => {
    await using sending = await exporting("never", 20);
    sending.add(50);
    assert.deepEqual(sending.log, [[CANNOT, { reason: "spans end faster than they can be sent" }]]);
    await until("a batch is under way", () => sending.collector.requests.length > 0);
    await sending.exporter.close(Promise.resolve());
    assert.deepEqual(sending.log.slice(1), [[NOT_SENT, { spans: 50 }]]);
  });
});

describe("closing", () => {
  test("ends at its limit when the collector does not answer, and reports what was not sent", async () => {
    await using sending = await exporting("never");
    const { promise: isLate, resolve } = Promise.withResolvers<void>();
    sending.add(12);
    const closed = sending.exporter.close(isLate);
    await until("it is asked", () => sending.collector.requests.length > 0);
    resolve();
    await closed;
    assert.deepEqual(sending.log, [[NOT_SENT, { spans: 12 }]]);
  });

  test("does not try a collector that is known to refuse", async () => {
    await using sending = await exporting(400);
    sending.add(10);
    await until("it is logged", () => sending.log.length > 0);
    sending.add(4);
    await sending.exporter.close(never);
    assert.equal(sending.collector.requests.length, 1);
    assert.deepEqual(sending.log.at(-1), [NOT_SENT, { spans: 14 }]);
  });

  test("ends when the collector refuses what waits", async () => {
    await using sending = await exporting(400);
    sending.add(4);
    await sending.exporter.close(never);
    assert.deepEqual(sending.log, [[NOT_SENT, { spans: 4 }]]);
  });

  test("of what never had anything to send is quiet", async () => {
    await using sending = await exporting("never");
    await sending.exporter.close(never);
    assert.deepEqual(sending.log, []);
  });
});
