// What is read of a job's agents, and of its manifest, on every database.

import assert from "node:assert/strict";
import { type ContractTest, contractOnEach, type OpenDatabase } from "../../../test/support/databases.ts";
import { changes, next } from "../../../test/support/journal-records.ts";
import type { AgentRecord } from "../../engine/journal.ts";
import { sqlJobRecords } from "./jobs.ts";
import { kindOf } from "./query.ts";

const agent = (index: number, more: Partial<AgentRecord>): AgentRecord => ({
  index,
  agentId: `n${index}`,
  status: "ready",
  done: false,
  processedMessages: 0,
  stateJson: "{}",
  lastError: null,
  unroutedJson: null,
  lease: null,
  ...more,
});

contractOnEach("the records of agents", (open) => open, contract);

function contract(test: ContractTest<OpenDatabase>) {
  test("a part of a job's agents is read in the order of the graph, whole or as their standings", async (open) => {
    const records = sqlJobRecords(open.database);
    const jobId = "agents-1";
    const failed = agent(7, { status: "failed", processedMessages: 3, lastError: "it broke" });
    const running = agent(2, { status: "running", processedMessages: 1 });
    await open.journal.commit([changes({ jobId, agents: [failed] })]);
    await open.journal.commit([next(1, { jobId, agents: [agent(0, {}), running] })]);
    assert.deepEqual(await records.agents(jobId, 1, 8), [running, failed]);
    assert.deepEqual(await records.standings(jobId, 1, 8), [
      { index: 2, status: "running", processedMessages: 1, lastError: null },
      { index: 7, status: "failed", processedMessages: 3, lastError: "it broke" },
    ]);
    assert.deepEqual(await records.standings(jobId, 3, 7), []);
  });

  test("what some agents of several jobs are is read at once", async (open) => {
    const records = sqlJobRecords(open.database);
    const [one, other] = ["agents-3", "agents-4"];
    const done = agent(2, { status: "done" });
    await open.journal.commit([changes({ jobId: one, agents: [agent(0, {}), done, agent(3, {})] })]);
    await open.journal.commit([changes({ jobId: other, agents: [agent(3, { status: "failed" })] })]);
    await open.journal.commit([changes({ jobId: "agents-5", agents: [done] })]);
    const found = await records.agentStates([one, other, "nobody"], [2, 3]);
    assert.deepEqual(
      found.toSorted((a, b) => (a.jobId + a.index < b.jobId + b.index ? -1 : 1)),
      [
        { jobId: one, index: 2, status: "done" },
        { jobId: one, index: 3, status: "ready" },
        { jobId: other, index: 3, status: "failed" },
      ],
    );
    assert.deepEqual(await records.agentStates([], []), []);
  });

  test("agents that failed in one of several jobs are found once each, in order, up to a limit", async (open) => {
    const records = sqlJobRecords(open.database);
    const failed = (index: number) => agent(index, { status: "failed" });
    await open.journal.commit([changes({ jobId: "failed-1", agents: [failed(7), agent(1, {}), failed(2)] })]);
    await open.journal.commit([changes({ jobId: "failed-2", agents: [failed(2), failed(3)] })]);
    await open.journal.commit([changes({ jobId: "failed-3", agents: [failed(4)] })]);
    assert.deepEqual(await records.failedAgents(["failed-1", "failed-2", "nobody"], 9), [2, 3, 7]);
    assert.deepEqual(await records.failedAgents(["failed-1", "failed-2"], 2), [2, 3]);
    await open.journal.commit([next(1, { jobId: "failed-3", agents: [agent(4, { status: "done" })] })]);
    assert.deepEqual(await records.failedAgents(["failed-3"], 9), []);
  });

  test("what agents of a few jobs are is found by indexes, whatever else there is", async (open) => {
    const { database, journal } = open;
    const agents = Array.from({ length: 100 }, (_, i) =>
      agent(i, { status: i % 9 === 0 ? "failed" : "done" }),
    );
    const jobIds = Array.from({ length: 60 }, (_, i) => `plan-${i}`);
    for (const jobId of jobIds) await journal.commit([changes({ jobId, agents })]);
    const isSqlite = kindOf(database.kysely) === "sqlite";
    if (!isSqlite) await database.read("ANALYZE agents", []);
    const plans: string[] = [];
    const explained: typeof database = {
      ...database,
      async read<Row>(sql: string, parameters: readonly unknown[]) {
        const explain = isSqlite ? "EXPLAIN QUERY PLAN" : "EXPLAIN";
        plans.push(JSON.stringify(await database.read(`${explain} ${sql}`, parameters)));
        return database.read<Row>(sql, parameters);
      },
    };
    const records = sqlJobRecords(explained);
    const found = await records.agentStates(jobIds.slice(0, 25), [3, 4]);
    assert.equal(found.length, 50);
    assert.deepEqual(await records.failedAgents(jobIds.slice(0, 25), 2), [0, 9]);
    const [states = "", failed = ""] = plans;
    assert.match(failed, /agents_failed/);
    for (const plan of [states, failed]) assert.doesNotMatch(plan, /Seq Scan on agents|SCAN agents/);
  });

  test("a job's manifest is the text that was kept, and a job that is not there has none", async (open) => {
    const records = sqlJobRecords(open.database);
    await open.journal.commit([changes({ jobId: "agents-2" })]);
    assert.equal(await records.manifest("agents-2"), '{"a": 1}');
    assert.equal(await records.manifest("nobody"), null);
  });
}
