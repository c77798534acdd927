// Bundles: registered from a folder and from a zip, listed, reloaded, and run. Sentences in quotes are the
// specification's own, shortened.

import assert from "node:assert/strict";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import type { JsonObject } from "../../src/engine/json.ts";
import { type Files, upload, writeFolder, zipOf } from "../support/bundle-files.ts";
import { type Gates, makeGates } from "../support/gates.ts";
import { aggregator, executor, graph, router } from "../support/graphs.ts";
import { startRuntimeHere } from "../support/in-process.ts";
import { ended, happens, path, run, submit } from "../support/job-watch.ts";
import type { Program } from "../support/program.ts";
import { call, request } from "../support/runtime-api.ts";

const ISO = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;
const BUNDLE_BYTES_MAX = 2_000_000;
let program: Program;
let gates: Gates;
before(async () => {
  gates = await makeGates();
  program = await startRuntimeHere({ env: { SVC_BUNDLE_MAX_BYTES: String(BUNDLE_BYTES_MAX) } });
});
after(async () => {
  await program.stop();
  await gates.remove();
});

/** A bundle whose one worker says what its payload holds and what its configuration is. */
const saying = (word: string, more: Files = {}): Files => ({
  "manifest.json": graph("says", [
    executor("say", 'cat said/word.txt; echo "$SVC_BLUEPRINT_CONFIG_JSON"', { upload_path: "said" }),
  ]),
  "payloads/said/word.txt": `${word}\n`,
  ...more,
});
const folder = (name: string, files: Files) => writeFolder(join(gates.folder, name), files);
const register = (body: unknown) => request(program, "POST", "/bundles", body);
const logs = async (jobId: string) =>
  (await ended(program, jobId)).of("log").map((event) => String(event.payload.message));
const list = async () => (await call(program, "GET", "/bundles")).data as readonly JsonObject[];

describe("POST /bundles", () => {
  test('"{path} for a folder (id: the folder\'s name); 201 {bundle_id, graph_id, fingerprint}"', async () => {
    const { status, body } = await register({ path: await folder("from-folder", saying("one")) });
    assert.equal(status, 201);
    const { fingerprint, ...rest } = body;
    assert.deepEqual(rest, { bundle_id: "from-folder", graph_id: "says" });
    assert.match(String(fingerprint), /^[0-9a-f]{64}$/);
  });

  test("a folder can be given an id of its own", async () => {
    const { body } = await register({
      path: await folder("named", saying("two")),
      bundle_id: "other.name_1",
    });
    assert.equal(body.bundle_id, "other.name_1");
  });

  test('"a multipart zip", with everything at its top or in one folder: same content, same id', async () => {
    const flat = await upload(program, await zipOf(saying("zip")));
    assert.equal(flat.status, 201);
    assert.deepEqual(Object.keys(flat.body), ["bundle_id", "graph_id", "fingerprint"]);
    const nested = await upload(program, await zipOf(saying("zip"), "my-bundle"));
    assert.deepEqual(nested, flat);
    const jobId = await submit(program, { bundle_id: flat.body.bundle_id ?? null });
    assert.deepEqual(await logs(jobId), ["zip", "{}"]);
  });

  test("a folder and a zip of the same files have the same fingerprint", async () => {
    const fromFolder = await register({ path: await folder("same", saying("same")) });
    const fromZip = await upload(program, await zipOf(saying("same")));
    assert.equal(fromFolder.body.fingerprint, fromZip.body.fingerprint);
  });

  const badBodies: readonly [name: string, body: unknown, about: RegExp][] = [
    ["no body", undefined, /^Invalid or missing JSON payload$/],
    ["a list", [], /^Invalid or missing JSON payload$/],
    ["no path", {}, /path/],
    ["a path that is a number", { path: 7 }, /path/],
    ["a relative path", { path: "examples" }, /absolute/],
    ["a path that climbs out of nowhere", { path: "../../etc" }, /absolute/],
    ["a folder that does not exist", { path: "/no/such/folder-anywhere" }, /\/no\/such\/folder-anywhere/],
    ["a file", { path: "/etc/passwd" }, /folder/],
    ["a folder without a manifest", { path: import.meta.dirname }, /manifest\.json/],
    ["a bundle_id with a slash", { path: "/etc", bundle_id: "../x" }, /bundle_id/],
    ["a bundle_id of dots", { path: "/etc", bundle_id: ".." }, /bundle_id/],
    ["a bundle_id that is an object", { path: "/etc", bundle_id: {} }, /bundle_id/],
  ];
  for (const [name, body, about] of badBodies) {
    test(`${name} is refused with 400 {error}`, async () => {
      const answer = await register(body);
      assert.equal(answer.status, 400);
      assert.deepEqual(Object.keys(answer.body), ["error"]);
      assert.match(String(answer.body.error), about);
    });
  }

  test("an invalid manifest in a folder is answered in the words of a submission", async () => {
    const files = { ...saying("x"), "manifest.json": graph("x y", [{ node_id: "a", agent_type: "no" }]) };
    const { status, body } = await register({ path: await folder("invalid", files) });
    assert.equal(status, 400);
    assert.match(String(body.error), /^Invalid manifest: .*graph_id.*; .*agent_type/);
  });

  test("an upload that is no zip, has no manifest, or has another field name is refused with 400 {error}", async () => {
    const answers = [
      await upload(program, new TextEncoder().encode("this is not a zip")),
      await upload(program, await zipOf({ "readme.txt": "hello" })),
      await upload(program, await zipOf(saying("x")), "file"),
    ];
    for (const { status, body } of answers) {
      assert.equal(status, 400);
      assert.deepEqual(Object.keys(body), ["error"]);
    }
  });

  test('"over the limit: 413, same shape"', async () => {
    const { status, body } = await upload(program, new Uint8Array(BUNDLE_BYTES_MAX + 1));
    assert.equal(status, 413);
    assert.deepEqual(Object.keys(body), ["error"]);
    assert.match(String(body.error), /SVC_BUNDLE_MAX_BYTES/);
  });

  test("what was refused is not in the list", async () => {
    const ids = (await list()).map((bundle) => bundle.bundle_id);
    assert.ok(!ids.includes("invalid"));
    assert.deepEqual(ids, ids.toSorted());
  });
});

describe('"POST /jobs takes a manifest, or {bundle_id, inputs?, config?}"', () => {
  const collecting: Files = {
    "manifest.json": graph(
      "collects",
      [router("a"), router("b"), aggregator("all")],
      [
        ["a", "all"],
        ["b", "all"],
      ],
      {
        entrypoints: ["a", "b"],
        initial_inputs: { a: ["own a"], b: ["own b"] },
      },
    ),
  };
  const configuration = { depth: { one: 1, two: 2 }, list: [1, 2] };
  before(async () => {
    await register({
      path: await folder("launch", saying("hello", { "config/default.json": configuration })),
    });
    await register({ path: await folder("collects", collecting) });
  });

  test("a job of a bundle runs the bundle's payload, and its record says which", async () => {
    const jobId = await submit(program, { bundle_id: "launch" });
    assert.match(jobId, /^says-/);
    const { detail, of } = await ended(program, jobId);
    assert.equal(of("log")[0]?.payload.message, "hello");
    const ref = (detail.job as JsonObject).manifest_ref as JsonObject;
    const { fingerprint } = (await list()).find((bundle) => bundle.bundle_id === "launch") ?? {};
    assert.equal(ref.cache_path, join(program.home, "bundles", String(fingerprint)));
    assert.equal(ref.manifest_path, join(program.home, "bundles", String(fingerprint), "manifest.json"));
  });

  test("config is laid over the bundle's own, key by key; without it workers find the bundle's own", async () => {
    const own = await logs(await submit(program, { bundle_id: "launch" }));
    assert.deepEqual(JSON.parse(own[1] ?? ""), { depth: { one: 1, two: 2 }, list: [1, 2] });
    const config = { depth: { two: "changed" }, list: [], more: true };
    const changed = await logs(await submit(program, { bundle_id: "launch", config }));
    assert.deepEqual(JSON.parse(changed[1] ?? ""), {
      depth: { one: 1, two: "changed" },
      list: [],
      more: true,
    });
  });

  test('"inputs: one body for every entrypoint, in place of initial_inputs; {} leaves them"', async () => {
    const bodies = async (inputs?: JsonObject) =>
      (await run(program, { bundle_id: "collects", ...(inputs && { inputs }) })).result.messages;
    assert.deepEqual(await bodies(), ["own a", "own b"]);
    assert.deepEqual(await bodies({}), ["own a", "own b"]);
    assert.deepEqual(await bodies({ page: 3 }), [{ page: 3 }, { page: 3 }]);
    assert.deepEqual(await bodies({ $entrypoints: { b: [1, 2] } }), ["own a", 1, 2]);
  });

  test("what is wrong with a submission of a bundle is said: 400 or 404 {error}", async () => {
    const bad: readonly [body: JsonObject, status: number, about: RegExp][] = [
      [{ bundle_id: "nobody" }, 404, /^Bundle nobody not found$/],
      [{ bundle_id: "__proto__" }, 404, /^Bundle __proto__ not found$/],
      [{ bundle_id: "../launch" }, 404, /not found$/],
      [{ bundle_id: 7 }, 400, /bundle_id/],
      [{ bundle_id: null }, 400, /bundle_id/],
      [{ bundle_id: "launch", config: [] }, 400, /config/],
      [{ bundle_id: "collects", inputs: [] }, 400, /inputs/],
      [{ bundle_id: "collects", inputs: { $entrypoints: { all: [1] } } }, 400, /"all"/],
      [{ bundle_id: "collects", inputs: { $entrypoints: 7 } }, 400, /\$entrypoints/],
    ];
    for (const [body, status, about] of bad) {
      const answer = await request(program, "POST", "/jobs", body);
      assert.equal(answer.status, status, JSON.stringify(body));
      assert.deepEqual(Object.keys(answer.body), ["error"]);
      assert.match(String(answer.body.error), about);
    }
  });
});

describe("POST /bundles/:bundle_id/reload", () => {
  const reload = (bundleId: string) =>
    request(program, "POST", `/bundles/${encodeURIComponent(bundleId)}/reload`);

  test('"changed true when the contents differ": both fingerprints, and the reason api_request', async () => {
    const source = await folder("edited", saying("old"));
    const first = String((await register({ path: source })).body.fingerprint);
    const unchanged = await reload("edited");
    assert.equal(unchanged.status, 200);
    const { timestamp, message, ...rest } = unchanged.body;
    assert.match(String(timestamp), ISO);
    assert.equal(typeof message, "string");
    assert.deepEqual(rest, {
      bundle_id: "edited",
      changed: false,
      reloaded: true,
      previous_fingerprint: first,
      current_fingerprint: first,
      reason: "api_request",
    });
    await folder("edited", saying("new"));
    const { body } = await reload("edited");
    assert.equal(body.changed, true);
    assert.equal(body.reloaded, true);
    assert.equal(body.previous_fingerprint, first);
    assert.notEqual(body.current_fingerprint, first);
    const stored = (await list()).find((bundle) => bundle.bundle_id === "edited");
    assert.equal(stored?.fingerprint, body.current_fingerprint);
  });

  test('"jobs already running keep the old bundle; only later submissions use the new one"', async () => {
    const gate = gates.pipe("reload");
    const files = (word: string): Files => ({
      ...saying(word),
      "manifest.json": graph(
        "keeps",
        [executor("wait", ["cat", gate]), executor("say", ["cat", "said/word.txt"], { upload_path: "said" })],
        [["wait", "say"]],
      ),
    });
    const source = await folder("kept", files("before"));
    await register({ path: source });
    const early = await submit(program, { bundle_id: "kept" });
    await happens(program, early, "sandbox_job_started");
    await folder("kept", files("after"));
    assert.equal((await reload("kept")).body.changed, true);
    assert.equal(((await call(program, "GET", path(early))).job as JsonObject).status, "running");
    await gates.open(gate);
    assert.deepEqual(await logs(early), ["before"]);
    const late = await submit(program, { bundle_id: "kept" });
    await happens(program, late, "sandbox_job_started");
    await gates.open(gate);
    assert.deepEqual(await logs(late), ["after"]);
  });

  test('"404 when no bundle with the id is registered", in the words of the spec', async () => {
    for (const bundleId of ["nope", "__proto__", "../edited", "x".repeat(200)]) {
      assert.deepEqual(await reload(bundleId), {
        status: 404,
        body: { error: `Bundle ${bundleId} not found` },
      });
    }
  });

  test('"500 when the reload fails": the registered version stays and still runs', async () => {
    const source = await folder("broken", saying("still here"));
    const before = (await register({ path: source })).body.fingerprint;
    const breakages: readonly (() => Promise<unknown>)[] = [
      () => folder("broken", { ...saying("x"), "manifest.json": "{ no json" }),
      () => folder("broken", { ...saying("x"), "manifest.json": { manifest_version: "1.0" } }),
      () => rm(source, { recursive: true }),
    ];
    for (const breakIt of breakages) {
      await breakIt();
      const { status, body } = await reload("broken");
      assert.equal(status, 500);
      assert.deepEqual(Object.keys(body), ["error"]);
      assert.match(String(body.error), /^Bundle broken could not be reloaded/);
      assert.equal((await list()).find((bundle) => bundle.bundle_id === "broken")?.fingerprint, before);
    }
    assert.equal((await logs(await submit(program, { bundle_id: "broken" })))[0], "still here");
  });

  test("a bundle from a zip is not reloaded, and the answer tells that it is from a zip", async () => {
    const { body: zip } = await upload(program, await zipOf(saying("zipped")));
    const { status, body } = await reload(String(zip.bundle_id));
    assert.equal(status, 200);
    assert.equal(body.changed, false);
    assert.equal(body.reloaded, false);
    assert.equal(body.current_fingerprint, zip.fingerprint);
    assert.match(String(body.message), /zip/);
  });
});

test("GET /bundles: each with name, size, source and times", async () => {
  const [first] = await list();
  assert.deepEqual(Object.keys(first ?? {}), [
    "bundle_id",
    "name",
    "graph_id",
    "fingerprint",
    "size",
    "source",
    "created_at",
    "updated_at",
  ]);
  assert.ok(Number.isInteger(first?.size));
  assert.match(String(first?.created_at), ISO);
});
