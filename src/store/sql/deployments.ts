// The tables deployments, deployment_instances and deployment_events.

import { sql, type Transaction } from "kysely";
import { EVENTS_KEPT } from "../../deployments/events.ts";
import type {
  Deployment,
  DeploymentRecords,
  DeploymentWrites,
  Instance,
  InstanceRun,
} from "../../deployments/records.ts";
import { columnsOf, flag, json } from "./columns.ts";
import type { Database } from "./database.ts";
import {
  atMost,
  BEHIND_ALL_IDS,
  command,
  type Db,
  insertion,
  listed,
  listQuery,
  query,
  type Session,
} from "./query.ts";
import type { Schema } from "./schema.generated.ts";

type Row = Omit<Deployment, "instances">;

const columns = columnsOf<Schema["deployments"], Row>({
  deploymentId: "deployment_id",
  name: "name",
  count: "count",
  strategy: json("strategy_json"),
  version: "version",
  versions: json("versions_json"),
  lastVersion: "last_version",
  status: "status",
  stable: json("stable_json"),
  isRollingBack: flag("rolling_back"),
  isPromoted: flag("promoted"),
  progressAtMs: "progress_at",
  lastFailure: json("last_failure_json"),
  started: "started",
  isDeleted: flag("deleted"),
  eventSeq: "event_seq",
  revision: "revision",
  changes: "changes",
  createdAtMs: "created_at",
  updatedAtMs: "updated_at",
});

const instanceColumns = columnsOf<
  Schema["deployment_instances"],
  Instance & { readonly deploymentId: string }
>({
  runId: "run_id",
  deploymentId: "deployment_id",
  runtimeJobId: "runtime_job_id",
  number: "number",
  version: "version",
  phase: "phase",
  health: "health",
  healthSinceMs: "health_since",
  node: "node",
  startedAtMs: "started_at",
  waitsSinceMs: "waits_since",
  servesSinceMs: "serves_since",
  stopAtMs: "stop_at",
});

const deployments = (db: Db) => db.selectFrom("deployments").selectAll();

const byId = query(
  (db, deploymentId: string) => deployments(db).where("deployment_id", "=", deploymentId),
  columns.toRecord,
);

const changesOf = query(
  (db, deploymentId: string) =>
    db.selectFrom("deployments").select("changes").where("deployment_id", "=", deploymentId),
  (row) => row.changes,
);

const changesBehind = query(
  (db, after: string, limit: number) =>
    db
      .selectFrom("deployments")
      .select(["deployment_id", "changes", "event_seq"])
      .where("deployment_id", ">", after)
      .orderBy("deployment_id")
      .limit(atMost(limit)),
  (row) => ({ deploymentId: row.deployment_id, changes: row.changes, eventSeq: row.event_seq }),
);

const list = listQuery(
  (db, after: string, limit: number) =>
    deployments(db)
      .where("deleted", "=", sql.lit(0))
      .where("deployment_id", "<", after)
      .orderBy("deployment_id", "desc")
      .limit(atMost(limit)),
  { status: (rows, status) => rows.where("status", "=", status) },
  columns.toRecord,
);

/** @param idsJson a list of deployments */
const instances = query(
  (db, idsJson: string) =>
    db
      .selectFrom("deployment_instances")
      .selectAll()
      .where("deployment_id", "in", listed<string>(db, idsJson, "text"))
      .orderBy("number"),
  instanceColumns.toRecord,
);

/** Rows with their instances. */
async function withInstances(on: Session, rows: readonly Row[]): Promise<readonly Deployment[]> {
  if (rows.length === 0) return [];
  const all = await instances.all(on, JSON.stringify(rows.map(({ deploymentId }) => deploymentId)));
  const byDeployment = Map.groupBy(all, ({ deploymentId }) => deploymentId);
  return rows.map((row) => ({
    ...row,
    instances: (byDeployment.get(row.deploymentId) ?? []).map(({ deploymentId: _, ...one }) => one),
  }));
}

/** A run that was deleted is not there. */
const instanceRuns = query(
  (db, deploymentId: string) =>
    db
      .selectFrom("deployment_instances as i")
      .leftJoin("runs as r", "r.run_id", "i.run_id")
      .leftJoin("jobs as j", "j.job_id", "r.runtime_job_id")
      .select(["i.run_id", "r.status", "r.terminal", "r.failure_json"])
      .select("j.failure_json as job_failure_json")
      .where("i.deployment_id", "=", deploymentId),
  (row): InstanceRun => ({
    runId: row.run_id,
    status: row.status,
    hasEnded: row.terminal !== 0,
    failureJson: row.failure_json ?? row.job_failure_json,
  }),
);

const outOfService = query(
  (db) => db.selectFrom("deployment_instances").select("run_id").where("phase", "<>", sql.lit("serving")),
  (row) => row.run_id,
);

const events = query(
  (db, deploymentId: string, afterSeq: number, limit: number) =>
    db
      .selectFrom("deployment_events")
      .select(["seq", "line"])
      .where("deployment_id", "=", deploymentId)
      .where("seq", ">", afterSeq)
      .orderBy("seq")
      .limit(atMost(limit)),
  (row) => row,
);

/** The row and its instances, of one moment. */
async function whole(on: Session, deploymentId: string): Promise<Deployment | null> {
  for (;;) {
    const row = await byId.first(on, deploymentId);
    if (row === null) return null;
    const [deployment = null] = await withInstances(on, [row]);
    if ((await changesOf.first(on, deploymentId)) === row.changes) return deployment;
  }
}

export function deploymentReads(database: Database): DeploymentRecords {
  return {
    deployment: (deploymentId) => whole(database, deploymentId),
    async deployments({ status, limit, after }) {
      const { rows, isCut } = await list(database, { status }, after ?? BEHIND_ALL_IDS, limit);
      return { rows: await withInstances(database, rows), isCut };
    },
    deploymentChanges: (after, limit) => changesBehind.all(database, after, limit),
    instanceRuns: (deploymentId) => instanceRuns.all(database, deploymentId),
    outOfService: async () => new Set(await outOfService.all(database)),
    async deploymentEvents(deploymentId, afterSeq, limit) {
      const rows = await events.all(database, deploymentId, afterSeq, limit);
      // Who continues after the last one misses none after a power cut.
      await database.durable();
      return { firstSeq: rows[0]?.seq ?? afterSeq + 1, lines: rows.map(({ line }) => line) };
    },
  };
}

const insertDeployment = insertion("deployments");
const saveDeployment = insertion("deployments", ["deployment_id"]);
const saveInstance = insertion("deployment_instances", ["run_id"]);
const insertEvent = insertion("deployment_events");
const removeInstance = command((db, runId: string) =>
  db.deleteFrom("deployment_instances").where("run_id", "=", runId),
);
const removeDeployment = command((db, deploymentId: string) =>
  db.deleteFrom("deployments").where("deployment_id", "=", deploymentId),
);
const removeEvents = command((db, deploymentId: string, throughSeq: number) =>
  db.deleteFrom("deployment_events").where("deployment_id", "=", deploymentId).where("seq", "<=", throughSeq),
);

function toRow({ instances: _, ...deployment }: Deployment): Schema["deployments"] {
  return columns.toRow(deployment);
}

export function deploymentWrites(db: Transaction<Schema>): DeploymentWrites {
  return {
    deployment: (deploymentId) => whole(db, deploymentId),
    insert: (deployment) => insertDeployment(db, toRow(deployment)),
    async save(deployment, before) {
      await saveDeployment(db, toRow(deployment));
      const { deploymentId } = deployment;
      const known = new Set(before.instances);
      const kept = new Set(deployment.instances.map(({ runId }) => runId));
      for (const { runId } of before.instances) if (!kept.has(runId)) await removeInstance(db, runId);
      for (const one of deployment.instances)
        if (!known.has(one)) await saveInstance(db, instanceColumns.toRow({ ...one, deploymentId }));
    },
    /** Its instances have ended before. */
    async remove(deploymentId) {
      await removeDeployment(db, deploymentId);
      await removeEvents(db, deploymentId, Number.MAX_SAFE_INTEGER);
    },
    async addEvents(deploymentId, firstSeq, lines) {
      for (const [i, line] of lines.entries())
        await insertEvent(db, { deployment_id: deploymentId, seq: firstSeq + i, line });
      await removeEvents(db, deploymentId, firstSeq + lines.length - 1 - EVENTS_KEPT);
    },
  };
}
