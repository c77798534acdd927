// The table agents, and the agents of brief jobs, which are in the jobs' own rows (brief-jobs.ts). The journal writes them.

import type { AgentRecord } from "../../engine/journal.ts";
import type { JobRecords } from "../../runs/job-records.ts";
import { columnsOf, flag, json, type Stored } from "./columns.ts";
import type { Database } from "./database.ts";
import { query } from "./query.ts";
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

const between = query(
  (db, jobId: string, fromIndex: number, toIndex: number) =>
    db
      .selectFrom("agents")
      .selectAll()
      .where("job_id", "=", jobId)
      .where("agent_index", ">=", fromIndex)
      .where("agent_index", "<", toIndex)
      .orderBy("agent_index"),
  agents.toRecord,
);

export function agentReads(database: Database) {
  return {
    async agents(jobId, fromIndex, toIndex) {
      const all = await ofBrief.first(database, jobId);
      if (all === null) return between.all(database, jobId, fromIndex, toIndex);
      return all.filter(({ index }) => index >= fromIndex && index < toIndex);
    },
  } satisfies Partial<JobRecords>;
}
