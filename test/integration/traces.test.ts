// Traces of runs: from a caller, through the run and its workers, to a collector of OTLP over HTTP.

import assert from "node:assert/strict";
import { rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import type { JsonObject } from "../../src/engine/json.ts";
import { type Collector, type SeenSpan, startCollector } from "../support/collector.ts";
import { startHere } from "../support/command-line.ts";
import { makeGates } from "../support/gates.ts";
import {
  ask,
  completed,
  createJob,
  ended,
  happens,
  runtimeApiOf,
  startGateway,
  startRun,
  walk,
} from "../support/gateway-api.ts";
import { executor, graph, router } from "../support/graphs.ts";
import { startGatewayHere } from "../support/in-process.ts";
import { checkoutLauncher } from "../support/packed-program.ts";
import { freePorts } from "../support/ports.ts";
import { type Program, startProgram, temporaryHome } from "../support/program.ts";
import { historyOf, request } from "../support/runtime-api.ts";
import { until } from "../support/until.ts";

const CALLER = { traceId: "4bf92f3577b34da6a3ce929d0e0e4736", spanId: "00f067aa0ba902b7" };
const TRACEPARENT = `00-${CALLER.traceId}-${CALLER.spanId}-01`;

/** A worker whose result is the trace context that it was given. */
const teller = (id: string) =>
  executor(id, `printf '{"complete_run":{"traceparent":"%s"}}\\n' "$TRACEPARENT"`);

const exporting = (collector: { readonly url: string }, more: Record<string, string> = {}) => ({
  OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
  OTEL_BSP_SCHEDULE_DELAY: "20",
  // A batch that timed out because this process stood still for a while would be lost.
  OTEL_EXPORTER_OTLP_TIMEOUT: "60000",
  ...more,
});

/** The spans of a run, once its own, which is the last one, has arrived. */
async function spansOf(collector: Collector, runId: string): Promise<readonly SeenSpan[]> {
  const own = () => collector.spans.filter(({ attributes }) => attributes["troupe.run_id"] === runId);
  await until("the run's span has arrived", () => own().some(({ name }) => name.startsWith("run ")));
  return own();
}

const named = (spans: readonly SeenSpan[], name: string) => spans.filter((span) => span.name === name);

/** Asserts that spans are one tree below the run's, each once. */
function assertTree(spans: readonly SeenSpan[]): void {
  const byId = new Map(spans.map((span) => [span.spanId, span]));
  assert.equal(byId.size, spans.length, "every span once");
  for (const span of spans) {
    if (span.name.startsWith("run ")) continue;
    const parent = byId.get(span.parentSpanId ?? "");
    assert.ok(parent, `${span.name} has a parent`);
    assert.ok(parent.startMs <= span.startMs && span.startMs <= span.endMs && span.endMs <= parent.endMs);
  }
}

describe("with a collector", () => {
  let collector: Collector;
  let program: Program;
  before(async () => {
    collector = await startCollector();
    program = await startGatewayHere({
      env: exporting(collector, {
        OTEL_EXPORTER_OTLP_HEADERS: "authorization=Bearer%20of-the-collector",
        OTEL_RESOURCE_ATTRIBUTES: "deployment.environment.name=testing",
      }),
    });
  });
  after(async () => {
    await program.stop();
    await collector.stop();
  });

  test("a run belongs to its caller's trace, its worker gets its attempt's span, and all of it is exported", async () => {
    const jobId = await createJob(program, graph("tells", [router("in"), teller("work")], [["in", "work"]]));
    const answer = await ask(program, "POST", `/jobs/${jobId}/runs`, {
      body: {},
      headers: { traceparent: TRACEPARENT },
    });
    assert.equal(answer.body.trace_id, CALLER.traceId);
    const runId = String(answer.body.run_id);
    const { run } = await ended(program, runId);
    const spans = await spansOf(collector, runId);
    assertTree(spans);
    assert.deepEqual(spans.map(({ name }) => name).sort(), [
      "agent in",
      "agent work",
      "attempt work",
      "lease default",
      "run tells",
      "task work",
    ]);
    const [root] = named(spans, "run tells");
    assert.equal(root?.parentSpanId, CALLER.spanId);
    const [attempt] = named(spans, "attempt work");
    const result = run.result as JsonObject;
    assert.equal(result.traceparent, `00-${CALLER.traceId}-${attempt?.spanId}-01`);
    for (const span of spans) {
      assert.equal(span.traceId, CALLER.traceId);
      assert.equal(span.attributes["troupe.job_id"], jobId);
      assert.deepEqual(span.status, { code: 0 });
    }
    const { "troupe.agent_id": agent, "troupe.attempt": number, "troupe.pool": pool } = attempt!.attributes;
    assert.deepEqual([agent, number, pool], ["work", 1, "default"]);
  });

  test("the timeline, and the exported spans, have the same ids and times", async () => {
    const jobId = await createJob(program, graph("same", [router("in"), teller("work")], [["in", "work"]]));
    const { run } = await completed(program, jobId);
    const runId = String(run.run_id);
    const byId = new Map((await spansOf(collector, runId)).map((span) => [span.spanId, span]));
    const records = await walk(program, `/runs/${runId}/timeline`);
    const types = new Set(records.map(({ type }) => type));
    assert.deepEqual([...types].sort(), ["agent", "attempt", "lease", "run", "task"]);
    for (const record of records) {
      const span = byId.get(String(record.span_id));
      assert.ok(span, `${record.type} ${record.phase}`);
      assert.equal(span.traceId, record.trace_id);
      assert.equal(span.parentSpanId, record.parent_span_id);
      const atMs = Date.parse(String(record.ts));
      assert.ok(span.startMs <= atMs && atMs <= span.endMs);
    }
  });

  test("the collector is sent the headers that are configured, and what runs where", async () => {
    const jobId = await createJob(program, graph("headers", [teller("work")]));
    const { run } = await completed(program, jobId);
    const [span] = await spansOf(collector, String(run.run_id));
    assert.equal(span?.resource["service.name"], "troupe");
    assert.equal(span?.resource["deployment.environment.name"], "testing");
    const [request] = collector.requests;
    assert.equal(request?.path, "/v1/traces");
    assert.equal(request?.headers.authorization, "Bearer of-the-collector");
    assert.doesNotMatch(program.output(), /of-the-collector/);
  });

  test("a failure is the status and an exception of attempt, task, agent and run", async () => {
    const bad = executor("bad", "echo why >&2; exit 3", { max_attempts: 2, retry_backoff_ms: 1 });
    const jobId = await createJob(program, graph("fails", [bad]));
    const { run } = await ended(program, await startRun(program, jobId));
    const spans = await spansOf(collector, String(run.run_id));
    assertTree(spans);
    const failure = run.failure as { readonly span_id: string; readonly desc: string; readonly code: string };
    assert.equal(named(spans, "attempt bad").length, 2);
    for (const name of ["attempt bad", "task bad", "agent bad", "run fails"]) {
      for (const span of named(spans, name)) {
        assert.deepEqual(span.status, { code: 2, message: failure.desc }, name);
        const [exception] = span.events;
        assert.equal(exception?.name, "exception");
        assert.equal(exception?.attributes["exception.type"], failure.code);
        assert.match(String(exception?.attributes["exception.stacktrace"]), /^why/);
      }
    }
    const last = named(spans, "attempt bad").find((span) => span.attributes["troupe.attempt"] === 2);
    assert.equal(failure.span_id, last?.spanId);
    assert.equal(last?.attributes["troupe.exit_code"], 3);
  });

  test("the runtime API takes the caller's trace too", async () => {
    const runtime = await runtimeApiOf(program);
    const answer = await fetch(`${runtime.api}/jobs`, {
      method: "POST",
      headers: { "content-type": "application/json", traceparent: TRACEPARENT.replace("-01", "-00") },
      body: JSON.stringify(graph("direct", [teller("work")])),
    });
    const { id, run_id } = (await answer.json()) as { id: string; run_id: string };
    await historyOf(runtime, id);
    const spans = await spansOf(collector, run_id);
    assert.equal(named(spans, "run direct")[0]?.parentSpanId, CALLER.spanId);
    assert.equal(spans[0]?.attributes["troupe.job_id"], id);
    const timeline = await request(runtime, "GET", `/runs/${run_id}/timeline`);
    const [first] = timeline.body.data as readonly JsonObject[];
    assert.deepEqual([first?.trace_id, first?.parent_span_id], [CALLER.traceId, CALLER.spanId]);
  });

  test("a traceparent that is malformed is as good as none: the run gets a trace of its own", async () => {
    const jobId = await createJob(program, graph("own", [teller("work")]));
    const zero = "0".repeat(32);
    for (const traceparent of [
      "nonsense",
      TRACEPARENT.toUpperCase(),
      `00-${zero}-${CALLER.spanId}-01`,
      `00-${CALLER.traceId}-${zero.slice(16)}-01`,
      `ff-${CALLER.traceId}-${CALLER.spanId}-01`,
      `${TRACEPARENT}-more`,
    ]) {
      const answer = await ask(program, "POST", `/jobs/${jobId}/runs`, {
        body: {},
        headers: { traceparent },
      });
      assert.equal(answer.status, 202, traceparent);
      assert.match(String(answer.body.trace_id), /^(?!0+$)[0-9a-f]{32}$/);
      assert.notEqual(answer.body.trace_id, CALLER.traceId, traceparent);
      const spans = await spansOf(collector, String(answer.body.run_id));
      assert.equal(named(spans, "run own")[0]?.parentSpanId, null);
      assert.equal(spans[0]?.traceId, answer.body.trace_id);
    }
  });
});

test("a restart in the middle of a run loses no span that was open, and sends none twice", async () => {
  await using collector = await startCollector();
  const gates = await makeGates();
  const home = await temporaryHome();
  const env = exporting(collector);
  try {
    const gate = gates.pipe("go");
    const nodes = [executor("quick", ["true"]), executor("slow", ["cat", gate])];
    await using first = await startGateway({ home, env });
    const runId = await startRun(
      first,
      await createJob(first, graph("restarts", nodes, [["quick", "slow"]])),
    );
    const began = await happens(
      first,
      runId,
      ({ type, agent_id }) => type === "sandbox_job_started" && agent_id === "slow",
    );
    await until("the first task has arrived", () => named(collector.spans, "task quick").length > 0);
    await first.kill();
    await using second = await startGatewayHere({ home, env });
    await happens(second, runId, "executor_interrupted");
    await gates.open(gate);
    assert.equal((await ended(second, runId)).run.status, "completed");
    const spans = await spansOf(collector, runId);
    assertTree(spans);
    assert.deepEqual(spans.map(({ name, attributes }) => `${name}: ${attributes["troupe.status"]}`).sort(), [
      "agent quick: completed",
      "agent slow: completed",
      "attempt quick: completed",
      "attempt slow: completed",
      "attempt slow: interrupted",
      "lease default: completed",
      "lease default: completed",
      "lease default: interrupted",
      "run restarts: completed",
      "task quick: completed",
      "task slow: completed",
    ]);
    const broken = named(spans, "attempt slow").find(({ status }) => status.code === 2);
    assert.equal(broken?.startMs, Date.parse(began.timestamp));
    assert.deepEqual(
      named(spans, "run restarts")[0]?.events.map(({ name }) => name),
      ["job_recovered"],
    );
  } finally {
    await gates.remove();
    await rm(home, { recursive: true, force: true });
  }
});

/** The lines of the program's log that say whether traces arrive. */
const linesOfTraces = (program: Program) =>
  program.output().match(/^.*traces (?:cannot be|are) sent to.*$/gm) ?? [];

describe("a collector that is of no use", () => {
  test("is away: runs do not notice, it is logged once, and what comes later is sent when it is back", async () => {
    const port = await freePorts(1);
    // One attempt, so that the exporter does not try a batch for seconds before it gives it up.
    const env = exporting({ url: `http://127.0.0.1:${port}` }, { OTEL_EXPORTER_OTLP_TIMEOUT: "500" });
    await using program = await startGatewayHere({ env });
    const jobId = await createJob(program, graph("alone", [teller("work")]));
    for (let n = 0; n < 3; n++) await completed(program, jobId);
    await until("the failure is logged", () => linesOfTraces(program).length > 0);
    await using back = await startCollector(port);
    // Run after run: of spans that arrive too late for the exporter nothing is logged.
    await until("spans arrive again, and the recovery is logged", async () => {
      await completed(program, jobId);
      return back.spans.length > 0 && linesOfTraces(program).length > 1;
    });
    // Where half a second is too little for an answer it fails again; each time that is logged once.
    for (const [i, line] of linesOfTraces(program).entries()) {
      assert.match(
        line,
        i % 2 === 0
          ? /traces cannot be sent to http:\/\/127\.0\.0\.1:\d+\/v1\/traces: spans are dropped/
          : /again; spans were lost/,
      );
    }
  });

  test("never answers: runs do not notice, and the program stops all the same", async () => {
    await using collector = await startCollector();
    collector.answering = "never";
    await using program = await startGatewayHere({ env: exporting(collector) });
    const jobId = await createJob(program, graph("patient", [teller("work")]));
    await completed(program, jobId);
    await until("it is asked", () => collector.requests.length > 0);
    await completed(program, jobId);
    const { code } = await program.stop();
    assert.equal(code, 0);
    assert.match(program.output(), /spans were not sent to/);
  });

  test("refuses: it is logged once, with the reason, and the program stays as it is", async () => {
    await using collector = await startCollector();
    collector.answering = 401;
    await using program = await startGatewayHere({ env: exporting(collector) });
    const jobId = await createJob(program, graph("refused", [teller("work")]));
    await completed(program, jobId);
    await until("it is asked", () => collector.requests.length > 0);
    await completed(program, jobId);
    await until("it is asked again", () => collector.requests.length > 1);
    // What was logged has all been read once the program has ended.
    assert.equal((await program.stop()).code, 0);
    assert.equal(linesOfTraces(program).length, 1);
    assert.match(linesOfTraces(program)[0] ?? "", /Unauthorized/);
  });
});

test("a program that stops sends what has ended until then", async () => {
  await using collector = await startCollector();
  // A full batch is sent immediately: when it has arrived the exporter is there, and the other spans wait. A program that
  // stops has little time for them, and none for an exporter that still begins.
  const waiting = { OTEL_BSP_SCHEDULE_DELAY: "60000", OTEL_BSP_MAX_EXPORT_BATCH_SIZE: "8" };
  await using program = await startGatewayHere({ env: exporting(collector, waiting) });
  const jobId = await createJob(program, graph("last", [teller("work")]));
  await completed(program, jobId);
  const { run } = await completed(program, jobId);
  await until("a full batch has arrived", () => collector.spans.length > 0);
  assert.equal(collector.spans.length, 8);
  await program.stop();
  assert.equal(collector.spans.length, 10);
  assertTree(await spansOf(collector, String(run.run_id)));
});

test("samplers keep whole traces, or nothing of them", async () => {
  await using collector = await startCollector();
  const sampling = { OTEL_TRACES_SAMPLER: "parentbased_always_off" };
  await using program = await startGatewayHere({ env: exporting(collector, sampling) });
  const jobId = await createJob(program, graph("samples", [teller("work")]));
  await completed(program, jobId);
  const answer = await ask(program, "POST", `/jobs/${jobId}/runs`, {
    body: {},
    headers: { traceparent: TRACEPARENT },
  });
  await ended(program, String(answer.body.run_id));
  const spans = await spansOf(collector, String(answer.body.run_id));
  // The trace is the caller's, who has decided that it is kept; all of the run is kept with it.
  assertTree(spans);
  assert.equal(spans.length, 5);
  await program.stop();
  assert.equal(collector.spans.length, spans.length);
});

describe("a program that exports nothing", () => {
  const hook = `import module from "node:module";
import { writeSync } from "node:fs";
module.registerHooks?.({
  load(url, context, next) {
    if (/opentelemetry|src\\/observability\\/traces/.test(url)) writeSync(2, "loaded " + url + "\\n");
    return next(url, context);
  },
});
`;

  async function loadedBy(env: Record<string, string>): Promise<readonly string[]> {
    const home = await temporaryHome();
    const file = join(tmpdir(), `troupe-hook-${process.pid}.mjs`);
    try {
      await writeFile(file, hook);
      const options = `--import=${file}`;
      await using program = await startProgram({
        launcher: checkoutLauncher,
        home,
        env: { ...env, NODE_OPTIONS: options },
      });
      const job = await request(program, "POST", "/jobs", graph("off", [teller("work")]));
      await historyOf(program, String(job.body.id));
      await program.stop();
      return program.output().match(/^loaded .*$/gm) ?? [];
    } finally {
      await rm(file, { force: true });
      await rm(home, { recursive: true, force: true });
    }
  }

  test("loads nothing of OpenTelemetry, and of its own export only what reads the settings", async () => {
    const loaded = await loadedBy({});
    assert.deepEqual(
      loaded.map((line) => line.replace(/^.*\/src\//, "")),
      ["observability/traces/settings.ts"],
    );
  });

  test("in contrast to one that does, which has OpenTelemetry in a thread of its own", async () => {
    await using collector = await startCollector();
    const loaded = await loadedBy(exporting(collector));
    assert.ok(loaded.some((line) => line.endsWith("traces/telemetry.ts")));
  });
});

describe("troupe config", () => {
  test("tells whether and where traces are sent, and shows no header's value", async () => {
    const home = await temporaryHome();
    try {
      const off = await startHere(["config"], home).ended;
      assert.match(off.out, /Traces are not exported: OTEL_EXPORTER_OTLP_ENDPOINT is not set\./);
      const env = {
        OTEL_EXPORTER_OTLP_ENDPOINT: "http://collector.example:4318",
        OTEL_EXPORTER_OTLP_HEADERS: "authorization=Bearer%20correct-horse",
      };
      const on = await startHere(["config"], home, env).ended;
      assert.match(on.out, /Traces are sent to http:\/\/collector\.example:4318\/v1\/traces\./);
      assert.match(on.out, /authorization=\*{8}/);
      const json = await startHere(["config", "--json"], home, env).ended;
      const rows = JSON.parse(json.out) as readonly JsonObject[];
      assert.ok(rows.some(({ variable }) => variable === "OTEL_EXPORTER_OTLP_ENDPOINT"));
      assert.doesNotMatch(on.out + on.err + json.out, /correct-horse/);
    } finally {
      await rm(home, { recursive: true, force: true });
    }
  });
});
