// Jobs that are one row: what is written of them, and that every reader finds it there.

import assert from "node:assert/strict";
import { test } from "node:test";
import { job, run } from "../../../test/support/gateway-samples.ts";
import { agent, changes, humanRequest, progress } from "../../../test/support/journal-records.ts";
import { renderEvent } from "../../engine/event.ts";
import type { JobChanges } from "../../engine/journal.ts";
import { sqlGatewayRecords } from "../sql/gateway.ts";
import { sqlJobRecords } from "../sql/jobs.ts";
import { openSqlite } from "./database.ts";
import { SqliteJournal } from "./journal.ts";

const START_MS = 1_700_000_000_000;
const line = (n: number, message = "") =>
  renderEvent({ nowMs: START_MS + n, type: "log", agentId: "a" }, { n, message });

const { insert } = changes();
assert.ok(insert !== null);

const brief = changes({
  insert: { ...insert, configurationJson: null },
  progress: progress({ status: "completed", eventSeq: 3 }),
  agents: [agent(0, { stateJson: '{"count":2}', lastError: "…" }), agent(1), agent(2)],
  eventLines: [line(1), line(2), line(3)],
});

async function stored(change: JobChanges) {
  const database = openSqlite(":memory:");
  const journal = new SqliteJournal(database);
  const definitionId = change.insert?.definitionId;
  if (definitionId != null) {
    const records = sqlGatewayRecords(database, setImmediate);
    const runId = change.insert!.runId;
    await records.write(async (writes) => {
      await writes.insertJob(job(1, { jobId: definitionId }));
      await writes.insertRun(run(1, definitionId, { runId, runtimeJobId: change.jobId }));
    });
  }
  await journal.commit([change]);
  const rows = (table: string) => database.connection.prepare(`SELECT * FROM ${table}`).all().length;
  return {
    database,
    journal,
    records: sqlJobRecords(database),
    rows: ["jobs", "job_sources", "agents", "events"].map(rows),
  };
}

test("a job that began and ended within one batch is one row, in which every reader finds what it asks for", async () => {
  const { database, journal, records, rows } = await stored(brief);
  assert.deepEqual(rows, [1, 0, 0, 0]);
  const { eventLines, agents, jobId } = brief;

  assert.deepEqual(await records.events(jobId, 0), { firstSeq: 1, lines: eventLines });
  assert.deepEqual(await records.events(jobId, 2), { firstSeq: 3, lines: eventLines.slice(2) });
  assert.deepEqual((await records.events(jobId, 3)).lines, []);
  assert.deepEqual(await records.eventsBefore(jobId, 3), { firstSeq: 1, lines: eventLines.slice(0, 2) });
  assert.deepEqual((await records.eventsBefore(jobId, 1)).lines, []);
  assert.deepEqual(await records.placeOfTime(jobId, START_MS + 1), { fromSeq: 1, toSeq: 1 });
  assert.deepEqual(await records.placeOfTime(jobId, START_MS + 2), { fromSeq: 1, toSeq: null });
  assert.deepEqual(await records.agents(jobId, 0, 9), agents);
  assert.deepEqual(await records.agents(jobId, 1, 2), agents.slice(1, 2));
  assert.partialDeepStrictEqual(await records.standings(jobId, 1, 2), [
    { index: agents[1]!.index, status: agents[1]!.status },
  ]);
  assert.equal(await records.manifest(jobId), insert.manifestJson);
  assert.deepEqual((await records.detail(jobId, 2))?.recentEvents, [eventLines[2], eventLines[1]]);
  assert.partialDeepStrictEqual(await records.texts(jobId), {
    manifestJson: insert.manifestJson,
    configurationJson: null,
  });
  assert.partialDeepStrictEqual(await journal.load(jobId), { agents, insert: brief.insert });
  assert.deepEqual(await journal.commit([brief]), { lost: [], unwritable: [] }, "the same batch again");

  for (const column of ["brief_lines", "brief_agents_json", "brief_manifest_json"]) {
    database.connection.exec(`SAVEPOINT before; UPDATE jobs SET ${column} = ${column} || ' '`);
    await assert.rejects(journal.load(jobId), /table jobs has changed since it was written/);
    database.connection.exec("ROLLBACK TO before; RELEASE before");
  }
  await database.close();
});

const others: Readonly<Record<string, Partial<JobChanges>>> = {
  "is still running": { progress: progress({ status: "running" }) },
  "has a configuration": { insert: { ...insert, configurationJson: "{}" } },
  "is a run's": { insert: { ...insert, configurationJson: null, definitionId: "d" } },
  "has a long manifest": {
    insert: { ...insert, configurationJson: null, manifestJson: `"${"x".repeat(2_500)}"` },
  },
  "has a long history": { eventLines: [line(1, "x".repeat(2_500)), line(2)] },
  "has a large agent": { agents: [agent(0, { stateJson: `"${"x".repeat(2_500)}"` })] },
  "has asked a person": { humanRequests: [humanRequest(1)] },
};

for (const [what, given] of Object.entries(others)) {
  test(`a job that ${what} has rows in the other tables`, async () => {
    const change = { ...brief, ...given };
    const { database, records, rows } = await stored(change);
    assert.deepEqual(rows, [1, 1, change.agents.length, 1]);
    assert.deepEqual((await records.events(brief.jobId, 0)).lines, change.eventLines);
    assert.deepEqual(await records.agents(brief.jobId, 0, 9), change.agents);
    await database.close();
  });
}
