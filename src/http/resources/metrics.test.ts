// Metrics: who gets which format, and the text itself.

import assert from "node:assert/strict";
import { test } from "node:test";
import { type Metric, metricsText } from "../../observability/metrics/exposition.ts";
import { ProcessMeter } from "../../observability/metrics/process-meter.ts";
import { flavourOf } from "./metrics.ts";

const prometheus =
  "application/openmetrics-text;version=1.0.0;q=0.5,application/openmetrics-text;version=0.0.1;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2";

const choices: readonly [accept: string | undefined, flavour: string, who: string][] = [
  [undefined, "json", "nobody in particular"],
  ["*/*", "json", "curl, fetch"],
  ["application/json, text/plain, */*", "json", "a client that lists JSON first"],
  ["text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", "json", "a browser"],
  ["text/plain", "prometheus", "who wants text"],
  ["text/plain;version=0.0.4;q=0.5,*/*;q=0.1", "prometheus", "an older scraper"],
  [prometheus, "openmetrics", "a scraper"],
  ["TEXT/PLAIN", "prometheus", "who shouts"],
  ["text/plain;q=0.1, application/json;q=0.9", "json", "who weighs"],
  ["text/plain;q=0, */*;q=0.1", "json", "who does not want text"],
  ["text/plain;q=nonsense", "json", "who errs"],
  ["image/png", "json", "who wants what is not there"],
];
for (const [accept, flavour, who] of choices) {
  test(`${who} (Accept: ${accept}) gets ${flavour}`, () => {
    assert.equal(flavourOf(undefined, accept), flavour);
  });
}

test("the query goes before the Accept header", () => {
  assert.equal(flavourOf("json", "text/plain"), "json");
  assert.equal(flavourOf("prometheus", "application/json"), "prometheus");
});

const metrics: readonly Metric[] = [
  { name: "a_total", help: "A \\ and\na line.", kind: "counter", samples: [{ value: 3 }] },
  { name: "b", help: "B.", kind: "gauge", samples: [{ labels: { pool: 'a"b\\c\nd', x: "1" }, value: 0.5 }] },
  {
    name: "c_seconds",
    help: "C.",
    kind: "histogram",
    samples: [
      { suffix: "_bucket", labels: { le: "+Inf" }, value: 1 },
      { suffix: "_sum", value: 2 },
      { suffix: "_count", value: 1 },
    ],
  },
];

test("Prometheus's text has a help and a type line per metric, and escapes what would end a line or a label", () => {
  assert.equal(
    metricsText(metrics, "prometheus"),
    [
      "# HELP a_total A \\\\ and\\na line.",
      "# TYPE a_total counter",
      "a_total 3",
      "# HELP b B.",
      "# TYPE b gauge",
      'b{pool="a\\"b\\\\c\\nd",x="1"} 0.5',
      "# HELP c_seconds C.",
      "# TYPE c_seconds histogram",
      'c_seconds_bucket{le="+Inf"} 1',
      "c_seconds_sum 2",
      "c_seconds_count 1",
      "",
    ].join("\n"),
  );
});

test("OpenMetrics names a counter without _total, and ends with EOF", () => {
  const lines = metricsText(metrics, "openmetrics").split("\n");
  assert.deepEqual(lines.slice(0, 3), ["# HELP a A \\\\ and\\na line.", "# TYPE a counter", "a_total 3"]);
  assert.deepEqual(lines.slice(-2), ["# EOF", ""]);
});

/** Holds up the event loop, at least so long. */
async function holdUp(ms: number): Promise<void> {
  const fromMs = performance.now();
  while (performance.now() - fromMs < ms);
  // The iteration counts once it has ended.
  await nextIteration();
  await nextIteration();
}
const nextIteration = () => new Promise((resolve) => setImmediate(resolve));

test("the lag of the event loop is seen, and forgotten after the readings of two windows", async () => {
  let steadyMs = 0;
  const meter = new ProcessMeter(() => steadyMs);
  try {
    await holdUp(200);
    assert.ok(meter.lag().maxMs >= 200);
    for (steadyMs of [60_000, 120_000]) meter.lag();
    await nextIteration();
    assert.ok(meter.lag().maxMs < 200);
  } finally {
    meter.stop();
  }
});

test("a long iteration of the event loop is not hidden by a thousand short ones", async () => {
  let steadyMs = 0;
  const meter = new ProcessMeter(() => steadyMs);
  try {
    await holdUp(200);
    for (let i = 0; i < 1_000; i++) await nextIteration();
    steadyMs = 1_000;
    assert.ok(meter.lag().p99Ms >= 190, "a fifth of the callers met it");
    steadyMs = 30_000_000;
    assert.equal(meter.lag().p99Ms, 0, "hardly any caller met it");
  } finally {
    meter.stop();
  }
});

test("a sample holds figures of this process", () => {
  const meter = new ProcessMeter(() => 0);
  const sample = meter.sample();
  meter.stop();
  assert.ok(sample.rssBytes > sample.heapUsedBytes && sample.heapUsedBytes > 0);
  assert.ok(sample.heapTotalBytes > 0 && sample.cpuUserSeconds > 0 && sample.cpuSystemSeconds >= 0);
});
