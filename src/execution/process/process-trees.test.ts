// What a worker starts ends with it: in its group, out of its group, and after the runtime's own death.

import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { cpSync, mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import {
  eventually,
  executorConfig,
  hastyClock,
  holding,
  isRunning,
  RunnerFixture,
  realClock,
  taskStart,
  unmarkedSource,
} from "../../../test/support/execution.ts";
import type { ExecutorConfig } from "../../engine/graph.ts";
import { limits } from "../../engine/limits.ts";
import type { Clock } from "../../engine/ports.ts";
import type { TaskStart } from "../../engine/task-port.ts";
import { canMark, withMark } from "./process-marks.ts";
import { type ProcessSource, procSource, psSource } from "./process-table.ts";
import { ProcessTrees } from "./process-trees.ts";

/** The process ids that workers printed. */
function pidsIn({ listener }: RunnerFixture): number[] {
  const lines = listener.logs("stdout").map(String);
  return lines.filter((line) => /^pid \d+$/.test(line)).map((line) => Number(line.slice(4)));
}

/** Starts a script; resolves when it says "ready". */
async function startReady(
  fixture: RunnerFixture,
  script: string,
  changes: Partial<TaskStart> = {},
  config: Partial<ExecutorConfig> = {},
) {
  const { runner, listener } = fixture;
  const task = taskStart({
    ...changes,
    config: executorConfig({ command: ["sh", "-c", script], ...config }),
  });
  runner.start(task);
  await listener.until(() => listener.logs("stdout").includes("ready"));
  return { task, pids: pidsIn(fixture) };
}

/** A child outside the group. The script goes on when it is there. */
const escaping = (silence = "") =>
  `mkfifo never; setsid sh -c 'echo pid $$; ${silence} : > up; read x < never' & until [ -e up ]; do sleep 0.01; done;`;
const ESCAPE = escaping();
const CLEARED = "setsid env -i /bin/sh -c 'echo pid $$; exec /bin/sleep 1000' &";

/** How long the process table may be looked at before a signal; without this limit, where parentage is all there is. */
const LOOK_MS = 1_000;
const patientClock = holding(LOOK_MS).clock;
const hastyPatientClock = holding(LOOK_MS, hastyClock).clock;

/** The real clock, on which searches for what has escaped wait for the test. */
function clockOfSweeps(): { readonly clock: Clock; readonly sweeps: readonly (() => void)[] } {
  const sweeps: (() => void)[] = [];
  const after: Clock["after"] = (delayMs, run) => {
    if (delayMs !== 5_000) return realClock.after(delayMs, run);
    sweeps.push(run);
    return () => {};
  };
  return { clock: { ...realClock, after }, sweeps };
}

describe("the process tree of a worker", () => {
  it("is gone when the command ended by itself and left children in its group", async () => {
    // Without sweeps: what is gone, the end of the command has ended.
    await using fixture = new RunnerFixture(undefined, holding(5_000).clock);
    assert.equal((await fixture.sh("sleep 1000 >/dev/null 2>&1 & echo pid $!")).kind, "succeeded");
    assert.equal((await fixture.sh("sleep 1000 & echo pid $!")).kind, "succeeded");
    const pids = pidsIn(fixture);
    assert.equal(pids.length, 2);
    for (const pid of pids) await eventually(async () => !(await isRunning(pid)));
  });

  it("does not hold up the outcome when a child left the group and keeps the pipes open", async () => {
    await using fixture = new RunnerFixture();
    const outcome = await fixture.sh(`${ESCAPE} echo done`);
    assert.equal(outcome.kind, "succeeded");
    const [pid = 0] = pidsIn(fixture);
    assert.notEqual(pid, 0);
    assert.equal(await isRunning(pid), false);
  });

  it("is not searched for when nothing is left of any command", {
    skip: !canMark() && "needs Linux",
  }, async () => {
    const { clock, sweeps } = clockOfSweeps();
    await using fixture = new RunnerFixture(undefined, clock);
    for (const script of ["true", "sleep 0 & wait", "exit 3"]) await fixture.sh(script);
    assert.equal(sweeps.length, 0);
  });

  it("is searched for a while later, when an escaped child holds no pipe", async () => {
    const { clock, sweeps } = clockOfSweeps();
    await using fixture = new RunnerFixture(undefined, clock);
    const outcome = await fixture.sh(escaping("exec >/dev/null 2>&1;"));
    assert.equal(outcome.kind, "succeeded");
    const [pid = 0] = pidsIn(fixture);
    assert.equal(await isRunning(pid), true);
    assert.equal(sweeps.length, 1);
    sweeps[0]?.();
    await eventually(() => fixture.warnings.length > 0);
    assert.match(fixture.warnings[0] ?? "", /had escaped.*"count":1/);
    await eventually(async () => !(await isRunning(pid)));
  });

  it("is ended at the timeout, also where it ignores SIGTERM, left the group or cleared its environment", async () => {
    const timeoutMs = 77_000;
    const { clock, fire: timeOut } = holding(timeoutMs, hastyPatientClock);
    await using fixture = new RunnerFixture(undefined, clock);
    const { listener } = fixture;
    const script = `trap "" TERM; ${ESCAPE} ${CLEARED} echo pid $$; echo ready; while :; do sleep 1; done`;
    const { task } = await startReady(fixture, script, { timeoutMs });
    await listener.until(() => pidsIn(fixture).length === 3);
    const pids = pidsIn(fixture);
    timeOut();
    const outcome = await listener.outcome(task.ref);
    assert.equal(outcome.kind === "failed" && outcome.code, "executor.timeout");
    assert.match(outcome.kind === "failed" ? outcome.message : "", /was ended after 77 s, its timeout/);
    for (const pid of pids) assert.equal(await isRunning(pid), false, String(pid));
  });

  it("may use SIGTERM to end in order, children included, and is reported as interrupted by a stop", async () => {
    // It has all the time it wants: nothing is killed.
    await using fixture = new RunnerFixture(undefined, holding(limits.killGraceMs).clock);
    const { runner, listener } = fixture;
    const child = `sh -c 'trap "sleep 0.2; echo child ended; exit 0" TERM; echo child; touch up; while :; do sleep 0.05; done' &`;
    const { task } = await startReady(
      fixture,
      `${child} until [ -e up ]; do sleep 0.01; done; echo ready; wait`,
    );
    runner.stop(task.ref);
    runner.stop(task.ref);
    assert.equal((await listener.outcome(task.ref)).kind, "interrupted");
    // The shell died of the signal at once; its child had the time it took.
    assert.ok(listener.logs("stdout").includes("child ended"));
  });

  it("is ended sooner when it is stopped again with a shorter grace", async () => {
    await using fixture = new RunnerFixture(undefined, holding(limits.killGraceMs).clock);
    const { runner, listener } = fixture;
    const { task } = await startReady(fixture, "trap '' TERM; echo ready; while :; do sleep 0.05; done");
    runner.stop(task.ref);
    runner.stop(task.ref, 1);
    assert.equal((await listener.outcome(task.ref)).kind, "interrupted");
  });

  it("is remembered when its leader goes first: a child without group, mark and parent is ended after the grace", async () => {
    await using fixture = new RunnerFixture(undefined, hastyPatientClock);
    const { runner, listener } = fixture;
    const script = `(trap "" TERM; exec setsid env -i /bin/sh -c 'echo pid $$; exec /bin/sleep 1000') & echo ready; wait`;
    const { task } = await startReady(fixture, script);
    await listener.until(() => pidsIn(fixture).length === 1);
    runner.stop(task.ref);
    assert.equal((await listener.outcome(task.ref)).kind, "interrupted");
    const [pid = 0] = pidsIn(fixture);
    assert.equal(await isRunning(pid), false);
  });

  it("is never started when the stop comes while its workspace is staged", async () => {
    await using fixture = new RunnerFixture();
    fixture.write("data", "x");
    const uploadPaths = [{ path: "data", as: "data" }];
    const task = taskStart({
      bundleFingerprint: "f",
      config: executorConfig({ command: ["touch", "/sandbox/job/ran"], uploadPaths }),
    });
    fixture.onStaging = () => fixture.runner.stop(task.ref);
    fixture.runner.start(task);
    assert.equal((await fixture.listener.outcome(task.ref)).kind, "interrupted");
    assert.deepEqual(readdirSync(join(fixture.home, "runs/run_1/agents/worker/work")), ["data"]);
  });

  it("is ended before it starts when the stop comes first", async () => {
    await using fixture = new RunnerFixture();
    const task = taskStart({ config: executorConfig({ command: ["sh", "-c", "echo ran"] }) });
    fixture.runner.start(task);
    fixture.runner.stop(task.ref);
    assert.equal((await fixture.listener.outcome(task.ref)).kind, "interrupted");
    assert.deepEqual(fixture.listener.events, []);
  });
});

const ORPHANING = fileURLToPath(new URL("../../../test/support/orphaning.ts", import.meta.url));

describe("what a dead runtime left running", () => {
  it("is ended by its successor on the same home, and nobody else's processes are", async () => {
    const home = mkdtempSync(join(realpathSync(tmpdir()), "troupe-execution-"));
    const predecessor = spawn(process.execPath, [ORPHANING, home], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    let said = "";
    predecessor.stdout.on("data", (chunk: Buffer) => {
      said += chunk.toString();
    });
    const closed = once(predecessor, "close");
    try {
      await eventually(() => said.includes("\n") || predecessor.exitCode !== null);
    } finally {
      predecessor.kill("SIGKILL");
    }
    await closed;
    const pids = JSON.parse(said) as number[];
    for (const pid of pids) assert.ok(await isRunning(pid), String(pid));

    await using other = new RunnerFixture();
    const { pids: othersPids } = await startReady(other, "echo pid $$; echo ready; sleep 1000");
    assert.equal(await other.runner.endPredecessors(), 0);
    for (const pid of pids) assert.ok(await isRunning(pid), String(pid));

    await using successor = new RunnerFixture(home);
    assert.equal(await successor.runner.endPredecessors(), pids.length);
    for (const pid of pids) assert.equal(await isRunning(pid), false, String(pid));
    for (const pid of othersPids) assert.ok(await isRunning(pid));
    assert.equal(await successor.runner.endPredecessors(), 0);
    assert.equal((await successor.sh("true")).kind, "succeeded");
  });

  it("does not include what this runtime has running", async () => {
    await using fixture = new RunnerFixture();
    const { pids } = await startReady(fixture, `${ESCAPE} echo pid $$; echo ready; sleep 1000`);
    assert.equal(await fixture.runner.endPredecessors(), 0);
    for (const pid of pids) assert.ok(await isRunning(pid));
  });

  it("is not touched by a runtime on a copy of the home", async () => {
    await using fixture = new RunnerFixture();
    const { pids } = await startReady(fixture, "echo pid $$; echo ready; sleep 1000");
    const copy = mkdtempSync(join(realpathSync(tmpdir()), "troupe-execution-"));
    cpSync(join(fixture.home, "processes"), join(copy, "processes"), { recursive: true });
    await using copied = new RunnerFixture(copy);
    assert.equal(await copied.runner.endPredecessors(), 0);
    for (const pid of pids) assert.ok(await isRunning(pid));
  });
});

const hasPs = spawnSync("ps", ["-A"]).status === 0;

/** Ways to look at processes that show no marks. */
const unmarked: readonly (readonly [string, ProcessSource])[] = [
  ["where limits cannot be set", unmarkedSource],
  ...(hasPs ? [["without /proc", psSource] as const] : []),
];

for (const [where, source] of unmarked) {
  describe(where, () => {
    it("recorded groups are ended by the successor, unless their number is somebody else's by now", async () => {
      const home = mkdtempSync(join(realpathSync(tmpdir()), "troupe-execution-"));
      const children = [
        spawn("sleep", ["1000"], { detached: true }),
        spawn("sleep", ["1000"], { detached: true }),
      ];
      const [ours = 0, others = 0] = children.map(({ pid }) => pid);
      try {
        // As `ps` tells their start: it reckons from the machine's, and may be seconds off.
        const shown = (await source.read()).find(({ pid }) => pid === ours)?.start ?? "";
        const startedMs = source === psSource ? Date.parse(shown) : 0;
        const then = { ...realClock, nowMs: () => startedMs };
        const longAgo = { ...realClock, nowMs: () => startedMs - 3_600_000 };
        const mine = new ProcessTrees(home, then, source);
        mine.started(mine.newMark(), ours, null);
        new ProcessTrees(home, longAgo, source).started("", others, source === psSource ? null : "1");
        assert.equal(await new ProcessTrees(home, realClock, source).endStrays(), 1);
        assert.equal(await isRunning(ours), false);
        assert.ok(await isRunning(others));
        assert.deepEqual(readdirSync(join(home, "processes")), ["home-id"]);
      } finally {
        for (const child of children) child.kill("SIGKILL");
        rmSync(home, { recursive: true });
      }
    });

    it("a sweep leaves the commands that are running", async () => {
      const home = mkdtempSync(join(realpathSync(tmpdir()), "troupe-execution-"));
      const child = spawn("sleep", ["1000"], { detached: true });
      const pid = child.pid ?? 0;
      try {
        const trees = new ProcessTrees(home, realClock, source);
        const mark = trees.newMark();
        const tree = trees.started(mark, pid, null);
        assert.equal(await trees.sweep(), 0);
        assert.ok(await isRunning(pid));
        trees.ended(mark, tree);
        assert.deepEqual(readdirSync(join(home, "processes")), ["home-id"]);
      } finally {
        child.kill("SIGKILL");
        rmSync(home, { recursive: true });
      }
    });

    it("a worker's tree is found by its group and by parentage", async () => {
      const home = mkdtempSync(join(realpathSync(tmpdir()), "troupe-execution-"));
      const trees = new ProcessTrees(home, patientClock, source);
      const child = spawn("sh", ["-c", "setsid sh -c 'echo $$; exec sleep 1000' & wait"], {
        detached: true,
        stdio: ["ignore", "pipe", "inherit"],
      });
      const [line] = (await once(child.stdout, "data")) as [Buffer];
      try {
        const tree = trees.started(trees.newMark(), child.pid ?? 0, null);
        await trees.signal(tree, "SIGTERM");
        assert.equal(await trees.kill(tree), true);
        assert.equal(await isRunning(Number(line)), false);
      } finally {
        for (const pid of [child.pid ?? 0, Number(line)])
          if (await isRunning(pid)) process.kill(pid, "SIGKILL");
        rmSync(home, { recursive: true });
      }
    });
  });
}

describe("the process table", () => {
  it("shows a process with its parent, group and mark, from /proc and from ps alike", {
    skip: !(hasPs && canMark()),
  }, async () => {
    const child = withMark("123456", () => spawn("sleep", ["1000"], { detached: true }));
    try {
      const pid = child.pid ?? 0;
      const fromProc = (await procSource.read()).find((entry) => entry.pid === pid);
      assert.deepEqual(fromProc, {
        pid,
        parentPid: process.pid,
        groupId: pid,
        start: procSource.startOf(pid),
        zombie: false,
        mark: "123456",
      });
      const fromPs = (await psSource.read()).find((entry) => entry.pid === pid);
      assert.deepEqual([fromPs?.parentPid, fromPs?.groupId, fromPs?.zombie], [process.pid, pid, false]);
      assert.ok(Math.abs(Date.parse(fromPs?.start ?? "") - Date.now()) < 60_000, String(fromPs?.start));
    } finally {
      child.kill("SIGKILL");
    }
  });

  it("shows a process as running whose first thread has ended, as long as another one has not", {
    skip: !canMark() && "needs Linux",
  }, async () => {
    const script =
      "import ctypes, threading, time; threading.Thread(target=time.sleep, args=[1000]).start(); ctypes.CDLL(None).pthread_exit(None)";
    const child = withMark("123457", () => spawn("python3", ["-c", script], { stdio: "ignore" }));
    try {
      const stat = `/proc/${child.pid}/stat`;
      await eventually(() => readFileSync(stat, "latin1").includes(") Z "));
      const { zombie, mark } = (await procSource.read()).find(({ pid }) => pid === child.pid)!;
      assert.deepEqual({ zombie, mark }, { zombie: false, mark: "123457" });
    } finally {
      child.kill("SIGKILL");
    }
    await once(child, "exit");
  });

  it("is not shown in part when there are too many open files to read all of it", {
    skip: process.platform === "linux" ? false : "needs Linux",
  }, () => {
    const script = `
      import { spawn } from "node:child_process";
      import { closeSync, openSync } from "node:fs";
      import { procSource } from ${JSON.stringify(new URL("./process-table.ts", import.meta.url).href)};
      const sleepers = Array.from({ length: 30 }, () => spawn("sleep", ["1000"], { stdio: "ignore" }));
      const open = [];
      try {
        for (;;) open.push(openSync("/dev/null"));
      } catch {
        closeSync(open.pop());
      }
      const isMissing = (table) => sleepers.some(({ pid }) => !table.some((entry) => entry.pid === pid));
      const outcomes = new Set();
      for (let reads = 0; reads < 30; reads++) {
        outcomes.add(await procSource.read().then((table) => (isMissing(table) ? "part" : "all"), ({ code }) => code));
      }
      for (const fd of open) closeSync(fd);
      for (const sleeper of sleepers) sleeper.kill("SIGKILL");
      outcomes.delete("all");
      console.log(...outcomes);`;
    const node = [process.execPath, "--input-type=module", "-e", script];
    const { stdout } = spawnSync("sh", ["-c", 'ulimit -n 64 && exec "$@"', "sh", ...node], {
      encoding: "utf8",
    });
    // One that happens to open its files one after the other reads it whole.
    assert.match(stdout, /^(EMFILE)?\n$/);
  });
});
