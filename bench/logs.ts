// What it takes to look into a log of a million lines, over HTTP: its end, a time, a level, a text.

import { rm } from "node:fs/promises";
import { startGateway } from "../test/support/gateway-api.ts";
import { startProgram, temporaryHome } from "../test/support/program.ts";
import { Connection, request } from "./connections.ts";
import { pair } from "./manifests.ts";
import { ERROR_EVERY, seedLog } from "./seed-log.ts";
import { zipOf } from "./zip.ts";

const LINES = 1_000_000;
const ROUNDS = 200;

/** Measures on a home of its own, once for a worker that prints fast and once for one that prints now and then. */
export async function measureLogs(only: readonly string[] | null): Promise<Map<string, string>> {
  const figures = new Map<string, string>();
  if (only !== null && !only.includes("logs")) return figures;
  for (const isSparse of [false, true]) {
    const home = await temporaryHome();
    const runId = await endedRun(home);
    const lastMs = seedLog(home, LINES, isSparse);
    const name = isSparse ? "log of 1,000,000 lines, each a batch of its own" : "log of 1,000,000 lines";
    await measure(figures, { home, runId, lastMs, name });
    await rm(home, { recursive: true });
  }
  return figures;
}

/** @returns a run whose history may be replaced; the program has ended */
async function endedRun(home: string): Promise<string> {
  await using program = await startGateway({ home });
  const post = async (path: string, body: string | FormData): Promise<Record<string, string>> => {
    const headers: Record<string, string> =
      typeof body === "string" ? { "content-type": "application/json" } : {};
    const answer = await fetch(program.api + path, { method: "POST", body, headers });
    if (!answer.ok) throw new Error(`${path}: ${answer.status} ${await answer.text()}`);
    return (await answer.json()) as Record<string, string>;
  };
  const form = new FormData();
  form.set("bundle", new Blob([await zipOf({ "manifest.json": JSON.stringify(pair) })]), "bundle.zip");
  const { bundle_id } = await post("/bundles", form);
  const { job_id } = await post("/jobs", JSON.stringify({ bundle_id }));
  const { run_id } = await post(`/jobs/${job_id}/runs`, "{}");
  await (await fetch(`${program.api}/runs/${run_id}/events/stream`)).text();
  return String(run_id);
}

interface Seeded {
  readonly home: string;
  readonly runId: string;
  readonly lastMs: number;
  readonly name: string;
}

async function measure(figures: Map<string, string>, { home, runId, lastMs, name }: Seeded): Promise<void> {
  await using program = await startProgram({ args: ["gateway"], home, env: { SVC_LOG_LEVEL: "warn" } });
  const url = new URL(program.api);
  const connection = new Connection(url);
  const time = (ms: number) => encodeURIComponent(new Date(ms).toISOString());
  const queries: readonly (readonly [string, string, number])[] = [
    ["newest 50", "order=desc", 50],
    ["newest 200", "order=desc&page_size=200", 200],
    ["oldest 50", "", 50],
    ["50 from a time in the middle", `since=${time(lastMs - 5 * LINES)}`, 50],
    ["newest 50 before a time in the middle", `order=desc&until=${time(lastMs - 5 * LINES)}`, 50],
    [`newest errors, one line in ${ERROR_EVERY}`, "order=desc&level=error", 1],
    ["newest lines with a text that is rare", "order=desc&text=No%20Answer", 1],
  ];
  for (const [what, query, least] of queries) {
    const bytes = request(url, "GET", `/runs/${runId}/logs?${query}`);
    const times: number[] = [];
    for (let round = -20; round < ROUNDS; round++) {
      const from = performance.now();
      const { status, body } = await connection.send(bytes);
      const ms = performance.now() - from;
      const items = (JSON.parse(body) as { items?: unknown[] }).items ?? [];
      if (status !== 200 || items.length < least)
        throw new Error(`${query}: ${status} ${body.slice(0, 300)}`);
      // The first rounds are compiled while they run.
      if (round >= 0) times.push(ms);
    }
    times.sort((a, b) => a - b);
    const at = (q: number) => (times[Math.floor(q * times.length)] ?? Number.NaN).toFixed(1);
    figures.set(`${name}: ${what}, p50 / p99`, `${at(0.5)} / ${at(0.99)} ms`);
  }
  connection.close();
}
