// `troupe schedules` against the real program.

import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import type { JsonObject } from "../../src/engine/json.ts";
import { type TestCatalog, testCatalog } from "../support/blueprint-catalog.ts";
import { startHere } from "../support/command-line.ts";
import { createJob, ended } from "../support/gateway-api.ts";
import { graph, router } from "../support/graphs.ts";
import { startGatewayHere } from "../support/in-process.ts";
import type { Program } from "../support/program.ts";

let catalog: TestCatalog;
let program: Program;
let jobId = "";
before(async () => {
  catalog = await testCatalog();
  await catalog.write("digest", graph("digest", [router("in")]));
  program = await startGatewayHere({ env: { SVC_BLUEPRINT_CATALOG: catalog.folder } });
  jobId = await createJob(program, graph("quick", [router("in")]));
});
after(async () => {
  await program.stop();
  await catalog[Symbol.asyncDispose]();
});

const troupe = (...args: string[]) =>
  startHere(["schedules", ...args, "--url", program.api], program.home).ended;

/** Runs a command that must succeed. */
async function done(...args: string[]): Promise<{ readonly out: string; readonly err: string }> {
  const { code, out, err } = await troupe(...args);
  assert.equal(code, 0, `troupe schedules ${args.join(" ")}:\n${out}${err}`);
  return { out: out.trim(), err };
}
const json = async (...args: string[]): Promise<JsonObject> =>
  JSON.parse((await done(...args, "--json")).out) as JsonObject;

/** A command that must be refused as wrong usage. @returns what it says */
async function refused(...args: string[]): Promise<string> {
  const { code, out, err } = await troupe(...args);
  assert.deepEqual([code, out], [2, ""], err);
  return err;
}

/** A JSON file. @returns its path */
async function file(name: string, value: unknown): Promise<string> {
  const path = join(catalog.folder, name);
  await writeFile(path, JSON.stringify(value));
  return path;
}

describe("troupe schedules create", () => {
  test("prints the id alone, and to people the rule in plain English with its next time", async () => {
    const { out, err } = await done(
      "create",
      jobId,
      "--cron",
      "30 7 * * MON-FRI",
      "--timezone",
      "Europe/Berlin",
    );
    assert.match(out, /^schedule_[0-9a-z]+$/);
    assert.match(
      err,
      /^At 07:30, Monday through Friday \(Europe\/Berlin\)\. Next: \w{3}, .+\d{4}, \d\d:30:00/,
    );
  });

  test("takes every option to its field", async () => {
    const input = await file("input.json", { topic: "bees" });
    const made = await json(
      ...["create", jobId, "--cron", "0 9 * * *", "--cron", "@daily", "--timezone", "Asia/Tokyo"],
      ...["--jitter", "30", "--name", "Twice", "--input", input, "--overlap", "queue_one"],
      ...["--missed", "run_all", "--catchup-limit", "7", "--until", "2199-01-01T10:00:00Z"],
      ...["--max-runs", "12", "--pause-after-failures", "3"],
    );
    const expected = {
      name: "Twice",
      kind: "cron",
      job_id: jobId,
      cron: { expressions: ["0 9 * * *", "@daily"], timezone: "Asia/Tokyo", jitter_seconds: 30 },
      inputs: { topic: "bees" },
      overlap: "queue_one",
      missed: "run_all",
      catchup_limit: 7,
      until: "2199-01-01T10:00:00.000Z",
      max_runs: 12,
      pause_after_failures: 3,
    };
    for (const [name, value] of Object.entries(expected)) assert.deepEqual(made[name], value, name);
  });

  test("makes one for once, at a time or after a duration", async () => {
    const at = await json("create", jobId, "--at", "2199-12-01T07:30");
    assert.deepEqual(at.delayed, { at: new Date("2199-12-01T07:30").toISOString() });
    assert.equal(at.kind, "delayed");
    const later = await json("create", jobId, "--in", "3d");
    const { delayed, created_at: made } = later as { delayed: { at: string }; created_at: string };
    assert.equal(Math.round((Date.parse(delayed.at) - Date.parse(made)) / 60_000), 3 * 24 * 60);
  });

  test("makes the job of a blueprint, with settings over its configuration", async () => {
    const config = await file("config.json", { depth: 1, city: "Ghent" });
    const made = await json(
      "create",
      "--blueprint",
      "digest",
      "--cron",
      "@hourly",
      "--config",
      config,
      "--set",
      "depth=3",
    );
    assert.deepEqual(made.target, { blueprint_id: "digest" });
    assert.match(String(made.job_id), /^job_/);
    assert.deepEqual(made.config_overrides, { depth: 3, city: "Ghent" });
  });

  test("says what to give when there is no target or no rule, or two of them", async () => {
    const cron = ["--cron", "@daily"];
    assert.match(await refused("create", ...cron), /id of a job or --blueprint ID, one of them/);
    assert.match(await refused("create", jobId, "--blueprint", "digest", ...cron), /one of them/);
    assert.match(await refused("create", "run_1", ...cron), /run_1 is the id of a run.+`troupe jobs`/);
    assert.match(await refused("create", jobId), /--cron EXPR, --at TIME, --in DURATION or --on TYPE/);
    assert.match(await refused("create", jobId, "--timezone", "UTC"), /--cron EXPR, --at TIME/);
    assert.match(await refused("create", jobId, "--in", "2h", ...cron), /--at and --in are for one run/);
    assert.match(
      await refused("create", jobId, "--in", "2h", "--at", "2199-01-01T00:00Z"),
      /give one of them/,
    );
  });

  test("names the option whose value is none, before anything is sent", async () => {
    const wrong = [
      ["--at", "tomorrow", /--at: "tomorrow" is not a time/],
      ["--at", "2199-13-45T07:30", /--at: .+ is not a time/],
      ["--at", "2199-02-29T07:30", /--at: .+ is not a time/],
      ["--in", "soon", /--in: "soon" is not a duration/],
      ["--jitter", "x", /--jitter needs a whole number of seconds/],
      ["--overlap", "queue", /--overlap: "queue" is not one of skip, allow, queue_one, cancel_previous/],
      ["--missed", "all", /--missed: "all" is not one of/],
      ["--catchup-limit", "101", /--catchup-limit needs a whole number from 1 to 100/],
      ["--until", "never", /--until: "never" is not a time/],
      ["--max-runs", "0", /--max-runs needs a whole number/],
      ["--pause-after-failures", "x", /--pause-after-failures needs/],
    ] as const;
    for (const [option, value, message] of wrong) {
      const rule = option === "--at" || option === "--in" ? [] : ["--cron", "@daily"];
      assert.match(await refused("create", jobId, ...rule, option, value), message);
    }
  });

  test("shows what the gateway finds wrong with the rule", async () => {
    const err = await refused("create", jobId, "--cron", "99 9 * * *", "--timezone", "Mars/Base");
    assert.match(err, /99 9 \* \* \*/);
    assert.match(err, /Mars\/Base is no IANA time zone/);
  });
});

describe("troupe schedules", () => {
  test("list has a line for each, and takes filters", async () => {
    const paused = await json("create", jobId, "--cron", "@weekly", "--name", "Weekly report");
    const id = String(paused.schedule_id);
    await done("pause", id);
    const { out } = await done("list", "--status", "paused", "--kind", "cron", "--job", jobId);
    const [head, line, ...others] = out.split("\n");
    assert.match(head ?? "", /^SCHEDULE +STATUS +NEXT RUN +LAST ONE +NAME +RULE$/);
    assert.match(line ?? "", new RegExp(`^${id} +paused +- +- +Weekly report +At 00:00.+\\(UTC\\)$`));
    assert.deepEqual(others, []);
    await done("resume", id);
    assert.match((await done("--all")).out, new RegExp(`^${id} +active +in \\d.+Weekly report`, "m"));
    assert.equal(JSON.parse((await done("list", "--status", "paused", "--json")).out).length, 0);
    assert.match((await done("list", "--job", "job_none")).err, /No schedules/);
    assert.match(
      await refused("list", "--kind", "none"),
      /--kind: "none" is not one of cron, delayed, event/,
    );
  });

  test("dispatch prints the id of the run that it starts, and show tells of it", async () => {
    const id = (await done("create", jobId, "--cron", "0 9 * * *", "--jitter", "600", "--name", "Nine")).out;
    const { out: runId, err } = await done("dispatch", id);
    assert.match(err, /troupe events run_\S+ --follow/);
    const { run } = await ended(program, runId);
    assert.deepEqual([run.status, run.trigger], ["completed", { kind: "schedule", id }]);
    const { out } = await done("show", id);
    assert.match(out, new RegExp(`^${id} active\n`));
    assert.match(out, /^ {2}rule +At 09:00 \(UTC\), up to 600 s later$/m);
    assert.equal(out.match(/^ {2}(?:next)? +\w{3}, \d+ \w+ \d{4}, \d\d:\d\d:\d\d \S+$/gm)?.length, 5);
    assert.match(out, /^ {2}next start +\w{3}, \d+ /m);
    assert.match(out, new RegExp(`^ {2}last +dispatched, of .+: ${runId}$`, "m"));
    assert.match(out, /^ {2}counts +1 dispatched, 0 skipped, 0 missed, 0 failed$/m);
  });

  test("update changes what its options say and nothing else; none takes a limit away", async () => {
    const options = ["--max-runs", "5", "--until", "2199-01-01T00:00:00Z", "--pause-after-failures", "2"];
    const id = (await done("create", jobId, "--cron", "0 9 * * *", "--timezone", "Asia/Tokyo", ...options))
      .out;
    const { out, err } = await done("update", id, "--cron", "0 8 * * *", "--max-runs", "none");
    assert.equal(out, `${id} changed, revision 2`);
    assert.match(err, /^At 08:00 \(Asia\/Tokyo\)\. Next: /);
    const found = await json(
      "update",
      id,
      "--until",
      "none",
      "--pause-after-failures",
      "none",
      "--overlap",
      "allow",
    );
    const { cron, max_runs, until, pause_after_failures, overlap } = found;
    assert.deepEqual(
      [cron, max_runs, until, pause_after_failures, overlap],
      [{ expressions: ["0 8 * * *"], timezone: "Asia/Tokyo", jitter_seconds: 0 }, null, null, null, "allow"],
    );
    assert.match(await refused("update", id), /Nothing to change/);
    assert.match(await refused("update", id, "--in", "2h"), /the schedule is cron and stays it/);
  });

  test("delete removes it, and then nothing finds it", async () => {
    const id = (await done("create", jobId, "--in", "2h")).out;
    assert.equal((await done("delete", id)).out, `${id} deleted`);
    for (const name of ["show", "pause", "resume", "dispatch", "delete"]) {
      const { code, err } = await troupe(name, id);
      assert.equal(code, 1, name);
      assert.match(err, /`troupe schedules` lists the schedules/, name);
    }
  });
});
