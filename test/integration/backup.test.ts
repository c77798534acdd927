// `troupe backup` of a home under load and `troupe restore` into an empty one elsewhere: whatever can be asked for over
// both APIs is the same, and open runs go on. Full disks, kills and copied homes.

import assert from "node:assert/strict";
import { execFile, spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, test } from "node:test";
import { promisify } from "node:util";
import { askingGraph } from "../support/asking.ts";
import { testCatalog } from "../support/blueprint-catalog.ts";
import { start, startHere } from "../support/command-line.ts";
import {
  ask,
  call,
  completed,
  createJob,
  ended,
  happens,
  runtimeApiOf,
  startRun,
  walk,
} from "../support/gateway-api.ts";
import { refusing } from "../support/giving-up.ts";
import { answer, executor, graph } from "../support/graphs.ts";
import { refusedStartHere, startGatewayHere } from "../support/in-process.ts";
import { onOwnDisk, whyNoMounts } from "../support/mounts.ts";
import { type Program, programEnvironment, programWords, temporaryHome } from "../support/program.ts";
import * as runtime from "../support/runtime-api.ts";
import { until } from "../support/until.ts";

const scratch = await temporaryHome();
after(() => rm(scratch, { recursive: true, force: true }));
let places = 0;
const newPlace = () => join(scratch, `place ${++places}`);

/** Leaves files, logs, a result; the last word of its command tells runs apart. */
const writer = graph("writer", [
  executor(
    "write",
    `echo "said $SVC_RUN_ID"; echo trouble >&2; printf %s "$SVC_RUN_ID" > "$SVC_OUTPUT_DIR/own.txt"; printf same > "$SVC_OUTPUT_DIR/same.txt"; ${answer({ complete_run: { ok: true } })}`,
    { outputs: [{ path: "own.txt", title: "Own", primary: true }] },
  ),
]);

const troupe = async (home: string, ...args: string[]) => {
  const { code, out, err } = await startHere(args, home).ended;
  assert.equal(code, 0, out + err);
  return { out, err };
};

/** All that the gateway tells of a run that has ended. */
async function told(program: Program, runId: string): Promise<Record<string, unknown>> {
  const { links: _links, ...run } = await call(program, "GET", `/runs/${runId}`);
  const lists = ["artifacts", "outputs", "events", "logs", "timeline", "dead-letters", "human"];
  const pages = await Promise.all(lists.map((list) => walk(program, `/runs/${runId}/${list}`)));
  const files = await Promise.all(
    (pages[0] ?? []).map(async ({ url }) => {
      const got = await fetch(new URL(String(url), program.url));
      assert.equal(got.status, 200, String(url));
      return Buffer.from(await got.arrayBuffer()).toString("base64");
    }),
  );
  const result = await call(program, "GET", `/runs/${runId}/result`);
  const summary = await call(program, "GET", `/runs/${runId}/observability-summary`);
  return { run, pages, files, result, summary };
}

/** All that the runtime API tells of a job that has ended. */
async function toldOfJob(api: Program, jobId: string): Promise<unknown> {
  const detail = await runtime.call(api, "GET", `/jobs/${jobId}`);
  const history = await runtime.historyOf(api, jobId);
  return JSON.parse(JSON.stringify({ detail, history }).replaceAll(api.home, "SVC_HOME"));
}

test("a home under load is restored elsewhere: every answer is the same, and open runs go on", async () => {
  await using catalog = await testCatalog();
  await catalog.write(
    "kit",
    {
      ...graph("kit", [
        executor("use", `${answer({ complete_run: { ok: true } })}`, {
          upload_path: "input",
          workdir: "input",
        }),
      ]),
      resources: [{ name: "index", prepare: ["sh", "-c", "echo made > index"] }],
      models: [{ model_id: "tiny", path: "tiny.bin" }],
    },
    { "payloads/tiny.bin": "weights", "payloads/input/own.txt": "own" },
  );
  const home = newPlace();
  await mkdir(home);
  const env = { SVC_BLUEPRINT_CATALOG: catalog.folder };
  const copy = newPlace();
  const archive = join(scratch, "backup.zip");
  const before = new Map<string, unknown>();
  const ids = { asking: "", jobId: "", writerRun: "", ownJob: "" };
  {
    await using program = await startGatewayHere({ home, env });
    const api = await runtimeApiOf(program);
    const jobId = await createJob(program, writer, { resolved_configuration: { api_token: "s3cr3t" } });
    const kit = String((await call(program, "POST", "/jobs", { blueprint_id: "kit" })).job_id);
    await until(
      "the blueprint is added",
      async () => (await call(program, "GET", `/jobs/${kit}`)).status === "ready",
    );
    const runIds = [String((await completed(program, kit)).run.run_id)];
    for (let i = 0; i < 3; i++) runIds.push(String((await completed(program, jobId)).run.run_id));
    const refused = await createJob(program, refusing.manifest, {}, refusing.files);
    const refusedRun = await startRun(program, refused, {
      inputs: { $entrypoints: { in: [{ n: 1 }], hold: [{}] } },
    });
    await happens(program, refusedRun, "message_dead_lettered");
    await call(program, "PATCH", `/runs/${refusedRun}`, { desired_state: "cancelled" });
    await ended(program, refusedRun);
    runIds.push(refusedRun);
    const asking = await createJob(program, askingGraph("asking", [{ request_id: "q", prompt: "Well?" }]));
    const askingRun = await startRun(program, asking);
    await happens(program, askingRun, "human_input_requested");
    const own = String((await runtime.call(api, "POST", "/jobs", writer)).id);
    await runtime.historyOf(api, own);
    for (const runId of runIds) before.set(runId, await told(program, runId));
    before.set(own, await toldOfJob(api, own));
    Object.assign(ids, { asking: askingRun, jobId, writerRun: runIds[1], ownJob: own });

    // Load: runs come and jobs go, with their files, until the backup is made.
    let isOver = false;
    const load = Array.from({ length: 2 }, async () => {
      while (!isOver) {
        const gone = await createJob(program, writer);
        await completed(program, gone);
        const etag = (await ask(program, "GET", `/jobs/${gone}`)).headers.get("etag") ?? "";
        const headers = { "if-match": etag };
        assert.equal((await ask(program, "DELETE", `/jobs/${gone}`, { headers })).status, 204);
        await completed(program, jobId);
        await call(program, "POST", "/system/gc", {});
      }
    });
    // In a process of its own, as it is used: it reads while the program writes.
    const { code, out, err } = await start(["backup", archive], home).ended;
    isOver = true;
    await Promise.all(load);
    assert.equal(code, 0, out + err);
    assert.match(out, /Backed up .*: \d+ files/);
    assert.match(err, /secret key is not in it/);
    assert.equal((await stat(archive)).mode & 0o777, 0o600);
    assert.match((await startHere(["backup", archive], home).ended).err, /exists already.*--force/);
    assert.match((await troupe(home, "doctor")).out, /every file that the database names is there/);
  }

  await rm(catalog.folder, { recursive: true });
  const { err } = await troupe(copy, "restore", archive);
  assert.ok(err.includes(`put the old home's secret.key into ${copy}`), err);
  assert.match((await refusedStartHere({ home: copy, args: ["up"] })).text, /secret key .* is missing/);
  await writeFile(join(copy, "secret.key"), await readFile(join(home, "secret.key")));
  await rm(home, { recursive: true });
  assert.match((await troupe(copy, "doctor")).out, /every file that the database names is there/);
  await using program = await startGatewayHere({ home: copy, env });
  const api = await runtimeApiOf(program);
  for (const [id, known] of before) {
    assert.deepEqual(id === ids.ownJob ? await toldOfJob(api, id) : await told(program, id), known, id);
  }
  assert.equal(await readFile(join(copy, "resources/kit/index/index"), "utf8"), "made\n");
  await troupe(copy, "runs", "save", ids.writerRun, newPlace(), "--all", "--evidence", "--url", program.api);
  await completed(program, ids.jobId);
  const body = { decision: "yes" };
  const answered = await ask(program, "POST", `/runs/${ids.asking}/human/q/response`, { body });
  assert.ok(answered.status < 300, answered.text);
  assert.equal((await ended(program, ids.asking)).run.status, "completed");
});

test("doctor names what the database names and the home does not have", async () => {
  const home = newPlace();
  await mkdir(home);
  await using program = await startGatewayHere({ home });
  await completed(program, await createJob(program, writer));
  await rm(join(home, "bundles"), { recursive: true });
  const { code, out } = await startHere(["doctor"], home).ended;
  assert.equal(code, 1);
  assert.match(out, /fail +content +1 of the files that the database names are missing: bundles\//);
  const backup = await startHere(["backup", join(scratch, "incomplete.zip")], home).ended;
  assert.equal(backup.code, 1);
  assert.match(backup.err, /1 path missing from the home/);
});

test("a full disk: an error that names it, and no file", async (t) => {
  const why = whyNoMounts();
  if (why !== null) return t.skip(why);
  const home = newPlace();
  await mkdir(home);
  {
    await using program = await startGatewayHere({ home });
    await completed(program, await createJob(program, writer));
  }
  const archive = join(scratch, "to restore.zip");
  await troupe(home, "backup", archive);
  const target = newPlace();
  await mkdir(target);
  const small = (args: readonly string[], svcHome: string) => {
    // The disk is listed from inside, because it goes with the command.
    const through = [
      ...onOwnDisk(target, { sizeBytes: 128 * 1024 }),
      "sh",
      "-c",
      '"$@"; code=$?; ls -A "$0"; exit $code',
      target,
    ];
    const [file, ...words] = programWords({ args, through });
    return spawnSync(file, words, { env: programEnvironment(svcHome), encoding: "utf8" });
  };
  const backup = small(["backup", join(target, "b.zip")], home);
  assert.equal(backup.status, 1, backup.stderr);
  assert.match(backup.stderr, /disk is full/);
  assert.equal(backup.stdout, "");
  const restoring = small(["restore", archive], target);
  assert.equal(restoring.status, 1, restoring.stderr);
  assert.match(restoring.stderr, /disk is full/);
  assert.equal(restoring.stdout.replace("lock.db\n", ""), "");
});

test("a restore that is killed leaves a home that does not start, until it is restored", async () => {
  const home = newPlace();
  await mkdir(home);
  const many = Array.from({ length: 1_000 }, (_, i) => `echo ${i} > "$SVC_OUTPUT_DIR/${i}"`).join("\n");
  {
    await using program = await startGatewayHere({ home });
    await completed(program, await createJob(program, graph("many", [executor("write", many)])));
  }
  const archive = join(scratch, "many.zip");
  await troupe(home, "backup", archive, "--with-key");
  const copy = newPlace();
  const restoring = start(["restore", archive], copy);
  await until("the restore has begun", async () => existsSync(join(copy, "restoring/blobs")));
  restoring.child.kill("SIGKILL");
  await restoring.ended;
  if (existsSync(join(copy, "restoring"))) {
    assert.match((await refusedStartHere({ home: copy, args: ["up"] })).text, /restore that was interrupted/);
    await troupe(copy, "restore", archive);
  }
  await using program = await startGatewayHere({ home: copy });
  assert.equal((await walk(program, "/runs")).length, 1);
});

test("a copy of a home that is used opens, or says what is wrong", async () => {
  const home = newPlace();
  await mkdir(home);
  await using program = await startGatewayHere({ home });
  const jobId = await createJob(program, writer);
  let isOver = false;
  const load = (async () => {
    while (!isOver) await completed(program, jobId);
  })();
  await completed(program, jobId);
  const copy = newPlace();
  // It goes on after files that are removed meanwhile; the database is always among what it copies.
  await promisify(execFile)("cp", ["-R", home, copy]).catch(() => {});
  await rm(join(copy, "tmp"), { recursive: true, force: true });
  isOver = true;
  await load;
  const { code, out } = await startHere(["doctor"], copy).ended;
  if (code === 0) {
    await using second = await startGatewayHere({ home: copy });
    assert.ok((await walk(second, "/runs")).length > 0);
  } else assert.match(out, /fail +(store|content)/);
  assert.ok((await readdir(home)).includes("troupe.db"));
});
