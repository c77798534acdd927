// The gateway's commands as people use them: launch, bundles, jobs, runs; against the real program.

import assert from "node:assert/strict";
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, before, describe, test } from "node:test";
import { zipOf } from "../support/bundle-files.ts";
import { oneCommand, start, startHere } from "../support/command-line.ts";
import { happens, runtimeApiOf, startGateway } from "../support/gateway-api.ts";
import type { Program } from "../support/program.ts";

const ESCAPE = "\x1b";
const RUN_ID = /run_[0-9a-z]{8,}/;

let folder = "";
before(async () => {
  folder = await mkdtemp(join(tmpdir(), "troupe cli gateway "));
});
after(() => rm(folder, { recursive: true, force: true }));

/** Writes a file below the test's folder. @returns its path */
async function file(name: string, content: string | Uint8Array): Promise<string> {
  const path = join(folder, name);
  await mkdir(dirname(path), { recursive: true });
  await writeFile(path, content);
  return path;
}

/** A bundle's folder with one command in it. @returns its path */
async function bundle(name: string, command: string): Promise<string> {
  await file(`${name}/payloads/hello.txt`, "hello\n");
  return dirname(await file(`${name}/manifest.json`, oneCommand(name, command)));
}

const runIdIn = (text: string) => RUN_ID.exec(text)?.[0] ?? assert.fail(`no run id in: ${text}`);

/** What a command waits for with `while [ ! -e gate ]`, so that the test decides when it ends. */
const waitingFor = (gate: string) => `echo started; while [ ! -e '${gate}' ]; do sleep 0.05; done`;

describe("with a gateway that is up", () => {
  let program: Program;
  before(async () => {
    program = await startGateway({ env: { SVC_EXECUTOR_MAX_CONCURRENCY: "4" } });
  });
  after(() => program.stop());

  const troupe = (...args: string[]) => startHere([...args, "--url", program.api], program.home);
  const troupeProcess = (...args: string[]) => start([...args, "--url", program.api], program.home);
  /** Runs a command that must succeed. @returns what it printed on stdout */
  const done = async (...args: string[]): Promise<string> => {
    const { code, out, err } = await troupe(...args).ended;
    assert.equal(code, 0, `troupe ${args.join(" ")}:\n${out}${err}`);
    return out;
  };
  const json = async (...args: string[]) => JSON.parse(await done(...args, "--json"));
  const jsonLines = async (...args: string[]) =>
    (await done(...args, "--json"))
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line));

  test("launch uploads, runs, prints plain lines as things happen, then outputs with working links", async () => {
    const command = `printf 'reading \\033[31mred\\n'; echo made > "$SVC_OUTPUT_DIR/final_artifact.txt"; echo '{"complete_run":{"words":3}}'`;
    const { code, out, err } = await troupe("launch", await bundle("plain", command)).ended;
    assert.equal(code, 0, out + err);
    assert.match(out, /^Bundle bundle_[0-9a-f]+\nJob job_[0-9a-z]+\nRun run_[0-9a-z]+\n/);
    assert.match(out, /work +reading red\n/);
    assert.match(out, /run_[0-9a-z]+ completed\nResult\n {2}\{\n {4}"words": 3\n/);
    assert.ok(!out.includes(ESCAPE));
    const link = /final_artifact\.txt +5 B +(http:\S+)/.exec(out)?.[1] ?? assert.fail(out);
    assert.equal(await (await fetch(link)).text(), "made\n");
  });

  test("run takes a manifest alone, too, and prints the same", async () => {
    const manifest = await file(
      "alone.json",
      oneCommand("alone", `printf '{"complete_run":%s}' "$(cat "$SVC_INPUT_FILE")"`),
    );
    const input = await file("alone-input.json", '{"city":"Ghent"}');
    const found = await json("run", manifest, "--input", input);
    assert.deepEqual([found.status, found.result], ["completed", { city: "Ghent" }]);
    assert.match(await done("run", manifest), /^Bundle bundle_[0-9a-f]+\nJob job_\S+\nRun run_\S+\n/);
  });

  test("launch --json is one document; inputs, configuration and name arrive", async () => {
    const command = `printf '{"complete_run":{"input":%s,"config":%s}}' "$(cat "$SVC_INPUT_FILE")" "$SVC_BLUEPRINT_CONFIG_JSON"`;
    const target = await bundle("told", command);
    const input = await file("told-input.json", '{"city":"Ghent"}');
    const config = await file("told-config.json", '{"depth":3}');
    const found = await json("launch", target, "--input", input, "--config", config, "--name", "Told");
    assert.equal(found.status, "completed");
    assert.deepEqual(found.result.input, { city: "Ghent" });
    assert.equal(found.result.config.depth, 3);
    assert.match(found.bundle_id, /^bundle_/);
    assert.equal((await json("jobs", "show", found.job_id)).name, "Told");
  });

  test("launch --save copies the outputs; runs save does so later", async () => {
    const command = `mkdir -p "$SVC_OUTPUT_DIR/a"; echo one > "$SVC_OUTPUT_DIR/a/one.txt"; echo two > "$SVC_OUTPUT_DIR/two.txt"`;
    const saved = join(folder, "saved at once");
    const target = await bundle("saving", command);
    const { run_id: id, outputs } = await json("launch", target, "--save", saved);
    assert.equal(await readFile(join(saved, "a/one.txt"), "utf8"), "one\n");
    assert.deepEqual((await readdir(saved)).sort(), ["a", "two.txt"]);
    assert.ok(outputs.every(({ place }: { place: string }) => place.startsWith(saved)));
    const later = join(folder, "saved later");
    assert.deepEqual((await done("runs", "save", id, later)).trim().split("\n").sort(), [
      join(later, "a/one.txt"),
      join(later, "two.txt"),
    ]);
    assert.equal(await readFile(join(later, "two.txt"), "utf8"), "two\n");
    const nothing = troupe("launch", await bundle("none", "true"), "--save", join(folder, "nothing"));
    assert.match((await nothing.ended).err, /Nothing was saved: the run has left no files/);
  });

  test("a folder that holds anything is not saved into, and no run is started for it, unless --force is given", async () => {
    const target = await bundle("careful", 'echo run > "$SVC_OUTPUT_DIR/.bashrc"');
    const saved = join(folder, "my own");
    const id = (await json("launch", target, "--save", saved)).run_id;
    await writeFile(join(saved, ".bashrc"), "mine\n");
    const runs = async () => (await json("runs", "list", "--all")).length;
    const before = await runs();
    for (const words of [
      ["runs", "save", id, saved],
      ["runs", "save", id, saved, "--all"],
      ["launch", target, "--save", saved],
    ]) {
      const { code, err } = await troupe(...words).ended;
      assert.equal(code, 2, err);
      assert.match(err, /is not empty.*--force/);
    }
    assert.equal(await runs(), before);
    assert.equal(await readFile(join(saved, ".bashrc"), "utf8"), "mine\n");
    await done("runs", "save", id, saved, "--force");
    assert.equal(await readFile(join(saved, ".bashrc"), "utf8"), "run\n");
  });

  test("launch of a run that fails exits with 1 and tells what went wrong and what to do", async () => {
    const { code, out } = await troupe("launch", await bundle("failing", "echo broken >&2; exit 7")).ended;
    assert.equal(code, 1);
    assert.match(out, /run_\S+ failed\nexecutor\.exit_nonzero: /);
    assert.match(out, / \| broken\n/);
    assert.match(out, /What to do: /);
    const id = runIdIn(out);
    const result = await troupe("runs", "result", id).ended;
    assert.deepEqual([result.code, result.out], [1, ""]);
    assert.match(result.err, /executor\.exit_nonzero/);
    assert.equal((await troupe("runs", "wait", id).ended).code, 1);
  });

  test("a bundle that is wrong is refused with exit code 2, each error on its own line with its path", async () => {
    await file("wrong/manifest.json", '{"manifest_version":"1.0","graph_id":"x","nodes":[{"node_id":""}]}');
    const { code, out, err } = await troupe("launch", join(folder, "wrong")).ended;
    assert.deepEqual([code, out], [2, ""]);
    assert.match(err, /^troupe: .*\(HTTP 422\)\n/);
    assert.match(err, /^ {2}\S*\/entrypoints: /m);
    assert.match(err, /^ {2}\S*\/nodes\/0\/node_id: /m);
    const empty = await troupe("bundles", "upload", dirname(await file("empty/readme", ""))).ended;
    assert.equal(empty.code, 2);
    assert.match(empty.err, /holds no manifest\.json; give the folder of a bundle/);
    const nothing = await troupe("launch", join(folder, "nothing here")).ended;
    assert.equal(nothing.code, 2);
    assert.match(nothing.err, /does not exist; give the folder of a bundle, a zip of it, or a manifest/);
    const noJson = await file("broken.json", "{");
    const input = await troupe("launch", join(folder, "wrong"), "--input", noJson).ended;
    assert.equal(input.code, 2);
    assert.match(input.err, /broken\.json is not valid JSON/);
  });

  test("the same bundle has one id, as a folder and as a zip; show and delete take it", async () => {
    const target = await bundle("twice", "true");
    const manifest = await readFile(join(target, "manifest.json"), "utf8");
    const zip = await zipOf({ "manifest.json": manifest, "payloads/hello.txt": "hello\n" }, "top");
    const id = (await done("bundles", "upload", target)).trim();
    assert.match(id, /^bundle_[0-9a-f]+$/);
    assert.equal((await json("bundles", "upload", await file("twice.zip", zip))).bundle_id, id);
    assert.match(await done("bundles", "show", id), /graph +twice/);
    assert.ok((await json("bundles")).some((found: { bundle_id: string }) => found.bundle_id === id));
    const jobId = (await done("jobs", "create", id)).trim();
    const used = await troupe("bundles", "delete", id).ended;
    assert.equal(used.code, 1);
    assert.match(used.err, /\(HTTP 409\)/);
    await done("jobs", "delete", jobId);
    assert.equal(await done("bundles", "delete", id), `${id} deleted\n`);
    assert.equal((await troupe("bundles", "show", id).ended).code, 1);
  });

  test("a job's configuration can be changed, its secrets are not shown, and it can be deleted", async () => {
    const bundleId = (await done("bundles", "upload", await bundle("kept", "sleep 600"))).trim();
    const config = '{"depth":3,"api_key":"swordfish-1234"}';
    const created = start(
      ["jobs", "create", bundleId, "--name", "Kept", "--config", "-", "--url", program.api],
      program.home,
      {},
      config,
    );
    const jobId = (await created.ended).out.trim();
    const patch = await file("patch.json", '{"depth":null,"width":4}');
    assert.equal(
      await done("jobs", "update", jobId, "--config", patch, "--name", "Wide"),
      `${jobId} changed, revision 2\n`,
    );
    const shown = await done("jobs", "show", jobId, "--full");
    assert.match(shown, /name +Wide/);
    assert.match(shown, /config +\{"api_key":"\*{8}","width":4\}/);
    assert.match(shown, /work +executor/);
    assert.ok(!shown.includes("swordfish"));
    const nothing = await troupe("jobs", "update", jobId).ended;
    assert.equal(nothing.code, 2);
    assert.match(nothing.err, /Give --name NAME, --config FILE or --weight N/);
    const runId = (await done("runs", "start", jobId)).trim();
    await happens(program, runId, "sandbox_job_started");
    const open = await json("jobs", "--open");
    assert.ok(open.some((job: { job_id: string }) => job.job_id === jobId));
    const refused = await troupe("jobs", "delete", jobId).ended;
    assert.equal(refused.code, 1);
    assert.match(refused.err, /\(HTTP 409\)/);
    assert.equal(await done("jobs", "delete", jobId, "--force"), `${jobId} deleted\n`);
    assert.equal((await troupe("jobs", "show", jobId).ended).code, 1);
  });

  test("the runs of a job that does not exist are a mistake, whose next step is a command", async () => {
    const { code, out, err } = await troupe("runs", "list", "--job", "nope").ended;
    assert.deepEqual([code, out], [1, ""]);
    assert.match(err, /Job nope .*\n`troupe jobs list`/);
    const blueprint = await troupe("blueprint", "show", "nope").ended;
    assert.match(blueprint.err, /nope/);
    for (const text of [err, blueprint.err]) assert.doesNotMatch(text, /\/api\/v1/);
  });

  test("lists are limited, filtered and newest first, as a table or as one document", async () => {
    const first = await json("launch", await bundle("listed", "true"));
    const second = await json("runs", "start", first.job_id, "--watch");
    const all = await json("runs", "--job", first.job_id);
    assert.deepEqual(
      all.map((run: { run_id: string }) => run.run_id),
      [second.run_id, first.run_id],
    );
    const limited = await troupe("runs", "list", "--job", first.job_id, "--limit", "1").ended;
    const lines = limited.out.trim().split("\n");
    assert.equal(lines.length, 2);
    assert.ok(lines[1]?.startsWith(second.run_id));
    assert.equal(limited.err, "The newest 1; --all shows all.\n");
    assert.deepEqual(await json("runs", "--job", first.job_id, "--status", "failed"), []);
    const again = await json("runs", "rerun", first.run_id, "--watch");
    const found = await json("runs", "--search", first.job_id, "--limit", "1");
    assert.deepEqual([found[0].run_id, found[0].rerun_of], [again.run_id, first.run_id]);
    const wrong = await troupe("runs", "--status", "done").ended;
    assert.equal(wrong.code, 2);
    assert.match(wrong.err, /"done" is not one of pending, queued, running, /);
    const open = await json("jobs", "--open", "--all");
    assert.ok(!open.some((job: { job_id: string }) => job.job_id === first.job_id));
    assert.match(await done("jobs", "--limit", "1"), /^JOB .*\njob_\S+ +ready +completed .*\n$/);
    assert.equal((await troupe("jobs", "--limit", "0").ended).code, 2);
  });

  test("events, logs, timeline, result and files of a run can be read when it has ended", async () => {
    const command = `echo one; echo WARN two >&2; echo x > "$SVC_OUTPUT_DIR/kept.txt"; echo '{"complete_run":{"a":1}}'`;
    const { run_id: id } = await json("launch", await bundle("read", command));
    const events = await jsonLines("runs", "events", id);
    assert.deepEqual(
      events.map((event) => event.id),
      events.map((_, i) => i + 1),
    );
    assert.equal(events.at(-1).type, "job_completed");
    assert.deepEqual(await jsonLines("events", id, "--follow"), events);
    const logs = await done("runs", "logs", id);
    for (const line of [/work +one\n/, /work +WARN two\n/]) assert.match(logs, line);
    assert.deepEqual(
      (await jsonLines("runs", "logs", id, "--level", "warn")).map(({ message }) => message),
      ["WARN two"],
    );
    assert.equal((await troupe("runs", "logs", id, "--level", "loud").ended).code, 2);
    assert.match(await done("runs", "timeline", id), /run +The run completed \(.+\)\n$/);
    assert.deepEqual(JSON.parse(await done("runs", "result", id)), { a: 1 });
    assert.equal((await json("runs", "result", id)).status, "completed");
    const [artifact] = await json("runs", "artifacts", id);
    assert.equal(artifact.name, "kept.txt");
    assert.match(await done("runs", "artifacts", id), /^kept\.txt +\S+ +work +2 B +http:\S+$/m);
    const shown = await done("runs", "show", id);
    assert.match(shown, /progress +1 of 1 agent done/);
    assert.match(
      shown,
      /recorded +\d+ events, .*\n(?:.*\n)* +evidence +events_jsonl, .* in http:\S+\/artifacts\/$/m,
    );
  });

  test("a run's evidence is listed and saved apart from its files, and only when it is asked for", async () => {
    const { run_id: id } = await json("launch", await bundle("told", 'echo x > "$SVC_OUTPUT_DIR/kept.txt"'));
    const listed: { artifact_id: string; kind: string }[] = await json("runs", "artifacts", id, "--evidence");
    assert.ok(listed.some(({ artifact_id }) => artifact_id === "logs_jsonl"));
    assert.ok(listed.every(({ kind }) => kind === "evidence"));
    assert.match(
      await done("runs", "artifacts", id, "--evidence"),
      /^events\.jsonl +events_jsonl .* http:\S+$/m,
    );
    const plain = join(folder, "saved plain");
    await done("runs", "save", id, plain);
    assert.deepEqual(await readdir(plain), ["kept.txt"]);
    const whole = join(folder, "saved whole");
    await done("runs", "save", id, whole, "--evidence");
    assert.deepEqual((await readdir(whole)).sort(), ["evidence", "kept.txt"]);
    const names = await readdir(join(whole, "evidence"));
    assert.equal(names.length, listed.length);
    assert.ok(names.includes("timeline.json") && names.includes("run.json"));
  });

  test("runs and jobs are steered by their ids, also by the commands of the runtime", async () => {
    const gate = join(folder, "steered gate");
    const target = await bundle("steered", waitingFor(gate));
    const started = await troupe("launch", target, "--no-watch").ended;
    assert.match(started.out, /^run_[0-9a-z]+\n$/);
    assert.match(started.err, /troupe events run_\S+ --follow/);
    const id = started.out.trim();
    const { job_id: jobId } = await json("job", id);
    const early = await troupe("runs", "result", id).ended;
    assert.deepEqual([early.code, early.out], [1, ""]);
    assert.match(early.err, /has not ended yet: .*troupe runs wait/);
    assert.equal(await done("runs", "pause", id), `${id} paused\n`);
    assert.equal(await done("resume", id), `${id} running\n`);
    assert.equal(await done("jobs", "pause", jobId), `${id} paused\n`);
    assert.equal(await done("resume", jobId), `${id} running\n`);
    const following = troupe("events", jobId, "--follow");
    const waiting = troupe("runs", "wait", id);
    await following.shows("started");
    assert.match(
      await done("jobs", "progress", jobId),
      /^run_\S+ running {2}0 %, 0 of 1 agent done.*\nAGENT /,
    );
    await writeFile(gate, "");
    assert.match((await following.ended).out, /job +completed\n$/);
    const question = "What is the status of the run?";
    const refused = await troupe("ask", jobId, question).ended;
    assert.equal(refused.code, 1);
    assert.match(refused.err, /svc\.response/);
    const asked = join(folder, "ask.json");
    await writeFile(asked, '{"extensions":["svc.response"]}');
    await done("jobs", "update", jobId, "--config", asked);
    assert.match(await done("ask", jobId, question), /status completed\.[\s\S]* {2}from run_\S+:status\n/);
    const told = await json("ask", jobId, "Which step?", "--run", id, "--about", `${id}:progress`);
    assert.equal(told.citations[0].id, `${id}:progress`);
    const waited = await waiting.ended;
    assert.deepEqual([waited.code, waited.err], [0, ""]);
    assert.match(waited.out, /^run_\S+ completed\n/);
    const late = await troupe("runs", "cancel", id).ended;
    assert.equal(late.code, 1, "a run that has completed cannot be cancelled");
    assert.match(late.err, /\(HTTP 409\)/);
    assert.equal((await troupe("cancel", jobId).ended).code, 1, "no run of the job is open");
  });

  test("a cancelled run exits with 13", async () => {
    const watching = troupe("launch", await bundle("cancelled", waitingFor(join(folder, "never"))));
    await watching.shows("work              started");
    const id = runIdIn(watching.printed());
    assert.equal(await done("cancel", id), `${id} cancelled\n`);
    const { code, out } = await watching.ended;
    assert.equal(code, 13);
    assert.match(out, /run_\S+ cancelled\n/);
    assert.equal((await troupe("runs", "wait", id).ended).code, 13);
  });

  test("Ctrl-C while watching or waiting exits with 130, tells how to follow it, and the run continues", async () => {
    const gate = join(folder, "left gate");
    const watching = troupeProcess("launch", await bundle("left", waitingFor(gate)));
    await watching.shows("work              started");
    const id = runIdIn(watching.printed());
    watching.child.kill("SIGINT");
    const left = await watching.ended;
    assert.equal(left.code, 130);
    assert.match(left.err, /the run continues. Follow it: troupe events run_\S+ --follow. End it: troupe/);
    const following = troupeProcess("runs", "events", id, "--follow");
    await following.shows("started");
    following.child.kill("SIGINT");
    assert.equal((await following.ended).code, 130);
    assert.match(await done("runs", "show", id), /^run_\S+ running\n/);
    await writeFile(gate, "");
    await done("runs", "wait", id);
  });

  test("dead-lettered messages are listed", async () => {
    const manifest = JSON.parse(oneCommand("given-up", "exit 3"));
    await file(
      "given-up/manifest.json",
      JSON.stringify({ ...manifest, policies: { failure_policy: "continue" } }),
    );
    const { job_id: jobId } = await json("launch", join(folder, "given-up"));
    assert.match(await done("jobs", "dead-letters", jobId), /work +processing_failed +1 .* init\n$/);
    assert.equal((await json("jobs", "dead-letters", jobId)).length, 1);
  });

  test("mix-ups of ids, words and addresses have errors of their own", async () => {
    const { job_id: jobId, run_id: runId } = await json("launch", await bundle("mixed", "true"));
    const cases: readonly (readonly [readonly string[], number, RegExp])[] = [
      [["runs", "show", jobId], 2, /is the id of a job, and this takes that of a run/],
      [["jobs", "show", runId], 2, /is the id of a run, and this takes that of a job/],
      [["runs", "show", "../jobs"], 2, /is not the id of a run/],
      [["runs", "show", "run_0"], 1, /run_0 .*\(HTTP 404\)/],
      [["jobs", "events", "job_0"], 1, /\(HTTP 404\)/],
      [["jobs", "create", "bundle_0"], 2, /\(HTTP 422\)\n {2}\/bundle_id: /],
      [["runs", "strat", jobId], 2, /Did you mean runs start\?/],
      [["runs", runId], 2, /Did you mean runs show run_/],
      [["runs", "start", jobId, "--no-watch", "--save", "x"], 2, /--save needs the end of the run/],
      [["run", join(folder, "mixed"), "--runtime"], 1, /It is a Troupe gateway's address/],
    ];
    for (const [args, code, message] of cases) {
      const found = await troupe(...args).ended;
      assert.equal(found.code, code, `${args.join(" ")}: ${found.err}`);
      assert.match(found.err, message);
      assert.equal(found.out, "");
    }
    const { api } = await runtimeApiOf(program);
    const strange = await startHere(["runs", "--url", api], program.home).ended;
    assert.equal(strange.code, 1);
    assert.match(strange.err, /not as a Troupe gateway/);
    const own = await startHere(["jobs", "--runtime", "--json", "--url", api], program.home).ended;
    assert.equal(own.code, 0, own.err);
  });

  test("a reader that goes away (… | head) ends a command quietly", async () => {
    const { run_id: id } = await json("launch", await bundle("headed", "seq 1 5000"));
    const reading = troupeProcess("runs", "logs", id);
    reading.child.stdout?.once("data", () => reading.child.stdout?.destroy());
    const { code, err } = await reading.ended;
    assert.deepEqual([code, err], [0, ""]);
  });
});
