// What is taken of a user's folder, and what forbids it: links of every kind, names of every kind, bounds.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { chmod, mkdir, mkdtemp, realpath, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { type ScanOptions, scanFolder } from "./scan-folder.ts";

const never = new AbortController().signal;

interface Scene extends AsyncDisposable {
  readonly root: string;
  readonly outside: string;
  scan(options?: Partial<ScanOptions>): ReturnType<typeof scanFolder>;
}

/** @param links name in the folder and what it says; "OUTSIDE" stands for a folder beside it */
async function scene(files: Readonly<Record<string, string>>, links: Readonly<Record<string, string>> = {}) {
  const folder = await realpath(await mkdtemp(join(tmpdir(), "scan-")));
  const root = join(folder, "chosen");
  const outside = join(folder, "outside");
  await mkdir(root);
  await mkdir(outside);
  await writeFile(join(outside, "secret.txt"), "secret");
  for (const [path, content] of Object.entries(files)) {
    await mkdir(dirname(join(root, path)), { recursive: true });
    await writeFile(join(root, path), content);
  }
  for (const [path, target] of Object.entries(links)) {
    await symlink(target.replace("OUTSIDE", outside), join(root, path));
  }
  const made: Scene = {
    root,
    outside,
    scan: (options = {}) => scanFolder(root, { allowedExtensions: null, signal: never, ...options }),
    [Symbol.asyncDispose]: () => rm(folder, { recursive: true, force: true }),
  };
  return made;
}

const codesOf = ({ problems }: { problems: readonly { code: string }[] }) => problems.map(({ code }) => code);
const pathsOf = ({ files }: { files: readonly { path: string }[] }) => files.map(({ path }) => path);

test("every file below the folder is found, with its size, and files of other extensions are counted", async () => {
  await using place = await scene({
    "a.TXT": "1",
    "sub/b.txt": "22",
    "sub/c.bin": "333",
    ".hidden.txt": "4444",
  });
  const scan = await place.scan({ allowedExtensions: [".txt"] });
  assert.deepEqual(pathsOf(scan), [".hidden.txt", "a.TXT", "sub/b.txt"]);
  assert.equal(scan.bytes, 7);
  assert.deepEqual(scan.skipped, { byExtension: 1, special: 0 });
  assert.deepEqual(scan.problems, []);
});

test("names are taken as they are: unicode, line ends, leading dashes, quotes", async () => {
  const names = ["-rf.txt", "--help.txt", "a\nb.txt", "ä😀.txt", 'quo"te.txt', "sp ace.txt"];
  await using place = await scene(Object.fromEntries(names.map((name) => [name, "x"])));
  assert.deepEqual(new Set(pathsOf(await place.scan())), new Set(names));
});

for (const [what, links] of Object.entries({
  "an absolute link to a file": { "leak.txt": "OUTSIDE/secret.txt" },
  "a relative link to a file": { "leak.txt": "../outside/secret.txt" },
  "a link to a folder": { leak: "OUTSIDE" },
  "a link to the folder above": { up: ".." },
  "a link to nothing, outside": { "later.txt": "OUTSIDE/not-yet.txt" },
  "a link through a link": { hop: "OUTSIDE", "leak.txt": "hop/secret.txt" },
})) {
  test(`${what} that leaves the folder forbids it, and is named`, async () => {
    await using place = await scene({ "good.txt": "1" }, links);
    const { problems } = await place.scan();
    assert.ok(problems.length > 0 && problems.every(({ code }) => code === "symlink_leaves"));
    assert.match(problems[0]!.clause, new RegExp(`"${Object.keys(links)[0]}"`));
  });
}

test("a link is followed to its end, however many others lie on its way", async () => {
  await using place = await scene({ "sub/real.txt": "1" }, { inside: "sub", "two.txt": "inside/real.txt" });
  const scan = await place.scan();
  assert.deepEqual(codesOf(scan), []);
  assert.deepEqual(pathsOf(scan), ["sub/real.txt", "two.txt"]);
  assert.deepEqual(scan.links, [{ path: "inside", target: "sub" }]);
});

test("circular links, links to nothing inside, pipes and names that are not UTF-8 are skipped and counted", async () => {
  await using place = await scene(
    { "good.txt": "1" },
    { a: "b", b: "a", self: "self", later: "not-yet.txt" },
  );
  execFileSync("mkfifo", [join(place.root, "pipe")]);
  await writeFile(
    Buffer.concat([Buffer.from(`${place.root}/bad-`), Buffer.from([0xff]), Buffer.from(".txt")]),
    "x",
  );
  const scan = await place.scan();
  assert.deepEqual(codesOf(scan), []);
  assert.deepEqual(pathsOf(scan), ["good.txt"]);
  assert.equal(scan.skipped.special, 6);
});

test("a link to the folder itself does not make the walk endless", async () => {
  await using place = await scene({ "sub/good.txt": "1" }, { "sub/round": "..", here: "." });
  const scan = await place.scan();
  assert.deepEqual(pathsOf(scan), ["sub/good.txt"]);
  assert.deepEqual(new Set(scan.links.map(({ path }) => path)), new Set(["sub/round", "here"]));
});

test("more entries than the bound forbid the folder, in one large folder as in many small ones", async () => {
  const many = Object.fromEntries(Array.from({ length: 30 }, (_, i) => [`f${i}.txt`, ""]));
  await using flat = await scene(many);
  assert.deepEqual(codesOf(await flat.scan({ entriesMax: 29 })), ["too_many_files"]);
  assert.deepEqual(codesOf(await flat.scan({ entriesMax: 30 })), []);
  await using deep = await scene(Object.fromEntries(Array.from({ length: 15 }, (_, i) => [`d${i}/f`, ""])));
  assert.deepEqual(codesOf(await deep.scan({ entriesMax: 29 })), ["too_many_files"]);
  assert.deepEqual(codesOf(await deep.scan({ entriesMax: 30 })), []);
});

test("what may not be read forbids the folder, and is named", {
  skip: process.getuid?.() === 0 && "root may read",
}, async () => {
  await using place = await scene({ "closed.txt": "1", "sub/x.txt": "1" });
  await chmod(join(place.root, "closed.txt"), 0);
  await chmod(join(place.root, "sub"), 0);
  const { problems } = await place.scan();
  await chmod(join(place.root, "sub"), 0o700);
  assert.deepEqual(codesOf({ problems }), ["not_readable", "not_readable"]);
});

test("a scan ends with the reason of its signal", async () => {
  await using place = await scene({ "a.txt": "1" });
  const reason = new Error("cancelled");
  await assert.rejects(place.scan({ signal: AbortSignal.abort(reason) }), reason);
});
