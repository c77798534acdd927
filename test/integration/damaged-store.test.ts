// The database is damaged while the program works, or was while it did not: one job's rows, or the file. What is
// damaged is named, the rest goes on, and nothing is made worse.

import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { test } from "node:test";
import type { JsonObject } from "../../src/engine/json.ts";
import { startHere } from "../support/command-line.ts";
import { flipBit, overwriteRootPage } from "../support/damage.ts";
import { refusedStartHere, startRuntimeHere } from "../support/in-process.ts";
import { graph, oneCommand } from "../support/manifests.ts";
import { startProgram, temporaryHome } from "../support/program.ts";
import { call, follow, historyOf, jobDetail, request } from "../support/runtime-api.ts";
import { until } from "../support/until.ts";

const plain = graph("plain", [{ node_id: "in", agent_type: "router" }]);
const sensing = graph("sensing", [{ node_id: "ear", agent_type: "sensor" }]);

test("a row in the way of one job's history: that job fails, and the others go on", async () => {
  const outside = await mkdtemp(join(tmpdir(), "troupe-gate-"));
  const gate = join(outside, "open");
  const wait = `while [ ! -e '${gate}' ]; do sleep 0.05; done`;
  try {
    await using program = await startRuntimeHere({ env: { SVC_EXECUTOR_MAX_CONCURRENCY: "3" } });
    const ids: string[] = [];
    for (const name of ["one", "two", "three"]) {
      const id = String((await call(program, "POST", "/jobs", oneCommand(name, wait))).id);
      for await (const { type } of follow(program, id)) if (type === "sandbox_job_started") break;
      ids.push(id);
    }
    const [bad = "", ...good] = ids;
    const other = new DatabaseSync(join(program.home, "troupe.db"), { timeout: 60_000 });
    other.exec(
      `INSERT INTO events SELECT job_id, event_seq + 1, 1, '{"planted":true}', NULL FROM jobs WHERE job_id = '${bad}'`,
    );
    other.close();
    await writeFile(gate, "");
    for (const id of good) assert.equal((await historyOf(program, id)).at(-1)?.type, "job_completed");
    // Who reads before the job fails is given the planted row, and takes the failure of the same number for it.
    const hasFailed = async () => (await jobDetail(program, bad)).job.status === "failed";
    await until("the job has failed", hasFailed);
    const history = await historyOf(program, bad);
    assert.deepEqual(
      history.map(({ id }) => id),
      history.map((_, i) => i + 1),
    );
    assert.equal(history.at(-1)?.type, "job_failed");
    const { job } = await call(program, "GET", `/jobs/${bad}`);
    assert.equal((job as JsonObject).status, "failed");
    assert.match(JSON.stringify(job), /runtime.record_damaged.*UNIQUE constraint failed: events/);
    assert.equal((await request(program, "GET", "/health")).status, 200);
    assert.match(program.output(), /cannot be written and is set aside/);
    const after = String((await call(program, "POST", "/jobs", plain)).id);
    assert.equal((await historyOf(program, after)).at(-1)?.type, "job_completed");
  } finally {
    await rm(outside, { recursive: true, force: true });
  }
});

test("a row that cannot be read at a start: that job fails, and the others are recovered", async () => {
  const home = await temporaryHome();
  try {
    const first = await startProgram({ home });
    const bad = String((await call(first, "POST", "/jobs", sensing)).id);
    const good = String((await call(first, "POST", "/jobs", sensing)).id);
    await first.kill();
    const db = new DatabaseSync(join(home, "troupe.db"));
    db.exec(`UPDATE agents SET state_json = state_json || '}', lease_json = '{' WHERE job_id = '${bad}'`);
    db.close();
    await using second = await startRuntimeHere({ home });
    assert.equal((await historyOf(second, bad)).at(-1)?.type, "job_failed");
    assert.equal((await jobDetail(second, good)).job.status, "running");
    const message = { agent_id: "ear", body: 1 };
    assert.equal((await request(second, "POST", `/jobs/${good}/messages`, message)).status, 202);
    assert.equal((await historyOf(second, good)).at(-1)?.type, "job_completed");
  } finally {
    await rm(home, { recursive: true, force: true });
  }
});

test("a damaged page: the program serves what it can read, writes nothing, and says how to go back", async () => {
  const home = await temporaryHome();
  try {
    const first = await startRuntimeHere({ home });
    const ended = String((await call(first, "POST", "/jobs", plain)).id);
    const open = String((await call(first, "POST", "/jobs", sensing)).id);
    assert.equal((await first.stop()).code, 0);
    await overwriteRootPage(join(home, "troupe.db"), "messages");
    await using second = await startRuntimeHere({ home });
    const refused = await request(second, "POST", "/jobs", plain);
    assert.equal(refused.status, 503, JSON.stringify(refused.body));
    assert.match(String(refused.body.error), /troupe\.db is damaged.*`troupe restore FILE`/);
    const health = await request(second, "GET", "/health");
    assert.equal(health.status, 503);
    assert.match(String(health.body.detail), /is damaged.*`troupe restore FILE`/);
    assert.equal((await historyOf(second, ended)).at(-1)?.type, "job_completed");
    const list = await request(second, "GET", "/jobs");
    assert.equal((list.body.data as readonly unknown[]).length, 2);
    const cancel = await request(second, "POST", `/jobs/${open}/cancel`, {});
    assert.equal(cancel.status, 503, JSON.stringify(cancel.body));
    assert.match(second.output(), /the store is damaged and takes no writes/);
    assert.equal((await second.stop()).code, 0);
  } finally {
    await rm(home, { recursive: true, force: true });
  }
});

test("a page that nobody reads is damaged when the program is killed: the next one finds it by itself", async () => {
  const home = await temporaryHome();
  const file = join(home, "troupe.db");
  try {
    const first = await startRuntimeHere({ home });
    assert.equal((await first.stop()).code, 0);
    const second = await startProgram({ home });
    const id = String((await call(second, "POST", "/jobs", plain)).id);
    await second.kill();
    await overwriteRootPage(file, "dead_letters");
    {
      await using third = await startRuntimeHere({ home });
      await until(
        "health tells of the damage",
        async () => (await request(third, "GET", "/health")).status === 503,
      );
      const { body } = await request(third, "GET", "/health");
      assert.match(String(body.detail), /troupe\.db is damaged.*dead_letters.*`troupe restore FILE`/);
      assert.equal((await request(third, "POST", "/jobs", plain)).status, 503);
      assert.equal((await historyOf(third, id)).at(-1)?.type, "job_completed");
      assert.match(third.output(), /troupe\.db is damaged/);
    }
    const { code, out } = await startHere(["doctor"], home).ended;
    assert.equal(code, 1);
    assert.match(out, /troupe\.db is damaged.*dead_letters/);
  } finally {
    await rm(home, { recursive: true, force: true });
  }
});

test("a changed text of an ended job: found after an unclean end and by doctor, named, and nothing else stops", async () => {
  const home = await temporaryHome();
  try {
    const first = await startProgram({ home });
    const [history, record, whole] = await Promise.all(
      [sensing, plain, plain].map(async (job) => String((await call(first, "POST", "/jobs", job)).id)),
    );
    await call(first, "POST", `/jobs/${history}/messages`, { agent_id: "ear", body: 1 });
    for (const id of [history, record, whole]) await historyOf(first, id!);
    const db = new DatabaseSync(join(home, "troupe.db"), { timeout: 60_000 });
    db.exec(`UPDATE events SET lines = replace(lines, 'nodes', 'Nodes') WHERE job_id = '${history}';
      UPDATE jobs SET last_event_json = replace(last_event_json, 'completed', 'Completed') WHERE job_id = '${record}'`);
    db.close();
    await first.kill();
    {
      await using second = await startRuntimeHere({ home });
      await until("the log names the rows", async () => second.output().includes(`jobs ${record}`));
      assert.match(second.output(), /Rows of the database .*have changed since Troupe wrote them/);
      assert.match(second.output(), new RegExp(`events ${history} 1`));
      assert.ok(!second.output().includes(`jobs ${whole}`), second.output());
      assert.equal((await request(second, "GET", "/health")).status, 200);
      const after = String((await call(second, "POST", "/jobs", plain)).id);
      assert.equal((await historyOf(second, after)).at(-1)?.type, "job_completed");
    }
    const { code, out } = await startHere(["doctor"], home).ended;
    assert.equal(code, 1);
    assert.match(out, /have changed since Troupe wrote them/);
    for (const row of [`events ${history} 1`, `jobs ${record}`]) assert.ok(out.includes(row), out);
  } finally {
    await rm(home, { recursive: true, force: true });
  }
});

const losses: readonly (readonly [string, (wal: string) => Promise<void>])[] = [
  ["a flipped bit in", flipBit],
  ["the loss of", (wal) => rm(wal)],
];
for (const [what, damage] of losses) {
  test(`after ${what} a killed program's write-ahead log the start says what is missing, until that is accepted`, async () => {
    const home = await temporaryHome();
    try {
      const first = await startProgram({ home });
      for (let n = 0; n < 12; n++) await call(first, "POST", "/jobs", plain);
      await first.kill();
      await damage(join(home, "troupe.db-wal"));
      for (let n = 0; n < 2; n++) {
        const { code, text } = await refusedStartHere({ home });
        assert.equal(code, 1, text);
        assert.match(text, /troupe\.db lacks \d+ of \d+ acknowledged commits/);
        assert.match(text, /`troupe restore FILE`.*--accept-data-loss/s);
      }
      const { out } = await startHere(["doctor"], home).ended;
      assert.match(out, /lacks \d+ of \d+ acknowledged commits/);
      const second = await startProgram({ home, args: ["runtime", "--accept-data-loss"] });
      assert.match(second.output(), /acknowledged commits are missing/);
      const id = String((await call(second, "POST", "/jobs", plain)).id);
      await second.kill();
      await using third = await startRuntimeHere({ home });
      assert.equal((await historyOf(third, id)).at(-1)?.type, "job_completed");
    } finally {
      await rm(home, { recursive: true, force: true });
    }
  });
}
