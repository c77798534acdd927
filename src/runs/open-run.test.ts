// What is asked of a run that this process does not carry on yet, or that has ended: refused without a change. Over real
// SQLite and the real engine; only commands are not started, the test says what they do.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { executor, graph, sensor } from "../../test/support/graphs.ts";
import { until } from "../../test/support/until.ts";
import { systemClock, systemRandomness } from "../app/clock.ts";
import { Engine } from "../engine/engine.ts";
import { parseManifest } from "../engine/manifest.ts";
import { noServiceBoard } from "../engine/service-port.ts";
import { defaultTerms } from "../engine/share.ts";
import type { TaskStart } from "../engine/task-port.ts";
import { PoolSlots } from "../execution/pools.ts";
import { ConfigurationSecrets } from "../security/configuration.ts";
import { SecretKey } from "../security/secret-key.ts";
import { sqlDeadLetterRecords } from "../store/sql/dead-letters.ts";
import { sqlHumanRequestRecords } from "../store/sql/human-requests.ts";
import { sqlJobRecords } from "../store/sql/jobs.ts";
import { openSqlite, type SqliteDatabase } from "../store/sqlite/database.ts";
import { SqliteJournal } from "../store/sqlite/journal.ts";
import { DeadLetters } from "./dead-letters.ts";
import { HumanAnswers } from "./human-answers.ts";
import type { AskedRun } from "./open-run.ts";

/** One start of the program on a database. */
function start(database: SqliteDatabase) {
  const starts: TaskStart[] = [];
  const engine = new Engine({
    owner: systemRandomness.id(),
    clock: systemClock,
    randomness: systemRandomness,
    journal: new SqliteJournal(database),
    runner: { start: (task) => void starts.push(task), stop: () => {}, send: () => {}, respond: () => {} },
    slots: new PoolSlots({ default: 4 }, systemRandomness.id, () => 0),
    feed: { published: () => {} },
    schemaProblem: () => null,
    services: noServiceBoard,
    log: { warn: () => {}, error: () => {} },
  });
  const jobs = sqlJobRecords(database);
  const requests = sqlHumanRequestRecords(database);
  const letters = sqlDeadLetterRecords(database);
  return {
    engine,
    records: { ...requests, ...letters },
    started: () => until("the command is started", () => starts.shift() ?? null),
    answers: new HumanAnswers({ records: requests, jobs, control: engine, dataProblems: () => [] }),
    letters: new DeadLetters({ records: letters, jobs, control: engine, secrets }),
    async asked(jobId: string): Promise<AskedRun> {
      const job = await jobs.find(jobId);
      return { runId: "run_1", jobId, status: job?.status ?? assert.fail(`there is no ${jobId}`) };
    },
  };
}

const secrets = new ConfigurationSecrets(new SecretKey(Buffer.alloc(32, 7)));

type Start = ReturnType<typeof start>;

/** A run with an open question and an open dead letter. @returns its runtime job */
async function runInNeed(first: Start): Promise<string> {
  const nodes = [sensor("hold"), executor("asker", ["true"]), executor("failing", ["true"])];
  const more = { entrypoints: ["hold", "asker", "failing"], policies: { failure_policy: "continue" } };
  const manifest = graph("in-need", nodes, [], more);
  const parsed = parseManifest(manifest);
  assert.ok(parsed.kind === "valid");
  const { jobId } = await first.engine.submit({
    graph: parsed.graph,
    identity: null,
    manifestJson: JSON.stringify(manifest),
    bundleFingerprint: null,
    hasOwnPayload: false,
    configurationJson: null,
    trace: null,
    ...defaultTerms,
  });
  for (const { agentId, ref } of [await first.started(), await first.started()]) {
    if (agentId === "asker") {
      first.engine.taskEvents(ref, [{ type: "human_input_requested", payload: { request_id: "ship" } }]);
    } else {
      const code = "executor.exit_nonzero";
      first.engine.taskEnded(ref, {
        kind: "failed",
        code,
        message: "it failed",
        command: null,
        artifacts: [],
      });
    }
  }
  await until("both are on disk", async () => {
    const letter = await first.records.newestOpenLetter(jobId);
    return letter !== null && (await first.records.humanRequest(jobId, "ship")) !== null;
  });
  return jobId;
}

const yes = { decision: "yes", comment: null, data: null, principal: "anonymous" };

async function everything(now: Start, run: AskedRun) {
  const id = (await now.records.newestOpenLetter(run.jobId)) ?? assert.fail("there is no letter");
  return [
    () => now.answers.answer(run, "ship", yes),
    () => now.letters.retry(run, id),
    () => now.letters.retryAll(run),
  ];
}

describe("a run that the next start has not come to yet", () => {
  test("takes nothing and asks to retry, and takes it then", async () => {
    const database = openSqlite(":memory:");
    const first = start(database);
    const jobId = await runInNeed(first);
    first.engine.stop("It ends.");
    const next = start(database);
    const run = await next.asked(jobId);
    for (const ask of await everything(next, run)) {
      await assert.rejects(ask, { name: "EngineUnavailable", mayRetry: true });
    }
    await next.engine.recover();
    assert.equal((await next.answers.answer(run, "ship", yes)).response?.decision, "yes");
    assert.deepEqual(await next.letters.retryAll(run), { retried: 1, notDeliverable: 0 });
    await database.close();
  });
});

describe("a run that has ended", () => {
  test("takes nothing, also when the caller has read it before", async () => {
    const database = openSqlite(":memory:");
    const now = start(database);
    const jobId = await runInNeed(now);
    const before = await now.asked(jobId);
    await now.engine.cancel(jobId);
    for (const run of [before, await now.asked(jobId)]) {
      for (const ask of await everything(now, run)) {
        await assert.rejects(ask, { name: "DomainError", code: "run_ended", message: /is cancelled, which/ });
      }
    }
    assert.equal((await now.answers.find(before, "ship")).status, "pending");
    await database.close();
  });

  test("has nothing to send again, even without dead letters", async () => {
    const database = openSqlite(":memory:");
    const run: AskedRun = { runId: "run_1", jobId: "g-1", status: "completed" };
    await assert.rejects(start(database).letters.retryAll(run), { code: "run_ended" });
    await database.close();
  });
});

test("a run that was not launched yet has nothing to send again, and is no failure", async () => {
  const database = openSqlite(":memory:");
  const run: AskedRun = { runId: "run_1", jobId: "g-1", status: "pending" };
  assert.deepEqual(await start(database).letters.retryAll(run), { retried: 0, notDeliverable: 0 });
  await database.close();
});
