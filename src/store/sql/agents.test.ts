// What is read of a job's agents, and of its manifest, on every database.

import assert from "node:assert/strict";
import { type ContractTest, contractOnEach, type OpenDatabase } from "../../../test/support/databases.ts";
import { changes, next } from "../../../test/support/journal-records.ts";
import type { AgentRecord } from "../../engine/journal.ts";
import { sqlJobRecords } from "./jobs.ts";

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

  test("a job's manifest is the text that was kept, and a job that is not there has none", async (open) => {
    const records = sqlJobRecords(open.database);
    await open.journal.commit([changes({ jobId: "agents-2" })]);
    assert.equal(await records.manifest("agents-2"), '{"a": 1}');
    assert.equal(await records.manifest("nobody"), null);
  });
}
