// The table agents, and the agents of brief jobs, which are in the jobs' own rows (brief-jobs.ts). The journal writes them.

import { type RawBuilder, sql } from "kysely";
import type { AgentRecord, AgentStatus } from "../../engine/journal.ts";
import type { AgentStanding, JobRecords } from "../../runs/job-records.ts";
import { columnsOf, flag, json, type Stored } from "./columns.ts";
import type { Database } from "./database.ts";
import { atMost, type Db, kindOf, listed, type Query, query } from "./query.ts";
import type { Schema } from "./schema.generated.ts";

export const agents = columnsOf<Schema["agents"], AgentRecord>({
  index: "agent_index",
  agentId: "agent_id",
  status: "status",
  done: flag("done"),
  processedMessages: "processed_messages",
  stateJson: "state_json",
  lastError: "last_error",
  unroutedJson: "unrouted_json",
  lease: json("lease_json"),
});

/** The agents of a brief job as one text. */
export const agentsJson = (records: readonly AgentRecord[]): string =>
  JSON.stringify(records.map((agent) => agents.toValues(agent)));

export const readAgents = (stored: string): AgentRecord[] =>
  (JSON.parse(stored) as Stored[][]).map((values) =>
    agents.toRecord(Object.fromEntries(agents.names.map((name, i) => [name, values[i]]))),
  );

const ofBrief = query(
  (db, jobId: string) =>
    db
      .selectFrom("jobs")
      .select("brief_agents_json")
      .where("job_id", "=", jobId)
      .where("brief_agents_json", "is not", null),
  (row) => readAgents(row.brief_agents_json!),
);

const between = (db: Db, jobId: string, fromIndex: number, toIndex: number) =>
  db
    .selectFrom("agents")
    .where("job_id", "=", jobId)
    .where("agent_index", ">=", fromIndex)
    .where("agent_index", "<", toIndex)
    .orderBy("agent_index");

const whole = query(
  (db, jobId: string, fromIndex: number, toIndex: number) =>
    between(db, jobId, fromIndex, toIndex).selectAll(),
  agents.toRecord,
);

const standings = query(
  (db, jobId: string, fromIndex: number, toIndex: number) =>
    between(db, jobId, fromIndex, toIndex).select([
      "agent_index",
      "status",
      "processed_messages",
      "last_error",
    ]),
  (row): AgentStanding => ({
    index: row.agent_index,
    status: row.status as AgentStatus,
    processedMessages: row.processed_messages,
    lastError: row.last_error,
  }),
);

/** By the primary key: what is IN a list of unknown length, PostgreSQL would look for in the whole table. */
const isOneOf = (db: Db, column: "job_id" | "agent_index", list: RawBuilder<string | number>) =>
  kindOf(db) === "sqlite"
    ? sql<boolean>`${sql.ref(column)} IN ${list}`
    : sql<boolean>`${sql.ref(column)} = ANY (ARRAY${list})`;

const states = query(
  (db, jobIdsJson: string, indicesJson: string) =>
    db
      .selectFrom("agents")
      .select(["job_id", "agent_index", "status"])
      .where(isOneOf(db, "job_id", listed<string>(db, jobIdsJson, "text")))
      .where(isOneOf(db, "agent_index", listed<number>(db, indicesJson, "bigint"))),
  (row) => ({ jobId: row.job_id, index: row.agent_index, status: row.status as AgentStatus }),
);

const failed = query(
  (db, jobIdsJson: string, limit: number) =>
    db
      .selectFrom("agents")
      .select("agent_index")
      .distinct()
      .where(isOneOf(db, "job_id", listed<string>(db, jobIdsJson, "text")))
      .where("status", "=", sql.lit("failed"))
      .orderBy("agent_index")
      .limit(atMost(limit)),
  (row) => row.agent_index,
);

export function agentReads(database: Database) {
  const briefOr = async <Agent extends AgentStanding>(
    of: Query<[jobId: string, fromIndex: number, toIndex: number], Agent>,
    jobId: string,
    fromIndex: number,
    toIndex: number,
  ) => {
    const all = await ofBrief.first(database, jobId);
    if (all === null) return of.all(database, jobId, fromIndex, toIndex);
    return all.filter(({ index }) => index >= fromIndex && index < toIndex);
  };
  return {
    agents: (...asked) => briefOr(whole, ...asked),
    standings: (...asked) => briefOr(standings, ...asked),
    agentStates: (jobIds, indices) => states.all(database, JSON.stringify(jobIds), JSON.stringify(indices)),
    failedAgents: (jobIds, limit) => failed.all(database, JSON.stringify(jobIds), limit),
  } satisfies Partial<JobRecords>;
}
