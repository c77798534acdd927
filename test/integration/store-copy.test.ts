// `troupe store copy`: a home's SQLite database in an empty PostgreSQL database, and the same home goes on with it.

import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { after, before, describe, test } from "node:test";
import type { JsonObject } from "../../src/engine/json.ts";
import { databaseFile } from "../../src/store/home.ts";
import { openPostgres } from "../../src/store/postgres/database.ts";
import { startHere } from "../support/command-line.ts";
import { type Gates, makeGates } from "../support/gates.ts";
import { ask, call, completed, createJob, ended, happens, startRun, walk } from "../support/gateway-api.ts";
import { executor, graph, router } from "../support/graphs.ts";
import { refusedStartHere, startGatewayHere } from "../support/in-process.ts";
import { inPostgres, returnPostgres, takePostgres } from "../support/postgres.ts";
import { type Program, temporaryHome } from "../support/program.ts";

let home: string;
let url: string;
let gates: Gates;
/** A run that is open while the database is copied, and what it waits for. */
let open: string;
let gate: string;
let jobId: string;
/** What was answered before. */
let answers: readonly JsonObject[];

const headers = { "idempotency-key": "before-the-copy" };
const startAgain = (program: Program) => ask(program, "POST", `/jobs/${jobId}/runs`, { body: {}, headers });
const copy = (...args: readonly string[]) => startHere(["store", "copy", "--json", ...args], home).ended;

/** Everything that has ended, as a client sees it. */
async function seen(program: Program): Promise<readonly JsonObject[]> {
  const runs = (await walk(program, "/runs")).filter(({ run_id }) => run_id !== open);
  const bodies: JsonObject[] = [];
  for (const { run_id: id } of runs) {
    for (const path of ["", "/events", "/logs", "/artifacts", "/timeline"])
      bodies.push(await call(program, "GET", `/runs/${String(id)}${path}`));
  }
  return [...runs, ...bodies, ...(await walk(program, "/bundles"))];
}

before(async () => {
  [home, url, gates] = await Promise.all([temporaryHome(), takePostgres(), makeGates()]);
  gate = gates.pipe("open");
  await withRuns();
  addRows();
});

/** Of several portions. */
const ROWS = 1_234;

function addRows(): void {
  using database = new DatabaseSync(databaseFile(home));
  database.exec(`WITH RECURSIVE numbers AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM numbers WHERE n < ${ROWS})
    INSERT INTO idempotency SELECT 'of the test', n, '', 200, '{}', 'a body', 9e12 FROM numbers`);
}

async function withRuns(): Promise<void> {
  await using program = await startGatewayHere({ home });
  const script = 'echo "the log\u0001 ü"; printf made > "$SVC_OUTPUT_DIR/made.txt"';
  const secret = { resolved_configuration: { api_key: "secret-of-this-test" } };
  jobId = await createJob(program, graph("worker", [executor("in", ["sh", "-c", script])]), secret);
  await completed(program, jobId);
  const once = await startAgain(program);
  await ended(program, String(once.body.run_id));
  for (let i = 0; i < 20; i++)
    await completed(program, await createJob(program, graph(`small-${i}`, [router("in")])));
  const waits = graph("waits", [executor("in", ["cat", gate]), router("out")], [["in", "out"]]);
  open = await startRun(program, await createJob(program, waits));
  await happens(program, open, "sandbox_job_started");
  answers = await seen(program);
}

after(async () => {
  await Promise.all([rm(home, { recursive: true, force: true }), returnPostgres(url), gates.remove()]);
});

describe("troupe store copy", { concurrency: 1 }, () => {
  test("copies nothing, and reports it, when the target has not what was sent", async () => {
    const refused = await takePostgres();
    await (await openPostgres(refused)).close();
    await inPostgres(
      refused,
      `CREATE FUNCTION change() RETURNS trigger LANGUAGE plpgsql AS
         'BEGIN NEW.lines := NEW.lines || '' ''; RETURN NEW; END';
       CREATE TRIGGER changes BEFORE INSERT ON events FOR EACH ROW EXECUTE FUNCTION change()`,
    );
    const { code, err } = await copy("--to", refused);
    assert.equal(code, 1);
    assert.match(err, /Table events is not in the target as it was read/);
    assert.ok(!existsSync(join(home, "troupe.db-copied")));
    await inPostgres(refused, "DROP FUNCTION change CASCADE");
    await returnPostgres(refused);
  });

  test("refuses a home of another version, and says which version copies it", async () => {
    const other = await temporaryHome();
    await (await startGatewayHere({ home: other })).stop();
    const database = new DatabaseSync(databaseFile(other));
    for (const [change, says] of [
      [
        "INSERT INTO schema_migrations VALUES ('9001-later.sql')",
        /newer version .*9001-later\.sql.* with that version/,
      ],
      [
        "DELETE FROM schema_migrations WHERE name >= '0015'",
        /older version .* Start this version with it once/,
      ],
    ] as const) {
      database.exec(change);
      const { code, err } = await startHere(["store", "copy"], other, { SVC_DATABASE_URL: url }).ended;
      assert.equal(code, 1);
      assert.match(err, says);
    }
    database.close();
    await rm(other, { recursive: true });
  });

  test("copies every row into an empty database, and leaves the source as it was", async () => {
    const before = readFileSync(databaseFile(home));
    const { code, out, err } = await copy("--to", url);
    assert.equal(code, 0, err);
    const { rows, tables } = JSON.parse(out);
    assert.ok(rows > 100 && tables.length >= 15, out);
    const counted = new Map(tables.map(({ name, rows }: JsonObject) => [name, rows]));
    assert.deepEqual([counted.get("runs"), counted.get("idempotency")], [23, ROWS + 1]);
    assert.deepEqual(readFileSync(databaseFile(home)), before);
  });

  test("refuses a target that is not empty, and a home that was copied", async () => {
    const again = await copy("--to", url);
    assert.match(again.err, /was copied to .* before: start with that SVC_DATABASE_URL/);
    const other = await temporaryHome();
    await (await startGatewayHere({ home: other })).stop();
    const second = await startHere(["store", "copy"], other, { SVC_DATABASE_URL: url }).ended;
    assert.equal(second.code, 1);
    assert.match(second.err, /is not empty: table \w+ has rows/);
    await rm(other, { recursive: true });
  });

  test("from then on the home is used with its copy only", async () => {
    const old = await refusedStartHere({ home, args: ["up"] });
    assert.match(old.text, /was copied to .*: set SVC_DATABASE_URL/);
    const other = await takePostgres();
    const wrong = await refusedStartHere({ home, args: ["up"], env: { SVC_DATABASE_URL: other } });
    assert.match(wrong.text, /is not that copy\. Correct SVC_DATABASE_URL/);
    await returnPostgres(other);
  });

  test("the same home goes on with the copy: what has ended is the same, and what is open ends", async () => {
    await using program = await startGatewayHere({ home, env: { SVC_DATABASE_URL: url } });
    assert.deepEqual(await seen(program), answers);
    assert.equal(
      (await startAgain(program)).body.run_id,
      (await walk(program, `/jobs/${jobId}/runs`))[0]?.run_id,
    );
    await gates.open(gate);
    const { run, events } = await ended(program, open);
    assert.equal(run.status, "completed");
    assert.deepEqual(
      events.map(({ id }) => id),
      events.map((_, i) => i + 1),
    );
    await completed(program, jobId);
  });
});
