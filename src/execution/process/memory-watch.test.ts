// Commands that hold more memory than their own where the machine gives them no control groups, with real processes.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import {
  commandOf,
  eventually,
  executorConfig,
  failedWith,
  isRunning,
  RunnerFixture,
  realClock,
} from "../../../test/support/execution.ts";
import { makeGates } from "../../../test/support/gates.ts";
import { ControlGroups } from "./control-groups.ts";

const MiB = 1024 ** 2;

const controlGroups = new ControlGroups({ root: "/nowhere" });
const fixture = () => new RunnerFixture(undefined, realClock, { controlGroups });

const demandOf = (mebibytes: number) => ({
  cpuMillis: 0,
  memoryBytes: mebibytes * MiB,
  diskBytes: 0,
  gpus: 0,
});

/** Python that has so much memory for itself. `hold(n)` is memory of n MiB, each page of it written. */
function python(source: string, mebibytes: number) {
  const hold = "import os, subprocess, sys, time\ndef hold(n): return b'x' * (n << 20)\n";
  const command = ["python3", "-c", `${hold}${source}`];
  return { config: executorConfig({ command, demand: demandOf(mebibytes) }) };
}

const gates = await makeGates();
after(() => gates.remove());

let skip: string | false = "not looked at yet";
before(async () => {
  await using runner = fixture();
  const { enforcement } = commandOf(await runner.run(python("", 64)));
  skip = enforcement === "prlimit" ? false : "this machine cannot watch the memory of processes";
});

/** For the watch to come many times. */
const forLong = "time.sleep(60)";

/** What a failure for want of memory says that the command held, in MiB. */
function heldOf(message: string): number {
  const held =
    /^The command "python3" needed more than the [\d.]+ MiB of memory that are its own, and was ended when it held ([\d.]+) MiB of memory\./;
  assert.match(message, held);
  return Number(held.exec(message)?.[1]);
}

/** Resolves when the watch has come twice to all commands that run now. */
async function looked(runner: RunnerFixture): Promise<void> {
  for (let looks = 0; looks < 3; looks++)
    failedWith(await runner.run(python(`x = hold(48)\n${forLong}`, 32)), "resource.memory_exceeded");
}

/** The number that the only command has printed. */
async function printed(runner: RunnerFixture): Promise<number> {
  await runner.listener.until(() => runner.listener.logs("stdout").length > 0);
  return Number(runner.listener.logs("stdout")[0]);
}

test("a command and what it starts are ended when they hold too much together", async (t) => {
  if (skip !== false) return t.skip(skip);
  await using runner = fixture();
  const child = `x = b'x' * (80 << 20)\nimport time\n${forLong}`;
  const source = `child = subprocess.Popen([sys.executable, "-c", ${JSON.stringify(child)}])
print(child.pid, flush=True)
x = hold(80)
${forLong}`;
  const outcome = await runner.run(python(source, 128));
  const held = heldOf(failedWith(outcome, "resource.memory_exceeded"));
  assert.ok(held > 128 && held < 256, `${held} MiB`);
  assert.equal(commandOf(outcome).enforcement, "prlimit");
  assert.equal(await isRunning(await printed(runner)), false);
});

test("a process that has left its command's tree counts, and ends with it", async (t) => {
  if (skip !== false) return t.skip(skip);
  await using runner = fixture();
  const source = `if os.fork() == 0:
  os.setsid()
  if os.fork() > 0: os._exit(0)
  print(os.getpid(), flush=True)
  x = hold(160)
  ${forLong}
os.wait()
${forLong}`;
  const outcome = await runner.run(python(source, 128));
  heldOf(failedWith(outcome, "resource.memory_exceeded"));
  const left = await printed(runner);
  await eventually(async () => !(await isRunning(left)));
});

test("memory that processes share counts once", async (t) => {
  if (skip !== false) return t.skip(skip);
  await using runner = fixture();
  const gate = gates.pipe("shared");
  const source = `x = hold(80)
for child in range(3):
  if os.fork() == 0: ${forLong}
print("ready", flush=True)
open("${gate}").read()`;
  const sharing = runner.run(python(source, 160));
  await runner.listener.until(() => runner.listener.logs("stdout").length > 0);
  await looked(runner);
  await gates.open(gate);
  assert.equal((await sharing).kind, "succeeded");
});

test("a process that is being started does not count with its parent's memory", async (t) => {
  if (skip !== false) return t.skip(skip);
  await using runner = fixture();
  const gate = gates.pipe("vfork");
  // The new process opens its stdin before its program begins.
  const source = `x = hold(80)
print("ready", flush=True)
os.waitpid(os.posix_spawn("/bin/true", ["true"], {}, file_actions=[(os.POSIX_SPAWN_OPEN, 0, "${gate}", os.O_RDONLY, 0)]), 0)`;
  const starting = runner.run(python(source, 128));
  await runner.listener.until(() => runner.listener.logs("stdout").length > 0);
  await looked(runner);
  await gates.open(gate);
  assert.equal((await starting).kind, "succeeded");
});

test("files that are mapped into memory do not count", async (t) => {
  if (skip !== false) return t.skip(skip);
  await using runner = fixture();
  const gate = gates.pipe("mapped");
  const source = `import mmap
with open("${process.execPath}", "rb") as file: mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
sum(mapped[at] for at in range(0, len(mapped), 4096))
print("ready", flush=True)
open("${gate}").read()`;
  const mapping = runner.run(python(source, 64));
  await runner.listener.until(() => runner.listener.logs("stdout").length > 0);
  await looked(runner);
  await gates.open(gate);
  assert.equal((await mapping).kind, "succeeded");
});

test("a burst that nobody sees is stopped, and named as what it is", async (t) => {
  if (skip !== false) return t.skip(skip);
  await using runner = fixture();
  const gate = gates.pipe("burst");
  const source = `print(os.getpid(), os.getppid(), flush=True)
open("${gate}").read()
x = []
for part in range(160): x.append(hold(16))`;
  const bursting = runner.run(python(source, 32));
  await runner.listener.until(() => runner.listener.logs("stdout").length > 0);
  const [pid = 0, spawnerPid = 0] = String(runner.listener.logs("stdout")[0]).split(" ").map(Number);
  assert.ok(spawnerPid > 1);
  process.kill(spawnerPid, "SIGSTOP");
  try {
    await gates.open(gate);
    await eventually(async () => !(await isRunning(pid)));
  } finally {
    process.kill(spawnerPid, "SIGCONT");
  }
  const message = failedWith(await bursting, "resource.memory_exceeded");
  assert.match(message, /ended when it held \d+(\.\d)? [GM]iB of memory\. It said: MemoryError$/);
});

test("only a command with memory of its own is limited, and may raise its limit", async (t) => {
  if (skip !== false) return t.skip(skip);
  await using runner = fixture();
  const gate = gates.pipe("limit");
  const script = `echo ready; read x < '${gate}'; ulimit -Sd; ulimit -Sd $(ulimit -Hd) && ulimit -Sd`;
  const saidBy = async (demand: ReturnType<typeof demandOf> | null) => {
    const before = runner.listener.logs("stdout").length;
    const outcome = runner.sh(script, { demand });
    await runner.listener.until(() => runner.listener.logs("stdout").length > before);
    await gates.open(gate);
    return commandOf(await outcome);
  };
  const free = await saidBy(null);
  const [, own, raised] = free.stdout.split("\n");
  assert.equal(free.enforcement, undefined);
  const limited = await saidBy(demandOf(64));
  const [, soft, hard] = limited.stdout.split("\n");
  assert.notEqual(soft, own);
  assert.ok(Number(soft) > 1_024 * 1_024);
  assert.equal(hard, raised);
  const cores = await saidBy({ ...demandOf(0), cpuMillis: 500 });
  assert.equal(cores.enforcement, "none");
  assert.equal(cores.stdout, free.stdout);
});
