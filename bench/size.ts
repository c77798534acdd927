// The same program with much stored: 1,000,000 ended runs and 10,000 open jobs, next to 10,000 ended runs. What is compared is
// the processor time of a request, which other programs of the machine do not lengthen; and how long a restart takes.

import { rm } from "node:fs/promises";
import { createJob, startRun } from "../test/support/gateway-api.ts";
import { type Program, startProgram, temporaryHome } from "../test/support/program.ts";
import { until } from "../test/support/until.ts";
import { send, submit } from "./client.ts";
import { addressesOf } from "./gaps.ts";
import { submitMany } from "./load.ts";
import { pair } from "./manifests.ts";
import { processorMs } from "./processor.ts";
import { seedEnded } from "./seed-size.ts";

const FEW_ENDED = 10_000;
const ENDED = 1_000_000;
const OPEN = 10_000;
const OPEN_AT_ONCE = 1_000;
const REQUESTS = 200;
const SUBMISSIONS = 5_000;
const RESTARTS = 3;

/** Waits for an hour, and again. */
const waiting = {
  manifest_version: "1.0",
  graph_id: "waiting",
  entrypoints: ["tick"],
  nodes: [
    { node_id: "tick", agent_type: "sensor", config: { interval_ms: 3_600_000 } },
    { node_id: "end", agent_type: "aggregator", config: {} },
  ],
  edges: [{ from_node: "tick", to_node: "end" }],
};

export async function measureSize(only: readonly string[] | null): Promise<Map<string, string>> {
  const figures = new Map<string, string>();
  if (only !== null && !only.includes("size")) return figures;
  const home = await temporaryHome();
  try {
    await withProgram(home, endedRun);
    seedEnded(home, FEW_ENDED);
    const small = await withProgram(home, measure);
    await withProgram(home, endedRun);
    seedEnded(home, ENDED);
    await withProgram(home, openJobs);
    for (let i = 0; i < RESTARTS; i++) await measureRestart(home, figures, i);
    const large = await withProgram(home, measure);
    for (const [name, ms] of large) {
      const before = small.get(name) ?? Number.NaN;
      const ratio = (ms / before).toFixed(2);
      figures.set(`${name}, processor time`, `${ms.toFixed(2)} ms, before ${before.toFixed(2)} ms: ${ratio}`);
    }
  } finally {
    await rm(home, { recursive: true });
  }
  return figures;
}

async function withProgram<T>(home: string, work: (program: Program) => Promise<T>): Promise<T> {
  await using program = await startProgram({ args: ["up"], home, env: { SVC_LOG_LEVEL: "warn" } });
  return await work(program);
}

async function endedRun(program: Program): Promise<void> {
  const runId = await startRun(program, await createJob(program, pair));
  await (await fetch(`${program.api}/runs/${runId}/events/stream`)).text();
}

async function openJobs(program: Program): Promise<void> {
  const { runtime } = await addressesOf(program);
  const body = JSON.stringify({ items: Array.from({ length: OPEN_AT_ONCE }, () => waiting) });
  for (let open = 0; open < OPEN; open += OPEN_AT_ONCE) {
    const { status, text } = await send(runtime, "POST", "/jobs:batch", body);
    if (status !== 200) throw new Error(`batch: ${status} ${text.slice(0, 300)}`);
  }
}

/** From the start to the first answer of health, and until every open job is recovered. */
async function measureRestart(home: string, figures: Map<string, string>, round: number): Promise<void> {
  const from = performance.now();
  await using program = await startProgram({ args: ["up"], home, env: { SVC_LOG_LEVEL: "info" } });
  const { status } = await send(program.api, "GET", "/health");
  if (status !== 200) throw new Error(`health: ${status}`);
  const healthyMs = performance.now() - from;
  await until("the open jobs are recovered", () => program.output().includes("open jobs resumed"));
  const shown = (ms: number) => `${(ms / 1_000).toFixed(2)} s`;
  figures.set(
    `restart with ${OPEN} open jobs: healthy, all running, round ${round + 1}`,
    `${shown(healthyMs)}, ${shown(performance.now() - from)} (of the processor ${shown(processorMs(program.pid))})`,
  );
}

/** @returns the processor time of each request, in ms */
async function measure(program: Program): Promise<Map<string, number>> {
  const { gateway, runtime } = await addressesOf(program);
  const costs = new Map<string, number>();
  const note = async (name: string, count: number, work: () => Promise<unknown>) => {
    for (let i = 0; i < count / 10; i++) await work();
    const before = processorMs(program.pid);
    for (let i = 0; i < count; i++) await work();
    costs.set(name, (processorMs(program.pid) - before) / count);
  };
  const { items } = JSON.parse((await send(gateway, "GET", "/runs?page_size=1")).text) as {
    items: readonly { readonly run_id: string; readonly job_id: string }[];
  };
  const { run_id: runId, job_id: jobId } = items[0]!;
  const manifest = JSON.stringify(pair);
  const newest = await submit(runtime, manifest);
  const requests: readonly (readonly [string, string])[] = [
    [runtime, "/jobs?limit=20"],
    [runtime, "/jobs?limit=20&include_terminal=false"],
    [runtime, `/jobs/${newest}`],
    [runtime, `/jobs/${newest}/events`],
    [runtime, "/system/summary"],
    [gateway, "/runs?page_size=20"],
    [gateway, "/runs?page_size=20&status=completed"],
    [gateway, "/runs?page_size=20&status=failed"],
    [gateway, "/runs?page_size=20&status=running"],
    [gateway, `/jobs/${jobId}/runs?page_size=20`],
    [gateway, `/jobs/${jobId}/runs?page_size=20&status=failed`],
    [gateway, "/jobs?page_size=20"],
    [gateway, "/jobs?page_size=20&include_terminal=false"],
    [gateway, `/jobs/${jobId}`],
    [gateway, `/jobs/${jobId}?view=full`],
    [gateway, `/jobs/${jobId}/workflow-progress`],
    [gateway, `/runs/${runId}`],
    [gateway, `/runs/${runId}/timeline`],
    [gateway, "/system/summary"],
    [gateway, "/bundles"],
    [gateway, "/services"],
    [gateway, "/operations"],
  ];
  for (const [api, path] of requests) {
    const name = `${api === gateway ? "gateway" : "runtime"}: GET ${path.replace(/(job|run)_\w+|pair-\w+/, "{id}")}`;
    await note(name, REQUESTS, async () => {
      const { status, text } = await send(api, "GET", path);
      if (status !== 200) throw new Error(`${path}: ${status} ${text.slice(0, 300)}`);
    });
  }
  await submitMany(runtime, manifest, SUBMISSIONS / 5);
  const before = processorMs(program.pid);
  await submitMany(runtime, manifest, SUBMISSIONS);
  costs.set("a two-step job, submitted", (processorMs(program.pid) - before) / SUBMISSIONS);
  return costs;
}
