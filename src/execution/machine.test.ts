// The checks of the machine, on real folders, ports and programs.

import assert from "node:assert/strict";
import { once } from "node:events";
import { chmod, mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { type AddressInfo, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { checkDiskSync, checkHome, checkTools, tryToListen } from "./machine.ts";

let folder = "";
before(async () => {
  folder = await mkdtemp(join(tmpdir(), "troupe-doctor-test-"));
});
after(() => rm(folder, { recursive: true, force: true }));

test("a home that can be written is fine, its disk's room is told, and nothing stays in it", async () => {
  const [home, disk] = await checkHome(folder, "SVC_HOME");
  assert.deepEqual(home, { name: "home", state: "ok", text: "SVC_HOME can be written" });
  assert.match(disk?.text ?? "", /^\d+(\.\d)? [GM]iB free$/);
  assert.deepEqual(await readdir(folder), []);
});

test("a home that does not exist yet is judged by the folder above it", async () => {
  const [home] = await checkHome(join(folder, "not", "yet"), "SVC_HOME");
  assert.deepEqual([home?.state, home?.text], ["ok", "SVC_HOME will be made at the first start"]);
});

test("findings name the home as they are told to, and no path beside", async () => {
  const file = join(folder, "a-file");
  await writeFile(file, "");
  const findings = await checkHome(join(file, "home"), "SVC_HOME");
  assert.equal(findings[0]?.state, "fail");
  assert.ok(!JSON.stringify(findings).includes(folder), JSON.stringify(findings));
  assert.match(findings[0]?.fix ?? "", /SVC_HOME/);
  await rm(file);
});

const isRoot = process.getuid?.() === 0;
test("a home that may only be read fails", { skip: isRoot && "root may write everywhere" }, async () => {
  const closed = await mkdtemp(join(folder, "closed-"));
  await chmod(closed, 0o500);
  const [home] = await checkHome(closed, "SVC_HOME");
  assert.equal(home?.state, "fail");
  assert.match(home?.text ?? "", /EACCES/);
});

test("synced writes are timed, and leave nothing", async () => {
  const finding = await checkDiskSync(folder);
  assert.match(finding.text, /^a synced write takes \d+\.\d\d ms$/);
  assert.ok(!(await readdir(folder)).some((name) => name.includes("sync")));
});

test("a port is free or taken, and the system's code says why not", async () => {
  const holder = createServer().listen(0, "127.0.0.1");
  await once(holder, "listening");
  const { port } = holder.address() as AddressInfo;
  assert.equal(await tryToListen("127.0.0.1", port), "EADDRINUSE");
  holder.close();
  await once(holder, "close");
  assert.equal(await tryToListen("127.0.0.1", 0), null);
});

/** A machine that stands still for a while is not what these tests are about. */
const patient = { timeoutMs: 60_000 };

test("programs are looked for on the PATH; one that is missing says what needs it", async () => {
  const path = process.env.PATH;
  process.env.PATH = folder;
  try {
    const findings = await checkTools(patient);
    const python = findings.find(({ name }) => name === "python3");
    assert.deepEqual([python?.state, python?.text], ["warn", "not found on the PATH"]);
    assert.match(python?.fix ?? "", /apt install python3/);
    assert.equal(findings.find(({ name }) => name === "mkfifo")?.state, "fail");
  } finally {
    process.env.PATH = path;
  }
});

test("a program that is there but complains is there", async () => {
  const path = process.env.PATH;
  await writeFile(join(folder, "mkfifo"), "#!/bin/sh\necho unknown option >&2\nexit 1\n", { mode: 0o755 });
  process.env.PATH = `${folder}:${path}`;
  try {
    const found = (await checkTools(patient)).find(({ name }) => name === "mkfifo");
    assert.deepEqual([found?.state, found?.text], ["ok", "present"]);
  } finally {
    process.env.PATH = path;
  }
});
