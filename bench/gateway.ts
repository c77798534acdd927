// npm run bench:gateway: measures the gateway of this program on an empty home, and prints a table. Everything is
// durable: answers come after their commit.
//
//   npm run bench:gateway
//   npm run bench:gateway -- --only get,post,wait,batch,events,pages,upload

import { randomBytes, randomUUID } from "node:crypto";
import { openAsBlob } from "node:fs";
import { mkdtemp, open, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { type Program, startProgram, temporaryHome } from "../test/support/program.ts";
import { Connection, type Reply, request } from "./connections.ts";
import { pair } from "./manifests.ts";
import { peakMb, residentMb } from "./memory.ts";
import { seedRuns } from "./seed-runs.ts";
import { printTable } from "./table.ts";
import { measureBatch, measureWait } from "./waiting.ts";
import { zipOf } from "./zip.ts";

const CLIENTS = 32;
const RUNS = 6_000;
const GET_MS = 4_000;
const SEEDED_RUNS = 1_000_000;
const UPLOAD_BYTES = 200 * 1024 * 1024;

const { values } = parseArgs({ options: { only: { type: "string" } } });
const only = values.only?.split(",") ?? null;
const wanted = (name: string) => only === null || only.includes(name);
const figures = new Map<string, string>();

const rate = (count: number, ms: number) => Math.round((count / ms) * 1_000).toLocaleString("en");
const quantile = (sorted: readonly number[], q: number) =>
  sorted[Math.min(sorted.length - 1, Math.floor(q * sorted.length))] ?? Number.NaN;
const shown = (ms: number) => `${ms.toFixed(ms < 10 ? 2 : 0)} ms`;
const sorted = (values: readonly number[]) => [...values].sort((a, b) => a - b);

const ok = ({ status, body }: Reply) => {
  if (status >= 300) throw new Error(`answered ${status}: ${body.slice(0, 300)}`);
  return JSON.parse(body) as Record<string, unknown>;
};

/** Uploads a manifest as a bundle, and makes a job of it. */
async function createJob(url: URL, manifest: unknown): Promise<string> {
  const form = new FormData();
  form.set("bundle", new Blob([await zipOf({ "manifest.json": JSON.stringify(manifest) })]), "bundle.zip");
  const uploaded = (await (await fetch(`${url}/bundles`, { method: "POST", body: form })).json()) as {
    bundle_id: string;
  };
  const connection = new Connection(url);
  const body = JSON.stringify({ bundle_id: uploaded.bundle_id });
  const job = ok(await connection.send(request(url, "POST", "/jobs", { body })));
  connection.close();
  return String(job.job_id);
}

const startRun = (url: URL, jobId: string) =>
  request(url, "POST", `/jobs/${jobId}/runs`, { body: "{}", headers: { "Idempotency-Key": randomUUID() } });

async function untilEnded(url: URL, runId: string): Promise<void> {
  await (await fetch(`${url}/runs/${runId}/events/stream`)).text();
}

async function inParallel(url: URL, work: (connection: Connection) => Promise<void>): Promise<void> {
  await Promise.all(
    Array.from({ length: CLIENTS }, async () => {
      const connection = new Connection(url);
      await work(connection);
      connection.close();
    }),
  );
}

async function measurePost(url: URL, jobId: string): Promise<void> {
  const times: number[] = [];
  const ids: string[] = [];
  let started = 0;
  const from = performance.now();
  await inParallel(url, async (connection) => {
    while (started++ < RUNS) {
      const bytes = startRun(url, jobId);
      const sentAt = performance.now();
      const reply = await connection.send(bytes);
      times.push(performance.now() - sentAt);
      if (reply.status !== 202) throw new Error(`answered ${reply.status}: ${reply.body.slice(0, 300)}`);
      ids.push(/"run_id":"([^"]+)"/.exec(reply.body)?.[1] ?? "");
    }
  });
  const ms = performance.now() - from;
  for (const id of ids.slice(-CLIENTS)) await untilEnded(url, id);
  const allMs = performance.now() - from;
  const inOrder = sorted(times);
  figures.set(`POST run of a two-agent job, ${CLIENTS} clients`, `${rate(RUNS, ms)}/s`);
  figures.set("— p50 / p99", `${shown(quantile(inOrder, 0.5))} / ${shown(quantile(inOrder, 0.99))}`);
  figures.set("— until the last one is completed", `${rate(RUNS, allMs)}/s`);
}

async function measureGet(url: URL, jobId: string): Promise<void> {
  const connection = new Connection(url);
  const run = ok(await connection.send(startRun(url, jobId)));
  connection.close();
  await untilEnded(url, String(run.run_id));
  const bytes = request(url, "GET", `/runs/${String(run.run_id)}`);
  let count = 0;
  const from = performance.now();
  await inParallel(url, async (one) => {
    while (performance.now() - from < GET_MS) {
      if ((await one.send(bytes)).status !== 200) throw new Error("GET run failed");
      count++;
    }
  });
  figures.set("GET /runs/{id}", `${rate(count, performance.now() - from)}/s`);
}

/** From the event's own time, which is before its commit, to the reader. */
async function measureEvents(url: URL): Promise<void> {
  const jobId = await createJob(url, {
    manifest_version: "1.0",
    graph_id: "ticks",
    entrypoints: ["tick"],
    nodes: [
      { node_id: "tick", agent_type: "sensor", config: { interval_ms: 10, complete_after: 300 } },
      { node_id: "end", agent_type: "aggregator", config: { complete_after: 300 } },
    ],
    edges: [{ from_node: "tick", to_node: "end" }],
  });
  const connection = new Connection(url);
  const run = ok(await connection.send(startRun(url, jobId)));
  connection.close();
  const delays: number[] = [];
  const answer = await fetch(`${url}/runs/${String(run.run_id)}/events/stream`);
  for await (const chunk of answer.body ?? []) {
    const nowMs = performance.timeOrigin + performance.now();
    for (const [, time = ""] of Buffer.from(chunk)
      .toString()
      .matchAll(/"timestamp":"([^"]+)","type":"sensor/g)) {
      delays.push(nowMs - Date.parse(time));
    }
  }
  figures.set("an event on an open stream, after its time, p50", shown(quantile(sorted(delays), 0.5)));
  figures.set("— p99", shown(quantile(sorted(delays), 0.99)));
}

/** Walks through all runs, 200 a page. */
async function measurePages(): Promise<void> {
  const home = await temporaryHome();
  // Started once for its schema.
  await (await startProgram({ args: ["gateway"], home })).stop();
  seedRuns(home, SEEDED_RUNS);
  await using program = await startProgram({ args: ["gateway"], home });
  const url = new URL(program.api);
  const connection = new Connection(url);
  const times: number[] = [];
  let runs = 0;
  let token: string | null = null;
  do {
    const query: string = token === null ? "" : `&page_token=${token}`;
    const from = performance.now();
    const reply = await connection.send(request(url, "GET", `/runs?page_size=200${query}`));
    times.push(performance.now() - from);
    const page = ok(reply) as { items: unknown[]; next_page_token: string | null };
    runs += page.items.length;
    token = page.next_page_token;
  } while (token !== null);
  connection.close();
  await program.stop();
  await rm(home, { recursive: true });
  if (runs !== SEEDED_RUNS) throw new Error(`the walk saw ${runs} runs`);
  figures.set(
    "a page of 200 runs of 1,000,000, first 100 pages, p50",
    shown(quantile(sorted(times.slice(0, 100)), 0.5)),
  );
  figures.set("— last 100 pages, p50", shown(quantile(sorted(times.slice(-100)), 0.5)));
}

async function measureUpload(program: Program, url: URL): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), "troupe-bench-"));
  try {
    const path = join(folder, "bundle.zip");
    const file = await open(path, "w");
    await file.writeFile(
      await zipOf({
        "manifest.json": JSON.stringify(pair),
        "payloads/data.bin": randomBytes(UPLOAD_BYTES),
      }),
    );
    await file.close();
    const before = residentMb(program.pid);
    const form = new FormData();
    form.set("bundle", await openAsBlob(path), "bundle.zip");
    const from = performance.now();
    const answer = await fetch(`${url}/bundles`, { method: "POST", body: form });
    if (answer.status !== 201) throw new Error(`upload: ${answer.status} ${await answer.text()}`);
    const seconds = (performance.now() - from) / 1_000;
    figures.set("upload of 200 MB", `${seconds.toFixed(2)} s (${Math.round(200 / seconds)} MB/s)`);
    figures.set("— resident, growth at its peak", `${peakMb(program.pid) - before} MB`);
  } finally {
    await rm(folder, { recursive: true });
  }
}

{
  await using program = await startProgram({ args: ["gateway"], env: { SVC_LOG_LEVEL: "warn" } });
  const url = new URL(program.api);
  if (wanted("upload")) await measureUpload(program, url);
  const jobId = await createJob(url, pair);
  // The first requests of a fresh process are compiled while they run; they are nobody's steady state.
  const warmUp = new Connection(url);
  for (let i = 0; i < 500; i++) ok(await warmUp.send(startRun(url, jobId)));
  warmUp.close();
  if (wanted("post")) await measurePost(url, jobId);
  const start = { url, path: `/jobs/${jobId}/runs`, body: {} };
  if (wanted("wait")) await measureWait(start, figures);
  if (wanted("batch")) await measureBatch(start, figures);
  if (wanted("get")) await measureGet(url, jobId);
  if (wanted("events")) await measureEvents(url);
}
if (wanted("pages")) await measurePages();
printTable([{ name: "this program", figures }]);
