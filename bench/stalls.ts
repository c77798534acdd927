// How long one request keeps all others waiting: the longest gap of the program's event loop while it is answered, with
// 100,000 stored jobs and a job of 10,000 agents.

import { type Program, startProgram } from "../test/support/program.ts";
import { until } from "../test/support/until.ts";
import { send, submit } from "./client.ts";
import { submitMany } from "./load.ts";
import { fan, pair } from "./manifests.ts";

const JOBS = 100_000;
const ROUNDS = 5;

export async function measureStalls(only: readonly string[] | null): Promise<Map<string, string>> {
  const figures = new Map<string, string>();
  if (only !== null && !only.includes("stalls")) return figures;
  await using program = await startProgram({
    env: {
      SVC_LOG_LEVEL: "warn",
      NODE_OPTIONS: `--import=${new URL("./loop-gap.ts", import.meta.url).href}`,
    },
  });
  const { api } = program;
  const wide = await submit(api, JSON.stringify(fan(9_998, 1)));
  await (await fetch(`${api}/jobs/${wide}/events/stream`)).text();
  const { job } = JSON.parse((await send(api, "GET", `/jobs/${wide}`)).text) as { job: { run_id: string } };
  await submitMany(api, JSON.stringify(pair), JOBS);
  const requests: readonly (readonly [string, string])[] = [
    ["no request", "/health"],
    ["GET /jobs, all of them", "/jobs"],
    ["GET /jobs?limit=500", "/jobs?limit=500"],
    ["GET /jobs?include_terminal=false", "/jobs?include_terminal=false"],
    ["GET /system/summary", "/system/summary"],
    ["GET /jobs/{id} of 10,000 agents", `/jobs/${wide}`],
    ["GET /jobs/{id}/events of 10,000 agents", `/jobs/${wide}/events`],
    ["GET /jobs/{id}/workflow-progress of 10,000 agents", `/jobs/${wide}/workflow-progress`],
    ["GET /runs/{id}/timeline of 10,000 agents", `/runs/${job.run_id}/timeline`],
    ["GET /runs/{id}/logs of 10,000 agents", `/runs/${job.run_id}/logs`],
    ["GET /runs/{id}/artifacts of 10,000 agents", `/runs/${job.run_id}/artifacts`],
  ];
  for (const [name, path] of requests) {
    const gaps: Gap[] = [];
    let tookMs = 0;
    // The first round is compiled while it runs.
    for (let round = -1; round < ROUNDS; round++) {
      await longestGap(program);
      const from = performance.now();
      const { status } = await send(api, "GET", path);
      if (status !== 200) throw new Error(`${path}: ${status}`);
      tookMs = performance.now() - from;
      const gap = await longestGap(program);
      if (round >= 0) gaps.push(gap);
    }
    const worst = (of: (gap: Gap) => number) => Math.max(...gaps.map(of)).toFixed(1);
    figures.set(
      `longest gap, ${name}`,
      `${worst((gap) => gap.ms)} ms, of the processor ${worst((gap) => gap.processorMs)} ms (answered in ${Math.round(tookMs)} ms)`,
    );
  }
  return figures;
}

interface Gap {
  readonly ms: number;
  readonly processorMs: number;
}

async function longestGap(program: Program): Promise<Gap> {
  const seen = gapsIn(program.output()).length;
  process.kill(program.pid, "SIGUSR2");
  return until("the gap is printed", () => gapsIn(program.output())[seen] ?? null);
}

const gapsIn = (output: string): readonly Gap[] =>
  [...output.matchAll(/^longest gap ([\d.]+) ms, of the processor ([\d.]+) ms$/gm)].map(
    ([, ms, processorMs]) => ({ ms: Number(ms), processorMs: Number(processorMs) }),
  );
