// `troupe secrets rotate` on the home of a program that was killed with open jobs: afterwards no value needs the old
// key, and workers get what they got before.

import assert from "node:assert/strict";
import { createHash, createHmac } from "node:crypto";
import { readdirSync, readFileSync, statSync } from "node:fs";
import { readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { after, before, describe, test } from "node:test";
import type { JsonObject, JsonValue } from "../../src/engine/json.ts";
import { ValueCipher } from "../../src/security/encryption.ts";
import { keyOfText, SecretKey } from "../../src/security/secret-key.ts";
import { databaseFile, openHome } from "../../src/store/home.ts";
import { type Ended, start, startHere } from "../support/command-line.ts";
import { call, createJob, ended, happens, startGateway, startRun } from "../support/gateway-api.ts";
import { aggregator, executor, graph } from "../support/graphs.ts";
import { startGatewayHere } from "../support/in-process.ts";
import { temporaryHome } from "../support/program.ts";
import { rowsOf } from "../support/stored-rows.ts";
import { until } from "../support/until.ts";

const digestOf = (value: JsonObject) => createHash("sha256").update(JSON.stringify(value)).digest("hex");
const secretsOf = (name: string) => ({ api_key: `${name}-secret-of-this-test` });
const configuration = { ...secretsOf("configured"), deep: { password: "deep-secret-of-this-test" } };

const keysIn = async (home: string) => (await readFile(join(home, "secret.key"), "utf8")).trim().split("\n");

/** How the values that a key encrypted begin: with its id. */
function beginningOf(key: string): string {
  const { $sealed } = new ValueCipher(new SecretKey(keyOfText(key)!)).encrypt("");
  return `"$sealed":"${String($sealed).slice(0, 6)}`;
}

/** `table.column` of everything that holds a text. */
function placesOf(home: string, text: string): readonly string[] {
  const tables = rowsOf(home, "SELECT name FROM sqlite_schema WHERE type = 'table'");
  const places = tables.flatMap(({ name }) =>
    rowsOf(home, `SELECT * FROM "${String(name)}"`).flatMap((row) =>
      Object.keys(row)
        .filter((column) => String(row[column]).includes(text))
        .map((column) => `${String(name)}.${column}`),
    ),
  );
  return [...new Set(places)].sort();
}

function changeDatabase(home: string, sql: string): void {
  using database = new DatabaseSync(databaseFile(home));
  database.exec(sql);
}

/** Whether a file of the home holds a text. */
const filesWith = (home: string, text: string) =>
  readdirSync(home, { recursive: true, encoding: "utf8" }).filter((path) => {
    const facts = statSync(join(home, path), { throwIfNoEntry: false });
    return facts?.isFile() === true && readFileSync(join(home, path)).includes(text);
  });

const rotate = (home: string, env: Readonly<Record<string, string>> = {}): Promise<Ended> =>
  startHere(["secrets", "rotate", "--json"], home, env).ended;

const PLACES = [
  "dead_letters.message_json",
  "items.lines",
  "job_definitions.configuration_json",
  "job_sources.configuration_json",
  "messages.message_json",
  "runs.inputs_json",
  "schedules.webhook_json",
  "tasks.message_json",
];

describe("a home with open jobs, after its program was killed", { concurrency: 1 }, () => {
  let home = "";
  let runId = "";
  let oldKey = "";
  let webhook: JsonValue | undefined;

  before(async () => {
    home = await temporaryHome();
    const says =
      'echo "input $(sha256sum < "$SVC_INPUT_FILE")"; printenv SVC_BLUEPRINT_CONFIG_JSON | tr -d "\\n" | sha256sum';
    // Each file in the home stands for one that lets workers end.
    const release = `'${home}/release'`;
    const manifest = graph(
      "rotation",
      [
        executor("hold", `echo holding; while [ ! -e ${release} ]; do sleep 0.05; done; ${says}`),
        executor("fails", `[ -e ${release} ] || exit 3; ${says}`),
        aggregator("collects", { complete_run: false }),
        executor("sees", says),
      ],
      [
        ["hold", "collects"],
        ["collects", "sees"],
      ],
      { entrypoints: ["hold", "fails", "collects"], policies: { failure_policy: "continue" } },
    );
    await using program = await startGateway({ home });
    const jobId = await createJob(program, manifest, { resolved_configuration: configuration });
    const scheduled = { job_id: jobId, event: { type: "pushed" }, webhook: { scheme: "github" } };
    ({ webhook } = await call(program, "POST", "/schedules", scheduled));
    runId = await startRun(program, jobId, {
      inputs: {
        $entrypoints: {
          hold: [secretsOf("held"), secretsOf("waiting")],
          fails: [secretsOf("failed")],
          collects: [secretsOf("collected")],
        },
      },
    });
    await happens(program, runId, "message_dead_lettered");
    await happens(program, runId, ({ payload }) => JSON.stringify(payload ?? null).includes("holding"));
    const refused = await rotate(home);
    assert.equal(refused.code, 1);
    assert.match(refused.err, /in use by another Troupe\. Stop that one first/);
    await program.kill();
    await until("the killed program has released its home", () => {
      try {
        openHome(home).release();
        return true;
      } catch {
        return false;
      }
    });
    [oldKey = ""] = await keysIn(home);
    assert.deepEqual(placesOf(home, beginningOf(oldKey)), PLACES);
  });
  after(() => rm(home, { recursive: true, force: true }));

  test("can be killed while it is encrypted again: both keys are there, and the next call continues", async () => {
    // The tables' names give the order. This one never ends.
    const endless =
      "WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n";
    changeDatabase(home, `CREATE TRIGGER endless AFTER UPDATE ON tasks BEGIN ${endless}; END`);
    const cut = start(["secrets", "rotate"], home);
    const early = cut.ended.then(({ out, err }) => assert.fail(`it ended early: ${out}${err}`));
    try {
      // Not read before it is open: its first reader locks it for a moment.
      const isOpen = async () => (await keysIn(home)).length === 2;
      const isCut = until(
        "the runs are encrypted again",
        async () => (await isOpen()) && !placesOf(home, beginningOf(oldKey)).includes("runs.inputs_json"),
      );
      await Promise.race([isCut, early]);
    } finally {
      early.catch(() => {});
      cut.child.kill("SIGKILL");
      await cut.ended;
      changeDatabase(home, "DROP TRIGGER endless");
    }
    const keys = await keysIn(home);
    assert.deepEqual(keys.slice(1), [oldKey]);
    assert.deepEqual(placesOf(home, beginningOf(oldKey)), ["tasks.message_json"]);
    const { code, out, err } = await rotate(home);
    assert.equal(code, 0, err);
    const report = JSON.parse(out) as Record<string, number>;
    assert.equal(report.reencrypted, 1);
    assert.ok(report.current! >= 10, out);
    assert.deepEqual(await keysIn(home), keys.slice(0, 1));
  });

  test("holds nothing under the old key then, in no row and no other file", async () => {
    assert.deepEqual(placesOf(home, beginningOf(oldKey)), []);
    assert.deepEqual(placesOf(home, beginningOf((await keysIn(home))[0]!)), PLACES);
    // What the program deleted before may remain in unused parts of the database.
    const files = filesWith(home, beginningOf(oldKey).slice(-6)).filter((path) => path !== "troupe.db");
    assert.deepEqual(files, []);
    assert.deepEqual(filesWith(home, oldKey), []);
  });

  test("starts, and its workers get what they got before, dead letters included", async () => {
    await using program = await startGatewayHere({ home });
    const { items } = (await call(program, "GET", `/runs/${runId}/dead-letters`)) as {
      items: readonly JsonObject[];
    };
    assert.equal(items.length, 1);
    await writeFile(join(home, "release"), "");
    await call(program, "POST", `/runs/${runId}/dead-letters/retry`, {});
    const { run, events } = await ended(program, runId);
    const history = JSON.stringify(events);
    assert.equal(run.status, "completed", history);
    for (const name of ["held", "waiting", "failed"]) {
      assert.ok(history.includes(`input ${digestOf(secretsOf(name))}`), name);
    }
    assert.ok(history.includes(digestOf(configuration)), "the configuration");
    assert.ok(!/-secret-of-this-test/.test(history));
    assert.ok(!/damaged|checksum/.test(program.output()), program.output());
  });

  test("admits what is signed with a webhook's secret, at its path", async () => {
    const { path, secret } = webhook as { path: string; secret: string };
    await using program = await startGatewayHere({ home });
    const signature = createHmac("sha256", secret).update("{}").digest("hex");
    const answer = await fetch(program.url + path, {
      method: "POST",
      body: "{}",
      headers: { "content-type": "application/json", "x-hub-signature-256": `sha256=${signature}` },
    });
    assert.equal(answer.status, 202, await answer.text());
  });

  test("takes the first of the given keys, reports what none of them decrypts, and leaves secret.key alone", async () => {
    const [present = ""] = await keysIn(home);
    const other = Buffer.alloc(32, 7).toString("base64");
    const before = placesOf(home, beginningOf(present));
    const without = await rotate(home, { SVC_SECRET_KEY: other });
    assert.equal(without.code, 1);
    assert.match(without.err, /cannot be decrypted with any of the keys.*add it after the first/);
    assert.deepEqual(placesOf(home, beginningOf(present)), before);
    const { code, err } = await rotate(home, { SVC_SECRET_KEY: `${other},${present}` });
    assert.equal(code, 0, err);
    assert.match(err, /Backups made before/);
    assert.deepEqual(placesOf(home, beginningOf(present)), []);
    assert.deepEqual(placesOf(home, beginningOf(other)), before);
    assert.deepEqual(await keysIn(home), [present]);
  });
});

test("a home without a database is not made", async () => {
  const home = await temporaryHome();
  try {
    const { code, err } = await rotate(join(home, "none"));
    assert.equal(code, 1);
    assert.match(err, /has no database/);
    assert.deepEqual(readdirSync(home), []);
    assert.equal((await startHere(["secrets"], home).ended).code, 2);
    assert.equal((await startHere(["secrets", "rotated"], home).ended).code, 2);
  } finally {
    await rm(home, { recursive: true, force: true });
  }
});
