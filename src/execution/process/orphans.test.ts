// Processes that do all they can to be forgotten: they clear their environment, leave their session, and their parent
// ends before them. They end with their command all the same.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import {
  eventually,
  executorConfig,
  holding,
  isRunning,
  RunnerFixture,
  realClock,
  taskStart,
  unmarkedSource,
} from "../../../test/support/execution.ts";
import { WorkerProcess } from "../runner/worker-process.ts";
import { FifoSupply } from "./pipes.ts";
import { canMark, markIn } from "./process-marks.ts";
import { ProcessTrees } from "./process-trees.ts";
import { SideCommands } from "./side-command.ts";
import { Spawner } from "./spawner.ts";
import { WorkerPipes } from "./worker-pipes.ts";

/** Starts an orphan that holds nothing of its command, and writes its process id into a file. */
const orphanInto = (file: string) =>
  `env -i setsid --fork /bin/sh -c '(/bin/sleep 1000 </dev/null >/dev/null 2>&1 & echo $! >"$0.part"; mv "$0.part" "$0")' "${file}"
   until [ -e "${file}" ]; do sleep 0.01; done`;
const ORPHAN = orphanInto("$SVC_RUN_DIR/$SVC_AGENT_ID");
const PRINTED = `${ORPHAN}; cat "$SVC_RUN_DIR/$SVC_AGENT_ID"`;
/** When a runner looks for what has escaped its commands. */
const SWEEP_MS = 5_000;

const printedPid = (fixture: RunnerFixture) => Number(fixture.listener.logs("stdout").at(-1));

describe("an orphan that nothing shows but its limits", {
  skip: !canMark() && "limits of processes cannot be set here",
}, () => {
  it("inherits the limit in which every command has its mark", async () => {
    await using fixture = new RunnerFixture();
    assert.equal((await fixture.sh("cat /proc/self/limits")).kind, "succeeded");
    const limits = fixture.listener.logs("stdout").join("\n");
    assert.notEqual(markIn(limits), null, limits);
  });

  it("ends after its command, and the orphan of a command that still runs does not", async () => {
    const sweeps = holding(SWEEP_MS);
    await using fixture = new RunnerFixture(undefined, sweeps.clock);
    const { runner, listener } = fixture;
    const other = taskStart({
      agentId: "other",
      config: executorConfig({ command: ["sh", "-c", `${PRINTED}; exec sleep 1000`] }),
    });
    runner.start(other);
    await listener.until(() => listener.logs("stdout").length === 1);
    const kept = printedPid(fixture);
    assert.equal((await fixture.sh(PRINTED)).kind, "succeeded");
    const orphan = printedPid(fixture);
    assert.notEqual(orphan, kept);
    sweeps.fire();
    await eventually(async () => !(await isRunning(orphan)));
    assert.ok(await isRunning(kept));
    runner.stop(other.ref);
    await listener.outcome(other.ref);
    assert.equal(await isRunning(kept), false);
  });

  it("is gone when the attempt that was asked to stop is over", async () => {
    await using fixture = new RunnerFixture();
    const { runner, listener } = fixture;
    const task = taskStart({
      config: executorConfig({ command: ["sh", "-c", `${PRINTED}; exec sleep 1000`] }),
    });
    runner.start(task);
    await listener.until(() => listener.logs("stdout").length === 1);
    const orphan = printedPid(fixture);
    assert.ok(await isRunning(orphan));
    runner.stop(task.ref);
    assert.equal((await listener.outcome(task.ref)).kind, "interrupted");
    assert.equal(await isRunning(orphan), false);
  });

  it("is gone when the runtime has shut down", async () => {
    const fixture = new RunnerFixture();
    try {
      assert.equal((await fixture.sh(PRINTED)).kind, "succeeded");
      const orphan = printedPid(fixture);
      await fixture.runner.drain(0);
      assert.equal(await isRunning(orphan), false);
    } finally {
      await fixture[Symbol.asyncDispose]();
    }
  });

  it("of a runtime that was killed is ended by the next one of this home, and by no other", async () => {
    const home = mkdtempSync(join(realpathSync(tmpdir()), "troupe-execution-"));
    const program = fileURLToPath(new URL("../../../test/support/orphaning.ts", import.meta.url));
    const predecessor = spawn(process.execPath, [program, home, PRINTED, "1"], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    const closed = once(predecessor, "close");
    let said = "";
    predecessor.stdout.on("data", (chunk: Buffer) => {
      said += chunk.toString();
    });
    await eventually(() => said.includes("\n") || predecessor.exitCode !== null);
    predecessor.kill("SIGKILL");
    await closed;
    // Its worker may have ended before it was killed, which it says in another line.
    const [orphan = 0] = JSON.parse(said.split("\n")[0] ?? "") as number[];
    assert.ok(await isRunning(orphan));
    await using other = new RunnerFixture();
    assert.equal(await other.runner.endPredecessors(), 0);
    assert.ok(await isRunning(orphan));
    await using successor = new RunnerFixture(home);
    // Its worker may be about to end, and is counted, too.
    assert.ok((await successor.runner.endPredecessors()) >= 1);
    await eventually(async () => !(await isRunning(orphan)));
  });

  it("of a validator, a check or a preparation is gone when that is over", async () => {
    const home = mkdtempSync(join(realpathSync(tmpdir()), "troupe-orphans-"));
    const limitsBefore = readFileSync("/proc/self/limits", "utf8");
    try {
      const trees = new ProcessTrees(home, realClock);
      const side = new SideCommands({ trees, clock: realClock, runtimeEnv: process.env });
      const command = ["/bin/sh", "-c", orphanInto(join(home, "pid"))];
      const end = await side.run({ command, folder: home, environment: {}, timeoutMs: 60_000 });
      assert.equal(end.kind === "exited" && end.code, 0);
      assert.equal(await isRunning(Number(readFileSync(join(home, "pid"), "utf8"))), false);
      assert.equal(readFileSync("/proc/self/limits", "utf8"), limitsBefore, "only the command is marked");
    } finally {
      rmSync(home, { recursive: true, force: true });
    }
  });
});

it("an orphan that keeps its command's output open does not hold up the outcome where limits cannot be set", async () => {
  const home = mkdtempSync(join(realpathSync(tmpdir()), "troupe-orphans-"));
  const trees = new ProcessTrees(home, realClock, unmarkedSource);
  const tools = {
    fifos: new FifoSupply(join(home, "pipes")),
    spawner: new Spawner(),
    trees,
    clock: realClock,
  };
  const drop = () => {};
  try {
    const script = orphanInto(join(home, "pid")).replace("</dev/null >/dev/null 2>&1", "");
    const pipes = await WorkerPipes.open(tools.fifos, realClock, join(home, "events"));
    const worker = await WorkerProcess.start(
      {
        file: "/bin/sh",
        args: ["-c", script],
        cwd: home,
        env: { PATH: process.env.PATH ?? "" },
        files: [],
        mark: trees.newMark(),
        pipes,
        takesInput: false,
        memoryBytes: null,
        wrapped: null,
      },
      { tools, sinks: { stdout: drop, stderr: drop, events: drop, backpressure: () => null } },
    );
    assert.equal((await worker.ended)?.exitCode, 0);
  } finally {
    process.kill(Number(readFileSync(join(home, "pid"), "utf8")));
    await tools.spawner.close();
    await tools.fifos.close();
    rmSync(home, { recursive: true, force: true });
  }
});
