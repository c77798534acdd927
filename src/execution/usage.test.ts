// What commands use of the machine, measured on real processes. Bounds are generous: the point is that the figures
// are there, belong to the right command, and add up.

import assert from "node:assert/strict";
import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import type { ResourceUsage, TaskOutcome } from "../engine/task-port.ts";
import {
  commandOf,
  eventually,
  executorConfig,
  hastyClock,
  isRunning,
  RunnerFixture,
  taskStart,
} from "./test-support.ts";

const MB = 1_024 * 1_024;

function usageOf(outcome: TaskOutcome): ResourceUsage {
  const { usage } = commandOf(outcome);
  assert.ok(usage !== null);
  return usage;
}

/** Python that uses so much CPU time, whatever the machine's speed. */
const burn = (seconds: number) => `import time\nwhile time.process_time() < ${seconds}: pass`;

const python = (source: string) => ({ config: executorConfig({ command: ["python3", "-c", source] }) });

describe("what a command has used", { skip: !existsSync("/proc/self/stat") && "needs /proc" }, () => {
  it("is its CPU time", async () => {
    await using fixture = new RunnerFixture();
    const { cpuMs } = usageOf(await fixture.run(python(burn(0.3))));
    assert.ok(cpuMs >= 280 && cpuMs < 1_000, `${cpuMs} ms`);
    const idle = usageOf(await fixture.sh("sleep 0.4"));
    assert.ok(idle.cpuMs < 200, `${idle.cpuMs} ms`);
  });

  it("is the most memory that it held, also when that was given back before its end", async () => {
    await using fixture = new RunnerFixture();
    const source = "import time\nb = b'x' * (120 * 1024 * 1024)\ntime.sleep(0.3)\ndel b\ntime.sleep(1.2)";
    const { rssBytesMax } = usageOf(await fixture.run(python(source)));
    assert.ok(rssBytesMax !== null && rssBytesMax >= 100 * MB && rssBytesMax < 400 * MB, `${rssBytesMax}`);
    const small = usageOf(await fixture.sh("sleep 0.5"));
    assert.ok(small.rssBytesMax !== null && small.rssBytesMax < 50 * MB, `${small.rssBytesMax}`);
  });

  it("includes what its children used, waited for or left running", async () => {
    await using fixture = new RunnerFixture();
    const waited = usageOf(await fixture.sh(`python3 -c '${burn(0.2)}'; python3 -c '${burn(0.2)}'; true`));
    assert.ok(waited.cpuMs >= 380 && waited.cpuMs < 2_000, `${waited.cpuMs} ms`);
    // What is left was seen before, and is looked at once more when the shell has ended.
    const burning = `(python3 -c '${burn(0.3)}'; : > burnt; exec sleep 1000) &`;
    const source = `import time\nb = b"x" * (60 << 20)\nopen("held", "w")\ntime.sleep(1000)`;
    const untilBoth = "while [ ! -e burnt ] || [ ! -e held ]; do sleep 0.02; done";
    const left = usageOf(await fixture.sh(`${burning} python3 -c '${source}' & ${untilBoth}`));
    assert.ok(left.cpuMs >= 280, `${left.cpuMs} ms`);
    assert.ok((left.rssBytesMax ?? 0) >= 60 * MB, `${left.rssBytesMax}`);
  });

  it("is told of one that fails and of one that is ended at its timeout", async () => {
    await using fixture = new RunnerFixture(undefined, hastyClock);
    const failed = await fixture.run(python(`${burn(0.2)}\nraise SystemExit(4)`));
    assert.equal(failed.kind, "failed");
    assert.ok(usageOf(failed).cpuMs >= 180);
    const endless = await fixture.run({ ...python("while True: pass"), timeoutMs: 600 });
    assert.equal(endless.kind === "failed" && endless.code, "executor.timeout");
    assert.ok(usageOf(endless).cpuMs >= 100, `${usageOf(endless).cpuMs} ms`);
  });

  it("belongs to the one that used it, among others", async () => {
    await using fixture = new RunnerFixture();
    const agents = (kind: string) => Array.from({ length: 3 }, (_, i) => ({ agentId: `${kind}-${i}` }));
    const [busy, idle] = await Promise.all([
      Promise.all(agents("busy").map((agent) => fixture.run({ ...agent, ...python(burn(0.4)) }))),
      Promise.all(agents("idle").map((agent) => fixture.sh("sleep 1", {}, agent))),
    ]);
    for (const outcome of busy) {
      const { cpuMs } = usageOf(outcome);
      assert.ok(cpuMs >= 350 && cpuMs < 1_500, `${cpuMs} ms`);
    }
    for (const outcome of idle) assert.ok(usageOf(outcome).cpuMs <= 200, `${usageOf(outcome).cpuMs} ms`);
  });

  it("belongs to the one that used it also when several are found to have ended at once", async () => {
    await using fixture = new RunnerFixture();
    const { listener } = fixture;
    const script = (work: string) =>
      `${work}; sleep 1.5; echo $PPID $$; while [ ! -e "$SVC_RUN_DIR/go" ]; do sleep 0.02; done`;
    const outcomes = [
      fixture.sh(script(`python3 -c '${burn(0.4)}'`), {}, { agentId: "busy" }),
      fixture.sh(script("true"), {}, { agentId: "idle" }),
    ];
    await listener.until(() => listener.logs("stdout").length === 2);
    const ids = listener.logs("stdout").map((line) => String(line).split(" ").map(Number));
    const spawnerPid = ids[0]?.[0] ?? 0;
    const pids = ids.map(([, pid = 0]) => pid);
    // 0 would be this process's own group.
    assert.ok(spawnerPid > 1 && pids.every((pid) => pid > 1), JSON.stringify(ids));
    // While it stands still both end, and it finds both when it goes on.
    process.kill(spawnerPid, "SIGSTOP");
    writeFileSync(join(fixture.home, "runs/run_1/shared/go"), "");
    for (const pid of pids) await eventually(async () => !(await isRunning(pid)));
    process.kill(spawnerPid, "SIGCONT");
    const [ofBusy = 0, ofIdle = 0] = (await Promise.all(outcomes)).map((outcome) => usageOf(outcome).cpuMs);
    assert.ok(ofBusy >= 300 && ofIdle <= 150, `${ofBusy} and ${ofIdle} ms`);
  });

  it("adds up over many short ones at once", async () => {
    await using fixture = new RunnerFixture();
    const shell = "i=0; while [ $i -lt 10000 ]; do i=$((i+1)); done; times";
    const outcomes = await Promise.all(
      Array.from({ length: 200 }, (_, i) => fixture.sh(shell, {}, { agentId: `agent-${i}` })),
    );
    const measuredMs = outcomes.reduce((sum, outcome) => sum + usageOf(outcome).cpuMs, 0);
    // What the shells say of themselves: minutes and seconds, user and system, on the first line.
    const saidMs = outcomes.reduce((sum, outcome) => {
      const [own = ""] = commandOf(outcome).stdout.split("\n");
      return (
        sum +
        [...own.matchAll(/(\d+)m([\d.]+)s/g)].reduce(
          (ms, [, m, s]) => ms + Number(m) * 60_000 + Number(s) * 1_000,
          0,
        )
      );
    }, 0);
    assert.ok(saidMs > 200, `${saidMs} ms`);
    assert.ok(measuredMs >= 0.8 * saidMs && measuredMs < 3 * saidMs + 2_000, `${measuredMs} of ${saidMs} ms`);
  });

  it("is unknown when the process that measures was killed, and known again of the next command", async () => {
    await using fixture = new RunnerFixture(undefined, hastyClock);
    const stubborn = "trap 'echo asked' TERM; echo $PPID; while :; do sleep 0.1; done";
    const config = executorConfig({ command: ["sh", "-c", stubborn] });
    const task = taskStart({ config, timeoutMs: 200 });
    fixture.runner.start(task);
    // One that was not asked to end would have no outcome of its own.
    await fixture.listener.until(() => fixture.listener.logs("stdout").length === 2);
    const spawnerPid = Number(fixture.listener.logs("stdout")[0]);
    assert.ok(spawnerPid > 1);
    process.kill(spawnerPid, "SIGKILL");
    const ended = await fixture.listener.outcome(task.ref);
    assert.equal(ended.kind === "failed" && ended.code, "executor.timeout");
    assert.equal(commandOf(ended).usage, null);
    usageOf(await fixture.sh("true"));
  });
});
