// What work makes the disk write and keep: written as Linux counts it for the program, kept as SQLite counts the pages of
// each table and index once the program has ended.

import { readFileSync } from "node:fs";
import { rm } from "node:fs/promises";
import { DatabaseSync } from "node:sqlite";
import { databaseFile } from "../src/store/home.ts";
import { type Program, startProgram, temporaryHome } from "../test/support/program.ts";
import { submitAndWait, untilOver } from "./client.ts";
import { submitMany } from "./load.ts";
import { fan, pair } from "./manifests.ts";

const JOBS = 10_000;
const ROUTERS = 20;
/** Each comes to a router and from there to the aggregator, besides the inputs themselves. */
const INPUTS = 2_400;
const MESSAGES = INPUTS * (2 * ROUTERS + 1);

export async function measureBytes(figures: Map<string, string>): Promise<void> {
  await measure(figures, "two-step job", JOBS, async ({ api }) => {
    const manifest = JSON.stringify(pair);
    for (const id of (await submitMany(api, manifest, JOBS)).slice(-32)) await untilOver(api, id);
  });
  await measure(figures, "message", MESSAGES, async ({ api }) => {
    await submitAndWait(api, JSON.stringify(fan(ROUTERS, INPUTS)));
  });
}

/** Has a fresh program do `count` pieces of work. */
async function measure(
  figures: Map<string, string>,
  what: string,
  count: number,
  work: (program: Program) => Promise<void>,
): Promise<void> {
  const home = await temporaryHome();
  try {
    const program = await startProgram({ home, env: { SVC_LOG_LEVEL: "warn" } });
    const before = writtenBytes(program.pid);
    await work(program);
    const written = writtenBytes(program.pid) - before;
    await program.stop();
    figures.set(`written per ${what}`, bytes(written / count));
    const kept = keptBytes(databaseFile(home));
    figures.set(`kept per ${what}`, bytes(kept.reduce((sum, one) => sum + one.bytes, 0) / count));
    for (const one of kept) {
      if (one.bytes / count >= 1) figures.set(`  ${one.name} (${what})`, bytes(one.bytes / count));
    }
  } finally {
    await rm(home, { recursive: true, force: true });
  }
}

function writtenBytes(pid: number): number {
  const [, count] = /^write_bytes: (\d+)$/m.exec(readFileSync(`/proc/${pid}/io`, "utf8")) ?? [];
  return Number(count);
}

/** Of each table and index, largest first. */
function keptBytes(file: string): readonly { readonly name: string; readonly bytes: number }[] {
  const connection = new DatabaseSync(file, { readOnly: true });
  try {
    return connection
      .prepare("SELECT name, sum(pgsize) AS bytes FROM dbstat GROUP BY name ORDER BY bytes DESC")
      .all() as unknown as { name: string; bytes: number }[];
  } finally {
    connection.close();
  }
}

const bytes = (value: number) => `${Math.round(value).toLocaleString("en")} bytes`;
