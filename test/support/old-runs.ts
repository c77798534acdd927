// Fills the home of a program that does not run with runs that ended at known times, whole as the journal writes them.

import { mkdirSync } from "node:fs";
import { newTally } from "../../src/engine/tally.ts";
import { databaseFile } from "../../src/store/home.ts";
import { openSqlite } from "../../src/store/sqlite/database.ts";
import { SqliteJournal } from "../../src/store/sqlite/journal.ts";
import { job, launch, run } from "./gateway-samples.ts";
import { agent, changes, progress } from "./journal-records.ts";

export interface OldRuns {
  readonly home: string;
  readonly count: number;
  /** How long ago each of them ended. */
  readonly agoMs: (i: number) => number;
  /** Events of each, and characters of each event. */
  readonly events: number;
  readonly eventChars?: number;
  /** Whether they are runs of a job of the gateway, or of the runtime's own API. */
  readonly of: "gateway" | "runtime";
}

const JOBS_PER_COMMIT = 500;

/** The gateway's job that the runs belong to. */
export const OLD_JOB = "job_0001";

/** @returns the runs' ids, in order */
export async function seedOldRuns({
  home,
  count,
  agoMs,
  events,
  eventChars = 100,
  of,
}: OldRuns): Promise<readonly string[]> {
  mkdirSync(home, { recursive: true });
  const database = openSqlite(databaseFile(home));
  const { connection } = database;
  const journal = new SqliteJournal(database);
  const nowMs = Date.now();
  const eventLines = Array.from({ length: events }, (_, i) => line(i + 1, eventChars, nowMs));
  const tally = { ...newTally(), historyChars: events * eventChars };
  const ids: string[] = [];
  if (of === "gateway") insertDefinition(connection, nowMs);
  for (let from = 0; from < count; from += JOBS_PER_COMMIT) {
    const batch = [];
    for (let i = from; i < Math.min(count, from + JOBS_PER_COMMIT); i++) {
      const updatedAtMs = Math.floor(nowMs - agoMs(i));
      const over = {
        progress: progress({ status: "completed", updatedAtMs, eventSeq: events, tally, humanPending: 0 }),
        agents: [agent(0), agent(1)],
        eventLines,
      };
      if (of === "runtime") {
        batch.push(changes({ jobId: `own-${i}`, ...over }));
        ids.push(`run_own-${i}`);
      } else {
        const one = run(i, OLD_JOB);
        insertRun(connection, one, updatedAtMs);
        batch.push(launch(one, over));
        ids.push(one.runId);
      }
    }
    await journal.commit(batch);
  }
  await database.close();
  return ids;
}

function line(seq: number, chars: number, nowMs: number): string {
  const head = `{"timestamp":"${new Date(nowMs).toISOString()}","type":"log","agent_id":"w","payload":{"level":"info","message":"${seq} `;
  return `${head.padEnd(chars - 3, "x")}"}}`;
}

type Connection = ReturnType<typeof openSqlite>["connection"];

function insertDefinition(connection: Connection, nowMs: number): void {
  const { jobId, name, bundleFingerprint, graphId } = job(1);
  connection
    .prepare(
      `INSERT OR IGNORE INTO job_definitions (job_id, name, status, bundle_id, bundle_fingerprint, graph_id, revision,
        created_at, updated_at, latest_terminal, active_runs, deleted, extensions_json, configuration_json)
      VALUES (?, ?, 'ready', 'bundle_1', ?, ?, 1, ?, ?, 0, 0, 0, '[]', '{}')`,
    )
    .run(jobId, name, bundleFingerprint, graphId, nowMs, nowMs);
}

function insertRun(connection: Connection, one: ReturnType<typeof run>, atMs: number): void {
  connection
    .prepare(
      `INSERT INTO runs (run_id, job_id, runtime_job_id, status, terminal, desired_state, launched, trigger_kind,
        trace_id, agents_total, created_at, updated_at, inputs_json)
      VALUES (?, ?, ?, 'pending', 0, 'running', 0, 'api', ?, 2, ?, ?, '{}')`,
    )
    .run(one.runId, one.jobId, one.runtimeJobId, one.traceId, atMs, atMs);
  connection
    .prepare("UPDATE job_definitions SET active_runs = active_runs + 1, latest_run_id = ? WHERE job_id = ?")
    .run(one.runId, one.jobId);
}
