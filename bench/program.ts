// The measurements that need the program itself: memory, start, commands.

import { spawn } from "node:child_process";
import { type Program, startProgram } from "../test/support/program.ts";
import { measureBytes } from "./bytes.ts";
import { send, submit, submitAndWait } from "./client.ts";
import { measureEvidence } from "./evidence.ts";
import { submitMany } from "./load.ts";
import { commands, fan, pair } from "./manifests.ts";
import { peakMb, residentMb } from "./memory.ts";
import { processorMs } from "./processor.ts";
import { measureStart } from "./start.ts";

/** Each costs some 200 µs, and the system counts in steps of 10 ms. */
const PROCESSOR_JOBS = 15_000;

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
  if (wanted("start")) await measureStart(figures);
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
  if (wanted("processor")) {
    await using fresh = await startMeasured();
    const same = JSON.stringify(pair);
    // A manifest that is known by its text is not read again.
    const differing = (n: number) => JSON.stringify({ ...pair, initial_inputs: { in: [{ n }] } });
    await submitMany(fresh.api, same, 2_000);
    await submitMany(fresh.api, differing, 2_000);
    const perJob = await processorPerJob(fresh, same);
    figures.set("processor time per two-step job", `${Math.round(perJob * 1_000)} µs`);
    const perOther = await processorPerJob(fresh, differing);
    figures.set("— inputs that all differ", `${Math.round(perOther * 1_000)} µs`);
    const perMessage = await processorPerMessage(fresh);
    figures.set("processor time per message", `${(perMessage * 1_000).toFixed(1)} µs`);
  }
  if (wanted("bytes")) await measureBytes(figures);
  if (wanted("command")) await measureCommand(program, figures);
  if (wanted("evidence")) await measureEvidence(figures);
  return figures;
}

const ROUTERS = 20;
const INPUTS = 1_000;
const MESSAGE_JOBS = 4;

/** @returns ms */
async function processorPerJob(
  { api, pid }: Program,
  manifest: string | ((n: number) => string),
): Promise<number> {
  const before = processorMs(pid);
  await submitMany(api, manifest, PROCESSOR_JOBS);
  return (processorMs(pid) - before) / PROCESSOR_JOBS;
}

/** @returns ms, of jobs with 41,000 messages each; the first one is compiled while it runs */
async function processorPerMessage({ api, pid }: Program): Promise<number> {
  const manifest = JSON.stringify(fan(ROUTERS, INPUTS));
  await submitAndWait(api, manifest);
  const before = processorMs(pid);
  for (let i = 0; i < MESSAGE_JOBS; i++) await submitAndWait(api, manifest);
  return (processorMs(pid) - before) / (MESSAGE_JOBS * INPUTS * (2 * ROUTERS + 1));
}

const COMMAND_ROUNDS = 40;
const COMMANDS_PER_ROUND = 10;

/**
 * What a command costs over spawning it bare. Bare ones and jobs take turns, so that the machine's slow moments hit
 * both; a job's time is read from its history, so that asking for it costs the job nothing.
 */
async function measureCommand(program: Program, figures: Map<string, string>): Promise<void> {
  const bareMs: number[] = [];
  const jobMs: number[] = [];
  for (let round = -10; round < COMMAND_ROUNDS; round++) {
    const from = performance.now();
    for (let i = 0; i < COMMANDS_PER_ROUND; i++) await spawnBare();
    const bare = (performance.now() - from) / COMMANDS_PER_ROUND;
    const job = (await timeCommands(program.api, COMMANDS_PER_ROUND)) / COMMANDS_PER_ROUND;
    // The first rounds are compiled while they run.
    if (round < 0) continue;
    bareMs.push(bare);
    jobMs.push(job);
  }
  const over = medianOf(jobMs) - medianOf(bareMs);
  figures.set(
    "a command, over spawning it bare",
    `${over.toFixed(1)} ms (bare ${medianOf(bareMs).toFixed(1)} ms)`,
  );
}

/** Runs commands one after the other. @returns the time from the first one's start to the job's end */
async function timeCommands(api: string, count: number): Promise<number> {
  const jobId = await submitAndWait(api, JSON.stringify(commands(count, ["true"])));
  const { text } = await send(api, "GET", `/jobs/${jobId}/events`);
  const events = (JSON.parse(text) as { data: { type: string; timestamp: string }[] }).data;
  const atMs = (type: string) => Date.parse(events.find((event) => event.type === type)?.timestamp ?? "");
  return atMs("job_completed") - atMs("sandbox_job_started");
}

function medianOf(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;
}

function spawnBare(): Promise<void> {
  return new Promise((resolve, reject) => {
    spawn("true", [], { stdio: "ignore" })
      .once("error", reject)
      .once("exit", () => resolve());
  });
}
