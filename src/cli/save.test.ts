import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { after, before, describe, test } from "node:test";
import { type SavedFile, savedName, saveFiles } from "./save.ts";

let folder = "";
before(async () => {
  folder = await mkdtemp(join(tmpdir(), "troupe-save-"));
});
after(() => rm(folder, { recursive: true, force: true }));

function file(id: string, name: string, content: string): SavedFile & { readonly content: string } {
  const sha256 = createHash("sha256").update(content).digest("hex");
  return { artifact_id: id, name, sha256, url: "", content };
}

async function* bytesOf(text: string): AsyncGenerator<Uint8Array> {
  for (const letter of text) yield Buffer.from(letter);
}

const download = async ({ content }: { readonly content: string }) => bytesOf(content);

async function found(root: string): Promise<Record<string, string>> {
  const entries = await readdir(root, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
  const pairs = files
    .sort()
    .map(async (path) => [relative(root, path), await readFile(path, "utf8")] as const);
  return Object.fromEntries(await Promise.all(pairs));
}

describe("saving files", () => {
  test("each one is there whole, and nothing else is", async () => {
    const root = join(folder, "new", "whole");
    const files = [
      file("art_1", "a/report.md", "one"),
      file("art_2", "x.part", "two"),
      file("art_3", "x", "3"),
    ];
    const places = await saveFiles(files, download, root);
    assert.deepEqual(await found(root), { "a/report.md": "one", x: "3", "x.part": "two" });
    assert.equal(places.get("art_1"), join(root, "a/report.md"));
    assert.deepEqual((await readdir(root)).sort(), ["a", "x", "x.part"]);
  });
  test("no file is written through a link in the folder, nor through one that it is to replace", async () => {
    const [root, outside] = [join(folder, "new", "links"), join(folder, "new", "outside")];
    for (const path of [root, outside]) await mkdir(path, { recursive: true });
    await writeFile(join(outside, "kept"), "own");
    await symlink(outside, join(root, "sub"));
    await symlink(join(outside, "kept"), join(root, "file"));
    await assert.rejects(saveFiles([file("art_1", "sub/kept", "evil")], download, root), {
      name: "CommandFailed",
      message: /sub is a symlink, and nothing is written through one/,
    });
    await assert.rejects(
      saveFiles([file("art_1", "sub/deeper/new", "evil")], download, root),
      /is a symlink/,
    );
    await assert.rejects(saveFiles([file("art_1", "file", "new")], download, root), /is there already/);
    await saveFiles([file("art_1", "file", "new")], download, root, true);
    assert.deepEqual(await found(outside), { kept: "own" });
    assert.equal(await readFile(join(root, "file"), "utf8"), "new");
  });
  test("of several files of one name the newest has it, in whatever order they come", async () => {
    const root = join(folder, "new", "again");
    const files = [
      file("art_1", "summary", "old"),
      file("art_3", "summary", "new"),
      file("art_2", "summary", "mid"),
    ];
    await saveFiles(files, download, root);
    assert.deepEqual(await found(root), { summary: "new", "art_1/summary": "old", "art_2/summary": "mid" });
  });
  test("no name leads out of the folder, an id neither", async () => {
    const root = join(folder, "hostile");
    const names = ["../../out", "/etc/out", "a/../../../out", "..", "", "out/", "out/deeper"];
    const files = names.map((name, i) => file(`../../${i}`, name, String(i)));
    const places = await saveFiles(files, download, root);
    for (const place of places.values()) assert.ok(place.startsWith(`${root}/`), place);
    assert.equal(Object.keys(await found(root)).length, names.length);
    assert.deepEqual(await readdir(folder), ["hostile", "new"]);
  });
  test("a file whose checksum does not match does not appear", async () => {
    const root = join(folder, "changed");
    await assert.rejects(saveFiles([{ ...file("art_1", "a", "good"), content: "evil" }], download, root), {
      name: "CommandFailed",
      message: /Saving .*changed\/a failed: its checksum does not match/,
    });
    assert.deepEqual(await readdir(root), []);
  });
  test("a connection that is lost half way leaves the old file and no partial one", async () => {
    const root = join(folder, "lost");
    await saveFiles([file("art_1", "a", "old")], download, root);
    const lost = async () =>
      (async function* () {
        yield Buffer.from("ne");
        throw new Error("terminated");
      })();
    await assert.rejects(saveFiles([file("art_1", "a", "new")], lost, root), {
      name: "CommandFailed",
      message: /Saving .*lost\/a failed: terminated/,
    });
    assert.deepEqual(await found(root), { a: "old" });
    assert.deepEqual(await readdir(root), ["a"]);
  });
  test("a refusal of the server is passed on as it is", async () => {
    const refusal = new Error("gone");
    const refused = async () => {
      throw refusal;
    };
    await assert.rejects(saveFiles([file("art_1", "a", "")], refused, join(folder, "refused")), refusal);
  });
  test("a folder that cannot be made is named", async () => {
    await writeFile(join(folder, "taken"), "");
    await assert.rejects(saveFiles([file("art_1", "a", "")], download, join(folder, "taken")), {
      name: "CommandFailed",
      message: /Saving .*taken failed: /,
    });
  });
});

test("names that would be in each other's way are parted, whatever their case", () => {
  const taken = new Set<string>();
  const names = ["a", "A", "a/b", "c/d", "C", "a"].map((name, i) =>
    savedName({ artifact_id: `art_${i}`, name }, taken),
  );
  assert.deepEqual(names, ["a", "art_1/A", "art_2/a/b", "c/d", "art_4/C", "art_5/a"]);
  assert.equal(savedName({ artifact_id: "art_1", name: "a" }, taken), "art_1-2/a");
});
