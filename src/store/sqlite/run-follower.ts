// The gateway's runs follow the runtime's jobs: in the transaction that changes a job, its run is changed too, so that
// no reader sees one without the other. Jobs without a run are skipped.
//
// - A run has the status of its runtime job as of the last batch.
// - A run ends once: its end is counted at its definition then, and nothing changes it afterwards.
// - A run that the runtime paused or resumed by itself (a manual recovery, its own API) is wanted so: a restart must not
//   undo it. What the gateway asks for is in the row before the runtime gets it, so this never overrides it.
// - A batch that changes no status writes nothing here: it costs one look at an index.

import type { DatabaseSync, StatementSync } from "node:sqlite";
import { isTerminal, type JobProgress } from "../../engine/journal.ts";

export class RunFollower {
  readonly #update: StatementSync;
  readonly #countEnd: StatementSync;

  constructor(connection: DatabaseSync) {
    this.#update = connection.prepare(
      `UPDATE runs SET status = ?1, terminal = ?2, launched = 1, label = NULL, started_at = ?3, finished_at = ?4,
          updated_at = max(updated_at, ?5),
          desired_state = CASE
            WHEN ?1 = 'paused' AND status <> 'paused' AND desired_state = 'running' THEN 'paused'
            WHEN ?1 IN ('running', 'queued') AND status = 'paused' AND desired_state = 'paused' THEN 'running'
            ELSE desired_state END
        WHERE runtime_job_id = ?6 AND terminal = 0 AND (status <> ?1 OR launched = 0 OR started_at IS NOT ?3)`,
    );
    this.#countEnd = connection.prepare(
      `UPDATE job_definitions SET active_runs = active_runs - 1,
          latest_terminal = max(latest_terminal, latest_run_id = run.run_id)
        FROM (SELECT run_id, job_id FROM runs WHERE runtime_job_id = ?) AS run
        WHERE job_definitions.job_id = run.job_id`,
    );
  }

  /** To be called inside the journal's transaction. */
  follow(
    jobId: string,
    { status, startedAtMs, updatedAtMs }: Pick<JobProgress, "status" | "startedAtMs" | "updatedAtMs">,
  ): void {
    const isOver = isTerminal(status);
    const finishedAtMs = isOver ? updatedAtMs : null;
    const { changes } = this.#update.run(
      status,
      isOver ? 1 : 0,
      startedAtMs,
      finishedAtMs,
      updatedAtMs,
      jobId,
    );
    if (isOver && changes > 0) this.#countEnd.run(jobId);
  }
}
