// The file of keys while its key is replaced, and what becomes of single values.

import assert from "node:assert/strict";
import {
  chmod,
  chown,
  lstat,
  mkdtemp,
  readdir,
  readFile,
  rm,
  stat,
  symlink,
  writeFile,
} from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, it } from "node:test";
import { Reencryption, ValueCipher } from "./encryption.ts";
import { addKey, removeOlderKeys, SecretKey } from "./secret-key.ts";

describe("the file of keys", () => {
  let home = "";
  beforeEach(async () => {
    home = await mkdtemp(join(tmpdir(), "troupe-rotation-"));
  });
  afterEach(() => rm(home, { recursive: true, force: true }));

  it("gets a new first key, then loses the others; it stays for its user alone, and where a link leads", async () => {
    const [file, link] = [join(home, "real.key"), join(home, "secret.key")];
    const linesOf = async () => (await readFile(file, "utf8")).trim().split("\n");
    const first = Buffer.alloc(32, 1).toString("hex");
    await writeFile(file, first);
    await chmod(file, 0o644);
    await symlink("real.key", link);
    await writeFile(`${file}.new`, "left by one that was killed");
    await addKey(link);
    const keys = await linesOf();
    assert.equal(keys.length, 2);
    assert.equal(keys[1], first);
    assert.notEqual(keys[0], first);
    await removeOlderKeys(link);
    assert.deepEqual(await linesOf(), keys.slice(0, 1));
    assert.equal((await stat(file)).mode & 0o777, 0o600);
    assert.ok((await lstat(link)).isSymbolicLink());
    assert.deepEqual((await readdir(home)).sort(), ["real.key", "secret.key"]);
  });

  it("keeps its owner when the superuser replaces it", { skip: process.getuid?.() !== 0 }, async () => {
    const file = join(home, "secret.key");
    await writeFile(file, Buffer.alloc(32, 1).toString("hex"));
    await chown(file, 4711, 4712);
    await addKey(file);
    const { uid, gid } = await stat(file);
    assert.deepEqual([uid, gid], [4711, 4712]);
  });
});

describe("a value", () => {
  const older = new SecretKey(Buffer.alloc(32, 1));
  const key = new SecretKey(Buffer.alloc(32, 2), [older]);
  const stranger = new SecretKey(Buffer.alloc(32, 3));
  const under = (secret: SecretKey) => String(new ValueCipher(secret).encrypt({ deep: ["text", 1] }).$sealed);

  it("of an older key is encrypted under the first; others stay as they are; all are counted", () => {
    const values = new Reencryption(key);
    const result = values.value(under(older));
    assert.deepEqual(new ValueCipher(new SecretKey(Buffer.alloc(32, 2))).decrypt(result)?.value, {
      deep: ["text", 1],
    });
    assert.equal(new ValueCipher(older).decrypt(result), null);
    for (const text of [under(key), under(stranger), "worker", ""]) assert.equal(values.value(text), text);
    const { reencrypted, current, unreadable } = values;
    assert.deepEqual({ reencrypted, current, unreadable }, { reencrypted: 1, current: 1, unreadable: 1 });
  });
});
