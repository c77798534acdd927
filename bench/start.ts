// What a start takes, and what a program has that does nothing: installed from its package, and from the sources.

import { execFile } from "node:child_process";
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { wakeUpsOf } from "../test/support/processes.ts";
import { type ProgramOptions, startProgram } from "../test/support/program.ts";
import { residentMb } from "./memory.ts";
import { processorMs } from "./processor.ts";

const STARTS = 5;
const SETTLE_MS = 3_000;
const IDLE_MS = 10_000;

const root = fileURLToPath(new URL("..", import.meta.url));
const run = promisify(execFile);

/** @param figures filled for `up` with both APIs */
export async function measureStart(figures: Map<string, string>): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), "troupe installed "));
  try {
    await run("npm", ["pack", "--pack-destination", folder], { cwd: root });
    const [tarball = ""] = await readdir(folder);
    await run("npm", ["install", "--prefix", folder, "--prefer-offline", join(folder, tarball)]);
    const installed = join(folder, "node_modules", "troupe", "bin", "troupe.mjs");
    await measureOne("installed", { launcher: installed }, figures);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
  await measureOne("from sources", {}, figures);
}

async function measureOne(name: string, from: ProgramOptions, figures: Map<string, string>): Promise<void> {
  const startsMs: number[] = [];
  const processorsMs: number[] = [];
  // The first one compiles for the others.
  for (let i = -1; i < STARTS; i++) {
    const fromMs = performance.now();
    await using program = await startProgram({ ...from, args: ["up"] });
    const answer = await fetch(`${program.api}/health`);
    if (!answer.ok) throw new Error(`health: ${answer.status}`);
    if (i < 0) continue;
    startsMs.push(performance.now() - fromMs);
    processorsMs.push(processorMs(program.pid));
    if (i < STARTS - 1) continue;
    await delay(SETTLE_MS);
    const before = wakeUpsOf(program.pid);
    await delay(IDLE_MS);
    const wakeUps = ((wakeUpsOf(program.pid) - before) / IDLE_MS) * 1_000;
    figures.set(`resident when idle, ${name}`, `${residentMb(program.pid)} MB`);
    figures.set(`woken when idle, ${name}`, `${wakeUps.toFixed(1)} times a second`);
  }
  const shown = (times: readonly number[]) =>
    `${times.toSorted((a, b) => a - b)[STARTS >> 1]?.toFixed(0)} ms`;
  figures.set(`start to healthy, ${name}, median of ${STARTS}`, shown(startsMs));
  figures.set(`— processor time, ${name}`, shown(processorsMs));
}
