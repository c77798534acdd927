// A job of many short commands at once, in turns with a bare loop of spawns of the same parallelism: how fast, what of
// the processor it costs the program itself, what stays on disk, and how long others wait meanwhile.

import { spawn } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { type Program, startProgram } from "../test/support/program.ts";
import { send, submit, untilOver } from "./client.ts";
import { manyCommands } from "./manifests.ts";
import { childrenOf } from "./memory.ts";
import { processorMs } from "./processor.ts";

const SLOTS = [2, 8, 32];
const COMMANDS = 300;
const ROUNDS = 5;
/** The first jobs are compiled while they run. */
const WARM_UP_ROUNDS = 2;
const ASK_EVERY_MS = 20;
const HEALTH_EVERY_MS = 5;
/** Folders that are kept for further commands of a run are removed within this time. */
const LEFT_AFTER_MS = 5_000;

const COMMAND = ["/bin/true"];

const sleep = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));
const quantile = (values: readonly number[], q: number) =>
  values.toSorted((a, b) => a - b)[Math.floor(q * values.length)] ?? Number.NaN;

interface Round {
  readonly barePerSecond: number;
  readonly jobPerSecond: number;
  readonly ownMs: number;
}

export async function measureCommands(only: readonly string[] | null): Promise<Map<string, string>> {
  const figures = new Map<string, string>();
  if (only !== null && !only.includes("commands")) return figures;
  for (const slots of SLOTS) await measureAt(slots, figures);
  return figures;
}

async function measureAt(slots: number, figures: Map<string, string>): Promise<void> {
  const env = { SVC_LOG_LEVEL: "warn", SVC_EXECUTOR_MAX_CONCURRENCY: String(slots) };
  await using program = await startProgram({ env });
  const rounds: Round[] = [];
  const healthMs: number[] = [];
  for (let round = -WARM_UP_ROUNDS; round < ROUNDS; round++) {
    const barePerSecond = await bareRate(slots);
    const before = ownMs(program.pid);
    const health = watchHealth(program);
    const jobPerSecond = await jobRate(program);
    const times = await health.stop();
    if (round < 0) continue;
    healthMs.push(...times);
    rounds.push({ barePerSecond, jobPerSecond, ownMs: (ownMs(program.pid) - before) / COMMANDS });
  }
  const median = (of: (round: Round) => number) => quantile(rounds.map(of), 0.5);
  const ratio = median(({ jobPerSecond, barePerSecond }) => jobPerSecond / barePerSecond);
  const name = `${COMMANDS} commands, ${slots} slots`;
  figures.set(
    `${name}: of the rate of bare spawns`,
    `${Math.round(ratio * 100)} % (${Math.round(median((r) => r.jobPerSecond))} of ${Math.round(median((r) => r.barePerSecond))} per s)`,
  );
  figures.set(`${name}: processor time of its own per command`, `${median((r) => r.ownMs).toFixed(2)} ms`);
  figures.set(`${name}: health meanwhile, p99`, `${quantile(healthMs, 0.99).toFixed(1)} ms`);
  const jobs = ROUNDS + WARM_UP_ROUNDS;
  const left = await entriesLeft(program.home);
  figures.set(`${name}: files and folders left by ${jobs * COMMANDS}`, String(left));
}

async function bareRate(parallel: number): Promise<number> {
  const [file = "", ...args] = COMMAND;
  let left = COMMANDS;
  const loop = async () => {
    while (left-- > 0) {
      const child = spawn(file, args, { stdio: ["ignore", "pipe", "pipe"] });
      await new Promise((resolve) => child.once("close", resolve));
    }
  };
  const from = performance.now();
  await Promise.all(Array.from({ length: parallel }, loop));
  return (COMMANDS * 1_000) / (performance.now() - from);
}

async function jobRate({ api }: Program): Promise<number> {
  const from = performance.now();
  const status = await untilOver(
    api,
    await submit(api, JSON.stringify(manyCommands(COMMANDS, COMMAND))),
    ASK_EVERY_MS,
  );
  if (status !== "completed") throw new Error(`the job ended as ${status}`);
  return (COMMANDS * 1_000) / (performance.now() - from);
}

/** The program's, and that of its process which starts commands; not what commands use. */
function ownMs(pid: number): number {
  const spawner = childrenOf(pid).filter((child) => /spawner-process/.test(commandLine(child)));
  return [pid, ...spawner].reduce((sum, one) => sum + processorMs(one), 0);
}

/** Empty for a process that has ended. */
function commandLine(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "utf8");
  } catch {
    return "";
  }
}

/** Asks for the health, again and again, until it is stopped. */
function watchHealth({ api }: Program): { stop(): Promise<readonly number[]> } {
  const times: number[] = [];
  let isOver = false;
  const asked = (async () => {
    while (!isOver) {
      const from = performance.now();
      await send(api, "GET", "/health");
      times.push(performance.now() - from);
      await sleep(HEALTH_EVERY_MS);
    }
  })();
  return {
    stop: async () => {
      isOver = true;
      await asked;
      return times;
    },
  };
}

/** Counts what is in the folders of agents, as soon as there is nothing or the time is over. */
async function entriesLeft(home: string): Promise<number> {
  const untilMs = performance.now() + LEFT_AFTER_MS;
  while (leftBelow(home) > 0 && performance.now() < untilMs) await sleep(100);
  return leftBelow(home);
}

function leftBelow(home: string): number {
  const runs = join(home, "runs");
  const agents = readdirSync(runs).map((run) => join(runs, run, "agents"));
  return agents.reduce((sum, folder) => sum + readdirSync(folder, { recursive: true }).length, 0);
}
