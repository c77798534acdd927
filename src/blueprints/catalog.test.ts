// The catalog over real folders: what is a blueprint, what is broken, and who wins where two have one id.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { chmod, mkdir, mkdtemp, rename, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, test } from "node:test";
import type { JsonValue } from "../engine/json.ts";
import { Catalog } from "./catalog.ts";
import type { CatalogEntry } from "./catalog-entry.ts";

const root = await mkdtemp(join(tmpdir(), "catalog-"));
after(() => rm(root, { recursive: true, force: true }));

let count = 0;
/** A catalog folder of this test's own, with files in it; what is no text becomes JSON. */
async function folderWith(files: Readonly<Record<string, JsonValue>>, name = "catalog"): Promise<string> {
  const folder = join(root, String(count++), name);
  await mkdir(folder, { recursive: true });
  await write(folder, files);
  return folder;
}

async function write(folder: string, files: Readonly<Record<string, JsonValue>>): Promise<void> {
  for (const [path, content] of Object.entries(files)) {
    const file = join(folder, path);
    await mkdir(dirname(file), { recursive: true });
    await writeFile(file, typeof content === "string" ? content : JSON.stringify(content));
  }
}

const manifest = (more: Readonly<Record<string, JsonValue>> = {}) => ({
  manifest_version: "1.0",
  graph_id: "graph",
  entrypoints: ["in"],
  nodes: [{ node_id: "in", agent_type: "router" }],
  ...more,
});
const withId = (blueprintId: string) => manifest({ metadata: { blueprint_id: blueprintId } });

/** A catalog whose clock the test moves. */
function catalogOf(...folders: readonly string[]) {
  let nowMs = 1_000_000;
  const catalog = new Catalog({ folders, nowMs: () => nowMs, changes: { of: async () => [] } });
  return {
    catalog,
    wait: (ms: number) => {
      nowMs += ms;
    },
  };
}

const kinds = (entries: readonly CatalogEntry[]) =>
  entries.map(({ blueprintId, kind }) => `${blueprintId} ${kind}`);
const codes = (entry: CatalogEntry | null | undefined) =>
  entry?.problems.map(({ path, code }) => `${path} ${code}`);

test("every folder with a manifest is a blueprint, in the order of the ids", async () => {
  const folder = await folderWith({
    "b/manifest.json": withId("zebra"),
    "c/manifest.json": manifest(),
    "no-manifest/readme.txt": "nothing",
    ".hidden/manifest.json": manifest(),
    "node_modules/manifest.json": manifest(),
    "manifest.json": manifest(),
    "c/config/default.json": { identity: { name: "See" } },
  });
  const { catalog } = catalogOf(folder);
  assert.deepEqual(kinds(await catalog.entries()), ["c whole", "zebra whole"]);
  const entry = await catalog.find("c");
  assert.deepEqual([entry?.identity.name, entry?.place], ["See", "catalog/c"]);
  assert.equal(entry?.definition?.graph.graphId, "graph");
  assert.equal(await catalog.find("nobody"), null);
  assert.deepEqual(await catalog.problems(), []);
});

test("a broken one has an id, its name and all its problems, and hides no other", async () => {
  const folder = await folderWith({
    "fine/manifest.json": withId("fine"),
    "Two Mistakes/manifest.json": manifest({ nodes: [], type: "job", metadata: { name: "Two" } }),
    "no-json/manifest.json": "{",
    "no-json/config/default.json": "[",
    "wrong-config/manifest.json": manifest(),
    "wrong-config/config/default.json": { identity: { blueprint_id: "known" }, web_ui: 1 },
  });
  const { catalog } = catalogOf(folder);
  assert.deepEqual(kinds(await catalog.entries()), [
    "fine whole",
    "known broken",
    "no-json broken",
    "two-mistakes broken",
  ]);
  const two = await catalog.find("two-mistakes");
  assert.equal(two?.identity.name, "Two");
  assert.deepEqual(codes(two), ["/type unknown_value", "/nodes empty"]);
  assert.deepEqual(codes(await catalog.find("no-json")), [
    "/manifest.json invalid_json",
    "/config/default.json invalid_json",
  ]);
  assert.deepEqual(codes(await catalog.find("known")), ["/config/default.json#/web_ui wrong_type"]);
});

test("of two with one id the first valid one is used, with a warning that names the other", async () => {
  const first = await folderWith(
    { "a/manifest.json": withId("same"), "b/manifest.json": withId("same") },
    "first",
  );
  const second = await folderWith({ "c/manifest.json": withId("same") }, "second");
  const { catalog } = catalogOf(first, second);
  const [entry, ...others] = await catalog.entries();
  assert.deepEqual([others, entry?.place, entry?.kind], [[], "first/a", "whole"]);
  assert.deepEqual(
    entry?.warnings.map(({ code, message }) => [code, /^"([^"]+)"/.exec(message)?.[1]]),
    [
      ["duplicate_id", "first/b"],
      ["duplicate_id", "second/c"],
    ],
  );
});

test("a broken one does not take the id of a whole one that comes later", async () => {
  const first = await folderWith({ "a/manifest.json": { ...withId("same"), nodes: 1 } }, "first");
  const second = await folderWith({ "b/manifest.json": withId("same") }, "second");
  const { catalog } = catalogOf(first, second);
  const entry = await catalog.find("same");
  assert.deepEqual([entry?.kind, entry?.place], ["whole", "second/b"]);
  assert.match(entry?.warnings[0]?.message ?? "", /"first\/a".* is broken: .*nodes/);
});

test("an index names the blueprints, in its order, as texts or objects; others are left out", async () => {
  const folder = await folderWith({
    "index.json": { blueprints: ["deep/b", { path: "a" }, "deep/b", "gone"] },
    "a/manifest.json": withId("same"),
    "deep/b/manifest.json": withId("same"),
    "c/manifest.json": manifest(),
  });
  const { catalog } = catalogOf(folder);
  assert.deepEqual(kinds(await catalog.entries()), ["gone broken", "same whole"]);
  assert.equal((await catalog.find("same"))?.place, "catalog/deep/b");
  assert.deepEqual(codes(await catalog.find("gone")), ["/manifest.json missing_manifest"]);
});

test("an index that is a list is read as the list of folders", async () => {
  const folder = await folderWith({
    "index.json": ["a"],
    "a/manifest.json": manifest(),
    "b/manifest.json": manifest(),
  });
  const { catalog } = catalogOf(folder);
  assert.deepEqual(kinds(await catalog.entries()), ["a whole"]);
  assert.deepEqual(await catalog.problems(), []);
});

test("an index that leads outside, or is no index, is a problem of the catalog; other folders are shown", async () => {
  const fine = await folderWith({ "fine/manifest.json": manifest() }, "fine-ones");
  const outside = await folderWith({ "x/manifest.json": manifest() }, "outside");
  const wrong: readonly (readonly [JsonValue, readonly string[]])[] = [
    ["{", ["invalid_json"]],
    ["a", ["invalid_json"]],
    [{ blueprints: {} }, ["wrong_type"]],
    [{ blueprints: ["../outside/x", "/etc", "", 1, ".", { path: null }] }, new Array(6).fill("invalid_path")],
    [{ blueprints: ["link/x"] }, ["link_outside"]],
  ];
  for (const [index, expected] of wrong) {
    const folder = await folderWith({ "index.json": index, "a/manifest.json": manifest() });
    await symlink(outside, join(folder, "link"));
    const { catalog } = catalogOf(folder, fine);
    assert.deepEqual(kinds(await catalog.entries()), ["fine whole"]);
    const problems = await catalog.problems();
    assert.deepEqual(
      problems.map(({ code }) => code),
      expected,
    );
    for (const { message } of problems) assert.ok(!message.includes(root), message);
  }
});

test("a catalog folder that is not there is a problem of its own", async () => {
  const fine = await folderWith({ "fine/manifest.json": manifest() });
  const { catalog } = catalogOf(join(root, "nowhere"), fine, join(fine, "fine/manifest.json"));
  assert.deepEqual(kinds(await catalog.entries()), ["fine whole"]);
  assert.deepEqual(
    (await catalog.problems()).map(({ catalog: name, code }) => `${name} ${code}`),
    ["nowhere missing", "manifest.json missing"],
  );
});

test("a link or a place in the index that cannot be followed hides no other blueprint", async () => {
  const unreachable = "x".repeat(300);
  const found = await folderWith({ "whole/manifest.json": withId("whole") });
  await symlink(unreachable, join(found, "link"));
  const indexed = await folderWith({
    "good/manifest.json": withId("good"),
    "index.json": { blueprints: [unreachable, "loop", "good"] },
  });
  await symlink("loop", join(indexed, "loop"));
  const { catalog } = catalogOf(found, indexed);
  assert.deepEqual(kinds(await catalog.entries()), ["good whole", "whole whole"]);
  const problems = await catalog.problems();
  assert.deepEqual(
    problems.map(({ code }) => code),
    ["unreadable", "unreadable", "unreadable"],
  );
});

test("links are followed inside the catalog folder only", async () => {
  const outside = await folderWith({ "x/manifest.json": withId("outside") }, "outside");
  const folder = await folderWith({ "real/manifest.json": withId("real") });
  await symlink(join(folder, "real"), join(folder, "again"));
  await symlink(join(outside, "x"), join(folder, "escape"));
  await symlink("loop", join(folder, "loop"));
  await symlink("nothing", join(folder, "dangling"));
  const { catalog } = catalogOf(folder);
  assert.deepEqual(kinds(await catalog.entries()), ["real whole"]);
  assert.deepEqual((await catalog.entries())[0]?.warnings, []);
  assert.deepEqual(
    (await catalog.problems()).map(({ code }) => code),
    ["link_outside"],
  );
});

test("nothing outside a blueprint's folder is read, and no pipe is waited for", async () => {
  const folder = await folderWith({
    "secret.txt": "root:x:0:0",
    "linked/config/default.json": {},
    "piped/manifest.json": manifest(),
    "piped/config/x": "",
  });
  await symlink(join(folder, "secret.txt"), join(folder, "linked/manifest.json"));
  execFileSync("mkfifo", [join(folder, "piped/config/default.json")]);
  const { catalog } = catalogOf(folder);
  assert.deepEqual(codes(await catalog.find("linked")), ["/manifest.json link_outside"]);
  assert.deepEqual(codes(await catalog.find("piped")), ["/config/default.json not_a_file"]);
  assert.ok(!JSON.stringify(await catalog.entries()).includes("root:x"));
});

test("a file that may not be read makes its blueprint broken", {
  skip: process.getuid?.() === 0,
}, async () => {
  const folder = await folderWith({ "a/manifest.json": manifest() });
  await chmod(join(folder, "a/manifest.json"), 0o000);
  const { catalog, wait } = catalogOf(folder);
  assert.deepEqual(kinds(await catalog.entries()), ["a broken"]);
  await chmod(join(folder, "a/manifest.json"), 0o644);
  wait(1_000);
  assert.deepEqual(kinds(await catalog.entries()), ["a whole"]);
});

test("what has changed is seen a second later, and what has not is the same definition", async () => {
  const folder = await folderWith({ "a/manifest.json": manifest(), "b/manifest.json": manifest() });
  const { catalog, wait } = catalogOf(folder);
  const [a, b] = await catalog.entries();
  await write(folder, {
    "a/config/default.json": { identity: { name: "New" } },
    "c/manifest.json": manifest(),
  });
  wait(999);
  assert.equal((await catalog.entries()).length, 2, "it is looked at once a second");
  wait(1);
  const [newA, sameB, c] = await catalog.entries();
  assert.deepEqual([newA?.identity.name, c?.blueprintId], ["New", "c"]);
  assert.equal(sameB?.definition, b?.definition);
  assert.notEqual(newA?.definition, a?.definition);
  await rm(join(folder, "a"), { recursive: true });
  await rename(join(folder, "b"), join(folder, "d"));
  wait(1_000);
  assert.deepEqual(kinds(await catalog.entries()), ["c whole", "d whole"]);
});

test("a file that was replaced by one of the same size is read again", async () => {
  const folder = await folderWith({ "a/manifest.json": manifest({ job_name: "one" }) });
  const { catalog, wait } = catalogOf(folder);
  assert.equal((await catalog.find("a"))?.identity.name, "one");
  await write(folder, { "a/next.json": manifest({ job_name: "two" }) });
  await rename(join(folder, "a/next.json"), join(folder, "a/manifest.json"));
  wait(1_000);
  assert.equal((await catalog.find("a"))?.identity.name, "two");
});

test("concurrent calls share one scan", async () => {
  const folder = await folderWith({ "a/manifest.json": manifest() });
  const { catalog } = catalogOf(folder);
  const answers = await Promise.all([catalog.entries(), catalog.entries(), catalog.find("a")]);
  assert.equal(answers[0], answers[1]);
  assert.equal(answers[0]?.[0], answers[2]);
});

test("a catalog folder with more than 1,000 folders shows the first of them, with a problem", async () => {
  const names = Array.from({ length: 1_001 }, (_, i) => `b${String(i).padStart(4, "0")}`);
  const folder = await folderWith({ "b0999/manifest.json": manifest(), "b1000/manifest.json": manifest() });
  for (const name of names) await mkdir(join(folder, name), { recursive: true });
  const { catalog } = catalogOf(folder);
  assert.deepEqual(kinds(await catalog.entries()), ["b0999 whole"]);
  assert.deepEqual(
    (await catalog.problems()).map(({ code }) => code),
    ["too_many"],
  );
});
