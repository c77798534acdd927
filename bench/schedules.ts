// Schedules: 100,000 of them, of which 100 are due each second; and 10,000 that are due in the same second, with a
// request at a time beside them.

import { rm } from "node:fs/promises";
import { systemClock, systemRandomness } from "../src/app/clock.ts";
import type { Schedule } from "../src/schedules/records.ts";
import { databaseFile } from "../src/store/home.ts";
import { sqlGatewayRecords } from "../src/store/sql/gateway.ts";
import { openSqlite, type SqliteDatabase } from "../src/store/sqlite/database.ts";
import { createJob, startGateway } from "../test/support/gateway-api.ts";
import { schedule } from "../test/support/gateway-samples.ts";
import { graph, router } from "../test/support/graphs.ts";
import { type Program, temporaryHome } from "../test/support/program.ts";
import { until } from "../test/support/until.ts";

const SCHEDULES = 100_000;
const PER_SECOND = 100;
const SECONDS = 10;
const BURST = 10_000;
/** Until the program is up, and its first look is done. */
const LEAD_MS = 15_000;
const FAR_MS = 30 * 86_400_000;

/** @returns the figures; each name is a row */
export async function measureSchedules(only: readonly string[] | null): Promise<Map<string, string>> {
  const figures = new Map<string, string>();
  if (only !== null && !only.includes("schedules")) return figures;
  const home = await temporaryHome();
  const first = await startGateway({ home, env: { SVC_LOG_LEVEL: "warn" } });
  const jobId = await createJob(first, graph("tick", [router("only")], [], { entrypoints: ["only"] }));
  await first.stop();
  const file = databaseFile(home);
  const startMs = Math.ceil((Date.now() + LEAD_MS) / 1_000) * 1_000;
  const burstMs = startMs + (SECONDS + 5) * 1_000;
  await seed(file, jobId, startMs, burstMs);
  const program = await startGateway({ home, env: { SVC_LOG_LEVEL: "warn" } });
  const database = openSqlite(file);
  try {
    const count = async (fromMs: number) =>
      (await lateness(database, fromMs, fromMs + SECONDS * 1_000)).length;
    await until("the steady ones are started", async () => (await count(startMs)) >= PER_SECOND * SECONDS);
    const steady = await lateness(database, startMs, burstMs);
    figures.set(`${PER_SECOND} of ${SCHEDULES} schedules due a second: late, p50; p99`, shown(steady));
    const answers = await askUntil(program, async () => (await count(burstMs)) >= BURST);
    const burst = await lateness(database, burstMs, burstMs + 1_000);
    figures.set(
      `${BURST} due in one second: the last one is late`,
      `${((burst.at(-1) ?? 0) / 1_000).toFixed(1)} s`,
    );
    figures.set("— GET /health meanwhile, p50; p99", shown(answers));
  } finally {
    await database.close();
    await program.stop();
    await rm(home, { recursive: true, force: true });
  }
  return figures;
}

async function seed(file: string, jobId: string, startMs: number, burstMs: number): Promise<void> {
  const database = openSqlite(file);
  const records = sqlGatewayRecords(database, systemClock.soon);
  const atOf = (n: number) => {
    if (n < PER_SECOND * SECONDS) return startMs + Math.floor(n / PER_SECOND) * 1_000;
    return n < PER_SECOND * SECONDS + BURST ? burstMs : startMs + FAR_MS + n;
  };
  for (let from = 0; from < SCHEDULES; from += 1_000) {
    await records.write(async ({ schedules }) => {
      for (let n = from; n < from + 1_000; n++) await schedules.insert(scheduleAt(jobId, atOf(n)));
    });
  }
  await database.close();
}

function scheduleAt(jobId: string, atMs: number): Schedule {
  return schedule(0, {
    scheduleId: `schedule_${systemRandomness.id()}`,
    jobId,
    rule: { kind: "delayed", atMs },
    dueAtMs: atMs,
    nextRunAtMs: atMs,
  });
}

/** How late the runs of these due times were accepted, in ms; ascending. */
async function lateness(
  database: SqliteDatabase,
  fromMs: number,
  untilMs: number,
): Promise<readonly number[]> {
  const rows = await database.read<{ late: number }>(
    `SELECT r.created_at - s.due AS late FROM runs AS r
      JOIN (SELECT schedule_id, rule_json ->> '$.atMs' AS due FROM schedules WHERE status = 'completed') AS s
        ON s.schedule_id = r.trigger_id
      WHERE s.due >= ? AND s.due < ? ORDER BY late`,
    [fromMs, untilMs],
  );
  return rows.map(({ late }) => late);
}

async function askUntil(program: Program, isDone: () => Promise<boolean>): Promise<readonly number[]> {
  const took: number[] = [];
  let isOver = false;
  const asking = (async () => {
    while (!isOver) {
      const beganMs = performance.now();
      await (await fetch(`${program.url}/api/v1/health`)).text();
      took.push(performance.now() - beganMs);
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  })();
  await until("all of them are started", isDone, 120_000);
  isOver = true;
  await asking;
  return took.toSorted((a, b) => a - b);
}

function shown(sorted: readonly number[]): string {
  const at = (part: number) => sorted[Math.floor(sorted.length * part)] ?? Number.NaN;
  return `${at(0.5).toFixed(1)}; ${at(0.99).toFixed(1)} ms`;
}
