// What the works of a group do again and again, compiled once. Arguments in the order of their holes.

import { type Kysely, sql } from "kysely";
import { blueprintStatements } from "./blueprint-rows.ts";
import { jobById, openRunsOfJob, promiseByKey, runById } from "./gateway-reads.ts";
import { portStatements } from "./port-records.ts";
import { hole, statement } from "./reusable-query.ts";
import type { Schema } from "./schema.ts";

export type GatewayStatements = ReturnType<typeof gatewayStatements>;

export function gatewayStatements(db: Kysely<Schema>) {
  return {
    ...portStatements(db),
    ...blueprintStatements(db),
    job: statement(jobById(db)),
    run: statement(runById(db)),
    openRunsOfJob: statement(openRunsOfJob(db)),
    idempotency: statement(promiseByKey(db)),
    /** Arguments: run id, job id. */
    countBegin: statement(
      db
        .updateTable("job_definitions")
        .set((eb) => ({
          latest_run_id: hole<string>(0),
          latest_terminal: 0,
          active_runs: eb("active_runs", "+", 1),
        }))
        .where("job_id", "=", hole<string>(1))
        .where("deleted", "=", sql.lit(0)),
    ),
    insertRun: statement(
      db.insertInto("runs").values({
        run_id: hole(0),
        job_id: hole(1),
        runtime_job_id: hole(2),
        status: "pending",
        terminal: 0,
        desired_state: "running",
        launched: 0,
        trigger_kind: hole(3),
        trigger_id: hole(4),
        trace_id: hole(5),
        parent_span_id: hole(6),
        agents_total: hole(7),
        created_at: hole(8),
        updated_at: hole(8),
        config_overrides_json: hole(9),
        inputs_json: hole(10),
        label: hole(11),
      }),
    ),
    saveIdempotency: statement(
      db
        .insertInto("idempotency")
        .values({
          scope: hole(0),
          key: hole(1),
          request_hash: hole(2),
          status: hole(3),
          headers_json: hole(4),
          body: hole(5),
          created_at: hole(6),
        })
        .onConflict((conflict) =>
          conflict.columns(["scope", "key"]).doUpdateSet(({ ref }) => ({
            request_hash: ref("excluded.request_hash"),
            status: ref("excluded.status"),
            headers_json: ref("excluded.headers_json"),
            body: ref("excluded.body"),
            created_at: ref("excluded.created_at"),
          })),
        ),
    ),
  };
}
