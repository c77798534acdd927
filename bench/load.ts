// The measurements that any server of the runtime API can take.

import { send, submit, submitAndWait, untilOver } from "./client.ts";
import { chain, fan, pair } from "./manifests.ts";
import { measureBatch, measureWait } from "./waiting.ts";

export interface LoadOptions {
  /** Names of measurements to take; null for all. */
  readonly only: readonly string[] | null;
  /** Two-step jobs of the throughput measurement. */
  readonly jobs: number;
}

const SUBMITTERS = 32;
const LIST_JOBS = 10_000;

const quantile = (values: readonly number[], q: number) =>
  [...values].sort((a, b) => a - b)[Math.min(values.length - 1, Math.floor(q * values.length))] ?? Number.NaN;
const ms = (value: number) => `${value.toFixed(value < 10 ? 2 : 0)} ms`;

export async function loadTable(api: string, options: LoadOptions): Promise<Map<string, string>> {
  const figures = new Map<string, string>();
  const wanted = (name: string) => options.only === null || options.only.includes(name);
  await warmUp(api);
  if (wanted("pair")) await measurePair(api, figures);
  if (wanted("throughput")) await measureThroughput(api, options.jobs, figures);
  if (wanted("fan")) {
    figures.set("fan 1 -> 1,000 -> 1", ms(await medianOf(5, () => timeJob(api, fan(1_000, 1)))));
    figures.set(
      "20 agents x 500 inputs (20,500 messages)",
      ms(await medianOf(3, () => timeJob(api, fan(20, 500)))),
    );
  }
  if (wanted("chain")) {
    figures.set("chain of 500, per hop", ms((await medianOf(5, () => timeJob(api, chain(500)))) / 500));
  }
  const start = { url: new URL(api), path: "/jobs", body: pair };
  if (wanted("wait")) await measureWait(start, figures);
  if (wanted("batch")) await measureBatch(start, figures);
  if (wanted("list")) await measureList(api, figures);
  return figures;
}

/** The first requests of a fresh process are compiled while they run; they are nobody's steady state. */
async function warmUp(api: string): Promise<void> {
  const manifest = JSON.stringify(pair);
  for (let i = 0; i < 200; i++) await submitAndWait(api, manifest);
}

async function medianOf(times: number, measure: () => Promise<number>): Promise<number> {
  const values: number[] = [];
  for (let i = 0; i < times; i++) values.push(await measure());
  return quantile(values, 0.5);
}

async function timeJob(api: string, manifest: unknown): Promise<number> {
  const text = JSON.stringify(manifest);
  const from = performance.now();
  await submitAndWait(api, text);
  return performance.now() - from;
}

async function measurePair(api: string, figures: Map<string, string>): Promise<void> {
  const times: number[] = [];
  for (let i = 0; i < 300; i++) times.push(await timeJob(api, pair));
  figures.set("two-step job, p50", ms(quantile(times, 0.5)));
  figures.set("two-step job, p99", ms(quantile(times, 0.99)));
}

/** Every job is submitted, and then seen to be complete. */
async function measureThroughput(api: string, jobs: number, figures: Map<string, string>): Promise<void> {
  const manifest = JSON.stringify(pair);
  const from = performance.now();
  const ids = await submitMany(api, manifest, jobs);
  const submittedMs = performance.now() - from;
  // Jobs complete in order of submission, so the last ones being over means that all are; every one is looked at
  // outside the measured time.
  for (const id of ids.slice(-SUBMITTERS)) await untilOver(api, id);
  const overMs = performance.now() - from;
  await inParallel(SUBMITTERS, async () => {
    for (let id = ids.pop(); id !== undefined; id = ids.pop()) await untilOver(api, id);
  });
  const seenMs = performance.now() - from;
  figures.set(
    `two-step jobs/s, ${SUBMITTERS} submitters`,
    Math.round((jobs / overMs) * 1_000).toLocaleString("en"),
  );
  figures.set("  submissions/s", Math.round((jobs / submittedMs) * 1_000).toLocaleString("en"));
  figures.set("  with a GET of each job besides", Math.round((jobs / seenMs) * 1_000).toLocaleString("en"));
}

/** @param manifest the same for all, or one for each number. @returns the jobs' ids, in the order of their answers */
export async function submitMany(
  api: string,
  manifest: string | ((n: number) => string),
  jobs: number,
): Promise<string[]> {
  const textOf = typeof manifest === "string" ? () => manifest : manifest;
  const ids: string[] = [];
  let started = 0;
  await inParallel(SUBMITTERS, async () => {
    while (started < jobs) ids.push(await submit(api, textOf(started++)));
  });
  return ids;
}

async function measureList(api: string, figures: Map<string, string>): Promise<void> {
  const manifest = JSON.stringify(pair);
  const { text } = await send(api, "GET", "/jobs");
  let jobs = (JSON.parse(text) as { data: unknown[] }).data.length;
  await inParallel(SUBMITTERS, async () => {
    while (jobs++ < LIST_JOBS) await submit(api, manifest);
  });
  let requests = 0;
  const from = performance.now();
  await inParallel(16, async () => {
    while (performance.now() - from < 4_000) {
      const answer = await send(api, "GET", "/jobs?limit=20");
      if (answer.status !== 200) throw new Error(`list: ${answer.status}`);
      requests++;
    }
  });
  const perSecond = Math.round((requests / (performance.now() - from)) * 1_000);
  figures.set("job list, requests/s (10,000 jobs, limit=20)", perSecond.toLocaleString("en"));
}

async function inParallel(count: number, work: () => Promise<void>): Promise<void> {
  await Promise.all(Array.from({ length: count }, work));
}
