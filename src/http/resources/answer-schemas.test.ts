// What the routes answer is what their schemas, and so the OpenAPI document, say: nothing else, and nothing less.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Ajv } from "ajv";
import { failed, startGateway, succeeded, type TestGateway } from "../../../test/support/gateway.ts";
import { aggregator, executor, graph, router } from "../../../test/support/graphs.ts";
import { formats } from "../core/formats.ts";
import type { Schema } from "../core/type.ts";
import * as artifacts from "./artifacts.ts";
import * as deadLetters from "./dead-letters.ts";
import * as events from "./events.ts";
import * as logs from "./logs.ts";
import * as results from "./results.ts";
import * as workflowProgress from "./workflow-progress.ts";

const ajv = new Ajv({ strict: false, allErrors: true, formats });

/** The schema with no room for fields that it does not name. */
function closed(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(closed);
  if (typeof schema !== "object" || schema === null) return schema;
  const entries = Object.entries(schema).map(([key, value]) => [key, closed(value)]);
  const isOpen = "properties" in schema && !("additionalProperties" in schema);
  return Object.fromEntries(isOpen ? [...entries, ["additionalProperties", false]] : entries);
}

function checkAgainst(schema: Schema, answer: unknown, what: string): void {
  const check = ajv.compile(closed(schema) as object);
  assert.ok(
    check(answer),
    `${what}: ${ajv.errorsText(check.errors)} in ${JSON.stringify(answer).slice(0, 1_000)}`,
  );
}

async function checkAll(
  gateway: TestGateway,
  { jobId, runId }: { jobId: string; runId: string },
): Promise<void> {
  const schemas = [
    [`/runs/${runId}/events`, events.schemas.RunEventPage],
    [`/runs/${runId}/result`, results.schemas.RunResult],
    [`/runs/${runId}/observability-summary`, results.schemas.ObservabilitySummary],
    [`/runs/${runId}/logs`, logs.schemas.LogPage],
    [`/runs/${runId}/timeline`, results.schemas.TimelinePage],
    [`/runs/${runId}/artifacts`, artifacts.schemas.ArtifactPage],
    [`/runs/${runId}/outputs`, artifacts.schemas.OutputPage],
    [`/jobs/${jobId}/events`, events.schemas.RunEventPage],
    [`/jobs/${jobId}/dead-letters`, deadLetters.schemas.DeadLetterPage],
    [`/jobs/${jobId}/workflow-progress`, workflowProgress.schemas.WorkflowProgress],
  ] as const;
  for (const [path, schema] of schemas) checkAgainst(schema, await gateway.json(path), path);
}

const manifest = graph(
  "g",
  [router("in"), executor("work", ["true"]), aggregator("out")],
  [
    ["in", "work"],
    ["work", "out"],
  ],
  { initial_inputs: { in: [1, 2] }, policies: { failure_policy: "continue" } },
);

test("answers are as their schemas say, from before a run's launch to its end", async () => {
  await using gateway = await startGateway();
  const jobId = await gateway.createJob(manifest);
  checkAgainst(
    workflowProgress.schemas.WorkflowProgress,
    await gateway.json(`/jobs/${jobId}/workflow-progress`),
    "no run",
  );
  const run = await gateway.createRun(jobId);
  await checkAll(gateway, run);
  await gateway.launch(run);
  const first = await gateway.started("work");
  await checkAll(gateway, run);
  gateway.engine.taskEvents(first.ref, [
    { type: "log", payload: { level: "warn", message: "x", attempt: 1, n: 1 } },
  ]);
  gateway.engine.taskEnded(first.ref, failed);
  const second = await gateway.started("work", 2);
  const artifacts = [
    await gateway.artifact("a.txt", Buffer.from("a")),
    await gateway.artifact("b.txt", Buffer.from("b"), { kind: "output", title: "B", primary: true }),
  ];
  gateway.engine.taskEnded(second.ref, succeeded(artifacts));
  await gateway.ended(run.runId);
  await checkAll(gateway, run);
});

test("answers of a run that failed, and of one that ended before its launch, are as their schemas say", async () => {
  await using gateway = await startGateway();
  const strict = await gateway.createRun(await gateway.createJob({ ...manifest, policies: {} }));
  await gateway.launch(strict);
  gateway.engine.taskEnded((await gateway.started("work")).ref, failed);
  await gateway.ended(strict.runId);
  await checkAll(gateway, strict);
  const waiting = await gateway.createRun(await gateway.createJob(manifest));
  await gateway.ends.cancelled(waiting.runId);
  await checkAll(gateway, waiting);
});
