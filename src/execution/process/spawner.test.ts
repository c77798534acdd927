import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { closeSync, mkdtempSync, readFileSync, readSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import {
  commandOf,
  eventually,
  executorConfig,
  failedWith,
  holding,
  isRunning,
  RunnerFixture,
  taskStart,
} from "../../../test/support/execution.ts";
import { limits } from "../../engine/limits.ts";
import type { OpenedFile } from "./native-spawn.ts";
import { FifoSupply, openReadEnd } from "./pipes.ts";
import { machineSource } from "./process-table.ts";
import { Spawner } from "./spawner.ts";
import type { WorkerExit } from "./spawner-process.ts";

const STUBBORN = "trap 'echo asked' TERM; echo $PPID; while :; do sleep 0.1; done";

const linuxOnly = { skip: process.platform === "linux" ? false : "needs Linux" };

/** A spawner, and pipes for one worker at a time. */
class World {
  readonly root = mkdtempSync(join(tmpdir(), "troupe-spawner-"));
  readonly spawner = new Spawner();
  readonly fifos = new FifoSupply(join(this.root, "pipes"));
  readonly #fds: number[] = [];

  async start(file: string, args: readonly string[], cwd = this.root, files: readonly OpenedFile[] = []) {
    const [stdout = "", stderr = ""] = await this.fifos.take(2);
    this.#fds.push(openReadEnd(stdout), openReadEnd(stderr));
    const env = { PATH: `${process.env.PATH}:${this.root}` };
    return await this.spawner.start({
      file,
      args,
      cwd,
      env,
      mark: "1",
      endsWithRuntime: false,
      stdin: null,
      stdout,
      stderr,
      files,
      memoryBytes: null,
    });
  }

  /** Reads a part of what the last worker has printed. @returns how many bytes; 0 when nothing is there now */
  printedNow(): number {
    try {
      return readSync(this.#fds.at(-2) ?? -1, Buffer.alloc(64 * 1024));
    } catch {
      // EAGAIN
      return 0;
    }
  }

  /** What the last worker has printed and nobody has read; it has ended. */
  printed(): string {
    return readFileSync(this.#fds.at(-2) ?? -1, "utf8");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.spawner.close();
    await this.fifos.close();
    for (const fd of this.#fds) closeSync(fd);
    rmSync(this.root, { recursive: true, force: true });
  }
}

/** How a worker ended, without what it used. */
const endOf = (exit: WorkerExit | null) => [exit?.exitCode, exit?.signal];

function parentOf(pid: number): number {
  return Number(spawnSync("ps", ["-o", "ppid=", "-p", String(pid)]).stdout.toString());
}

describe("the spawner", () => {
  it("tells a worker's id, its start, and how it ended", async () => {
    await using world = new World();
    const worker = await world.start("sh", ["-c", "echo $$ $PPID; exit 3"]);
    assert.deepEqual(endOf(await worker.exited), [3, null]);
    const [pid, parent] = world.printed().split(" ").map(Number);
    assert.equal(worker.pid, pid);
    assert.notEqual(parent, process.pid);
    const slow = await world.start("sleep", ["1000"]);
    assert.equal(slow.start, machineSource.startOf(slow.pid));
    process.kill(-slow.pid, "SIGTERM");
    assert.deepEqual(endOf(await slow.exited), [null, "SIGTERM"]);
  });

  it("hands on the system's error, and goes on", async () => {
    await using world = new World();
    await assert.rejects(world.start("no-such-program", []), { code: "ENOENT" });
    await assert.rejects(world.start("true", [], join(world.root, "absent")), { code: "ENOENT" });
    await assert.rejects(world.start("true", ["a\0b"]), { code: "ERR_INVALID_ARG_VALUE" });
    await assert.rejects(world.start("true", ["x".repeat(1024 * 1024)]), { code: "E2BIG" });
    await assert.rejects(world.start("true", ["x".repeat(9 * 1024 * 1024)]), { code: "E2BIG" });
    assert.deepEqual(endOf(await (await world.start("true", [])).exited), [0, null]);
  });

  it("runs a script without a first line in a shell, found in the worker's PATH", async () => {
    await using world = new World();
    writeFileSync(join(world.root, "bare-script"), 'echo "$1"', { mode: 0o755 });
    for (const file of ["./bare-script", join(world.root, "bare-script"), "bare-script"]) {
      const worker = await world.start(file, ["hello"]);
      assert.deepEqual(endOf(await worker.exited), [0, null]);
      assert.equal(world.printed(), "hello\n");
    }
  });

  it("tells that a process tree is gone, and not while any process of it is left", linuxOnly, async () => {
    await using world = new World();
    const isGone = async (script: string) =>
      (await (await world.start("sh", ["-c", script])).exited)?.isTreeGone;
    assert.equal(await isGone("sleep 0 & wait; sh -c true"), true);
    // Out of its session, its group and its parents' sight, with nothing open that we could wait for.
    const hidden =
      "setsid sh -c 'echo $$ > left; exec sleep 1000 <&- >&- 2>&-' & until [ -s left ]; do sleep 0.01; done";
    assert.equal(await isGone(hidden), false);
    assert.equal(await isGone("true"), false, "of another worker, which cannot be told");
    process.kill(Number(readFileSync(join(world.root, "left"), "utf8")), "SIGKILL");
    await eventually(async () => (await isGone("true")) === true);
  });

  it("gives a worker a stdout that blocks, as programs expect", async () => {
    await using world = new World();
    const script = "dd if=/dev/zero bs=300000 count=1; echo $? > status";
    const worker = await world.start("sh", ["-c", script]);
    let bytes = 0;
    let isOver = false;
    void worker.exited.then(() => {
      isOver = true;
    });
    await eventually(() => {
      bytes += world.printedNow();
      return isOver;
    });
    assert.equal(readFileSync(join(world.root, "status"), "utf8"), "0\n");
    assert.equal(bytes + world.printed().length, 300_000);
  });

  it("opens files for a worker, behind its three pipes", async () => {
    await using world = new World();
    const path = (name: string) => join(world.root, name);
    writeFileSync(path("read"), "text");
    writeFileSync(path("written"), "");
    const files = [
      { path: path("written"), isWritten: true },
      { path: path("read"), isWritten: false },
    ];
    const worker = await world.start("sh", ["-c", "cat <&4 >&3"], world.root, files);
    assert.deepEqual(endOf(await worker.exited), [0, null]);
    assert.equal(readFileSync(path("written"), "utf8"), "text");
    const absent = [{ path: path("absent"), isWritten: false }];
    await assert.rejects(world.start("true", [], world.root, absent), { code: "ENOENT" });
  });

  it("does not wait for a reader that a worker's pipe has lost", async () => {
    await using world = new World();
    const nobodyReads = {
      file: "true",
      args: [],
      cwd: "/",
      env: {},
      mark: "1",
      endsWithRuntime: false,
      stdin: null,
      files: [],
      memoryBytes: null,
    };
    const [stdout = "", stderr = ""] = await world.fifos.take(2);
    await assert.rejects(world.spawner.start({ ...nobodyReads, stdout, stderr }), { code: "ENXIO" });
    assert.deepEqual(endOf(await (await world.start("true", [])).exited), [0, null]);
  });

  it("that is not needed any more ends, and ends only once", async () => {
    await using world = new World();
    await world.spawner.close();
    const worker = await world.start("sleep", ["1000"]);
    const spawnerPid = parentOf(worker.pid);
    assert.ok(await isRunning(spawnerPid));
    process.kill(spawnerPid, "SIGTERM");
    process.kill(spawnerPid, "SIGINT");
    process.kill(-worker.pid, "SIGKILL");
    assert.deepEqual(endOf(await worker.exited), [null, "SIGKILL"]);
    const next = await world.start("sleep", ["1000"]);
    assert.equal(parentOf(next.pid), spawnerPid, "it ignores signals that are meant for the runtime");
    process.kill(-next.pid, "SIGKILL");
    await next.exited;
    await Promise.all([world.spawner.close(), world.spawner.close()]);
    assert.equal(await isRunning(spawnerPid), false);
  });

  it("does not outlive a runtime that is killed, while its workers wait for the successor", async () => {
    const home = mkdtempSync(join(tmpdir(), "troupe-execution-"));
    const orphaning = fileURLToPath(new URL("../../../test/support/orphaning.ts", import.meta.url));
    const runtime = spawn(process.execPath, [orphaning, home], { stdio: ["ignore", "pipe", "inherit"] });
    let said = "";
    runtime.stdout.on("data", (chunk: Buffer) => {
      said += chunk.toString();
    });
    let pids: number[] = [];
    let spawnerPid: number | undefined;
    try {
      await eventually(() => said.includes("\n") || runtime.exitCode !== null);
      pids = JSON.parse(said) as number[];
      spawnerPid = pids.map(parentOf).find((pid) => !pids.includes(pid) && parentOf(pid) === runtime.pid);
    } finally {
      runtime.kill("SIGKILL");
    }
    const found = spawnerPid;
    assert.ok(found !== undefined);
    await eventually(async () => !(await isRunning(found)));
    await using successor = new RunnerFixture(home);
    assert.equal(await successor.runner.endPredecessors(), pids.length);
  });
});

describe("a spawner that is killed", () => {
  it("fails the attempts under way as the machine's failure, ends their processes, and is replaced", async () => {
    await using fixture = new RunnerFixture();
    const quiet = ">/dev/null 2>&1";
    // The test kills as soon as it has read the ids: what is to be found afterwards is printed before.
    const script = `printf 'last words' >&2; setsid sleep 1000 ${quiet} & echo $PPID; echo $!; echo $$;`;
    const outcome = fixture.sh(`${script} exec sleep 1000 ${quiet}`);
    await fixture.listener.until(() => fixture.listener.logs("stdout").length === 3);
    const [spawnerPid = 0, ...pids] = fixture.listener.logs("stdout").map(Number);
    process.kill(spawnerPid, "SIGKILL");
    assert.match(failedWith(await outcome, "executor.outcome_lost"), /not known/);
    for (const pid of pids) assert.equal(await isRunning(pid), false);
    assert.deepEqual(fixture.listener.logs("stderr"), ["last words"]);
    assert.equal(commandOf(await fixture.sh("echo again")).stdout, "again\n");
  });

  it("does not change why an attempt ended that was asked to", async () => {
    const { clock, fire: endGrace } = holding(limits.killGraceMs);
    await using fixture = new RunnerFixture(undefined, clock);
    const task = taskStart({ config: executorConfig({ command: ["sh", "-c", STUBBORN] }) });
    fixture.runner.start(task);
    await fixture.listener.until(() => fixture.listener.logs("stdout").length === 1);
    fixture.runner.stop(task.ref);
    await fixture.listener.until(() => fixture.listener.logs("stdout").length === 2);
    process.kill(Number(fixture.listener.logs("stdout")[0]), "SIGKILL");
    endGrace();
    assert.equal((await fixture.listener.outcome(task.ref)).kind, "interrupted");
  });

  it("leaves nothing of a worker that had started, though nobody was told", async () => {
    await using fixture = new RunnerFixture();
    const outcome = await fixture.sh("echo $$ > pid; kill -9 $PPID; sleep 1000");
    assert.equal(outcome.kind, "failed");
    const pid = Number(readFileSync(join(fixture.home, "runs/run_1/agents/worker/work/pid"), "utf8"));
    await eventually(async () => !(await isRunning(pid)));
  });

  it("is replaced also when it was killed while nothing ran", async () => {
    await using fixture = new RunnerFixture();
    const spawnerPid = Number(commandOf(await fixture.sh("echo $PPID")).stdout);
    process.kill(spawnerPid, "SIGKILL");
    await eventually(async () => !(await isRunning(spawnerPid)));
    let again = await fixture.sh("echo again");
    // A start that comes before its end was noticed fails, and is one that may be tried again.
    if (again.kind === "failed") {
      failedWith(again, "executor.outcome_lost");
      again = await fixture.sh("echo again");
    }
    assert.equal(commandOf(again).stdout, "again\n");
  });
});
