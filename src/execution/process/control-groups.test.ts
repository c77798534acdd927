// What is asked of the kernel, against a double of its file tree; the real kernel is in runner/own-resources.test.ts.

import assert from "node:assert/strict";
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { ControlGroups } from "./control-groups.ts";

const MiB = 1024 ** 2;
const PID = 4_711;
const demand = { cpuMillis: 1_500, memoryBytes: 512 * MiB, diskBytes: 7, gpus: 1 };
const nothing = { cpuMillis: 0, memoryBytes: 0, diskBytes: 0, gpus: 0 };

class Double implements AsyncDisposable {
  readonly root: string;
  /** Groups that still have processes. */
  readonly busy = new Set<string>();
  /** The file that counts, which the kernel makes with each group. */
  counter = { file: "memory.events", text: "low 0\noom_kill 0\n" };

  private constructor(root: string) {
    this.root = root;
  }

  static async of(files: Readonly<Record<string, string>>): Promise<Double> {
    const double = new Double(await mkdtemp(join(tmpdir(), "troupe-groups-")));
    for (const [path, text] of Object.entries(files)) await double.write(path, text);
    return double;
  }

  async write(path: string, text: string): Promise<void> {
    await mkdir(dirname(join(this.root, path)), { recursive: true });
    await writeFile(join(this.root, path), text);
  }

  read = (path: string) => readFile(join(this.root, path), "utf8");

  async groupsIn(path: string): Promise<readonly string[]> {
    return (await readdir(join(this.root, path))).filter((name) => /^troupe-\d/.test(name));
  }

  /** @param own what the system says of the program's own groups */
  async open(own: string): Promise<ControlGroups> {
    await this.write("own", own);
    const groups = new ControlGroups({
      root: this.root,
      own: join(this.root, "own"),
      pid: PID,
      parentPid: PID - 1,
      isAlive: (pid) => pid === 1 || pid === PID,
      makeGroup: async (path) => {
        await mkdir(path);
        await writeFile(join(path, this.counter.file), this.counter.text);
      },
      removeGroup: async (path) => {
        if (this.busy.has(path.slice(this.root.length + 1)))
          throw Object.assign(new Error("busy"), { code: "EBUSY" });
        await rm(path, { recursive: true });
      },
    });
    await groups.open();
    return groups;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await rm(this.root, { recursive: true });
  }
}

/** A group of version 2 below which others may have limits. */
const delegated = {
  "svc/cgroup.controllers": "cpu memory pids\n",
  "svc/cgroup.subtree_control": "cpu memory\n",
  "svc/cgroup.procs": "",
};

test("version 2: a command's group has its memory, without swap, and its share of a tenth of a second", async () => {
  await using double = await Double.of(delegated);
  const groups = await double.open("0::/svc\n");
  const group = (await groups.make(demand))!;
  assert.equal(group.enforcement, "cgroup2");
  const [name = "", ...others] = await double.groupsIn("svc");
  assert.deepEqual(others, [], "what was tried is removed");
  const setting = (file: string) => double.read(`svc/${name}/${file}`);
  assert.equal(await setting("memory.max"), String(512 * MiB));
  assert.deepEqual([await setting("memory.swap.max"), await setting("memory.oom.group")], ["0", "1"]);
  assert.equal(await setting("cpu.max"), "150000 100000");
  assert.deepEqual(group.joinPaths, [join(double.root, "svc", name, "cgroup.procs")]);
  assert.equal(await group.ranOutOfMemory(), false);
  await double.write(`svc/${name}/memory.events`, "low 0\noom_kill 2\n");
  assert.equal(await group.ranOutOfMemory(), true);
  await group[Symbol.asyncDispose]();
  assert.deepEqual(await double.groupsIn("svc"), []);
});

test("version 2: what is not asked for is not limited, and a thousandth of a core is the least that the kernel takes", async () => {
  await using double = await Double.of(delegated);
  const groups = await double.open("0::/svc\n");
  assert.equal(await groups.make({ ...nothing, diskBytes: 1, gpus: 1 }), null);
  const group = (await groups.make({ ...nothing, cpuMillis: 1 }))!;
  const [name = ""] = await double.groupsIn("svc");
  assert.equal(await double.read(`svc/${name}/cpu.max`), "1000 100000");
  await assert.rejects(double.read(`svc/${name}/memory.max`), { code: "ENOENT" });
  assert.equal(await group.ranOutOfMemory(), false);
});

test("version 2: a program that is alone in its group moves out of the way, and one that is not changes nothing", async () => {
  const files = { "svc/cgroup.controllers": "memory\n", "svc/cgroup.subtree_control": "" };
  await using shared = await Double.of({ ...files, "svc/cgroup.procs": `${PID}\n99\n` });
  assert.equal(await (await shared.open("0::/svc\n")).make(demand), null);
  assert.deepEqual((await readdir(join(shared.root, "svc"))).sort(), [
    "cgroup.controllers",
    "cgroup.procs",
    "cgroup.subtree_control",
  ]);
  await using alone = await Double.of({ ...files, "svc/cgroup.procs": `${PID - 1}\n${PID}\n` });
  await alone.open("0::/svc\n");
  assert.equal(await alone.read("svc/troupe-main/cgroup.procs"), String(PID), "the last one that was moved");
  assert.match(await alone.read("svc/cgroup.subtree_control"), /^\+(memory|cpu)$/);
});

/** Version 1, as a container shows it: each controller by itself. */
const first = { "memory/cgroup.procs": "", "cpu/box/cgroup.procs": "", "cgroup.procs": "" };
const OWN = "5:cpuset:/\n4:memory:/elsewhere\n2:cpu,cpuacct:/box\n0::/\n";

test("version 1: a command's groups are below the program's own, or at the root of what the system shows", async () => {
  await using double = await Double.of(first);
  double.counter = { file: "memory.oom_control", text: "oom_kill_disable 0\noom_kill 0\n" };
  const groups = await double.open(OWN);
  const group = (await groups.make(demand))!;
  assert.equal(group.enforcement, "cgroup1");
  const [name = ""] = await double.groupsIn("memory");
  assert.deepEqual(await double.groupsIn("cpu/box"), [name]);
  assert.equal(await double.read(`memory/${name}/memory.limit_in_bytes`), String(512 * MiB));
  assert.equal(await double.read(`memory/${name}/memory.memsw.limit_in_bytes`), String(512 * MiB));
  assert.equal(await double.read(`cpu/box/${name}/cpu.cfs_period_us`), "100000");
  assert.equal(await double.read(`cpu/box/${name}/cpu.cfs_quota_us`), "150000");
  assert.equal(group.joinPaths.length, 2);
  await double.write(`memory/${name}/memory.oom_control`, "under_oom 0\noom_kill 1\n");
  assert.equal(await group.ranOutOfMemory(), true);
  await group[Symbol.asyncDispose]();
  assert.deepEqual([await double.groupsIn("memory"), await double.groupsIn("cpu/box")], [[], []]);
});

test("nothing is enforced where groups cannot be made, or do not count who was ended", async () => {
  await using none = await Double.of({});
  assert.equal(await (await none.open("")).make(demand), null);
  await using silent = await Double.of(first);
  silent.counter = { file: "memory.oom_control", text: "oom_kill_disable 0\n" };
  assert.equal(await (await silent.open(OWN)).make(demand), null);
  assert.deepEqual(await silent.groupsIn("memory"), []);
});

test("version 2: a program that is started where a predecessor has moved to makes its groups where that one did", async () => {
  const main = {
    "svc/troupe-main/cgroup.procs": "9\n",
    "svc/troupe-main/cgroup.controllers": "cpu memory\n",
  };
  await using double = await Double.of({ ...delegated, ...main, "svc/troupe-2-1/x": "" });
  await using _group = await (await double.open("0::/svc/troupe-main\n")).make(demand);
  assert.deepEqual(await double.groupsIn("svc"), [`troupe-${PID}-2`]);
  assert.deepEqual(await double.groupsIn("svc/troupe-main"), []);
});

test("what a killed predecessor has left is removed, and a group that has processes is removed later", async () => {
  const ofTheSamePid = `troupe-${PID}-1`;
  await using double = await Double.of({
    ...delegated,
    "svc/troupe-1-1/x": "of a program that lives",
    "svc/troupe-2-1/x": "of one that does not",
    "svc/troupe-3-1/x": "of one that does not, whose processes are about to go",
    [`svc/${ofTheSamePid}/x`]: "of one that had the same id",
  });
  double.busy.add("svc/troupe-3-1");
  const groups = await double.open("0::/svc\n");
  const group = (await groups.make(demand))!;
  assert.equal(group.enforcement, "cgroup2");
  const [first, second, own = "", ...others] = (await double.groupsIn("svc")).toSorted();
  assert.deepEqual([first, second, others], ["troupe-1-1", "troupe-3-1", []]);
  assert.notEqual(own, ofTheSamePid);
  double.busy.add(`svc/${own}`);
  await group[Symbol.asyncDispose]();
  assert.ok((await double.groupsIn("svc")).includes(own));
  double.busy.clear();
  await groups.close();
  assert.deepEqual(await double.groupsIn("svc"), ["troupe-1-1"]);
});
