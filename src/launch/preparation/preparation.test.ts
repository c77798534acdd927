// What a run is given: its own payload and configuration, whole or not at all.

import assert from "node:assert/strict";
import { existsSync, readlinkSync } from "node:fs";
import { mkdir, mkdtemp, readdir, readFile, readlink, rm, stat, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { writeFiles } from "../../../test/support/bundles.ts";
import {
  aRun,
  folderConfig,
  type LaunchPlace,
  makeLaunchPlace,
  progress,
} from "../../../test/support/launch.ts";
import { servicesLacking } from "../../../test/support/services.ts";
import { until } from "../../../test/support/until.ts";
import type { BlueprintAsset } from "../../blueprints/records.ts";
import type { JsonObject } from "../../engine/json.ts";
import { PreparationFailed } from "./findings.ts";
import { modelName } from "./requirements.ts";

const payloadOf = ({ home }: LaunchPlace) => join(home, "runs/run_1/prepared/payload");

async function configurationOf({ secrets }: LaunchPlace, json: string | null): Promise<JsonObject> {
  return json === null ? {} : secrets.decrypt(JSON.parse(json) as JsonObject);
}

/** The code of the failure; what else goes wrong is thrown. */
async function failure(work: Promise<unknown>): Promise<{ code: string; message: string }> {
  try {
    await work;
  } catch (error) {
    if (error instanceof PreparationFailed) return error;
    throw error;
  }
  return assert.fail("It was prepared.");
}

async function withDocs(place: LaunchPlace, files: Readonly<Record<string, string>> = { "a.txt": "mine" }) {
  return writeFiles(join(place.folder, "docs"), files);
}

test("the user's folder is copied into the payload, and the configuration names the copy", async () => {
  await using place = await makeLaunchPlace();
  const docs = await withDocs(place, { "a.txt": "mine", "sub/b.md": "too", "c.png": "no" });
  const subject = await place.subject(
    {
      config: { ...folderConfig, reader: { input: "", depth: 2 }, api_key: "sk-0123456789" },
      payload: { "worker/mn_local_inputs/documents/sample.txt": "shipped" },
    },
    { jobConfiguration: place.secrets.encrypt({ documents: { folder: docs } }) },
  );
  const { labels, ...told } = progress();
  const launch = await place.preparation.prepare(aRun, subject, told);
  const staged = join(payloadOf(place), "worker/mn_local_inputs/documents");
  assert.deepEqual((await readdir(staged)).sort(), ["a.txt", "sub"], "what was shipped there is replaced");
  assert.equal(await readFile(join(staged, "sub/b.md"), "utf8"), "too");
  assert.deepEqual(await configurationOf(place, launch.configurationJson), {
    ...folderConfig,
    documents: { folder: "mn_local_inputs/documents" },
    reader: { input: "mn_local_inputs/documents", depth: 2 },
    api_key: "sk-0123456789",
  });
  assert.ok(!launch.configurationJson?.includes("sk-0123456789"), "secrets are encrypted");
  assert.equal(launch.hasOwnPayload, true);
  assert.equal(launch.graph, subject.definition.graph);
  assert.ok(labels.includes("Copying docs: 2 of 2 files, 7 bytes of 7 bytes"), labels.join("\n"));
});

test("a worker can change its copies: the user's files and the package stay as they are", async () => {
  await using place = await makeLaunchPlace();
  const docs = await withDocs(place);
  const subject = await place.subject({ config: { ...folderConfig, documents: { folder: docs } } });
  await place.preparation.prepare(aRun, subject, progress());
  const worker = join(payloadOf(place), "worker");
  for (const path of ["run.py", "mn_local_inputs/documents/a.txt"]) {
    assert.equal((await stat(join(worker, path))).nlink, 1);
    await writeFile(join(worker, path), "changed");
  }
  assert.equal(await readFile(join(docs, "a.txt"), "utf8"), "mine");
  const again = { ...aRun, runId: "run_2" };
  place.openRuns.set("run_2", "reader-2");
  await place.preparation.prepare(again, subject, progress());
  const other = join(place.home, "runs/run_2/prepared/payload/worker/run.py");
  assert.equal(await readFile(other, "utf8"), "print(1)\n");
});

test("names of all kinds arrive as they are", async () => {
  await using place = await makeLaunchPlace();
  const names = ["-rf.txt", "a\nb.txt", "ä😀.txt", ".hidden.md", 'quo"te.txt'];
  const docs = await withDocs(place, Object.fromEntries(names.map((name) => [name, name])));
  const subject = await place.subject({ config: { ...folderConfig, documents: { folder: docs } } });
  await place.preparation.prepare(aRun, subject, progress());
  const staged = join(payloadOf(place), "worker/mn_local_inputs/documents");
  assert.deepEqual(new Set(await readdir(staged)), new Set(names));
  for (const name of names) assert.equal(await readFile(join(staged, name), "utf8"), name);
});

test("a package that needs no payload of its own keeps the snapshot's, and nothing is left of its preparation", async () => {
  await using place = await makeLaunchPlace();
  const subject = await place.subject({
    config: { ...folderConfig, name: "x" },
    manifest: { input_validation: { rules: [{ path: "name", required: true }] } },
  });
  const launch = await place.preparation.prepare(aRun, subject, progress());
  assert.equal(launch.hasOwnPayload, false);
  assert.deepEqual(await place.leftovers(), []);
});

test("blank inputs do not hide a folder, whether they are for all entrypoints or for each", async () => {
  await using place = await makeLaunchPlace();
  const docs = await withDocs(place);
  const config = { ...folderConfig, documents: { folder: docs } };
  const body = { documents: { folder: " ", depth: 1 }, reader: { input: null }, note: "" };
  const left = { documents: { depth: 1 }, reader: {}, note: "" };
  const plain = await place.subject({ config }, { inputs: body });
  assert.deepEqual((await place.preparation.prepare(aRun, plain, progress())).inputs, left);
  const inputs = { $entrypoints: { read: [body, "text"] } };
  const addressed = await place.subject({ config }, { inputs });
  const launch = await place.preparation.prepare(aRun, addressed, progress());
  assert.deepEqual(launch.inputs, { $entrypoints: { read: [left, "text"] } });
  const initial = await place.subject({ config, manifest: { initial_inputs: { read: [body, "text"] } } });
  const { graph } = await place.preparation.prepare(aRun, initial, progress());
  assert.deepEqual([...graph.initialInputs.values()], [[left, "text"]], "nor do those of the manifest");
});

test("what is too long to be copied fails the run, and is named", async () => {
  await using place = await makeLaunchPlace();
  let folder = join(place.folder, "deep");
  // As deep as the system lets a path be here, so that it is too long further down.
  for (let left = 4_080 - folder.length; left > 1; left = 4_080 - folder.length) {
    folder = join(folder, "f".repeat(Math.min(250, left - 1)));
  }
  await mkdir(folder, { recursive: true });
  await writeFile(join(folder, "a"), "x");
  const [declared] = folderConfig.local_inputs.folders;
  const folders = [{ ...declared, allowed_extensions: null }];
  const documents = { folder: join(place.folder, "deep") };
  const deep = await place.subject({ config: { documents, local_inputs: { folders } } });
  const tooDeep = await failure(place.preparation.prepare(aRun, deep, progress()));
  assert.equal(tooDeep.code, "preparation.folder_failed");
  assert.match(
    tooDeep.message,
    /^documents\.folder: "f+….* of the folder "deep" could not be copied: its path is too long/,
  );

  const docs = await withDocs(place);
  const payloadPath = `worker/${"p".repeat(300)}`;
  const local_inputs = { folders: [{ ...declared, payload_path: payloadPath }] };
  const wide = await place.subject({ config: { documents: { folder: docs }, local_inputs } });
  const tooWide = await failure(place.preparation.prepare(aRun, wide, progress()));
  assert.equal(tooWide.code, "preparation.folder_failed");
  assert.match(tooWide.message, /payload_path .* is too long/);
});

test("the blueprint's resources are links to where they are now; one that is not ready fails the run", async () => {
  const made = await mkdtemp(join(tmpdir(), "resources-"));
  const resourceFolders = async () =>
    new Map([
      ["index", made],
      ["of-an-older-version", made],
    ]);
  const assets = async (blueprintId: string): Promise<BlueprintAsset[]> => [
    { blueprintId, kind: "resource", assetId: "index", recipe: "", ready: true, bytes: 0, createdAtMs: 0 },
  ];
  await using ready = await makeLaunchPlace({
    resourceFolders,
    blueprints: { assets, modelOwners: async () => [], installedModel: async () => null },
  });
  await using empty = await makeLaunchPlace({ resourceFolders });
  const declared = { manifest: { resources: [{ name: "index" }] } };
  const subject = await ready.subject(declared, { blueprintId: "reader" });
  const launch = await ready.preparation.prepare(aRun, subject, progress());
  assert.equal(launch.hasOwnPayload, true);
  const resources = join(ready.home, "runs/run_1/prepared/resources");
  assert.deepEqual(await readdir(resources), ["index"]);
  assert.equal(await readlink(join(resources, "index")), made);
  const missing = await empty.subject(declared, { blueprintId: "reader" });
  const { code, message } = await failure(empty.preparation.prepare(aRun, missing, progress()));
  assert.equal(code, "preparation.requirement_unmet");
  assert.match(message, /resource "index" is not prepared: add the blueprint reader again/);
  assert.deepEqual(await empty.leftovers(), []);
  await rm(made, { recursive: true });
});

test("models are links to their files, whichever blueprint brought them; one whose file is gone fails the run", async () => {
  const model = (assetId: string, recipe: string) => (blueprintId: string) =>
    ({ blueprintId, kind: "model", assetId, recipe, ready: true, bytes: 1, createdAtMs: 0 }) as const;
  const owned: Readonly<Record<string, readonly ReturnType<typeof model>[]>> = {
    another: [model("tiny", "a"), model("meta/llama", "b")],
    reader: [model("tiny", "c")],
  };
  const assets = async (blueprintId: string) => (owned[blueprintId] ?? []).map((made) => made(blueprintId));
  const modelOwners = async (modelId: string) => (modelId === "tiny" ? ["another", "reader"] : ["another"]);
  const files = new Map(["a", "b", "c"].map((sha256) => [sha256, `/models/${sha256}`]));
  await using place = await makeLaunchPlace({
    blueprints: { assets, modelOwners, installedModel: async () => null },
    modelFile: async (_modelId, sha256) => files.get(sha256) ?? null,
  });
  const models = [{ model_id: "tiny", path: "worker/run.py" }];
  const declared = { manifest: { models, requirements: { models: ["meta/llama"] } } };
  const subject = await place.subject(declared, { blueprintId: "reader" });
  const launch = await place.preparation.prepare(aRun, subject, progress());
  assert.equal(launch.hasOwnPayload, true);
  const folder = join(place.home, "runs/run_1/prepared/models");
  const links = (await readdir(folder)).map((name) => [name, readlinkSync(join(folder, name))]);
  assert.deepEqual(Object.fromEntries(links), { tiny: "/models/c", "meta%2Fllama": "/models/b" });

  const pinned = { ...declared.manifest, models: [{ ...models[0], sha256: "d".repeat(64) }] };
  const other = await place.subject({ manifest: pinned }, { blueprintId: "reader" });
  assert.match((await failure(place.preparation.prepare(aRun, other, progress()))).message, /model "tiny"/);
  files.delete("b");
  const { code, message } = await failure(place.preparation.prepare(aRun, subject, progress()));
  assert.equal(code, "preparation.requirement_unmet");
  assert.match(
    message,
    /model "meta\/llama", which is not installed: install it \(troupe models install meta\/llama\), add the blueprint reader again/,
  );
  assert.deepEqual(await place.leftovers(), []);
});

test("every model has a name of its own that stays in its folder", () => {
  for (const [id, name] of [
    ["llama-3.1_8b~q4", "llama-3.1_8b~q4"],
    ["meta/llama 3", "meta%2Fllama%203"],
    ["..", "%2E."],
    ["../x", "%2E.%2Fx"],
    ["100%'*", "100%25%27%2A"],
    ["größe", "gr%C3%B6%C3%9Fe"],
  ] as const) {
    assert.equal(modelName(id), name);
  }
  const long = ["é".repeat(128), `${"é".repeat(127)}e`].map(modelName);
  assert.ok(new Set(long).size === 2 && long.every((name) => /^[\w~-]{1,200}$/.test(name)), String(long));
});

test("a dashboard gets its node, its port and its files", async () => {
  await using place = await makeLaunchPlace();
  const subject = await place.subject({ config: { web_ui: { enabled: true, output: { title: "Read" } } } });
  assert.deepEqual((await place.preparation.check(subject)).webUi, {
    adapter: "dashboard",
    title: "Read",
    page: null,
  });
  const run = { ...aRun, ports: new Map([["web_ui", 61_007]]) };
  const launch = await place.preparation.prepare(run, subject, progress());
  assert.deepEqual(
    launch.graph.nodes.map(({ nodeId }) => nodeId),
    ["read", "blueprint_web_ui"],
  );
  assert.match(launch.manifestJson, /61007/);
  assert.ok(existsSync(join(payloadOf(place), "blueprint_web_ui/graph.json")));
});

test("a package that leaves no room for its dashboard is told before and after its run is accepted", async () => {
  await using place = await makeLaunchPlace();
  const node = { node_id: "blueprint_web_ui", agent_type: "router" };
  const nodes = [{ node_id: "read", agent_type: "router" }, node];
  const taken = await place.subject({ manifest: { nodes }, config: { web_ui: { enabled: true } } });
  const output = { adapter: "static_html", page: "site/index.html" };
  const config = { web_ui: { enabled: true, output } };
  const pageless = await place.subject({ config, payload: { "site/other.html": "" } });
  for (const subject of [taken, pageless]) {
    const { errors } = await place.preparation.check(subject);
    assert.deepEqual(
      errors.map(({ path, code }) => `${path} ${code}`),
      ["/config/default.json#/web_ui no_room_for_web_ui"],
    );
    const run = { ...aRun, ports: new Map([["web_ui", 61_007]]) };
    const { code } = await failure(place.preparation.prepare(run, subject, progress()));
    assert.equal(code, "manifest.invalid");
    assert.deepEqual(await place.leftovers(), []);
  }
  const whole = await place.subject({ config, payload: { "site/index.html": "" } });
  assert.deepEqual((await place.preparation.check(whole)).errors, []);
});

test("what has changed since the run was accepted fails it, with what and where", async () => {
  await using place = await makeLaunchPlace({
    services: servicesLacking((required) =>
      required.map(({ name }) => ({ service: name, reason: `${name} is gone.` })),
    ),
  });
  const gone = await place.subject({ config: { ...folderConfig, documents: { folder: "/no/such/folder" } } });
  const ofFolder = await failure(place.preparation.prepare(aRun, gone, progress()));
  assert.equal(ofFolder.code, "preparation.folder_failed");
  assert.match(ofFolder.message, /documents\.folder names a folder that does not exist on this machine/);
  const service = await place.subject({ manifest: { required_services: ["embedder"] } });
  const ofService = await failure(place.preparation.prepare(aRun, service, progress()));
  assert.equal(ofService.code, "service.required_unavailable");
  const invalid = await place.subject({ manifest: { config_schema: { required: ["title"] } } });
  const ofSchema = await failure(place.preparation.prepare(aRun, invalid, progress()));
  assert.deepEqual(
    [ofSchema.code, ofSchema.message],
    ["preparation.input_invalid", "/title is required and has no value"],
  );
  assert.deepEqual(await place.leftovers(), []);
});

test("a payload_path that leads to or through a file of the package fails the run instead of replacing the file", async () => {
  await using place = await makeLaunchPlace();
  const docs = await withDocs(place);
  const [declared] = folderConfig.local_inputs.folders;
  for (const path of ["run.py", "run.py/documents"]) {
    const folders = [{ ...declared, payload_path: `worker/${path}`, runtime_path: path }];
    const config = { documents: { folder: docs }, local_inputs: { folders } };
    const { code } = await failure(
      place.preparation.prepare(aRun, await place.subject({ config }), progress()),
    );
    assert.equal(code, "preparation.folder_failed");
    assert.deepEqual(await place.leftovers(), []);
  }
});

test("rules are applied to the staged configuration: one that requires a native path fails", async () => {
  await using place = await makeLaunchPlace();
  const docs = await withDocs(place);
  const rules = [{ path: "documents.folder", required: true, exists: "folder" }];
  const options = { config: { ...folderConfig, documents: { folder: docs } } };
  const both = await place.subject({ ...options, manifest: { input_validation: { rules } } });
  await place.preparation.prepare(aRun, both, progress());
  const nativeOnly = [{ path: "documents.folder", pattern: "^/" }];
  const subject = await place.subject({ ...options, manifest: { input_validation: { rules: nativeOnly } } });
  assert.deepEqual((await place.preparation.check(subject)).errors, []);
  const { code, message } = await failure(place.preparation.prepare(aRun, subject, progress()));
  assert.deepEqual([code, message], ["preparation.input_invalid", "documents.folder must match ^/"]);
});

test("an abort in the middle of a copy takes effect, and leaves nothing", async () => {
  await using place = await makeLaunchPlace();
  const docs = await withDocs(
    place,
    Object.fromEntries(Array.from({ length: 50 }, (_, i) => [`${i}.txt`, "x"])),
  );
  const subject = await place.subject({ config: { ...folderConfig, documents: { folder: docs } } });
  const abort = new AbortController();
  const reason = new Error("cancelled");
  const report = (label: string) => {
    if (/^Copying docs: 5 of/.test(label)) abort.abort(reason);
  };
  await assert.rejects(place.preparation.prepare(aRun, subject, { signal: abort.signal, report }), reason);
  assert.deepEqual(await place.leftovers(), []);
});

test("what a killed program has left is ignored: the next one prepares again", async () => {
  await using place = await makeLaunchPlace();
  const docs = await withDocs(place);
  const half = join(place.home, "runs/run_1/prepared.tmp/payload/worker");
  await mkdir(half, { recursive: true });
  await writeFile(join(half, "half.txt"), "half", { mode: 0o400 });
  await mkdir(join(payloadOf(place), "worker"), { recursive: true });
  await writeFile(join(payloadOf(place), "worker/stale.txt"), "stale");
  const subject = await place.subject({ config: { ...folderConfig, documents: { folder: docs } } });
  await place.preparation.prepare(aRun, subject, progress());
  assert.deepEqual((await readdir(join(payloadOf(place), "worker"))).sort(), ["mn_local_inputs", "run.py"]);
  assert.deepEqual(await readdir(join(place.home, "runs/run_1")), ["prepared"]);
});

test("what was prepared goes when its run has ended, and not before", async () => {
  await using place = await makeLaunchPlace();
  const docs = await withDocs(place);
  const subject = await place.subject({ config: { ...folderConfig, documents: { folder: docs } } });
  await place.preparation.prepare(aRun, subject, progress());
  place.feed.published("reader-1", 1, ['{"timestamp":"","type":"job_running","agent_id":null,"payload":{}}']);
  place.feed.published("reader-2", 1, [
    '{"timestamp":"","type":"job_completed","agent_id":null,"payload":{}}',
  ]);
  assert.ok(existsSync(payloadOf(place)));
  place.openRuns.delete("run_1");
  place.feed.published("reader-1", 2, ['{"timestamp":"","type":"job_failed","agent_id":null,"payload":{}}']);
  await until("the folder is gone", () => !existsSync(join(place.home, "runs/run_1/prepared")));
});

test("a start removes what ended runs have left, and keeps what open ones need until they end", async () => {
  await using place = await makeLaunchPlace();
  for (const run of ["run_1", "run_2", "run_3"])
    await mkdir(join(place.home, "runs", run, "shared"), { recursive: true });
  for (const run of ["run_1", "run_2"])
    await mkdir(join(place.home, "runs", run, "prepared/payload"), { recursive: true });
  await mkdir(join(place.home, "runs/run_2/prepared.tmp"));
  await place.again().sweep();
  assert.deepEqual(await readdir(join(place.home, "runs/run_2")), ["shared"]);
  assert.deepEqual((await readdir(join(place.home, "runs/run_1"))).sort(), ["prepared", "shared"]);
  place.openRuns.delete("run_1");
  place.feed.published("reader-1", 9, [
    '{"timestamp":"","type":"job_cancelled","agent_id":null,"payload":{}}',
  ]);
  await until("the folder is gone", () => !existsSync(join(place.home, "runs/run_1/prepared")));
});

test("a link that appears after the check still forbids the folder", async () => {
  await using place = await makeLaunchPlace();
  const docs = await withDocs(place);
  const subject = await place.subject({ config: { ...folderConfig, documents: { folder: docs } } });
  assert.deepEqual((await place.preparation.check(subject)).errors, []);
  await rm(join(docs, "a.txt"));
  await symlink("/etc/passwd", join(docs, "a.txt"));
  const { code, message } = await failure(place.preparation.prepare(aRun, subject, progress()));
  assert.equal(code, "preparation.folder_failed");
  assert.match(message, /symlink "a\.txt" leads out of it/);
});
