// `troupe secrets rotate` on a PostgreSQL database of two programs, with a job of theirs still open: it works only while none of them
// runs, all of it happens or nothing, and afterwards no value needs the old key.

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { copyFile, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import pg from "pg";
import { ValueCipher } from "../../src/security/encryption.ts";
import { keyOfText, SecretKey } from "../../src/security/secret-key.ts";
import { start, startHere } from "../support/command-line.ts";
import { completed, createJob, ended, happens, startGateway, startRun } from "../support/gateway-api.ts";
import { executor, graph } from "../support/graphs.ts";
import { refusedStartHere } from "../support/in-process.ts";
import { END_CONNECTIONS, inPostgres, returnPostgres, takePostgres } from "../support/postgres.ts";
import { type Program, temporaryHome } from "../support/program.ts";
import { until } from "../support/until.ts";

const configuration = { api_key: "configured-secret-of-this-test" };
const digest = createHash("sha256").update(JSON.stringify(configuration)).digest("hex");
const NO_LEASES = "UPDATE nodes SET lease_until = 0";

let url = "";
const homes: string[] = [];
const home = (i: number) => homes[i]!;
const programs: Program[] = [];
before(async () => {
  url = await takePostgres();
  homes.push(await temporaryHome(), await temporaryHome());
});
after(async () => {
  await Promise.all(programs.map((program) => program.stop()));
  await returnPostgres(url);
  await Promise.all(homes.map((path) => rm(path, { recursive: true, force: true })));
});

const environment = () => ({ SVC_DATABASE_URL: url, SVC_NODE_LEASE_SECONDS: "10" });
const startAt = async (i: number) => {
  programs[i] = await startGateway({ home: home(i), env: { ...environment(), SVC_NODE_NAME: `node-${i}` } });
  return programs[i];
};
const rotate = (i: number) => startHere(["secrets", "rotate", "--json"], home(i), environment()).ended;
const keysAt = async (i: number) => (await readFile(join(home(i), "secret.key"), "utf8")).trim().split("\n");
const copyKey = (from: number, to: number) =>
  copyFile(join(home(from), "secret.key"), join(home(to), "secret.key"));

async function rows<Row extends object>(text: string): Promise<readonly Row[]> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return (await client.query<Row>(text)).rows;
  } finally {
    await client.end();
  }
}

/** The tables with a value that a key encrypted: those values begin with its id. */
async function tablesUnder(key: string): Promise<readonly string[]> {
  const { $sealed } = new ValueCipher(new SecretKey(keyOfText(key)!)).encrypt("");
  const tables = await rows<{ name: string }>(
    "SELECT tablename AS name FROM pg_tables WHERE schemaname = current_schema() ORDER BY tablename",
  );
  const found: string[] = [];
  for (const { name } of tables) {
    const text = `SELECT 1 FROM "${name}" AS t WHERE strpos(t::text, '${String($sealed).slice(0, 6)}') > 0 LIMIT 1`;
    if ((await rows(text)).length > 0) found.push(name);
  }
  return found;
}

describe("two programs with one database", { concurrency: 1 }, () => {
  let runId = "";
  let oldKey = "";

  test("keep their key while one of them runs, is connected, or has a lease", async () => {
    const a = await startAt(0);
    await copyKey(0, 1);
    await startAt(1);
    [oldKey = ""] = await keysAt(0);
    const release = join(home(0), "release");
    const says = `while [ ! -e '${release}' ]; do sleep 0.05; done; printenv SVC_BLUEPRINT_CONFIG_JSON | tr -d "\\n" | sha256sum`;
    const jobId = await createJob(a, graph("held", [executor("in", ["sh", "-c", says])]), {
      resolved_configuration: configuration,
    });
    runId = await startRun(a, jobId, { inputs: { password: "password-of-this-test" } });
    await happens(a, runId, "sandbox_job_started");
    assert.deepEqual(await tablesUnder(oldKey), ["job_definitions", "job_sources", "runs", "tasks"]);
    await a.kill();
    const refused = async (why: RegExp) => {
      const { code, err } = await rotate(0);
      assert.equal(code, 1);
      assert.match(err, why);
    };
    await refused(/stop them all first\..*wait until its lease is over: node-0 \(\d+ s\), node-1 \(\d+ s\)/);
    await programs[1]!.kill();
    await inPostgres(url, NO_LEASES);
    await inPostgres(url, "SET application_name = 'troupe'", () =>
      refused(/A program without a lease is connected .* stop it first/),
    );
  });

  test("have all values under the old key when it is killed in the middle, and work on together", async () => {
    await inPostgres(
      url,
      `CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(1000); RETURN NEW; END';
       CREATE TRIGGER slow AFTER UPDATE ON tasks FOR EACH ROW EXECUTE FUNCTION slow()`,
    );
    const cut = start(["secrets", "rotate"], home(0), environment());
    const early = cut.ended.then(({ out, err }) => assert.fail(`it ended early: ${out}${err}`));
    const isCut = until("the last table is rewritten", async () => {
      const text = "SELECT 1 FROM pg_stat_activity WHERE wait_event = 'PgSleep'";
      return (await rows(text)).length > 0;
    });
    await Promise.race([isCut, early]);
    early.catch(() => {});
    cut.child.kill("SIGKILL");
    await cut.ended;
    await inPostgres(url, END_CONNECTIONS);
    await inPostgres(url, "DROP TRIGGER slow ON tasks; DROP FUNCTION slow");
    const keys = await keysAt(0);
    assert.deepEqual([keys.length, keys[1]], [2, oldKey]);
    assert.deepEqual(await tablesUnder(keys[0]!), []);
    // The first has two keys now, and the other one has the old key.
    const [a, b] = [await startAt(0), await startAt(1)];
    const manifest = graph("sees", [
      executor("in", 'printenv SVC_BLUEPRINT_CONFIG_JSON | tr -d "\\n" | sha256sum'),
    ]);
    const jobId = await createJob(a, manifest, { resolved_configuration: configuration });
    const { events } = await completed(b, jobId);
    assert.ok(JSON.stringify(events).includes(digest));
    await Promise.all([a.kill(), b.kill()]);
    await inPostgres(url, NO_LEASES);
  });

  test("have all values under the new key afterwards; who has not got it is refused", async () => {
    const keys = await keysAt(0);
    const { code, out, err } = await rotate(0);
    assert.equal(code, 0, err);
    assert.match(err, /Copy secret\.key into the SVC_HOME of every other node/);
    const report = JSON.parse(out) as Record<string, number>;
    assert.ok(report.reencrypted! >= 5, out);
    assert.deepEqual(
      { ...report, reencrypted: 0 },
      { reencrypted: 0, current: 0, unreadable: 0, damaged_rows: 0 },
    );
    assert.deepEqual(await keysAt(0), keys.slice(0, 1));
    assert.deepEqual(await tablesUnder(oldKey), []);
    assert.deepEqual(await tablesUnder(keys[0]!), ["job_definitions", "job_sources", "runs", "tasks"]);
    const { text } = await refusedStartHere({ home: home(1), env: environment() });
    assert.match(text, /another secret key than this program has\. Copy secret\.key/);
    assert.match((await rotate(1)).err, /another secret key than this program has/);
    await copyKey(0, 1);
    const [a, b] = [await startAt(0), await startAt(1)];
    await writeFile(join(home(0), "release"), "");
    const { run, events } = await ended(b, runId);
    assert.equal(run.status, "completed", JSON.stringify(events));
    assert.ok(JSON.stringify(events).includes(digest));
    assert.ok(!JSON.stringify(events).includes("-of-this-test"));
    await Promise.all([a.stop(), b.stop()]);
  });
});
