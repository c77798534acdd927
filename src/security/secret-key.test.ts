import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { chmod, mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, it } from "node:test";
import { keyOfText, openSecretKey, SecretKey } from "./secret-key.ts";

describe("the secret key", () => {
  let home = "";
  const path = () => join(home, "secret.key");
  const open = async (...given: readonly string[]) => (await openSecretKey({ home, given })).derive("test");
  const modeOf = async (file: string) => (await stat(file)).mode & 0o777;

  beforeEach(async () => {
    home = await mkdtemp(join(tmpdir(), "troupe-secrets-"));
  });
  afterEach(() => rm(home, { recursive: true, force: true }));

  it("is made at the first start, for its user alone, and is the same at the next", async () => {
    const first = await open();
    assert.equal(await modeOf(path()), 0o600);
    assert.deepEqual(await readdir(home), ["secret.key"]);
    assert.deepEqual(await open(), first);
  });

  it("differs from home to home", async () => {
    const first = await open();
    await rm(path());
    assert.notDeepEqual(await open(), first);
  });

  it("is made anew when an earlier start was cut short before the file was whole", async () => {
    await writeFile(`${path()}.new`, "half", { mode: 0o644 });
    const first = await open();
    assert.deepEqual(await readdir(home), ["secret.key"]);
    assert.equal(await modeOf(path()), 0o600);
    assert.deepEqual(await open(), first);
  });

  it("is closed to others when it was open to them", async () => {
    const first = await open();
    await chmod(path(), 0o644);
    assert.deepEqual(await open(), first);
    assert.equal(await modeOf(path()), 0o600);
  });

  it("can be moved from the file to SVC_SECRET_KEY, and then no file is made or read", async () => {
    const first = await open();
    const text = (await readFile(path(), "utf8")).trim();
    await writeFile(path(), "damaged");
    assert.deepEqual(await open(text), first);
    await rm(path());
    await open(text);
    assert.deepEqual(await readdir(home), []);
  });

  for (const [what, content] of [
    ["is empty", ""],
    ["is cut", randomBytes(31).toString("base64")],
    ["is too long", randomBytes(33).toString("base64")],
    ["is something else", "{}\n"],
    ["is huge", "A".repeat(100_000)],
  ] as const) {
    it(`stops the start when its file ${what}, and says what to do; the file stays as it is`, async () => {
      await writeFile(path(), content);
      await assert.rejects(open(), {
        name: "SecretKeyUnusable",
        message: /secret\.key is damaged.*Put the old file back, or set SVC_SECRET_KEY/,
      });
      assert.equal(await readFile(path(), "utf8"), content);
    });
  }

  it("stops the start when a folder is in its place, or the home cannot be written", async () => {
    await mkdir(path());
    await assert.rejects(open(), { name: "SecretKeyUnusable", message: /damaged/ });
    const given = { home: join(home, "missing"), given: [] };
    await assert.rejects(openSecretKey(given), {
      name: "SecretKeyUnusable",
      message: /ENOENT.*SVC_SECRET_KEY/,
    });
  });

  it("refuses a given key of another length", async () => {
    await assert.rejects(open("short"), {
      name: "SecretKeyUnusable",
      message: /SVC_SECRET_KEY is not 32 bytes/,
    });
    assert.throws(() => new SecretKey(Buffer.alloc(31)), RangeError);
  });

  it("gives each purpose a key of its own, which is always the same and shows nothing of the first", () => {
    const bytes = Buffer.alloc(32, 7);
    const key = new SecretKey(bytes);
    assert.deepEqual(key.derive("a"), new SecretKey(bytes).derive("a"));
    assert.notDeepEqual(key.derive("a"), key.derive("b"));
    assert.equal(key.derive("a").length, 32);
    assert.notDeepEqual(key.derive(""), bytes);
  });
});

it("a key's text is hex or base64 in either alphabet, and nothing else", () => {
  const bytes = Buffer.from("fb".repeat(16) + "ff".repeat(16), "hex");
  const base64 = bytes.toString("base64");
  const spellings = [bytes.toString("hex"), base64, base64.slice(0, -1), bytes.toString("base64url")];
  for (const text of spellings) assert.deepEqual(keyOfText(text), bytes, text);
  for (const text of ["", ` ${base64}`, `${base64}=`, base64.slice(1), `${base64}\n`]) {
    assert.equal(keyOfText(text), null, JSON.stringify(text));
  }
});
