// Backups and restores on real files and real SQLite: what is removed meanwhile, what is damaged, hostile, cut off.

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { createWriteStream, existsSync, rmSync } from "node:fs";
import { mkdir, mkdtemp, readdir, readFile, rm, stat, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import type { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { after, test } from "node:test";
import { ZipFile } from "yazl";
import { checkHomeState } from "../store/home.ts";
import { openSqlite } from "../store/sqlite/database.ts";
import { contentNamedIn } from "../store/sqlite/database-copy.ts";
import { backUp } from "./backup.ts";
import { ABOUT_FILE, DATABASE_FILE, FORMAT, fileTypes, SUMS_FILE, sumLine } from "./layout.ts";
import { restore } from "./restore.ts";

const scratch = await mkdtemp(join(tmpdir(), "troupe-backup-"));
after(() => rm(scratch, { recursive: true }));
const still = new AbortController().signal;
let places = 0;
const newPlace = () => join(scratch, String(++places));

const sha256 = (text: string | Buffer) => createHash("sha256").update(text).digest("hex");
const blobPath = (text: string) => `blobs/${sha256(text).slice(0, 2)}/${sha256(text)}`;

/** A home with so many blobs, a snapshot with an empty folder, a resource and a model. */
async function newHome(blobs: number) {
  const home = newPlace();
  const put = async (path: string, text: string, mode = 0o444) => {
    await mkdir(dirname(join(home, path)), { recursive: true });
    await writeFile(join(home, path), text, { mode });
  };
  await mkdir(home);
  const database = openSqlite(join(home, "troupe.db"));
  const add = database.connection.prepare(
    `INSERT INTO artifacts (run_id, artifact_id, job_id, name, kind, is_primary, size, sha256, content_type, created_at)
     VALUES ('run', ?, 'job', 'a', 'artifact', 0, 1, ?, 'text/plain', 1)`,
  );
  for (let i = 0; i < blobs; i++) {
    add.run(String(i), sha256(`blob ${i}`));
    await put(blobPath(`blob ${i}`), `blob ${i}`);
  }
  const fingerprint = sha256("a snapshot");
  database.connection.exec(
    `INSERT INTO bundles VALUES ('b', '${fingerprint}', 'g', 'n', 'zip', NULL, 1, 1, 1);
     INSERT INTO blueprint_assets VALUES ('My blueprint', 'resource', 'index', 'r', 1, 1, 1);
     INSERT INTO blueprint_assets VALUES ('my', 'model', 'tiny/model', '${sha256("weights")}', 1, 1, 1);
     INSERT INTO model_installations VALUES ('i', 'own', 'n', 'installed', 'op', '${sha256("own")}', 3, 0, NULL, 1, 1, 1)`,
  );
  await put(`bundles/${fingerprint}/manifest.json`, "{}");
  await put(`bundles/${fingerprint}/run.sh`, "#!/bin/sh\n", 0o555);
  await mkdir(join(home, `bundles/${fingerprint}/payloads`));
  const paths = [...contentNamedIn(join(home, "troupe.db"))].map(({ path }) => path);
  const resource = paths.find((path) => path.startsWith("resources/"))!;
  const model = paths.find((path) => path.startsWith("models/"))!;
  await put(`${resource}~1/a strange\\name 100%`, "made");
  await symlink("index~1", join(home, resource));
  await symlink(join(home, blobPath("blob 0")), join(home, `${resource}~1/into the home`));
  await put(model, "weights");
  await put(`models/own/${sha256("own")}`, "own");
  await put("evidence/run/events.jsonl", "a cache");
  await put("secret.key", `${Buffer.alloc(32, 7).toString("base64")}\n`);
  await database.close();
  return { home, fingerprint, resource };
}

async function backedUp(
  home: string,
  more: { withKey?: boolean; withArtifacts?: boolean; signal?: AbortSignal } = {},
) {
  const file = `${newPlace()}.zip`;
  const request = {
    home,
    file,
    withKey: false,
    withArtifacts: true,
    version: "1",
    createdAt: "now",
    signal: still,
    ...more,
  };
  return { file, report: await backUp(request) };
}

async function restored(file: string) {
  const home = newPlace();
  return { home, report: await restore({ file, home, signal: still }) };
}

test("without the contents of artifacts, which a store of its own has, it misses none of them", async () => {
  const { home } = await newHome(3);
  await rm(join(home, "blobs"), { recursive: true });
  const { file, report } = await backedUp(home, { withArtifacts: false });
  assert.deepEqual([report.missing, report.damaged], [[], []]);
  const { home: copy } = await restored(file);
  assert.ok(!existsSync(join(copy, "blobs")));
  assert.ok(existsSync(join(copy, "bundles")));
});

test("all content that rows reference comes back, private, and nothing else", async () => {
  const { home, fingerprint, resource } = await newHome(50);
  const { file, report } = await backedUp(home);
  assert.deepEqual([report.missing, report.damaged, report.hasKey], [[], [], false]);
  assert.equal((await stat(file)).mode & 0o777, 0o600);
  assert.deepEqual(
    (await readdir(dirname(file))).filter((name) => name.startsWith(".")),
    [],
  );
  const { home: copy, report: back } = await restored(file);
  assert.deepEqual([back.missing, back.files], [[], report.files]);
  assert.deepEqual((await readdir(copy)).sort(), [
    "blobs",
    "bundles",
    "lock.db",
    "models",
    "resources",
    "troupe.db",
  ]);
  for (const { path } of contentNamedIn(join(copy, "troupe.db"))) await stat(join(copy, path));
  assert.equal(await readFile(join(copy, "models/own", sha256("own")), "utf8"), "own");
  assert.equal(await readFile(join(copy, blobPath("blob 49")), "utf8"), "blob 49");
  assert.deepEqual(await readdir(join(copy, `bundles/${fingerprint}/payloads`)), []);
  assert.equal((await stat(join(copy, `bundles/${fingerprint}/run.sh`))).mode & 0o777, 0o500);
  assert.equal((await stat(join(copy, blobPath("blob 1")))).mode & 0o777, 0o400);
  assert.equal(await readFile(join(copy, `${resource}/a strange\\name 100%`), "utf8"), "made");
  assert.equal(await readFile(join(copy, `${resource}/into the home`), "utf8"), "blob 0");
  await rm(home, { recursive: true });
  assert.equal(
    await readFile(join(copy, `${resource}/into the home`), "utf8"),
    "blob 0",
    "a link into its own home",
  );
});

test("content removed during the backup is not referenced by its database", async () => {
  const { home } = await newHome(50);
  const database = new DatabaseSync(join(home, "troupe.db"));
  const { signal } = new AbortController();
  let asked = 0;
  // It is asked before each file: a program that removes runs meanwhile, and stores new ones.
  signal.throwIfAborted = () => {
    if (++asked !== 20) return;
    database.exec("BEGIN; DELETE FROM artifacts WHERE CAST(artifact_id AS INTEGER) >= 10; COMMIT");
    for (let i = 10; i < 50; i++) rmSync(join(home, blobPath(`blob ${i}`)));
  };
  const { file, report } = await backedUp(home, { signal });
  database.close();
  assert.ok(asked > 20);
  assert.deepEqual(report.missing, []);
  const { home: copy, report: back } = await restored(file);
  assert.deepEqual(back.missing, []);
  const names = [...contentNamedIn(join(copy, "troupe.db"))].filter(({ kind }) => kind === "blob");
  assert.equal(names.length, 10);
});

test("missing and damaged content of the home is reported; the rest is backed up", async () => {
  const { home } = await newHome(3);
  rmSync(join(home, blobPath("blob 0")));
  await rm(join(home, blobPath("blob 1")));
  await writeFile(join(home, blobPath("blob 1")), "bit rot");
  const { file, report } = await backedUp(home);
  assert.deepEqual(report.missing, [blobPath("blob 0")]);
  assert.deepEqual(report.damaged, [blobPath("blob 1")]);
  assert.deepEqual((await restored(file)).report.missing, [blobPath("blob 0")]);
});

test("the key is in it only when it was asked for, and must be the one that the home has", async () => {
  const { home } = await newHome(1);
  const { file } = await backedUp(home, { withKey: true });
  const { home: copy } = await restored(file);
  assert.deepEqual(await readFile(join(copy, "secret.key")), await readFile(join(home, "secret.key")));
  const other = newPlace();
  await mkdir(other);
  await writeFile(join(other, "secret.key"), "another");
  await assert.rejects(restore({ file, home: other, signal: still }), { message: /another secret\.key/ });
  assert.deepEqual((await readdir(other)).sort(), ["lock.db", "secret.key"]);
});

test("a restore needs an empty home; the remains of an interrupted restore are removed", async () => {
  const { file } = await backedUp((await newHome(1)).home);
  const { home } = await restored(file);
  await assert.rejects(restore({ file, home, signal: still }), { message: /is not empty: it holds blobs/ });
  // As if the kill had come between the last two steps: all is in its place, but for the mark.
  await mkdir(join(home, "restoring"));
  await writeFile(join(home, "blobs/of the cut one"), "");
  assert.throws(() => checkHomeState(home), {
    message: /a restore that was interrupted.*troupe restore FILE/,
  });
  await restore({ file, home, signal: still });
  checkHomeState(home);
  assert.ok(!(await readdir(join(home, "blobs"))).includes("of the cut one"));
});

test("an archive that is cut, changed or none at all is refused, and leaves the home empty", async () => {
  const { file } = await backedUp((await newHome(20)).home);
  const bytes = await readFile(file);
  const changed = (at: number) => {
    const copy = Buffer.from(bytes);
    copy[at] = (copy[at] ?? 0) ^ 1;
    return copy;
  };
  const damages: readonly (readonly [string, Buffer, RegExp])[] = [
    ["cut", bytes.subarray(0, bytes.length - 100), /is no backup/],
    ["cut early", bytes.subarray(0, 5_000), /is no backup/],
    [
      "a blob",
      changed(bytes.indexOf("blob 7")),
      new RegExp(`${sha256("blob 7")} is not what SHA256SUMS says`),
    ],
    ["the sums", changed(bytes.indexOf(`  ${blobPath("blob 7")}`) - 1), /is not what SHA256SUMS says/],
    ["the database", changed(bytes.indexOf("CREATE TABLE jobs")), /troupe\.db is not what SHA256SUMS says/],
    ["no zip", Buffer.from("hello"), /is no backup/],
  ];
  for (const [what, content, message] of damages) {
    const damaged = `${newPlace()}.zip`;
    await writeFile(damaged, content);
    const home = newPlace();
    await assert.rejects(
      restore({ file: damaged, home, signal: still }),
      { name: "RestoreRefused", message },
      what,
    );
    assert.deepEqual(
      await readdir(home).catch(() => []),
      what.startsWith("cut") || what === "no zip" ? [] : ["lock.db"],
    );
  }
});

type Part = readonly [path: string, content: string | Buffer, fileType?: number];

/** An archive of these entries and the database of a home, made here, so that it may be invalid in any way. */
async function archiveOf(
  more: readonly Part[],
  { database, hasSums = true }: { database: Buffer; hasSums?: boolean },
) {
  const file = `${newPlace()}.zip`;
  const zip = new ZipFile();
  const parts: readonly Part[] = [
    [ABOUT_FILE, JSON.stringify({ format: FORMAT })],
    ...more,
    [DATABASE_FILE, database],
  ];
  const sums = parts.map(([path, content, fileType = fileTypes.file]) => {
    zip.addBuffer(Buffer.from(content), path, { mode: fileType | 0o644 });
    const kind = fileType === fileTypes.link ? "link" : "file";
    return sumLine({ path, kind, sha256: sha256(content) });
  });
  if (hasSums) zip.addBuffer(Buffer.from(sums.join("")), SUMS_FILE);
  zip.end();
  await pipeline(zip.outputStream as Readable, createWriteStream(file));
  return file;
}

test("an archive that leads out of the home is refused", async () => {
  const outside = newPlace();
  await mkdir(outside);
  const database = await readFile(join((await newHome(0)).home, DATABASE_FILE));
  const { link } = fileTypes;
  const hostile: readonly (readonly [RegExp, readonly Part[]])[] = [
    [
      /EEXIST/,
      [
        ["resources/x/link", outside, link],
        ["resources/x/link/file", "planted"],
      ],
    ],
    [/holds "blobs", which no backup has/, [["blobs", outside, link]]],
    [/holds "processes\/home-id", which no backup has/, [["processes/home-id", "planted"]]],
    [/holds "lock\.db", which no backup has/, [["lock.db", "planted"]]],
    [/holds "restoring\/x", which no backup has/, [["restoring/x", "planted"]]],
    [
      /EEXIST/,
      [
        ["blobs/a", "one"],
        ["blobs/a", "two"],
      ],
    ],
  ];
  for (const [message, parts] of hostile) {
    const file = await archiveOf(parts, { database });
    const home = newPlace();
    await assert.rejects(restore({ file, home, signal: still }), { message });
    assert.deepEqual(await readdir(home), ["lock.db"]);
    assert.deepEqual(await readdir(outside), []);
  }
});

test("an archive whose sums are missing, or whose database is damaged, is refused", async () => {
  const database = await readFile(join((await newHome(0)).home, DATABASE_FILE));
  const damaged = Buffer.from(database).fill(0xff, 8_192, 16_384);
  const refused: readonly (readonly [RegExp, string])[] = [
    [/it has no SHA256SUMS/, await archiveOf([], { database, hasSums: false })],
    [/its database is damaged/, await archiveOf([], { database: damaged })],
  ];
  for (const [message, file] of refused) {
    const home = newPlace();
    await assert.rejects(restore({ file, home, signal: still }), { name: "RestoreRefused", message });
    assert.deepEqual(await readdir(home), ["lock.db"]);
  }
  await restored(await archiveOf([], { database }));
});

test("a backup that is interrupted leaves nothing, and a home without a database has none", async () => {
  const { home } = await newHome(5);
  await assert.rejects(backedUp(home, { signal: AbortSignal.abort(new Error("enough")) }), /enough|abort/i);
  assert.deepEqual(
    (await readdir(scratch)).filter((name) => name.startsWith(".")),
    [],
  );
  await assert.rejects(backedUp(newPlace()), { name: "StoreUnusable", message: /has no database/ });
});
