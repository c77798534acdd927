// What commands use of the machine, measured on real processes. Bounds are generous: the point is that the figures
// are there, belong to the right command, and add up.

import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { after, describe, it } from "node:test";
import {
  commandOf,
  eventually,
  executorConfig,
  holding,
  isRunning,
  RunnerFixture,
  taskStart,
} from "../../../test/support/execution.ts";
import { makeGates } from "../../../test/support/gates.ts";
import { limits } from "../../engine/limits.ts";
import type { ResourceUsage, TaskOutcome } from "../../engine/task-port.ts";

const MB = 1_024 * 1_024;
/** More than the spawner reads between two looks, and less than it reads of the memory of one process. */
const LOOK_BYTES = 1_000;
/** The longest time between two looks at a worker. */
const LOOK_EVERY_MS = 1_000;

function usageOf(outcome: TaskOutcome): ResourceUsage {
  const { usage } = commandOf(outcome);
  assert.ok(usage !== null);
  return usage;
}

/** Python that uses so much CPU time, whatever the machine's speed. */
const burn = (seconds: number) => `import time\nwhile time.process_time() < ${seconds}: pass`;

const python = (source: string) => ({ config: executorConfig({ command: ["python3", "-c", source] }) });

/** Pipes, because who waits at one uses nothing meanwhile. */
const gates = await makeGates();
after(() => gates.remove());

/** Shell that waits until the gate is opened. */
const waitAt = (gate: string) => `read x < '${gate}'`;

/** Waits until workers have printed so many lines. @returns the numbers in the last one */
async function lines({ listener }: RunnerFixture, count: number): Promise<number[]> {
  await listener.until(() => listener.logs("stdout").length >= count);
  const numbers = String(listener.logs("stdout").at(-1)).split(" ").map(Number);
  // 0 would be this process's own group.
  assert.ok(
    numbers.every((pid) => pid > 1),
    JSON.stringify(numbers),
  );
  return numbers;
}

/** Waits until the spawner has looked at its workers from now on. It reads nothing else while none starts or ends. */
async function looked(spawnerPid: number): Promise<void> {
  const tell = (file: string) => readFileSync(`/proc/${spawnerPid}/${file}`, "latin1");
  const read = () => Number(/^rchar: (\d+)$/m.exec(tell("io"))?.[1]);
  // A look that is under way may be at something older.
  await eventually(() => /.*\) S /s.test(tell("stat")));
  const before = read();
  await eventually(() => read() >= before + LOOK_BYTES);
}

describe("what a command has used", { skip: !existsSync("/proc/self/io") && "needs /proc" }, () => {
  it("is its CPU time", async () => {
    await using fixture = new RunnerFixture();
    const { cpuMs } = usageOf(await fixture.run(python(burn(0.3))));
    assert.ok(cpuMs >= 280 && cpuMs < 1_000, `${cpuMs} ms`);
    const idle = usageOf(await fixture.sh("sleep 0.4"));
    assert.ok(idle.cpuMs < 200, `${idle.cpuMs} ms`);
  });

  it("is the most memory that it held, also when that was given back before its end", async () => {
    await using fixture = new RunnerFixture();
    const [first, second] = [gates.pipe("large"), gates.pipe("small")];
    const source = `import os
b = b"x" * (120 << 20)
del b
print(os.getppid(), flush=True)
open("${first}").read()`;
    const large = fixture.run(python(source));
    await looked((await lines(fixture, 1))[0] ?? 0);
    await gates.open(first);
    const { rssBytesMax } = usageOf(await large);
    assert.ok(rssBytesMax !== null && rssBytesMax >= 100 * MB && rssBytesMax < 400 * MB, `${rssBytesMax}`);
    const shell = fixture.sh(`echo $PPID; ${waitAt(second)}`);
    await looked((await lines(fixture, 2))[0] ?? 0);
    await gates.open(second);
    const small = usageOf(await shell);
    assert.ok(small.rssBytesMax !== null && small.rssBytesMax < 50 * MB, `${small.rssBytesMax}`);
  });

  it("is told while it runs: of all its processes together, the most so far", async () => {
    await using fixture = new RunnerFixture();
    const gate = gates.pipe("peaks");
    const source = `import os
b = b"x" * (40 << 20)
if os.fork() == 0:
    os.execvp("sh", ["sh", "-c", "read x < '${gate}'"])
print(os.getppid(), flush=True)
os.wait()`;
    const task = taskStart(python(source));
    assert.equal(await fixture.runner.peaksOf(task.ref), null);
    fixture.runner.start(task);
    await looked((await lines(fixture, 1))[0] ?? 0);
    const { memoryBytes = 0, processes = 0 } = (await fixture.runner.peaksOf(task.ref)) ?? {};
    // What starts Python may be several.
    assert.ok(memoryBytes >= 40 * MB && processes >= 2, `${memoryBytes} bytes, ${processes} processes`);
    await gates.open(gate);
    await fixture.listener.outcome(task.ref);
    assert.equal(await fixture.runner.peaksOf(task.ref), null);
  });

  it("includes what its children used, waited for or left running", async () => {
    await using fixture = new RunnerFixture();
    const waited = usageOf(await fixture.sh(`python3 -c '${burn(0.2)}'; python3 -c '${burn(0.2)}'; true`));
    assert.ok(waited.cpuMs >= 380 && waited.cpuMs < 2_000, `${waited.cpuMs} ms`);
    // What is left was seen before it worked. The one that started the first ends; and both are looked at once more when
    // the shell has ended.
    const [toLeave, toBurn, toHold, burnt, held] = ["leave", "burn", "hold", "burnt", "held"].map(gates.pipe);
    assert.ok(toLeave !== undefined && toBurn !== undefined && toHold !== undefined);
    const source = `import time\nb = b"x" * (60 << 20)\nopen("${held}", "w").close()\ntime.sleep(1000)`;
    const keeping = `(${waitAt(toHold)}; exec python3 -c '${source}') &`;
    const burning = `(${waitAt(toBurn)}; python3 -c '${burn(0.3)}'; : > '${burnt}'; exec sleep 1000) &`;
    const leaving = `(${burning} echo $PPID; ${waitAt(toLeave)}); echo $PPID`;
    const outcome = fixture.sh(`${keeping} ${leaving}; read x < '${burnt}'; read x < '${held}'`);
    await looked((await lines(fixture, 1))[0] ?? 0);
    await gates.open(toLeave);
    await looked((await lines(fixture, 2))[0] ?? 0);
    await gates.open(toBurn);
    await gates.open(toHold);
    const left = usageOf(await outcome);
    assert.ok(left.cpuMs >= 280, `${left.cpuMs} ms`);
    assert.ok((left.rssBytesMax ?? 0) >= 60 * MB, `${left.rssBytesMax}`);
  });

  it("is told of one that fails and of one that is ended at its timeout", async () => {
    const timeoutMs = 77_000;
    const { clock, fire: timeOut } = holding(timeoutMs);
    await using fixture = new RunnerFixture(undefined, clock);
    const failed = await fixture.run(python(`${burn(0.2)}\nraise SystemExit(4)`));
    assert.equal(failed.kind, "failed");
    assert.ok(usageOf(failed).cpuMs >= 180);
    const source = `${burn(0.2)}\nimport os\nprint(os.getppid(), flush=True)\nwhile True: pass`;
    const running = fixture.run({ ...python(source), timeoutMs });
    await lines(fixture, 1);
    timeOut();
    const endless = await running;
    assert.equal(endless.kind === "failed" && endless.code, "executor.timeout");
    assert.ok(usageOf(endless).cpuMs >= 180, `${usageOf(endless).cpuMs} ms`);
  });

  it("belongs to the one that used it, among others", async () => {
    await using fixture = new RunnerFixture();
    const start = (agentId: string, work: string) => {
      const gate = gates.pipe(agentId);
      const outcome = fixture.sh(`${work}; echo $PPID $$; ${waitAt(gate)}`, {}, { agentId });
      return { agentId, gate, outcome };
    };
    const busy = ["busy-1", "busy-2"].map((agentId) => start(agentId, `python3 -c '${burn(0.4)}'`));
    const idle = ["idle-1", "idle-2"].map((agentId) => start(agentId, "true"));
    await lines(fixture, 4);
    // One after the other, so that nobody has ended at the same moment.
    const cpuMsOf = async ({ gate, outcome }: ReturnType<typeof start>) => {
      await gates.open(gate);
      return usageOf(await outcome).cpuMs;
    };
    for (const one of [busy[0], idle[0], idle[1], busy[1]]) {
      assert.ok(one !== undefined);
      const cpuMs = await cpuMsOf(one);
      if (busy.includes(one)) assert.ok(cpuMs >= 380 && cpuMs < 1_500, `${one.agentId}: ${cpuMs} ms`);
      else assert.ok(cpuMs <= 200, `${one.agentId}: ${cpuMs} ms`);
    }
  });

  it("belongs to the one that used it also when several are found to have ended at once", async () => {
    await using fixture = new RunnerFixture();
    const opened: string[] = [];
    const start = (agentId: string, work: string) => {
      const gate = gates.pipe(`once-${agentId}`);
      opened.push(gate);
      return fixture.sh(`${work}; echo $PPID $$; ${waitAt(gate)}`, {}, { agentId });
    };
    const busy = start("busy", `python3 -c '${burn(0.4)}'`);
    const [spawnerPid = 0] = await lines(fixture, 1);
    // It is alone: the look is one at what it has used.
    await looked(spawnerPid);
    const idle = [1, 2, 3].map((n) => start(`idle-${n}`, "true"));
    await lines(fixture, 4);
    const pids = fixture.listener.logs("stdout").map((line) => Number(String(line).split(" ")[1]));
    // While the spawner stands still all end, and it finds all when it goes on.
    process.kill(spawnerPid, "SIGSTOP");
    // So long that a look at each is due: none was looked at later than others, and what was seen decides.
    const untilMs = performance.now() + LOOK_EVERY_MS;
    try {
      for (const gate of opened) await gates.open(gate);
      for (const pid of pids) await eventually(async () => !(await isRunning(pid)));
      await eventually(() => performance.now() >= untilMs);
    } finally {
      process.kill(spawnerPid, "SIGCONT");
    }
    const [ofBusy = 0, ...ofIdle] = (await Promise.all([busy, ...idle])).map((one) => usageOf(one).cpuMs);
    assert.ok(ofBusy >= 300 && ofIdle.every((ms) => ms <= 100), `${ofBusy} and ${ofIdle} ms`);
  });

  it("adds up over many short ones at once", async () => {
    await using fixture = new RunnerFixture();
    // Each uses a tick at least, whatever the machine's speed: nothing smaller is told.
    const shell = `user=0m0.00; while [ "\${user#0m0.00}" != "$user" ]; do
      i=0; while [ $i -lt 2000 ]; do i=$((i+1)); done; times > said; read user system < said; done; times`;
    const outcomes = await Promise.all(
      Array.from({ length: 100 }, (_, i) => fixture.sh(shell, {}, { agentId: `agent-${i}` })),
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
    assert.ok(saidMs >= 1_000, `${saidMs} ms`);
    assert.ok(measuredMs >= 0.8 * saidMs && measuredMs < 3 * saidMs + 2_000, `${measuredMs} of ${saidMs} ms`);
  });

  it("is unknown when the process that measures was killed, and known again of the next command", async () => {
    const timeoutMs = 77_000;
    const { clock, fire: timeOut } = holding(timeoutMs);
    const { clock: bothHeld, fire: endGrace } = holding(limits.killGraceMs, clock);
    await using fixture = new RunnerFixture(undefined, bothHeld);
    const stubborn = "trap 'echo asked' TERM; echo $PPID; while :; do sleep 0.1; done";
    const config = executorConfig({ command: ["sh", "-c", stubborn] });
    const task = taskStart({ config, timeoutMs });
    fixture.runner.start(task);
    await fixture.listener.until(() => fixture.listener.logs("stdout").length === 1);
    timeOut();
    // One that was not asked to end would have no outcome of its own.
    await fixture.listener.until(() => fixture.listener.logs("stdout").length === 2);
    const spawnerPid = Number(fixture.listener.logs("stdout")[0]);
    assert.ok(spawnerPid > 1);
    process.kill(spawnerPid, "SIGKILL");
    endGrace();
    const ended = await fixture.listener.outcome(task.ref);
    assert.equal(ended.kind === "failed" && ended.code, "executor.timeout");
    assert.equal(commandOf(ended).usage, null);
    usageOf(await fixture.sh("true"));
  });
});
