// Programs of two adjacent versions at one database: real programs, one of which has one more migration.

import assert from "node:assert/strict";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { after, before, test } from "node:test";
import type { JsonObject } from "../../src/engine/json.ts";
import { programVersion } from "../../src/lib/version.ts";
import { type Gates, makeGates } from "../support/gates.ts";
import { call, createJob, ended, happens, startGateway, startRun } from "../support/gateway-api.ts";
import { executor, graph } from "../support/graphs.ts";
import { ADDITIONS, nextVersion } from "../support/next-version.ts";
import { inPostgres, returnPostgres, takePostgres } from "../support/postgres.ts";
import { type Program, temporaryHome } from "../support/program.ts";
import { refusedStart } from "../support/refusal.ts";

const NEXT = "7.1.0";
const LATER = "8.0.0";

let gates: Gates;
let next: ReturnType<typeof nextVersion>;
before(async () => {
  gates = await makeGates();
  next = nextVersion(NEXT);
});
after(() => Promise.all([gates.remove(), rm(next.folder, { recursive: true })]));

async function held(at: Program, name: string) {
  const gate = gates.pipe(name);
  const policies = { recovery_mode: "cluster_recover" };
  const manifest = { ...graph("held", [executor("x", ["cat", gate])]), policies };
  const runId = await startRun(at, await createJob(at, manifest));
  await happens(at, runId, "sandbox_job_started");
  return { runId, open: () => gates.open(gate) };
}

/** Asks for all kinds of records, so often that what a program prepares is prepared. */
async function readAll(at: Program): Promise<void> {
  for (let n = 0; n < 4; n++)
    for (const path of ["jobs", "runs", "nodes", "operations", "blueprints", "schedules", "services"])
      await call(at, "GET", `/${path}`);
}

test("nodes of two adjacent versions work in one cluster, and take over each other's jobs", async (t) => {
  const url = await takePostgres();
  const homes = { old: await temporaryHome(), new: await temporaryHome() };
  const environmentOf = (name: string) => ({
    SVC_DATABASE_URL: url,
    SVC_SECRET_KEY: "00".repeat(32),
    SVC_NODE_NAME: name,
    SVC_NODE_LEASE_SECONDS: "10",
  });
  const startOld = () => startGateway({ home: homes.old, env: environmentOf("old") });
  const startNew = () =>
    startGateway({ home: homes.new, env: environmentOf("new"), launcher: next.launcher });
  const programs: Program[] = [];
  try {
    let old = await startOld();
    programs.push(old);
    const ofOld = await held(old, "old");
    await readAll(old);
    const fresh = await startNew();
    programs.push(fresh);
    await readAll(old);
    const { items } = await call(old, "GET", "/nodes");
    assert.deepEqual(
      (items as JsonObject[]).map(({ name, version, status }) => [name, version, status]),
      [
        ["new", NEXT, "ready"],
        ["old", programVersion(), "ready"],
      ],
    );
    for (const one of [old, fresh]) {
      const runId = await startRun(one, await createJob(one, graph("short", [executor("x", ["true"])])));
      for (const other of [old, fresh])
        assert.equal((await ended(other, runId)).run.status, "completed", one.output());
    }

    await old.kill();
    await happens(fresh, ofOld.runId, "job_recovered");
    await ofOld.open();
    assert.equal((await ended(fresh, ofOld.runId)).run.status, "completed");

    old = await startOld();
    programs.push(old);
    const ofNew = await held(fresh, "new");
    await fresh.kill();
    await happens(old, ofNew.runId, "job_recovered");
    await ofNew.open();
    assert.equal((await ended(old, ofNew.runId)).run.status, "completed");
    await readAll(old);
  } catch (error) {
    for (const program of programs) t.diagnostic(program.output());
    throw error;
  } finally {
    await Promise.all(programs.map((program) => program.kill()));
    await Promise.all(Object.values(homes).map((home) => rm(home, { recursive: true })));
    await inPostgres(url, "DROP SCHEMA public CASCADE; CREATE SCHEMA public");
    await returnPostgres(url);
  }
});

test("a version that admits only itself waits until no older one works, and then keeps older ones out", async (t) => {
  const later = nextVersion(LATER, true);
  const url = await takePostgres();
  const homes = { old: await temporaryHome(), later: await temporaryHome() };
  const env = { SVC_DATABASE_URL: url, SVC_SECRET_KEY: "00".repeat(32), SVC_NODE_NAME: "old" };
  const ofLater = { home: homes.later, env: { ...env, SVC_NODE_NAME: "later" }, launcher: later.launcher };
  const programs: Program[] = [];
  try {
    const old = await startGateway({ home: homes.old, env });
    programs.push(old);
    const { text } = await refusedStart(ofLater);
    assert.match(
      text,
      new RegExp(`${LATER} and newer, and older nodes work with it: old \\(${programVersion()}\\)`),
    );
    const runId = await startRun(old, await createJob(old, graph("short", [executor("x", ["true"])])));
    assert.equal((await ended(old, runId)).run.status, "completed", "nothing was changed");
    await old.stop();
    const fresh = await startGateway(ofLater);
    programs.push(fresh);
    assert.equal((await ended(fresh, runId)).run.status, "completed");
    const refused = await refusedStart({ home: homes.old, env });
    assert.match(refused.text, new RegExp(`is for Troupe ${LATER} and newer`));
  } catch (error) {
    for (const program of programs) t.diagnostic(program.output());
    throw error;
  } finally {
    await Promise.all(programs.map((program) => program.kill()));
    await Promise.all(
      [...Object.values(homes), later.folder].map((folder) => rm(folder, { recursive: true })),
    );
    await inPostgres(url, "DROP SCHEMA public CASCADE; CREATE SCHEMA public");
    await returnPostgres(url);
  }
});

test("a program goes on with a home that the next version has used", async () => {
  const home = await temporaryHome();
  const program = await startGateway({ home });
  const { runId, open } = await held(program, "home");
  await program.kill();
  const database = new DatabaseSync(join(home, "troupe.db"));
  const tables = database.prepare("SELECT name FROM sqlite_schema WHERE type = 'table'").all();
  database.exec(ADDITIONS.sqlite(tables.map(({ name }) => String(name))));
  database.close();
  const again = await startGateway({ home });
  try {
    await happens(again, runId, "job_recovered");
    await open();
    assert.equal((await ended(again, runId)).run.status, "completed");
    const jobId = await createJob(again, graph("short", [executor("x", ["true"])]));
    assert.equal((await ended(again, await startRun(again, jobId))).run.status, "completed");
    await readAll(again);
  } finally {
    await again.kill();
    await rm(home, { recursive: true });
  }
});
