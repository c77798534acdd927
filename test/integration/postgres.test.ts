// The real program on PostgreSQL, over kill -9 and crashes of the server: what was promised is kept, and the address of the
// database with its password is shown nowhere. That every answer is as on SQLite is for test/gateway and test/runtime.

import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import type { JsonObject } from "../../src/engine/json.ts";
import { type TestCatalog, testCatalog } from "../support/blueprint-catalog.ts";
import { startHere } from "../support/command-line.ts";
import { type Gates, makeGates } from "../support/gates.ts";
import {
  ask,
  assertProblem,
  call,
  completed,
  createJob,
  ended,
  frames,
  happens,
  startGateway,
  startRun,
  walk,
} from "../support/gateway-api.ts";
import { executor, graph, router, sensor } from "../support/graphs.ts";
import { refusedStartHere } from "../support/in-process.ts";
import { crashPostgres, returnPostgres, takePostgres } from "../support/postgres.ts";
import { type Program, temporaryHome } from "../support/program.ts";
import { until } from "../support/until.ts";

const PASSWORD = "planted-password-of-the-database";

let url: string;
let home: string;
let gates: Gates;
let catalog: TestCatalog;
let program: Program;
before(async () => {
  [url, home, gates, catalog] = await Promise.all([
    takePostgres(),
    temporaryHome(),
    makeGates(),
    testCatalog(),
  ]);
  await catalog.write("greeter", graph("greeter", [router("in")]));
  program = await start();
});
after(async () => {
  await program.stop();
  await Promise.all([
    returnPostgres(url),
    rm(home, { recursive: true, force: true }),
    gates.remove(),
    catalog[Symbol.asyncDispose](),
  ]);
});

/** The server of the tests asks for no password, and takes any. */
const withPassword = () => url.replace("test@", `test:${PASSWORD}@`);

const start = () =>
  startGateway({
    home,
    env: {
      SVC_DATABASE_URL: withPassword(),
      SVC_BLUEPRINT_CATALOG: catalog.folder,
      SVC_EXECUTOR_MAX_CONCURRENCY: "4",
    },
  });

async function restart(): Promise<void> {
  await program.kill();
  program = await start();
}

describe("on PostgreSQL", () => {
  test("doctor looks at the server, and what is for SQLite alone says what to do instead", async () => {
    const env = { SVC_DATABASE_URL: withPassword() };
    const doctor = await startHere(["doctor", "--json"], home, env).ended;
    const found = (JSON.parse(doctor.out) as JsonObject[]).find(({ name }) => name === "store");
    // A slow commit is a warning.
    assert.notEqual(found?.state, "fail", JSON.stringify(found));
    assert.match(
      String(found?.text),
      /^PostgreSQL \d+\S* at \S+; a commit takes [\d.]+ ms; its clock differs by -?\d+ ms$/,
    );
    const nowhere = { SVC_DATABASE_URL: `postgres://test:${PASSWORD}@127.0.0.1:1/nowhere` };
    const failed = await startHere(["doctor"], home, nowhere).ended;
    assert.match(failed.out, /The database 127\.0\.0\.1:1\/nowhere cannot be used/);
    const backup = await startHere(["backup", "never.zip"], home, env).ended;
    assert.deepEqual([backup.code, /pg_dump/.test(backup.err)], [1, true]);
    const rotate = await startHere(["secrets", "rotate"], home, nowhere).ended;
    assert.deepEqual([rotate.code, /in use by another Troupe/.test(rotate.err)], [1, true]);
    for (const { out, err } of [doctor, failed, backup, rotate])
      assert.ok(!`${out}${err}`.includes(PASSWORD));
  });

  test("a program whose home has not the secret key of the database is refused, and makes none", async () => {
    await program.stop();
    const other = await temporaryHome();
    const { code, text } = await refusedStartHere({ home: other, env: { SVC_DATABASE_URL: withPassword() } });
    assert.equal(code, 1);
    assert.match(text, /The secret key .* is missing, and the database holds secrets/);
    assert.ok(!existsSync(join(other, "secret.key")) && !text.includes(PASSWORD));
    await rm(other, { recursive: true });
    program = await start();
  });

  test("jobs with commands run to their end, with history, logs and files, and requests repeat their answers", async () => {
    const script = 'echo "the log"; printf made > "$SVC_OUTPUT_DIR/made.txt"; env';
    const jobId = await createJob(program, graph("worker", [executor("in", ["sh", "-c", script])]));
    const runs = [await completed(program, jobId), await completed(program, jobId)];
    const [first] = runs;
    const runId = String(first?.run.run_id);
    assert.deepEqual(
      first?.events.map(({ id }) => id),
      first?.events.map((_, i) => i + 1),
    );
    const { items: lines } = await call(program, "GET", `/runs/${runId}/logs`);
    const log = JSON.stringify(lines);
    assert.match(log, /the log/);
    assert.ok(
      !log.includes(PASSWORD) && !log.includes("SVC_DATABASE_URL"),
      "workers are not given the address",
    );
    const { items: artifacts } = await call(program, "GET", `/runs/${runId}/artifacts`);
    assert.match(JSON.stringify(artifacts), /made\.txt/);
    assert.deepEqual(
      (await walk(program, `/jobs/${jobId}/runs`, 1)).map(({ run_id }) => run_id),
      runs.map(({ run }) => run.run_id).reverse(),
    );
    const headers = { "idempotency-key": "once" };
    const [one, again] = [
      await ask(program, "POST", `/jobs/${jobId}/runs`, { body: {}, headers }),
      await ask(program, "POST", `/jobs/${jobId}/runs`, { body: {}, headers }),
    ];
    assert.deepEqual([one.status, again.body], [202, one.body]);
    await ended(program, String(one.body.run_id));
  });

  test("a blueprint is added and run, and a run is cancelled", async () => {
    const launched = await call(program, "POST", "/blueprints/greeter/runs", {});
    assert.equal((await ended(program, String(launched.run_id))).run.status, "completed");
    const waiting = await startRun(program, await createJob(program, graph("waits", [sensor("wait")])));
    await happens(program, waiting, "agent_started");
    await call(program, "PATCH", `/runs/${waiting}`, { desired_state: "cancelled" });
    assert.equal((await ended(program, waiting)).run.status, "cancelled");
  });

  test("after kill -9 open runs go on, and streams resume where their readers were", async () => {
    const gate = gates.pipe("killed");
    const runId = await startRun(
      program,
      await createJob(program, graph("killed", [executor("in", ["cat", gate])])),
    );
    await happens(program, runId, "sandbox_job_started");
    const before = await walk(program, `/runs/${runId}/events`);
    await restart();
    await gates.open(gate);
    const path = `/runs/${runId}/events/stream`;
    const rest = await Array.fromAsync(frames(program, path, { "last-event-id": String(before.length) }));
    assert.deepEqual(
      rest.map(({ id }) => id),
      rest.map((_, i) => before.length + 1 + i),
    );
    assert.equal(rest.at(-1)?.event, "job_completed");
    assert.deepEqual((await walk(program, `/runs/${runId}/events`)).slice(0, before.length), before);
  });

  test("while the server is down it is not ready, and goes on behind a crash of it without having lost or repeated a run", async () => {
    const command = executor("in", ["sh", "-c", "sleep 0.2; echo done"]);
    const jobId = await createJob(program, graph("crowd", [command, router("out")], [["in", "out"]]));
    const keys = Array.from({ length: 40 }, (_, i) => `crowd-${i}`);
    const isUnderWay = Promise.withResolvers<void>();
    const clients = Promise.all(
      keys.map((key) =>
        until(`${key} is accepted`, async () => {
          const answer = await ask(program, "POST", `/jobs/${jobId}/runs`, {
            body: {},
            headers: { "idempotency-key": key },
          });
          assert.ok([202, 503].includes(answer.status), answer.text);
          if (answer.status === 503) return null;
          isUnderWay.resolve();
          return String(answer.body.run_id);
        }),
      ),
    );
    await Promise.race([isUnderWay.promise, clients]);
    const startAgain = await crashPostgres();
    const notReady = await until("it is not ready", async () => {
      const health = await ask(program, "GET", "/health");
      return health.status === 503 && health;
    });
    assert.match(String(notReady.body.detail), /cannot be used .* Check that it runs and can be reached\./);
    assert.ok(!notReady.text.includes(PASSWORD));
    for (const path of ["/nodes", "/system/summary"])
      assertProblem(await ask(program, "GET", path), 503, "unavailable");
    assert.equal((await call(program, "GET", "/metrics")).cluster, null);
    const metrics = await ask(program, "GET", "/metrics?format=prometheus");
    assert.ok(metrics.text.includes("troupe_available 0") && !metrics.text.includes("troupe_cluster_"));
    await startAgain();
    const runIds = await clients;
    assert.equal(new Set(runIds).size, keys.length);
    for (const runId of runIds) {
      const { run, events } = await ended(program, runId);
      assert.equal(run.status, "completed", JSON.stringify(run));
      assert.deepEqual(
        events.map(({ id }) => id),
        events.map((_, i) => i + 1),
      );
    }
    assert.deepEqual(
      new Set((await walk(program, `/jobs/${jobId}/runs`)).map(({ run_id }) => run_id)),
      new Set(runIds),
    );
    await until("it is ready", async () => (await ask(program, "GET", "/health")).status === 200);
    assert.ok(!program.output().includes(PASSWORD));
  });
});
