// Additions and removals of blueprints, over the real program with catalog folders of the test's own.

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { readdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import type { JsonObject } from "../../src/engine/json.ts";
import {
  bytesOf,
  ended,
  eventsOf,
  filesIn,
  operate,
  request,
  succeed,
  testCatalog,
} from "../support/blueprint-operations.ts";
import { ask, assertProblem, call, frames, startGateway, startRun } from "../support/gateway-api.ts";
import { startGatewayHere } from "../support/in-process.ts";
import { oneCommand } from "../support/manifests.ts";
import { asSeenBy, onOwnDisk, whyNoMounts } from "../support/mounts.ts";
import { type Program, temporaryHome } from "../support/program.ts";
import { until } from "../support/until.ts";

const OWNED = ["bundles", "resources", "models"];
const catalog = await testCatalog();
const given: Promise<string>[] = [];
let program: Program;
before(async () => {
  await Promise.all(given);
  program = await startGatewayHere({ env: { SVC_BLUEPRINT_CATALOG: catalog.folder } });
});
after(async () => {
  await program.stop();
  await catalog[Symbol.asyncDispose]();
});

/** A blueprint that is in the catalog before the program starts. */
const givenBlueprint = (...[id, manifest, files]: Parameters<typeof catalog.write>) =>
  void given.push(catalog.write(id, manifest, files));

const blueprint = (id: string, of: Program = program) => call(of, "GET", `/blueprints/${id}`);

/** A blueprint whose resource is made by a program of its payload. */
const madeBy = (script: string, more: JsonObject = {}) =>
  [
    {
      resources: [{ name: "index", prepare: ["sh", "{payload_dir}/make.sh"], timeout_seconds: 60, ...more }],
    },
    { "payloads/make.sh": script },
  ] as const;

describe("adding a blueprint", () => {
  givenBlueprint(
    "whole",
    {
      resources: [
        { name: "words", title: "The words", from: "words" },
        {
          name: "index",
          prepare: [
            "sh",
            "-c",
            'cat "$SVC_PAYLOAD_DIR/words/a.txt" > index; echo $SVC_BLUEPRINT_ID >> index',
          ],
        },
      ],
      models: [{ model_id: "tiny/model", path: "tiny.bin" }],
    },
    { "payloads/words/a.txt": "alpha\n", "payloads/tiny.bin": "weights" },
  );
  test("copies the package, makes its resources, installs its models, and tells of each step", async () => {
    const asked = await request(program, "whole", "additions");
    assert.equal(asked.status, 202);
    const operationId = String(asked.body.operation_id);
    assert.equal(asked.headers.get("location"), `/api/v1/operations/${operationId}`);
    assert.equal(asked.body.status, "pending");

    const events = await eventsOf(program, operationId);
    assert.deepEqual(
      events.map(({ id }) => id),
      events.map((_, i) => i + 1),
    );
    assert.equal(events[0]?.event, "operation_pending");
    assert.equal(events.at(-1)?.event, "operation_completed");
    const steps = events.map(({ data }) => (data.payload as JsonObject).step).filter((step) => step !== null);
    assert.deepEqual([...new Set(steps)], ["check", "package", "resources", "models", "finish"]);

    const home = program.home;
    assert.equal(await readFile(join(home, "resources/whole/words/a.txt"), "utf8"), "alpha\n");
    assert.equal(await readFile(join(home, "resources/whole/index/index"), "utf8"), "alpha\nwhole\n");
    const models = await filesIn(home, "models");
    assert.deepEqual([...models.values()], ["weights".length]);

    const shown = await blueprint("whole");
    assert.equal(shown.state, "added");
    const owns = shown.owns as readonly JsonObject[];
    assert.deepEqual(
      owns.map(({ kind, id, ready }) => [kind, kind === "package" ? "…" : id, ready]),
      [
        ["package", "…", true],
        ["resource", "index", true],
        ["resource", "words", true],
        ["model", "tiny/model", true],
      ],
    );
  });

  const count = join(catalog.folder, "count.txt");
  givenBlueprint("again", ...madeBy(`echo made >> ${count}; echo made > index`));
  test("once more is through at once and makes nothing again; force makes everything anew", async () => {
    await succeed(program, "again", "additions");
    const second = await operate(program, "again", "additions");
    assert.equal(second.status, "completed");
    const statuses = ((second.progress as JsonObject).steps as readonly JsonObject[]).map(
      (one) => one.status,
    );
    assert.deepEqual(statuses, ["completed", "completed", "skipped", "skipped", "completed"]);
    assert.equal(await readFile(count, "utf8"), "made\n");
    await succeed(program, "again", "additions", { force: true });
    assert.equal(await readFile(count, "utf8"), "made\nmade\n");
    const versions = await readdir(join(program.home, "resources/again"));
    assert.equal(versions.length, 2, `a link and one version: ${versions}`);
  });

  givenBlueprint("changing", ...madeBy("echo one > index"));
  test("of a blueprint that has changed takes the new package and makes its resources again", async () => {
    const first = await succeed(program, "changing", "additions");
    await catalog.write("changing", ...madeBy("echo two > index"));
    const second = await succeed(program, "changing", "additions");
    assert.notEqual(second.fingerprint, first.fingerprint);
    assert.equal(await readFile(join(program.home, "resources/changing/index/index"), "utf8"), "two\n");
  });

  givenBlueprint(
    "writing",
    ...madeBy('echo x > "$SVC_PAYLOAD_DIR/left-behind"; echo x >> "$SVC_PAYLOAD_DIR/notes.txt"'),
  );
  test("leaves the snapshot of the package as it is, whatever its commands write", async () => {
    const { fingerprint } = await succeed(program, "writing", "additions");
    const files = await filesIn(program.home, `bundles/${fingerprint}/payloads`);
    assert.deepEqual([...files.keys()].map((path) => path.split("/").at(-1)).sort(), [
      "make.sh",
      "notes.txt",
    ]);
    assert.equal(
      await readFile(join(program.home, `bundles/${fingerprint}/payloads/notes.txt`), "utf8"),
      "hello",
    );
  });

  const [manifest, files] = madeBy(
    'echo "key is $(printf %s "$SVC_BLUEPRINT_CONFIG_JSON")" >&2; echo "no such word in $PWD" >&2; exit 7',
  );
  givenBlueprint("failing", manifest, {
    ...files,
    "config/default.json": { api_key: "s3cret-of-the-test" },
  });
  test("a command that fails is told with the end of what it printed, secrets left out, and can be retried", async () => {
    const asked = await request(program, "failing", "additions", {}, "first");
    const operation = await ended(program, String(asked.body.operation_id));
    assert.equal(operation.status, "failed");
    const error = operation.error as JsonObject;
    assert.equal(error.code, "resource_failed");
    assert.equal(error.retryable, true);
    assert.match(
      String(error.detail),
      /The resource "index" could not be made\..*exit code 7.*no such word/s,
    );
    assert.doesNotMatch(String(error.detail), /s3cret/);
    assert.ok(!String(error.detail).includes(program.home), String(error.detail));
    const shown = await blueprint("failing");
    assert.equal(shown.state, "failed");
    assert.equal((shown.errors as readonly JsonObject[])[0]?.message, error.detail);

    const again = await request(program, "failing", "additions", {}, "first");
    assert.equal(again.headers.get("idempotency-replayed"), "true");
    assert.equal(again.body.operation_id, asked.body.operation_id);

    await catalog.write("failing", ...madeBy("echo well > index"));
    await succeed(program, "failing", "additions");
    assert.equal((await blueprint("failing")).state, "added");
    assert.deepEqual((await blueprint("failing")).errors, []);
  });

  givenBlueprint("erasing", ...madeBy('rm -rf "$PWD"; echo gone'));
  test("a command that removes the folder that it works in is told so", async () => {
    const asked = await request(program, "erasing", "additions", {}, "erasing");
    const { status, error } = await ended(program, String(asked.body.operation_id));
    assert.equal(status, "failed");
    const { code, detail } = error as JsonObject;
    assert.equal(code, "resource_failed");
    assert.match(String(detail), /removed the folder that it worked in\. It printed: gone/);
  });

  const flag = join(catalog.folder, "fails");
  givenBlueprint("kept", ...madeBy(`test ! -e ${flag} && echo first > index`));
  test("that is forced and fails leaves what was added as it was, and says why it failed", async () => {
    await succeed(program, "kept", "additions");
    await writeFile(flag, "");
    const failed = await operate(program, "kept", "additions", { force: true });
    assert.equal((failed.error as JsonObject).code, "resource_failed");
    assert.equal((await blueprint("kept")).state, "added");
    assert.equal(await readFile(join(program.home, "resources/kept/index/index"), "utf8"), "first\n");
    const versions = await readdir(join(program.home, "resources/kept"));
    assert.deepEqual(
      versions.filter((name) => name.endsWith(".part")),
      [],
    );
  });

  givenBlueprint(
    "forged",
    { models: [{ model_id: "forged", path: "m.bin", sha256: "0".repeat(64) }] },
    { "payloads/m.bin": "not it" },
  );
  test("a model that is not what the manifest declares is refused, and nothing of it stays", async () => {
    const failed = await operate(program, "forged", "additions");
    assert.equal((failed.error as JsonObject).code, "model_failed");
    assert.match(String((failed.error as JsonObject).detail), /SHA-256/);
    assert.deepEqual([...(await filesIn(program.home, "models/forged"))], []);
  });

  const pinned = (weights: string) => ({
    model_id: "pinned",
    path: "m.bin",
    sha256: createHash("sha256").update(weights).digest("hex"),
  });
  const modelFile = '[ "$(cat "$SVC_MODELS_DIR/pinned")" = first ]';
  const withPinned = oneCommand("pinned", modelFile);
  givenBlueprint("pinned", { ...withPinned, models: [pinned("first")] }, { "payloads/m.bin": "first" });
  test("that brings a model's next content and fails then leaves runs the content that was added", async () => {
    await succeed(program, "pinned", "additions");
    const missing = { model_id: "missing", path: "nothing.bin" };
    await catalog.write(
      "pinned",
      { ...withPinned, models: [pinned("second"), missing] },
      { "payloads/m.bin": "second" },
    );
    const failed = await operate(program, "pinned", "additions");
    assert.equal((failed.error as JsonObject).code, "model_failed");
    const launched = await call(program, "POST", "/blueprints/pinned/runs", {});
    const events = await Array.fromAsync(frames(program, `/runs/${launched.run_id}/events/stream`));
    assert.equal(events.at(-1)?.event, "job_completed");
  });

  givenBlueprint("broken", { nodes: [] });
  const gate = join(catalog.folder, "gate-busy");
  givenBlueprint("busy", ...madeBy(`while [ ! -e ${gate} ]; do sleep 0.05; done`));
  test("of what is not there, broken or busy is refused, as are fields that nobody knows", async () => {
    assertProblem(await request(program, "nowhere", "additions"), 404, "blueprint_not_found");
    assertProblem(await request(program, "nowhere", "removals"), 404, "blueprint_not_found");
    assertProblem(await request(program, "broken", "additions"), 409, "blueprint_broken");
    assertProblem(await request(program, "whole", "additions", { forced: true }), 422, "validation_failed");
    assertProblem(await request(program, "whole", "removals", { dryrun: true }), 422, "validation_failed");
    const asked = await ask(program, "POST", "/blueprints/whole/removals?dry_run=true", { body: {} });
    assertProblem(asked, 400, "invalid_parameter");

    const open = await request(program, "busy", "additions");
    for (const kind of ["additions", "removals"] as const) {
      const problem = assertProblem(await request(program, "busy", kind), 409, "blueprint_busy");
      assert.match(String(problem.detail), new RegExp(String(open.body.operation_id)));
    }
    await writeFile(gate, "");
    assert.equal((await ended(program, String(open.body.operation_id))).status, "completed");
  });

  givenBlueprint("cut-off", ...madeBy("echo done > index"));
  test("goes on when the request that began it is cut off", async () => {
    const aborting = new AbortController();
    const sent = fetch(`${program.api}/blueprints/cut-off/additions`, {
      method: "POST",
      headers: { "content-type": "application/json", "idempotency-key": "cut-off" },
      body: "{}",
      signal: aborting.signal,
    }).catch(() => {});
    // Whether the answer is still on its way or not makes no difference; asking again with the key finds the operation.
    aborting.abort();
    await sent;
    const answer = await request(program, "cut-off", "additions", {}, "cut-off");
    assert.equal((await ended(program, String(answer.body.operation_id))).status, "completed");
  });
});

describe("removing a blueprint", () => {
  givenBlueprint(
    "going",
    {
      resources: [{ name: "index", prepare: ["sh", "-c", "head -c 5000 /dev/zero > index"] }],
      models: [{ model_id: "own", path: "own.bin" }],
    },
    { "payloads/own.bin": "x".repeat(3_000) },
  );
  test("removes just what its preview has shown, byte for byte, and a preview changes nothing", async () => {
    await succeed(program, "going", "additions");
    const before = await filesIn(program.home, ...OWNED);
    const { preview } = await succeed(program, "going", "removals", { dry_run: true });
    assert.deepEqual(await filesIn(program.home, ...OWNED), before);
    assert.equal((await blueprint("going")).state, "added");
    const { removed } = await succeed(program, "going", "removals");
    assert.deepEqual(removed, preview);
    const plan = removed as JsonObject;
    const files = await filesIn(program.home, ...OWNED);
    assert.equal(bytesOf(before) - bytesOf(files), plan.bytes_freed);
    assert.deepEqual(
      (plan.resources as readonly JsonObject[]).map(({ kind, action }) => [kind, action]),
      [
        ["package", "delete"],
        ["resource", "delete"],
        ["model", "delete"],
      ],
    );
    const shown = await blueprint("going");
    assert.equal(shown.state, "available");
    assert.deepEqual(shown.owns, []);
    assert.ok(!(await readdir(join(program.home, "resources"))).includes("going"));
    const nothing = await succeed(program, "going", "removals");
    assert.deepEqual((nothing.removed as JsonObject).resources, []);
  });

  const count = join(catalog.folder, "count-kept.txt");
  const [manifest, files] = madeBy(`echo made >> ${count}; echo made > index`);
  givenBlueprint(
    "keeping",
    { ...manifest, models: [{ model_id: "kept-model", path: "kept.bin" }] },
    { ...files, "payloads/kept.bin": "kept" },
  );
  test("keeps what it is asked to keep, shows it, and the next addition uses it again", async () => {
    await succeed(program, "keeping", "additions");
    const asked = { keep_resources: true, keep_models: true };
    const { preview } = await succeed(program, "keeping", "removals", { ...asked, dry_run: true });
    const { removed } = await succeed(program, "keeping", "removals", asked);
    assert.deepEqual(removed, preview);
    const shown = await blueprint("keeping");
    assert.equal(shown.state, "available");
    assert.deepEqual(
      (shown.owns as readonly JsonObject[]).map(({ kind, id }) => [kind, id]),
      [
        ["resource", "index"],
        ["model", "kept-model"],
      ],
    );
    await succeed(program, "keeping", "additions");
    assert.equal(await readFile(count, "utf8"), "made\n");
    await succeed(program, "keeping", "removals");
    assert.deepEqual((await blueprint("keeping")).owns, []);
  });

  const models = [{ model_id: "shared", path: "shared.bin" }];
  for (const id of ["left", "right"]) {
    givenBlueprint(id, { models }, { "payloads/shared.bin": "the same weights" });
  }
  test("keeps a model that another blueprint has, and the last one takes it along", async () => {
    for (const id of ["left", "right"]) await succeed(program, id, "additions");
    assert.equal((await filesIn(program.home, "models/shared")).size, 1);
    const { removed } = await succeed(program, "left", "removals");
    const items = (removed as JsonObject).resources as readonly JsonObject[];
    assert.deepEqual(items.find(({ kind }) => kind === "model")?.action, "keep");
    assert.equal((await filesIn(program.home, "models/shared")).size, 1);
    await succeed(program, "right", "removals");
    assert.equal((await filesIn(program.home, "models/shared")).size, 0);
  });

  const gate = join(catalog.folder, "gate-run");
  givenBlueprint("used", oneCommand("used", `while [ ! -e ${gate} ]; do sleep 0.05; done`));
  test("is refused while a run of it is open, and keeps the package that a job has", async () => {
    await succeed(program, "used", "additions");
    const job = await call(program, "POST", "/jobs", { blueprint_id: "used" });
    const jobId = String(job.job_id);
    const runId = await startRun(program, jobId);
    for (const body of [{}, { dry_run: true }]) {
      const problem = assertProblem(
        await request(program, "used", "removals", body),
        409,
        "blueprint_in_use",
      );
      assert.match(String(problem.detail), /1 run of blueprint used has not ended\. Wait for it/);
    }
    await writeFile(gate, "");
    await Array.fromAsync(frames(program, `/runs/${runId}/events/stream`));
    const { removed } = await succeed(program, "used", "removals");
    const { resources, jobs_affected } = removed as JsonObject;
    assert.equal(jobs_affected, 1);
    assert.deepEqual(
      (resources as readonly JsonObject[]).map(({ kind, action }) => [kind, action]),
      [["package", "keep"]],
    );
    assert.equal((await blueprint("used")).state, "available");
    const again = await startRun(program, jobId);
    const events = await Array.fromAsync(frames(program, `/runs/${again}/events/stream`));
    assert.equal(events.at(-1)?.event, "job_completed");
  });
});

describe("a kill -9 in the middle", () => {
  /** Starts the next program on the same home. */
  const restarted = (home: string, folder: string) =>
    startGateway({ home, env: { SVC_BLUEPRINT_CATALOG: folder } });

  test("of an addition is finished by the next start, with one gapless history", async () => {
    await using own = await testCatalog();
    const home = await temporaryHome();
    const gate = join(own.folder, "gate");
    const began = join(own.folder, "began");
    const [manifest, files] = madeBy(
      `echo half > index; touch ${began}; while [ ! -e ${gate} ]; do sleep 0.05; done; echo whole > index`,
    );
    await own.write(
      "slow",
      { ...manifest, models: [{ model_id: "m", path: "m.bin" }] },
      { ...files, "payloads/m.bin": "m" },
    );
    await using first = await restarted(home, own.folder);
    const asked = await request(first, "slow", "additions");
    const operationId = String(asked.body.operation_id);
    await until("the command has begun", () =>
      readFile(began).then(
        () => true,
        () => false,
      ),
    );
    await first.kill();
    await writeFile(gate, "");
    await using second = await restarted(home, own.folder);
    const events = await eventsOf(second, operationId);
    assert.deepEqual(
      events.map(({ id }) => id),
      events.map((_, i) => i + 1),
    );
    assert.equal(events.at(-1)?.event, "operation_completed");
    assert.equal(await readFile(join(home, "resources/slow/index/index"), "utf8"), "whole\n");
    const percents = events.map(({ data }) => Number((data.payload as JsonObject).percent));
    assert.deepEqual(
      percents,
      percents.toSorted((a, b) => a - b),
    );
    assert.equal((await blueprint("slow", second)).state, "added");
    await succeed(second, "slow", "removals");
    assert.deepEqual([...(await filesIn(home, ...OWNED))], []);
    await second.stop();
    await rm(home, { recursive: true, force: true });
  });
});

test("a disk that is full fails an addition, which leaves nothing half-done and can be retried", async (t) => {
  const why = whyNoMounts();
  if (why !== null) return t.skip(why);
  await using own = await testCatalog();
  const home = await temporaryHome();
  const model = join(own.folder, "large.bin");
  await writeFile(model, Buffer.alloc(24 * 1024 * 1024, 1));
  await own.write("large", { models: [{ model_id: "large", path: model }] });
  const MIB = 1024 * 1024;
  const through = onOwnDisk(home, { sizeBytes: 40 * MIB, ballastBytes: 20 * MIB });
  await using small = await startGateway({ home, through, env: { SVC_BLUEPRINT_CATALOG: own.folder } });
  const failed = await operate(small, "large", "additions");
  assert.equal((failed.error as JsonObject).code, "disk_full", JSON.stringify(failed));
  assert.equal((failed.error as JsonObject).retryable, true);
  const seen = asSeenBy(await pidOf(small), home);
  assert.deepEqual([...(await filesIn(seen, ...OWNED))], []);
  await rm(join(seen, "ballast"));
  await succeed(small, "large", "additions");
  assert.equal((await blueprint("large", small)).state, "added");
  await small.stop();
  await rm(home, { recursive: true, force: true });
});

/** The process that is the program: the words before it have become it. */
async function pidOf({ pid }: Program): Promise<number> {
  return pid;
}
