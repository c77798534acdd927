// The gateway's records: the families of tables that one transaction may write together. Writes submitted at the same
// moment share a commit.

import type { Transaction } from "kysely";
import type { Clock } from "../../engine/ports.ts";
import type { GatewayRecords, GatewayWrites } from "../../launch/records.ts";
import { blueprintWrites } from "./blueprints.ts";
import { bundleReads, bundleWrites } from "./bundles.ts";
import { atSavepoint, CommitGroup } from "./commit-group.ts";
import type { Database } from "./database.ts";
import { definitionReads, definitionWrites } from "./definitions.ts";
import { deploymentReads, deploymentWrites } from "./deployments.ts";
import { idempotencyReads, idempotencyWrites } from "./idempotency.ts";
import { modelWrites } from "./models.ts";
import { nodeWrites } from "./node-writes.ts";
import { operationWrites } from "./operations.ts";
import { portWrites } from "./ports.ts";
import { purgeDeleted } from "./retention.ts";
import { listRuns } from "./run-list.ts";
import { runReads, runWrites } from "./runs.ts";
import { scheduleReads, scheduleWrites } from "./schedules.ts";
import type { Schema } from "./schema.generated.ts";
import { llmUsageWrites, servedModelReads, servedModelWrites } from "./served-models.ts";
import { sessionReads, sessionWrites } from "./sessions.ts";
import { eventReads, eventWrites } from "./trigger-events.ts";

/**
 * @param soon the clock's: when a group of writes is closed
 * @param node whose ports are given to runs; "" of a program that has its database to itself
 * @param noted called behind the commit with the runs and the schedules that were written; null: more than are named
 */
export function sqlGatewayRecords(
  database: Database,
  soon: Clock["soon"],
  node = "",
  noted: (topic: "runs" | "schedules", ids: readonly string[] | null) => void = () => {},
): GatewayRecords {
  const group = new CommitGroup(database, soon);
  return {
    ...definitionReads(database),
    ...runReads(database),
    runs: (page) => listRuns(database, page),
    ...idempotencyReads(database),
    ...bundleReads(database),
    ...scheduleReads(database),
    events: eventReads(database),
    deployments: deploymentReads(database),
    sessions: sessionReads(database),
    servedModels: servedModelReads(database),
    async write(work) {
      const runs = new Set<string | null>();
      const schedules = new Set<string>();
      const value = await group.run((db) => work(writesIn(db, node, { runs, schedules })));
      if (runs.has(null)) noted("runs", null);
      else if (runs.size > 0) noted("runs", [...(runs as ReadonlySet<string>)]);
      if (schedules.size > 0) noted("schedules", [...schedules]);
      return value;
    },
    purgeDeleted: (limit) => database.transaction((db) => purgeDeleted(db, limit)),
  };
}

/** @param written takes what is written; null: more runs than are named */
function writesIn(
  db: Transaction<Schema>,
  node: string,
  written: { readonly runs: Set<string | null>; readonly schedules: Set<string> },
): GatewayWrites {
  const { deleteJob, ...definitions } = definitionWrites(db);
  return {
    operations: operationWrites(db),
    blueprints: blueprintWrites(db),
    models: modelWrites(db),
    ports: portWrites(db, node),
    nodes: nodeWrites(db),
    schedules: scheduleWrites(db, (scheduleId) => written.schedules.add(scheduleId)),
    events: eventWrites(db),
    deployments: deploymentWrites(db),
    sessions: sessionWrites(db),
    servedModels: servedModelWrites(db),
    llmUsage: llmUsageWrites(db),
    apart: (work) => atSavepoint(db, work),
    ...definitions,
    async deleteJob(jobId, expectedRevision) {
      const isDeleted = await deleteJob(jobId, expectedRevision);
      // Its runs are no longer shown.
      if (isDeleted) written.runs.add(null);
      return isDeleted;
    },
    ...runWrites(db, (runId) => written.runs.add(runId)),
    ...idempotencyWrites(db),
    ...bundleWrites(db),
  };
}
