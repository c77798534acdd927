// GatewayWrites with Kysely: what one work writes in the transaction of its group.

import { sql, type Transaction } from "kysely";
import type { BundleRecord } from "../../bundles/records.ts";
import type {
  DesiredState,
  GatewayWrites,
  IdempotencyRecord,
  JobDefinition,
  JobView,
  NewRun,
  OpenRun,
  RunRecord,
} from "../../launch/records.ts";
import { atSavepoint } from "../commit-group.ts";
import { SqlBlueprintWrites } from "./blueprint-writes.ts";
import { saveBundle, toBundle } from "./bundle-records.ts";
import { definitionValues, toIdempotency, toJob, toOpenRun, toRun } from "./gateway-rows.ts";
import type { GatewayStatements } from "./gateway-statements.ts";
import { SqlOperationWrites } from "./operation-records.ts";
import { SqlPortWrites } from "./port-records.ts";
import type { Schema } from "./schema.ts";

export class SqlGatewayWrites implements GatewayWrites {
  readonly #db: Transaction<Schema>;
  readonly #statements: GatewayStatements;

  constructor(db: Transaction<Schema>, statements: GatewayStatements) {
    this.#db = db;
    this.#statements = statements;
  }

  get operations(): SqlOperationWrites {
    return new SqlOperationWrites(this.#db);
  }

  get blueprints(): SqlBlueprintWrites {
    return new SqlBlueprintWrites(this.#db, this.#statements);
  }

  get ports(): SqlPortWrites {
    return new SqlPortWrites(this.#db, this.#statements);
  }

  apart<T>(work: () => Promise<T>): Promise<T> {
    return atSavepoint(this.#db, work);
  }

  async idempotency(scope: string, key: string): Promise<IdempotencyRecord | null> {
    const [row] = (await this.#statements.idempotency(this.#db, scope, key)).rows;
    return row === undefined ? null : toIdempotency(row);
  }

  async saveIdempotency(record: IdempotencyRecord): Promise<void> {
    const { scope, key, requestHash, status, headersJson, body, createdAtMs } = record;
    await this.#statements.saveIdempotency(
      this.#db,
      scope,
      key,
      requestHash,
      status,
      headersJson,
      body,
      createdAtMs,
    );
  }

  async job(jobId: string): Promise<JobView | null> {
    const [row] = (await this.#statements.job(this.#db, jobId)).rows;
    return row === undefined ? null : toJob(row);
  }

  async insertJob(job: JobDefinition): Promise<void> {
    await this.#db
      .insertInto("job_definitions")
      .values({
        ...definitionValues(job),
        job_id: job.jobId,
        created_at: job.createdAtMs,
        latest_terminal: 0,
        active_runs: 0,
        deleted: 0,
      })
      .execute();
  }

  updateJob(job: JobDefinition, expectedRevision: number): Promise<boolean> {
    return this.#changeJob(job.jobId, expectedRevision, definitionValues(job));
  }

  deleteJob(jobId: string, expectedRevision: number): Promise<boolean> {
    return this.#changeJob(jobId, expectedRevision, { deleted: 1 });
  }

  async #changeJob(
    jobId: string,
    expectedRevision: number,
    values: ReturnType<typeof definitionValues> | { readonly deleted: 1 },
  ): Promise<boolean> {
    const { numUpdatedRows } = await this.#db
      .updateTable("job_definitions")
      .set(values)
      .where("job_id", "=", jobId)
      .where("revision", "=", expectedRevision)
      .where("deleted", "=", 0)
      .executeTakeFirst();
    return numUpdatedRows > 0n;
  }

  async insertRun(run: NewRun): Promise<boolean> {
    const { runId, jobId, trigger } = run;
    const { numAffectedRows } = await this.#statements.countBegin(this.#db, runId, jobId);
    if (numAffectedRows !== 1n) return false;
    await this.#statements.insertRun(
      this.#db,
      runId,
      jobId,
      run.runtimeJobId,
      trigger.kind,
      trigger.id,
      run.traceId,
      run.parentSpanId,
      run.agentsTotal,
      run.createdAtMs,
      run.configOverridesJson,
      run.inputsJson,
      run.label,
    );
    return true;
  }

  async run(runId: string): Promise<RunRecord | null> {
    const [row] = (await this.#statements.run(this.#db, runId)).rows;
    return row === undefined ? null : toRun(row);
  }

  async openRuns(jobId: string): Promise<readonly OpenRun[]> {
    return (await this.#statements.openRunsOfJob(this.#db, jobId)).rows.map(toOpenRun);
  }

  async setDesiredStates(jobId: string, desired: DesiredState, nowMs: number): Promise<void> {
    await this.#db
      .updateTable("runs")
      .set({ desired_state: desired, updated_at: nowMs })
      .where("job_id", "=", jobId)
      .where("terminal", "=", sql.lit(0))
      .where("desired_state", "<>", desired)
      .execute();
  }

  async setDesiredState(runId: string, desired: DesiredState, nowMs: number): Promise<void> {
    await this.#db
      .updateTable("runs")
      .set({ desired_state: desired, updated_at: nowMs })
      .where("run_id", "=", runId)
      .where("terminal", "=", 0)
      .execute();
  }

  async setWaiting(
    runId: string,
    status: "pending" | "paused",
    label: string | null,
    nowMs: number,
  ): Promise<void> {
    await this.#db
      .updateTable("runs")
      .set({ status, label, updated_at: nowMs })
      .where("run_id", "=", runId)
      .where("launched", "=", 0)
      .where("terminal", "=", 0)
      .execute();
  }

  async setLabel(runId: string, label: string | null, nowMs: number): Promise<void> {
    await this.#db
      .updateTable("runs")
      .set({ label, updated_at: nowMs })
      .where("run_id", "=", runId)
      .where("launched", "=", 0)
      .where("terminal", "=", 0)
      .execute();
  }

  async endUnlaunched(
    runId: string,
    end: { readonly status: "failed" | "cancelled"; readonly failureJson: string | null },
    nowMs: number,
  ): Promise<void> {
    const ended = await this.#db
      .updateTable("runs")
      .set({
        status: end.status,
        terminal: 1,
        label: null,
        failure_json: end.failureJson,
        finished_at: nowMs,
        updated_at: nowMs,
      })
      .where("run_id", "=", runId)
      .where("launched", "=", 0)
      .where("terminal", "=", 0)
      .returning("job_id")
      .executeTakeFirst();
    if (ended !== undefined) await this.#countEnd(runId, ended.job_id);
  }

  /** As src/store/sqlite/run-follower.ts does it for the runs that were launched. */
  async #countEnd(runId: string, jobId: string): Promise<void> {
    await this.#db
      .updateTable("job_definitions")
      .set((eb) => ({
        active_runs: eb("active_runs", "-", 1),
        latest_terminal: eb
          .case()
          .when("latest_run_id", "=", runId)
          .then(1)
          .else(eb.ref("latest_terminal"))
          .end(),
      }))
      .where("job_id", "=", jobId)
      .execute();
  }

  async bundle(bundleId: string): Promise<BundleRecord | null> {
    const row = await this.#db
      .selectFrom("bundles")
      .selectAll()
      .where("bundle_id", "=", bundleId)
      .executeTakeFirst();
    return row === undefined ? null : toBundle(row);
  }

  saveBundle(record: BundleRecord): Promise<void> {
    return saveBundle(this.#db, record);
  }

  async bundleInUse(bundleId: string): Promise<boolean> {
    const user = await this.#db
      .selectFrom("job_definitions")
      .select("job_id")
      .where("deleted", "=", sql.lit(0))
      .where("bundle_id", "=", bundleId)
      .limit(1)
      .executeTakeFirst();
    return user !== undefined;
  }

  async deleteBundle(bundleId: string): Promise<boolean> {
    const { numDeletedRows } = await this.#db
      .deleteFrom("bundles")
      .where("bundle_id", "=", bundleId)
      .executeTakeFirst();
    return numDeletedRows > 0n;
  }
}
