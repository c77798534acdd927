// The measurements that need the program itself: memory, start, commands.

import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { type Program, startProgram } from "../test/support/program.ts";
import { submit, untilOver } from "./client.ts";
import { commands, fan } from "./manifests.ts";

export function startMeasured(): Promise<Program> {
  return startProgram({ env: { SVC_LOG_LEVEL: "warn" } });
}

/** Starts further programs on empty homes, so that nothing measured before counts. */
export async function measureProgram(
  program: Program,
  only: readonly string[] | null,
): Promise<Map<string, string>> {
  const figures = new Map<string, string>();
  const wanted = (name: string) => only === null || only.includes(name);
  if (wanted("start")) {
    const times: number[] = [];
    let idleMb = 0;
    for (let i = 0; i < 5; i++) {
      const from = performance.now();
      await using fresh = await startProgram();
      const answer = await fetch(`${fresh.api}/health`);
      if (!answer.ok) throw new Error(`health: ${answer.status}`);
      times.push(performance.now() - from);
      idleMb = residentMb(fresh.pid);
    }
    figures.set("start to healthy, median of 5", `${(times.sort((a, b) => a - b)[2]! / 1_000).toFixed(2)} s`);
    figures.set("resident when idle", `${idleMb} MB`);
  }
  if (wanted("agents")) {
    await using fresh = await startProgram();
    const jobId = await submit(fresh.api, JSON.stringify(fan(9_998, 1)));
    // Followed on its stream: asking for a detail of 10,000 agents (4 MB) every 2 ms would measure the asking.
    await (await fetch(`${fresh.api}/jobs/${jobId}/events/stream`)).text();
    figures.set(
      "resident after a job of 10,000 agents",
      `${residentMb(fresh.pid)} MB (peak ${peakMb(fresh.pid)} MB)`,
    );
  }
  if (wanted("command")) await measureCommand(program, figures);
  return figures;
}

/** What a command costs over spawning it bare, one after the other. */
async function measureCommand(program: Program, figures: Map<string, string>): Promise<void> {
  const count = 200;
  const bareMs = await perRun(count, async () => {
    for (let i = 0; i < count; i++) await spawnBare();
  });
  const run = async () =>
    untilOver(program.api, await submit(program.api, JSON.stringify(commands(count, ["true"]))));
  await run();
  const jobMs = await perRun(count, run);
  figures.set(
    "a command, over spawning it bare",
    `${(jobMs - bareMs).toFixed(1)} ms (bare ${bareMs.toFixed(1)} ms)`,
  );
}

async function perRun(count: number, work: () => Promise<unknown>): Promise<number> {
  const from = performance.now();
  await work();
  return (performance.now() - from) / count;
}

function spawnBare(): Promise<void> {
  return new Promise((resolve, reject) => {
    spawn("true", [], { stdio: "ignore" })
      .once("error", reject)
      .once("exit", () => resolve());
  });
}

function residentMb(pid: number): number {
  return statusMb(pid, "VmRSS");
}

function peakMb(pid: number): number {
  return statusMb(pid, "VmHWM");
}

/** `pid` may be a launcher that waits for the program: the larger of the two is the program. */
function statusMb(pid: number, field: string): number {
  const pids = [pid, ...childrenOf(pid)];
  return Math.max(...pids.map((one) => read(one, field)));
}

function read(pid: number, field: string): number {
  const text = readFileSync(`/proc/${pid}/status`, "utf8");
  return Math.round(Number(new RegExp(`${field}:\\s+(\\d+) kB`).exec(text)?.[1] ?? 0) / 1_024);
}

function childrenOf(pid: number): number[] {
  return readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").split(" ").filter(Boolean).map(Number);
}
