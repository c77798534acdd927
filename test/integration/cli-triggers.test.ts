// `troupe events emit`, `list` and `show`, and schedules that react to events, against the real program.

import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import type { JsonObject } from "../../src/engine/json.ts";
import { startHere } from "../support/command-line.ts";
import { createJob, ended } from "../support/gateway-api.ts";
import { graph, router } from "../support/graphs.ts";
import { startGatewayHere } from "../support/in-process.ts";
import type { Program } from "../support/program.ts";

let program: Program;
let jobId = "";
before(async () => {
  program = await startGatewayHere();
  jobId = await createJob(program, graph("quick", [router("in")]));
});
after(() => program.stop());

const troupe = (...args: string[]) => startHere([...args, "--url", program.api], program.home).ended;

async function done(...args: string[]): Promise<{ readonly out: string; readonly err: string }> {
  const { code, out, err } = await troupe(...args);
  assert.equal(code, 0, `troupe ${args.join(" ")}:\n${out}${err}`);
  return { out: out.trim(), err };
}
const json = async (...args: string[]) => JSON.parse((await done(...args, "--json")).out) as JsonObject;
async function refused(...args: string[]): Promise<string> {
  const { code, out, err } = await troupe(...args);
  assert.deepEqual([code, out], [2, ""], err);
  return err;
}
const rules = (type: string, ...more: string[]) => ["schedules", "create", jobId, "--on", type, ...more];

test("an event starts a run of the schedule whose conditions it meets, and is shown", async () => {
  const input = join(program.home, "input.json");
  await writeFile(input, JSON.stringify({ file: { $event: "/payload/path" } }));
  const where = [
    "--where",
    "/payload/size gt 10",
    "--where",
    "/payload/path prefix /srv/",
    "--where",
    "/payload/path exists",
  ];
  const made = await done(...rules("file.arrived", "--input", input, ...where));
  assert.match(
    made.err,
    /^When an event file\.arrived comes and \/payload\/size is above 10 and .*\. It waits for events\.\n$/,
  );
  const told = [
    "events",
    "emit",
    "file.arrived",
    "--set",
    "path=/srv/a.pdf",
    "--set",
    "size=11",
    "--id",
    "a.pdf",
  ];
  const { out } = await done(...told, "--source", "scanner");
  const [, runId = ""] = new RegExp(`^a\\.pdf\n +${made.out} +(run_\\w+)$`).exec(out) ?? [];
  assert.deepEqual((await ended(program, runId)).run.inputs, { file: "/srv/a.pdf" });
  assert.equal((await done(...told)).out, out, "the same id again has no effect");
  const small = await json("events", "emit", "file.arrived", "--set", "path=/srv/b.pdf", "--set", "size=9");
  assert.deepEqual(small.matched, []);
  const shown = await done("events", "show", "a.pdf");
  for (const part of [/^a\.pdf$/m, /type +file\.arrived/, /source +scanner/, /"size":11/, new RegExp(runId)])
    assert.match(shown.out, part);
  const list = await done("events", "list", "--type", "file.arrived");
  assert.match(list.out, new RegExp(`^a\\.pdf .* scanner +${runId}$`, "m"));
  assert.match(list.out, / - +nothing$/m);
  assert.match((await done("events", "list", "--type", "none")).err, /No events\./);
});

test("several events are debounced, throttled or batched, and a change names what is not wanted any more", async () => {
  for (const [option, value, field, wanted] of [
    ["--debounce", "30", "debounce_seconds", 30],
    ["--throttle", "60", "throttle_seconds", 60],
    ["--batch", "100/60", "batch", { max: 100, seconds: 60 }],
  ] as const) {
    const { event, schedule_id: id } = await json(...rules("many", option, value));
    assert.deepEqual((event as JsonObject)[field], wanted);
    const changed = await json("schedules", "update", String(id), option, "none");
    assert.equal((changed.event as JsonObject)[field], null);
    await done("schedules", "delete", String(id));
  }
});

test("a webhook's URL and secret are printed once; the secret and the path can be changed, and the webhook removed", async () => {
  const made = await done(...rules("pushed", "--webhook", "github"));
  const [, url = "", secret = ""] =
    /to (\S+)\nSecret, shown this once: (\S+)\n/.exec(made.err) ?? assert.fail(made.err);
  const send = async (by: string, to = url) => {
    const signature = createHmac("sha256", by).update("{}").digest("hex");
    const headers = { "content-type": "application/json", "x-hub-signature-256": `sha256=${signature}` };
    return (await fetch(to, { method: "POST", body: "{}", headers })).status;
  };
  assert.equal(await send(secret), 202);
  const shown = await done("schedules", "show", made.out);
  assert.ok(shown.out.includes(`github, ${url}`) && !shown.out.includes(secret), shown.out);
  const update = async (...args: string[]) =>
    (await json("schedules", "update", made.out, ...args)).webhook as JsonObject | null;
  assert.notEqual((await update("--new-webhook", "secret"))?.secret, secret);
  const file = join(program.home, "secret.txt");
  await writeFile(file, "my own\n");
  assert.equal((await update("--webhook-secret", file))?.secret, "my own");
  assert.equal(await send("my own"), 202);
  const moved = await update("--new-webhook", "path");
  assert.deepEqual([await send("my own"), moved?.secret], [404, "********"]);
  assert.equal(await update("--webhook", "none"), null);
  await writeFile(file, "two\nlines\n");
  assert.match(
    await refused(...rules("a", "--webhook", "github", "--webhook-secret", file)),
    /must hold one line/,
  );
  assert.match(await refused(...rules("a", "--webhook", "gitlab")), /github, stripe, hmac-sha256/);
});

test("the payload is a file with settings merged over it", async () => {
  const file = join(program.home, "payload.json");
  await writeFile(file, JSON.stringify({ a: 1, b: { c: 2 } }));
  const { payload } = await json("events", "emit", "payload", "--payload", file, "--set", "b.d=3");
  assert.deepEqual(payload, { a: 1, b: { c: 2, d: 3 } });
  await writeFile(file, "[1]");
  assert.deepEqual((await json("events", "emit", "payload", "--payload", file)).payload, [1]);
  assert.match(
    await refused("events", "emit", "payload", "--payload", file, "--set", "a=1"),
    /--payload is none/,
  );
});

test("what cannot be meant so is told before anything is sent", async () => {
  assert.match(await refused(...rules("a", "--where", "/payload is 1")), /PATH OP VALUE, with one of eq, ne/);
  assert.match(await refused(...rules("a", "--batch", "100")), /--batch 100\/60/);
  assert.match(await refused(...rules("a", "--cron", "@daily")), /--on .* for events/);
  assert.match(await refused("schedules", "create", jobId, "--throttle", "5"), /or --on TYPE/);
});
