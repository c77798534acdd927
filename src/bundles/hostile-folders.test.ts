// Goal: nothing outside a folder gets into its bundle, and its author learns everything that is wrong.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readdir, symlink, truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import {
  BUNDLE_BYTES_MAX,
  bundleFiles,
  type Files,
  makePlace,
  manifestJson,
  refusals,
  writeFiles,
} from "../../test/support/bundles.ts";
import { BundleProblem } from "./problem.ts";

async function refusalsOf(files: Files, prepare: (path: string) => Promise<unknown> = async () => {}) {
  await using place = await makePlace();
  const path = await writeFiles(join(place.folder, "b"), files);
  await prepare(path);
  const refused = await refusals(place.bundles.registerFolder({ path }));
  assert.deepEqual(await readdir(join(place.home, "bundles")), ["incoming"]);
  assert.deepEqual(await readdir(join(place.home, "bundles/incoming")), []);
  assert.deepEqual(await place.bundles.list({ limit: 1, after: null }), []);
  return refused;
}

test("a folder that is not there, is a file, or is named relatively is refused", async () => {
  await using place = await makePlace();
  const file = join(place.folder, "x.zip");
  await writeFile(file, "");
  const register = (path: string) => refusals(place.bundles.registerFolder({ path, bundleId: "x" }));
  assert.deepEqual(await register(join(place.folder, "nowhere")), [" folder_missing"]);
  assert.deepEqual(await register(file), [" not_a_folder"]);
  assert.deepEqual(await register("b"), [" not_absolute"]);
  assert.deepEqual(await register("/b\0"), [" not_absolute"]);
});

test("a bundle_id that cannot be part of a URL is refused, also when it is the folder's name", async () => {
  await using place = await makePlace();
  const path = await writeFiles(join(place.folder, "my bundle"), bundleFiles());
  assert.deepEqual(await refusals(place.bundles.registerFolder({ path })), ["/bundle_id invalid_bundle_id"]);
  for (const bundleId of ["", "a/b", "..", "é", "x".repeat(129)]) {
    assert.deepEqual(await refusals(place.bundles.registerFolder({ path, bundleId })), [
      "/bundle_id invalid_bundle_id",
    ]);
    assert.deepEqual(await refusals(place.bundles.registerZip({ file: path, bundleId })), [
      "/bundle_id invalid_bundle_id",
    ]);
  }
});

test("a folder without a manifest, or with one that is no file, is refused", async () => {
  assert.deepEqual(await refusalsOf({ "payloads/x": "" }), ["/manifest.json missing_manifest"]);
  assert.deepEqual(await refusalsOf({ "manifest.json/x": "" }), ["/manifest.json missing_manifest"]);
});

test("a file in the place of the payload's folder is refused", async () => {
  const refused = await refusalsOf({ "manifest.json": manifestJson, payloads: "" });
  assert.deepEqual(refused, ["/payloads not_a_folder"]);
});

test("JSON files that cannot be read as JSON objects are refused, each", async () => {
  const files = { "manifest.json": "{", "config/default.json": "[]", "config/overwrite.json": "{}x" };
  assert.deepEqual(await refusalsOf(files), [
    "/manifest.json invalid_json",
    "/config/default.json wrong_type",
    "/config/overwrite.json invalid_json",
  ]);
  const deep = `${"[".repeat(101)}${"]".repeat(101)}`;
  assert.deepEqual(await refusalsOf({ "manifest.json": deep }), ["/manifest.json invalid_json"]);
  assert.deepEqual(await refusalsOf({ "manifest.json": "3" }), ["/manifest.json wrong_type"]);
  const toBytes = (path: string) => writeFile(join(path, "manifest.json"), Buffer.from([0x7b, 0xff, 0x7d]));
  assert.deepEqual(await refusalsOf({ "manifest.json": "" }, toBytes), ["/manifest.json invalid_utf8"]);
});

test("an error in JSON is reported with its position", async () => {
  await using place = await makePlace();
  const path = await writeFiles(join(place.folder, "b"), { "manifest.json": '{"graph_id": }' });
  await assert.rejects(place.bundles.registerFolder({ path }), {
    message: /manifest\.json is no JSON.*Unexpected token '}', "{"graph_id": }"/,
  });
});

test("every problem of the manifest is named, with the manifest API's text", async () => {
  await using place = await makePlace();
  const path = await writeFiles(join(place.folder, "b"), {
    "manifest.json": '{"manifest_version":"1.0","nodes":[]}',
  });
  await assert.rejects(place.bundles.registerFolder({ path }), (error) => {
    assert.ok(error instanceof BundleProblem);
    assert.match(
      error.message,
      /^Invalid manifest: graph_id is missing.*; nodes is empty.*; entrypoints is missing/,
    );
    assert.deepEqual(
      error.problems.map((problem) => problem.path),
      ["/graph_id", "/nodes", "/entrypoints"],
    );
    return true;
  });
});

test("problems of the manifest and of the configuration come together", async () => {
  const files = { "manifest.json": manifestJson.replace('"1.0"', '"9"'), "config/default.json": "x" };
  assert.deepEqual(await refusalsOf(files), [
    "/config/default.json invalid_json",
    "/manifest_version unknown_version",
  ]);
});

test("a symlink to outside is refused, with every other one named beside it", async () => {
  const refused = await refusalsOf(bundleFiles(), async (path) => {
    await symlink("/etc/passwd", join(path, "payloads/a"));
    await symlink("../..", join(path, "payloads/b"));
    await symlink("nowhere", join(path, "payloads/c"));
    await symlink("d", join(path, "payloads/d"));
    await symlink("../payloads", join(path, "payloads/e"));
    await symlink("..", join(path, "payloads/worker/f"));
  });
  assert.deepEqual(refused, [
    "/payloads/a link_outside",
    "/payloads/b link_outside",
    "/payloads/c unreadable",
    "/payloads/d unreadable",
    "/payloads/e link_cycle",
    "/payloads/worker/f link_cycle",
  ]);
});

test("a folder whose name only begins like the bundle's is outside", async () => {
  const refused = await refusalsOf(bundleFiles(), async (path) => {
    await writeFiles(`${path}-secret`, { x: "" });
    await symlink(`${path}-secret/x`, join(path, "payloads/a"));
  });
  assert.deepEqual(refused, ["/payloads/a link_outside"]);
});

test("a pipe is refused instead of waited for", async () => {
  const refused = await refusalsOf(bundleFiles(), async (path) => {
    execFileSync("mkfifo", [join(path, "payloads/pipe")]);
  });
  assert.deepEqual(refused, ["/payloads/pipe special_file"]);
});

test("a folder above the runtime's own data is refused", async () => {
  await using place = await makePlace();
  await writeFiles(place.folder, bundleFiles());
  assert.deepEqual(await refusals(place.bundles.registerFolder({ path: place.folder, bundleId: "x" })), [
    " contains_home",
  ]);
});

test("a folder larger than 20 times the limit is refused before it is copied", async () => {
  const grow = (by: number) => (path: string) => truncate(join(path, "payloads/big"), by);
  const room = BUNDLE_BYTES_MAX * 20 - manifestJson.length - 9;
  assert.deepEqual(await refusalsOf(bundleFiles({ "payloads/big": "" }), grow(room + 1)), [" too_large"]);
  await using place = await makePlace();
  const path = await writeFiles(join(place.folder, "b"), bundleFiles({ "payloads/big": "" }));
  await grow(room)(path);
  assert.equal((await place.bundles.registerFolder({ path })).sizeBytes, BUNDLE_BYTES_MAX * 20);
});

test("links that multiply a folder end at the limit of entries", async () => {
  const refused = await refusalsOf(bundleFiles(), async (path) => {
    // 200 files seen through 101 links; their names are refused, which is quicker than to look at each.
    await writeFiles(path, Object.fromEntries(Array.from({ length: 200 }, (_, i) => [`files/\n${i}`, ""])));
    for (let i = 0; i < 101; i++) await symlink("files", join(path, `link${i}`));
  });
  assert.deepEqual(refused, [" too_many_entries"]);
});

test("a name that no other system could hold is refused", async () => {
  assert.deepEqual(await refusalsOf(bundleFiles({ "payloads/a\nb": "" })), ["/payloads/a\nb invalid_name"]);
});
