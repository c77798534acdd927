import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { chmod, mkdir, mkdtemp, rm, symlink, truncate, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { buffer } from "node:stream/consumers";
import { after, before, test } from "node:test";
import { fromBuffer } from "yauzl";
import { type Config, loadConfig } from "../app/config.ts";
import { zipFolder } from "./folder-zip.ts";

let folder = "";
before(async () => {
  folder = await mkdtemp(join(tmpdir(), "troupe-folder-zip-"));
});
after(() => rm(folder, { recursive: true, force: true }));

function config(env: Record<string, string> = {}): Config {
  const loaded = loadConfig({ SVC_HOME: join(tmpdir(), "troupe-no-home"), ...env }, "client");
  return loaded.kind === "invalid" ? assert.fail(loaded.problems.join()) : loaded.config;
}

async function bundle(name: string, files: Readonly<Record<string, string>>): Promise<string> {
  const root = join(folder, name);
  for (const [path, content] of Object.entries(files)) {
    await mkdir(join(root, path, ".."), { recursive: true });
    await writeFile(join(root, path), content);
  }
  return root;
}

const bytesOf = async (root: string) => buffer((await zipFolder(root, config())).bytes);

interface Entry {
  readonly name: string;
  readonly mode: number;
  readonly content: string;
}

/** What an unzipping program finds. */
async function entriesOf(zip: Buffer): Promise<readonly Entry[]> {
  const { promise, resolve, reject } = Promise.withResolvers<readonly Entry[]>();
  fromBuffer(zip, { lazyEntries: true }, (error, file) => {
    if (error) return reject(error);
    const entries: Entry[] = [];
    file.on("error", reject);
    file.on("end", () => resolve(entries));
    file.on("entry", (entry) => {
      file.openReadStream(entry, async (failure, stream) => {
        if (failure) return reject(failure);
        const content = (await buffer(stream)).toString();
        entries.push({ name: entry.fileName, mode: entry.externalFileAttributes >>> 16, content });
        file.readEntry();
      });
    });
    file.readEntry();
  });
  return promise;
}

test("the zip holds the bundle's files in order, executable ones marked, and nothing that is left out", async () => {
  const root = await bundle("whole", {
    "payloads/run.sh": "#!/bin/sh\n",
    "payloads/a/été.txt": "summer",
    "manifest.json": "{}",
    ".env": "SECRET=1",
    ".git/config": "x",
    "node_modules/m/index.js": "x",
  });
  await chmod(join(root, "payloads/run.sh"), 0o744);
  await symlink("a/été.txt", join(root, "payloads/link.txt"));
  assert.deepEqual(await entriesOf(await bytesOf(root)), [
    { name: "manifest.json", mode: 0o100644, content: "{}" },
    { name: "payloads/a/été.txt", mode: 0o100644, content: "summer" },
    { name: "payloads/link.txt", mode: 0o100644, content: "summer" },
    { name: "payloads/run.sh", mode: 0o100755, content: "#!/bin/sh\n" },
  ]);
});

test("equal folders make equal bytes, whenever and wherever they are", async () => {
  const files = { "manifest.json": "{}", "payloads/b": "b".repeat(100_000), "payloads/a": "a" };
  const one = await bundle("one", files);
  const other = await bundle("other", Object.fromEntries(Object.entries(files).toReversed()));
  await utimes(join(other, "manifest.json"), 1, 1);
  await chmod(join(other, "payloads/a"), 0o600);
  const expected = createHash("sha256")
    .update(await bytesOf(one))
    .digest("hex");
  for (const zone of ["Asia/Tokyo", "America/Los_Angeles"]) assert.equal(hashIn(zone, other), expected, zone);
});

/** The SHA-256 of a folder's zip, as a machine in another time zone makes it. */
function hashIn(zone: string, root: string): string {
  const script = `
    import { createHash } from "node:crypto";
    import { loadConfig } from "${new URL("../app/config.ts", import.meta.url)}";
    import { zipFolder } from "${new URL("folder-zip.ts", import.meta.url)}";
    const hash = createHash("sha256");
    const { config } = loadConfig({ SVC_HOME: "/nowhere" }, "client");
    for await (const chunk of (await zipFolder(process.argv[1], config)).bytes) hash.update(chunk);
    process.stdout.write(hash.digest("hex"));`;
  const env = { ...process.env, TZ: zone };
  const args = ["--input-type=module", "--eval", script, root];
  return execFileSync(process.execPath, args, { encoding: "utf8", env });
}

test("what cannot be uploaded is refused before anything is sent, with every problem in one message", async () => {
  const secret = await bundle("secret", { "key.pem": "x" });
  const bad = await bundle("bad", { "manifest.json": "{}", "payloads/a\\b": "x", "C:x": "x" });
  await assert.rejects(zipFolder(bad, config()), {
    name: "UsageError",
    message: /cannot be uploaded:\n {2}C:x: .*drive letter\n {2}payloads\/a\\b: .*backslash/,
  });
  const leaking = await bundle("leaking", { "manifest.json": "{}" });
  await symlink(join(secret, "key.pem"), join(leaking, "key.pem"));
  await assert.rejects(zipFolder(leaking, config()), { name: "UsageError", message: /outside the bundle/ });
  await assert.rejects(zipFolder(secret, config()), {
    name: "UsageError",
    message: /holds no manifest\.json; give the folder of a bundle/,
  });
  const big = await bundle("big", { "manifest.json": "{}", "payloads/blob": "x".repeat(30_000) });
  await assert.rejects(zipFolder(big, config({ SVC_BUNDLE_MAX_BYTES: "1024" })), {
    name: "UsageError",
    message: /larger than 20480 bytes/,
  });
});

test("a file that shrinks while it is sent ends the zip with an error that names the file", async () => {
  const root = await bundle("shrinking", { "manifest.json": "{}", "payloads/blob": "x".repeat(5_000_000) });
  const zip = await zipFolder(root, config());
  const chunks = zip.bytes[Symbol.asyncIterator]();
  await chunks.next();
  await truncate(join(root, "payloads/blob"), 100_000);
  await assert.rejects(async () => {
    while (!(await chunks.next()).done);
  }, /shrinking changed or could not be read while it was sent/);
  assert.match(zip.failure()?.message ?? "", /unexpected number of bytes/);
});

test("a reader that stops half way causes no error", async () => {
  const root = await bundle("left", { "manifest.json": "{}", "payloads/blob": "x".repeat(5_000_000) });
  const zip = await zipFolder(root, config());
  for await (const _ of zip.bytes) break;
  assert.equal(zip.bytes.destroyed, true);
  assert.equal(zip.failure(), null);
});
