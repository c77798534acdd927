// Fills the store of a program that does not run with ended runs, as years of use would.

import { DatabaseSync } from "node:sqlite";
import { idSource } from "../src/engine/ids.ts";
import { databaseFile } from "../src/store/home.ts";

/** Writes `count` completed runs of one job; the home must have been started once, so that its schema is there. */
export function seedRuns(home: string, count: number): void {
  const database = new DatabaseSync(databaseFile(home));
  let ms = Date.now() - count;
  const newId = idSource(() => ms++, Math.random);
  const jobId = `job_${newId()}`;
  const insertJob = database.prepare(
    `INSERT INTO job_definitions (job_id, name, status, bundle_fingerprint, graph_id, configuration_json,
      extensions_json, revision, created_at, updated_at, latest_terminal, active_runs, deleted)
    VALUES (?, 'seeded', 'ready', '', 'seeded', '{}', '[]', 1, ?, ?, 1, 0, 0)`,
  );
  const insertRun = database.prepare(
    `INSERT INTO runs (run_id, job_id, runtime_job_id, status, terminal, desired_state, launched, inputs_json,
      trigger_kind, trace_id, agents_total, created_at, started_at, finished_at, updated_at)
    VALUES (?, ?, ?, 'completed', 1, 'running', 1, '{}', 'api', ?, 2, ?, ?, ?, ?)`,
  );
  database.exec("BEGIN");
  insertJob.run(jobId, ms, ms);
  for (let i = 0; i < count; i++) {
    const id = newId();
    insertRun.run(`run_${id}`, jobId, `seeded-${id}`, id.padEnd(32, "0"), ms, ms, ms, ms);
  }
  database.exec("COMMIT; ANALYZE");
  database.close();
}
