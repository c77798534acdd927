// Reads and submissions while every sync of the disk takes 200 ms, which strace puts before fsync and fdatasync.

import { spawnSync } from "node:child_process";
import { startProgram } from "../test/support/program.ts";
import { send, submit, untilOver } from "./client.ts";
import { pair } from "./manifests.ts";

const SYNC_MS = 200;
const SPAN_MS = 10_000;
const SUBMITTERS = 8;
const READ_EVERY_MS = 5;

const SLOWED = [
  "strace",
  ["-f", "-D", "--seccomp-bpf", "-qq", "-o", "/dev/null", "-e", "trace=fsync,fdatasync"],
  ["-e", `inject=fsync,fdatasync:delay_enter=${SYNC_MS * 1_000}`],
].flat();

const shown = (times: readonly number[], q: number) =>
  `${times.toSorted((a, b) => a - b)[Math.min(times.length - 1, Math.floor(q * times.length))]?.toFixed(1)} ms`;

export async function measureSlowDisk(only: readonly string[] | null): Promise<Map<string, string>> {
  const figures = new Map<string, string>();
  if (only !== null && !only.includes("slow-disk")) return figures;
  if (spawnSync("strace", ["-V"]).error !== undefined) {
    figures.set(`syncs of ${SYNC_MS} ms`, "not measured: strace is not installed");
    return figures;
  }
  await using program = await startProgram({ through: SLOWED, env: { SVC_LOG_LEVEL: "warn" } });
  const { api } = program;
  const manifest = JSON.stringify(pair);
  const jobId = await submit(api, manifest);
  await untilOver(api, jobId);
  const untilMs = performance.now() + SPAN_MS;
  const submits: number[] = [];
  const reads = new Map<string, number[]>();
  const read = async (name: string, path: string) => {
    const times: number[] = [];
    reads.set(name, times);
    while (performance.now() < untilMs) {
      times.push(await timed(() => send(api, "GET", path)));
      await new Promise((resolve) => setTimeout(resolve, READ_EVERY_MS));
    }
  };
  const submitters = Array.from({ length: SUBMITTERS }, async () => {
    while (performance.now() < untilMs) submits.push(await timed(() => submit(api, manifest)));
  });
  await Promise.all([
    ...submitters,
    read("GET /health", "/health"),
    read("GET /jobs", "/jobs?limit=20"),
    read("GET /jobs/{id}", `/jobs/${jobId}`),
    read("GET /jobs/{id}/events", `/jobs/${jobId}/events`),
  ]);
  for (const [name, times] of reads) {
    figures.set(`syncs of ${SYNC_MS} ms, ${name}, p50, p99, longest`, spread(times));
  }
  figures.set(`syncs of ${SYNC_MS} ms, POST /jobs, p50, p99, longest`, spread(submits));
  return figures;
}

const spread = (times: readonly number[]) => [0.5, 0.99, 1].map((q) => shown(times, q)).join(", ");

async function timed(work: () => Promise<unknown>): Promise<number> {
  const from = performance.now();
  await work();
  return performance.now() - from;
}
