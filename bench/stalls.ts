// How long one request keeps all others waiting: the longest gap of the program's event loop while it is answered, with
// 100,000 stored jobs, 100,000 runs and a job of 10,000 agents.

import { rm } from "node:fs/promises";
import { startProgram, temporaryHome } from "../test/support/program.ts";
import { send, submit } from "./client.ts";
import { addressesOf, longestGap, noteGap, startWithGaps } from "./gaps.ts";
import { submitMany } from "./load.ts";
import { fan, pair } from "./manifests.ts";
import { seedRuns } from "./seed-runs.ts";
import { zipOf } from "./zip.ts";

const JOBS = 100_000;
const AGENTS = 10_000;
const SECRETS = 500;
const ROUNDS = 6;

export async function measureStalls(only: readonly string[] | null): Promise<Map<string, string>> {
  const figures = new Map<string, string>();
  if (only !== null && !only.includes("stalls")) return figures;
  const home = await temporaryHome();
  try {
    await (await startProgram({ args: ["up"], home })).stop();
    seedRuns(home, JOBS);
    await measure(home, figures);
  } finally {
    await rm(home, { recursive: true });
  }
  return figures;
}

async function measure(home: string, figures: Map<string, string>): Promise<void> {
  await using program = await startWithGaps({ home });
  const { gateway, runtime } = await addressesOf(program);

  // Nothing of the program is compiled yet when the first one is sent.
  const secrets = Object.fromEntries(
    Array.from({ length: SECRETS }, (_, n) => [`token_${n}`, `secret-no-${n}`]),
  );
  const withSecrets = JSON.stringify({ ...pair, initial_inputs: { in: [secrets] } });
  for (const round of ["the first of the program", "the second"]) {
    await longestGap(program);
    await submit(runtime, withSecrets);
    const { ms, processorMs } = await longestGap(program);
    figures.set(
      `longest gap, runtime: POST /jobs with ${SECRETS} secrets, ${round}`,
      `${ms.toFixed(1)} ms, of the processor ${processorMs.toFixed(1)} ms`,
    );
  }

  const wide = fan(AGENTS - 2, 1);
  const jobId = await submit(runtime, JSON.stringify(wide));
  await (await fetch(`${runtime}/jobs/${jobId}/events/stream`)).text();
  const { job } = await json<{ job: { run_id: string } }>(runtime, "GET", `/jobs/${jobId}`);
  await submitMany(runtime, JSON.stringify(pair), JOBS);

  const form = new FormData();
  form.set("bundle", new Blob([await zipOf({ "manifest.json": JSON.stringify(wide) })]), "bundle.zip");
  const uploaded = await fetch(`${gateway}/bundles`, { method: "POST", body: form });
  const { bundle_id } = (await uploaded.json()) as { bundle_id: string };
  const { job_id } = await json<{ job_id: string }>(gateway, "POST", "/jobs", { bundle_id });
  const { run_id } = await json<{ run_id: string }>(gateway, "POST", `/jobs/${job_id}/runs`, {});
  await (await fetch(`${gateway}/runs/${run_id}/events/stream`)).text();

  const requests: readonly (readonly [string, string, string])[] = [
    ["no request", runtime, "/health"],
    ["runtime: GET /jobs, all of them", runtime, "/jobs"],
    ["runtime: GET /jobs?limit=500", runtime, "/jobs?limit=500"],
    ["runtime: GET /jobs?include_terminal=false", runtime, "/jobs?include_terminal=false"],
    ["runtime: GET /system/summary", runtime, "/system/summary"],
    ["runtime: GET /jobs/{id}, 10,000 agents", runtime, `/jobs/${jobId}`],
    ["runtime: GET /jobs/{id}/events, 10,000 agents", runtime, `/jobs/${jobId}/events`],
    ["runtime: GET /jobs/{id}/workflow-progress, 10,000 agents", runtime, `/jobs/${jobId}/workflow-progress`],
    ["runtime: GET /runs/{id}/timeline, 10,000 agents", runtime, `/runs/${job.run_id}/timeline`],
    ["runtime: GET /runs/{id}/logs, 10,000 agents", runtime, `/runs/${job.run_id}/logs`],
    ["runtime: GET /runs/{id}/artifacts, 10,000 agents", runtime, `/runs/${job.run_id}/artifacts`],
    ["gateway: GET /runs?page_size=200", gateway, "/runs?page_size=200"],
    ["gateway: GET /system/summary", gateway, "/system/summary"],
    ["gateway: GET /jobs/{id}?view=full, 10,000 agents", gateway, `/jobs/${job_id}?view=full`],
    [
      "gateway: GET /jobs/{id}/workflow-progress, 10,000 agents",
      gateway,
      `/jobs/${job_id}/workflow-progress`,
    ],
    ["gateway: GET /runs/{id}, 10,000 agents", gateway, `/runs/${run_id}`],
    ["gateway: GET /runs/{id}/events?page_size=200", gateway, `/runs/${run_id}/events?page_size=200`],
    ["gateway: GET /runs/{id}/timeline?page_size=200", gateway, `/runs/${run_id}/timeline?page_size=200`],
    ["gateway: GET /runs/{id}/artifacts", gateway, `/runs/${run_id}/artifacts`],
    ["gateway: GET /runs/{id}/events/stream, 10,000 agents", gateway, `/runs/${run_id}/events/stream`],
    ["gateway: the page of a run of 10,000 agents", gateway, `/runs/${run_id}/dashboard/config.json`],
  ];
  for (const [name, api, path] of requests) {
    await noteGap(program, figures, name, ROUNDS, async () => {
      const { status } = await send(api, "GET", path);
      if (status !== 200) throw new Error(`${path}: ${status}`);
    });
  }
}

async function json<T>(api: string, method: string, path: string, body?: unknown): Promise<T> {
  const { status, text } = await send(
    api,
    method,
    path,
    body === undefined ? undefined : JSON.stringify(body),
  );
  if (status >= 300) throw new Error(`${method} ${path}: ${status} ${text.slice(0, 300)}`);
  return JSON.parse(text) as T;
}
