// A home, a database or a port that cannot be used: the program says what is wrong, where, and what to do, and ends
// with 1 (it cannot start) or 2 (bad configuration). Nothing that is on disk is harmed by the attempt.

import assert from "node:assert/strict";
import { chmod, mkdir, readdir, readFile, rm, stat, truncate, writeFile } from "node:fs/promises";
import type { AddressInfo } from "node:net";
import { createServer } from "node:net";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { after, before, describe, test } from "node:test";
import { refusedStartHere, startRuntimeHere } from "../support/in-process.ts";
import { onOwnDisk, whyNoMounts } from "../support/mounts.ts";
import { freePorts } from "../support/ports.ts";
import { withoutPrivileges } from "../support/privileges.ts";
import { temporaryHome } from "../support/program.ts";
import { refusedStart } from "../support/refusal.ts";
import { call, historyOf, jobDetail } from "../support/runtime-api.ts";

const MiB = 1024 * 1024;
const manifest = {
  manifest_version: "1.0",
  graph_id: "kept",
  entrypoints: ["in"],
  nodes: [{ node_id: "in", agent_type: "router" }],
};

describe("a home that cannot be used", { concurrency: 2 }, () => {
  let home = "";
  before(async () => {
    home = await temporaryHome();
  });
  after(() => rm(home, { recursive: true, force: true }));

  test("below a regular file: refused, with the path and the reason", async () => {
    const file = join(home, "a file");
    await writeFile(file, "kept as it is");
    const { code, text } = await refusedStartHere({ home: join(file, "home") });
    assert.equal(code, 1);
    assert.ok(text.includes(`SVC_HOME ${join(file, "home")} cannot be written`), text);
    assert.match(text, /ENOTDIR|EEXIST/);
    assert.match(text, /Choose a folder that this user may write/);
    assert.equal(await readFile(file, "utf8"), "kept as it is");
  });

  test("not writable for this user: refused, with the path and the reason", async () => {
    const closed = join(home, "closed");
    await mkdir(closed, { mode: 0o500 });
    const { code, text } = await refusedStart({ home: closed, through: withoutPrivileges });
    assert.equal(code, 1);
    assert.ok(text.includes(`SVC_HOME ${closed} cannot be written (EACCES`), text);
  });

  test("on a read-only file system: refused, with the path and the reason", async (t) => {
    const why = whyNoMounts();
    if (why !== null) return t.skip(why);
    const through = onOwnDisk(home, { sizeBytes: MiB, readOnly: true });
    const { code, text } = await refusedStart({ home, through });
    assert.equal(code, 1);
    assert.ok(text.includes(`SVC_HOME ${home} cannot be written (EROFS`), text);
  });

  test("on a full disk: refused, and told to free some space", async (t) => {
    const why = whyNoMounts();
    if (why !== null) return t.skip(why);
    for (const ballastBytes of [MiB, MiB - 128 * 1024]) {
      const through = onOwnDisk(home, { sizeBytes: MiB, ballastBytes });
      const { code, text } = await refusedStart({ home, through });
      assert.equal(code, 1);
      assert.match(text, /ENOSPC|disk is full/);
      assert.match(text, /[Ff]ree some space/);
    }
  });
});

test("a second program in the same home is refused, and the first works on", async () => {
  await using first = await startRuntimeHere();
  const { code, text } = await refusedStart({ home: first.home });
  assert.equal(code, 1);
  assert.ok(text.includes(`SVC_HOME ${first.home} is in use by another Troupe`), text);
  assert.match(text, /Stop that one first, or set SVC_HOME to another folder/);
  const job = await call(first, "POST", "/jobs", manifest);
  assert.equal((await historyOf(first, String(job.id))).at(-1)?.type, "job_completed");
});

test("a taken port is refused by its number, with the way to find who has it", async () => {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const home = await temporaryHome();
  try {
    const { code, text } = await refusedStart({ home, env: { SVC_API_PORT: String(port) } });
    assert.equal(code, 1);
    assert.deepEqual(
      await readdir(home),
      [],
      "it is found before anything is opened, which takes long at load",
    );
    assert.match(text, new RegExp(`Port ${port} on 127\\.0\\.0\\.1 is taken`));
    assert.match(text, new RegExp(`sport = :${port}`));
    // The variable it tells to set must be one that works for the command that was given.
    const variable = /with (SVC_[A-Z_]+)/.exec(text)?.[1] ?? "";
    const ports = { SVC_API_PORT: String(port), [variable]: "0" };
    await using program = await startRuntimeHere({ home, env: ports });
    assert.equal((await call(program, "GET", "/health")).status, "ok");
  } finally {
    server.close();
    await rm(home, { recursive: true, force: true });
  }
});

test("a second start of the same program is told of its home, not of its port", async () => {
  const port = String(await freePorts(1));
  await using program = await startRuntimeHere({ env: { SVC_API_PORT: port } });
  const { code, text } = await refusedStart({ home: program.home, env: { SVC_API_PORT: port } });
  assert.equal(code, 1);
  assert.match(text, /SVC_HOME .* is in use by another Troupe/);
});

const badValues: readonly [string, string][] = [
  ["SVC_API_PORT", "ninety"],
  ["SVC_EXECUTOR_POOL_CAPACITIES", "default=0"],
  ["SVC_BODY_MAX_BYTES", "-1"],
  ["SVC_LOG_LEVEL", "loud"],
  ["SVC_RUNTIME_API_HOST", "0.0.0.0"],
];
for (const [name, value] of badValues) {
  test(`${name}=${value} is refused as bad configuration, and the home is not touched`, async () => {
    const home = join(await temporaryHome(), "never made");
    try {
      const { code, text } = await refusedStartHere({ home, env: { [name]: value } });
      assert.equal(code, 2);
      assert.ok(text.includes(name), text);
      await assert.rejects(stat(home), { code: "ENOENT" });
    } finally {
      await rm(join(home, ".."), { recursive: true, force: true });
    }
  });
}

describe("a database that cannot be used", () => {
  let home = "";
  let database = "";
  let jobId = "";
  let good: Buffer;

  before(async () => {
    home = await temporaryHome();
    database = join(home, "troupe.db");
    const program = await startRuntimeHere({ home });
    jobId = String((await call(program, "POST", "/jobs", manifest)).id);
    await historyOf(program, jobId);
    await program.stop();
    good = await readFile(database);
  });
  after(() => rm(home, { recursive: true, force: true }));

  /** The file as it was makes a working program again. */
  async function worksAgain() {
    await using program = await startRuntimeHere({ home });
    assert.equal((await jobDetail(program, jobId)).job.status, "completed");
  }

  const damaged: readonly [string, (file: string) => Promise<void>][] = [
    ["a text file", (file) => writeFile(file, "Dear diary,\nnothing happened today.\n".repeat(200))],
    ["random bytes", (file) => writeFile(file, crypto.getRandomValues(new Uint8Array(40_000)))],
    ["cut in the middle", (file) => truncate(file, Math.floor(good.length / 2))],
    ["cut within its first page", (file) => truncate(file, 1_000)],
  ];
  for (const [what, damage] of damaged) {
    test(`${what}: refused with its path, and left as it is`, async () => {
      await damage(database);
      const before = await readFile(database);
      const { code, text } = await refusedStartHere({ home });
      assert.equal(code, 1);
      assert.ok(text.includes(`The database ${database} is damaged or is no database`), text);
      assert.match(text, /restore the newest backup with `troupe restore FILE`/);
      assert.deepEqual(await readFile(database), before, "it may still be of use to somebody");
      await writeFile(database, good);
    });
  }

  test("a folder in its place: refused with its path", async () => {
    await rm(database);
    await mkdir(database);
    const { code, text } = await refusedStartHere({ home });
    assert.equal(code, 1);
    assert.ok(text.includes(`The database ${database} cannot be opened`), text);
    await rm(database, { recursive: true });
    await writeFile(database, good);
  });

  test("not writable for this user: refused with its path", async () => {
    await chmod(database, 0o400);
    const { code, text } = await refusedStart({ home, through: withoutPrivileges });
    assert.equal(code, 1);
    assert.ok(text.includes(`The database ${database} is read-only`), text);
    await chmod(database, 0o600);
    await worksAgain();
  });

  test("for newer versions only: refused with both versions, and used by them and this one once it admits both", async () => {
    using connection = new DatabaseSync(database);
    const admit = (oldest: string, version: string) =>
      connection.prepare("UPDATE schema_admits SET oldest = ?, version = ?").run(oldest, version);
    admit("9999-from-the-future.sql", "7.1.0");
    const { code, text } = await refusedStartHere({ home });
    assert.equal(code, 1);
    assert.match(
      text,
      /for Troupe 7\.1\.0 and newer .*this is Troupe \d\S+\. Start version 7\.1\.0 or a newer one/,
    );
    admit("", "");
    await worksAgain();
  });

  test("locked by another program at the start: refused; once the lock is gone all is there", async () => {
    using connection = new DatabaseSync(database);
    connection.exec("BEGIN EXCLUSIVE");
    const { code, text } = await refusedStartHere({ home });
    assert.equal(code, 1);
    assert.ok(text.includes(`The database ${database} is locked by another program`), text);
    assert.match(text, /Close that program/);
    connection.exec("ROLLBACK");
    await worksAgain();
  });
});
