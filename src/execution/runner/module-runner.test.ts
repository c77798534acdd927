// Modules, in real worker threads and in real processes in sandboxes: what is promised of them is the same.

import assert from "node:assert/strict";
import { symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { RunnerFixture, type TaskChanges, taskStart } from "../../../test/support/execution.ts";
import { moduleInProcess, noSandboxes } from "../../../test/support/sandboxes.ts";
import type { ModuleConfig } from "../../engine/graph.ts";
import type { TaskOutcome } from "../../engine/task-port.ts";

type Isolation = "thread" | "process";

const own = { k: 1 };

function moduleTask(module: string, isolation: Isolation, changes: TaskChanges = {}) {
  const inThread: ModuleConfig = {
    kind: "module",
    module,
    timeoutSeconds: 0,
    maxAttempts: 1,
    retryBackoffMs: 0,
    config: own,
  };
  const given = { bundleFingerprint: "f", ...changes };
  if (isolation === "thread") return taskStart({ kind: "module", ...given, config: inThread });
  const config = moduleInProcess(module, own);
  // An agent of its own: its workspace is staged once.
  return taskStart({ kind: "command", agentId: `agent-${++agents}`, ...given, config });
}

let modules = 0;
let agents = 0;

async function call(
  fixture: RunnerFixture,
  source: string,
  isolation: Isolation,
  changes: TaskChanges = {},
): Promise<TaskOutcome> {
  const name = `m${++modules}.mjs`;
  fixture.write(name, source);
  const task = moduleTask(name, isolation, changes);
  fixture.runner.start(task);
  return await fixture.listener.outcome(task.ref);
}

function handle(body: string): string {
  return `export async function handle(message, context) { ${body} }`;
}

function failure(outcome: TaskOutcome): [string, string] {
  assert.equal(outcome.kind, "failed", JSON.stringify(outcome));
  return outcome.kind === "failed" ? [outcome.code, outcome.message] : ["", ""];
}

for (const isolation of ["thread", "process"] as const) {
  const skip = isolation === "process" && noSandboxes;
  describe(`a module in a ${isolation}`, { skip }, () => {
    const moduleOf = (module: string, changes: TaskChanges = {}) => moduleTask(module, isolation, changes);
    const callOf = (fixture: RunnerFixture, source: string, changes: TaskChanges = {}) =>
      call(fixture, source, isolation, changes);

    it("gets message, state and config, and asks through what it returns", async () => {
      await using fixture = new RunnerFixture();
      const outcome = await callOf(
        fixture,
        handle(
          `return { emit: [{ type: "sum", body: message.body.a + context.state.b + context.config.k, to: "x" }, { type: "n", body: context.attempt }], state: { b: 2 }, complete: [context.job.job_id] };`,
        ),
        { body: { a: 1 }, agentState: { b: 5 } },
      );
      assert.ok(outcome.kind === "succeeded", JSON.stringify(outcome));
      assert.deepEqual(outcome.artifacts, []);
      assert.deepEqual(outcome.actions, {
        events: [],
        emits: [
          { type: "sum", body: 7, to: "x" },
          { type: "n", body: 1, to: null },
        ],
        nextState: { b: 2 },
        completeStep: undefined,
        completeRun: ["graph-1"],
      });
      assert.equal(((await callOf(fixture, handle(""))) as { kind: string }).kind, "succeeded");
    });

    it("has what it prints logged, in order and before its outcome", async () => {
      await using fixture = new RunnerFixture();
      await callOf(
        fixture,
        handle(`for (let i = 0; i < 1000; i++) console.log("line " + i); console.error('oops');`),
      );
      assert.deepEqual(
        fixture.listener.logs("stdout"),
        Array.from({ length: 1000 }, (_, i) => `line ${i}`),
      );
      assert.deepEqual(fixture.listener.logs("stderr"), ["oops"]);
    });

    it("fails with the message and the first lines of the stack when it throws", async () => {
      await using fixture = new RunnerFixture();
      const [code, message] = failure(await callOf(fixture, handle("throw new TypeError('bad input');")));
      assert.equal(code, "module.threw");
      assert.match(message, /threw TypeError: bad input\n\s+at handle \(m\d+\.mjs:\d+:\d+\)$/);
      assert.doesNotMatch(message, /file:|module-host/, "no place of this machine is named");
      assert.equal(failure(await callOf(fixture, handle("process.exit(3);")))[0], "module.threw");
      assert.equal(
        failure(
          await callOf(
            fixture,
            handle("setImmediate(() => { throw new Error('later'); }); await new Promise(() => {});"),
          ),
        )[0],
        "module.threw",
      );
    });

    it("fails to load with the reason", async () => {
      await using fixture = new RunnerFixture();
      writeFileSync(join(fixture.home, "outside.mjs"), handle(""));
      symlinkSync("../outside.mjs", join(fixture.payload, "link.mjs"));
      const cases: [string, RegExp][] = [
        ["absent.mjs", /not in the payload/],
        ["../outside.mjs", /leaves the payload/],
        ["link.mjs", /through a symlink/],
      ];
      for (const [module, expected] of cases) {
        const task = moduleOf(module);
        fixture.runner.start(task);
        const [code, message] = failure(await fixture.listener.outcome(task.ref));
        assert.equal(code, "module.load_failed");
        assert.match(message, expected);
      }
      await using another = new RunnerFixture();
      assert.match(failure(await callOf(another, "export const x = 1;"))[1], /exports no function handle/);
      assert.match(failure(await callOf(another, "export const x = ;"))[1], /SyntaxError/);
      assert.match(
        failure(await callOf(another, handle(""), { bundleFingerprint: null }))[1],
        /needs a bundle/,
      );
    });

    it("fails on results of the wrong shape, every problem named", async () => {
      await using fixture = new RunnerFixture();
      const cases: [string, RegExp][] = [
        ["return 5;", /nothing or an object, not 5/],
        [
          "return { emits: [], emit: [{ body: 1 }, 2] };",
          /"emits" is unknown.*emit\[0\]\.type.*emit\[1\] must be an object/,
        ],
        ["return { complete: 1n };", /is no JSON.*BigInt/],
        ["const a = []; a[0] = a; return { complete: a };", /is no JSON/],
        ["let a = 1; for (let i = 0; i < 200; i++) a = [a]; return { complete: a };", /nests too deep/],
      ];
      for (const [body, expected] of cases) {
        const [code, message] = failure(await callOf(fixture, handle(body)));
        assert.equal(code, "module.invalid_output");
        assert.match(message, expected);
      }
      const [code] = failure(await callOf(fixture, handle("return { state: 'x'.repeat(5_000_000) };")));
      assert.equal(code, "message.body_too_large");
    });

    it("is ended at its deadline, also in an endless loop, without harm to other tasks of the module", async () => {
      await using fixture = new RunnerFixture();
      fixture.write(
        "loop.mjs",
        handle("if (message.body === 'loop') for (;;) {} return { complete: message.body };"),
      );
      const looping = moduleOf("loop.mjs", { body: "loop", timeoutMs: 100 });
      const quick = moduleOf("loop.mjs", { body: "quick" });
      fixture.runner.start(looping);
      fixture.runner.start(quick);
      assert.deepEqual(failure(await fixture.listener.outcome(looping.ref))[0], "module.timeout");
      assert.equal((await fixture.listener.outcome(quick.ref)).kind, "succeeded");
    });

    it("is interrupted by a stop", async () => {
      await using fixture = new RunnerFixture();
      fixture.write("wait.mjs", handle("console.log('up'); await new Promise(() => {});"));
      const task = moduleOf("wait.mjs");
      fixture.runner.start(task);
      await fixture.listener.until(() => fixture.listener.logs("stdout").length === 1);
      fixture.runner.stop(task.ref);
      assert.equal((await fixture.listener.outcome(task.ref)).kind, "interrupted");
    });

    it("has secrets of the configuration redacted in logs and failures", async () => {
      await using fixture = new RunnerFixture();
      const outcome = await callOf(
        fixture,
        handle("console.log('key configured-key'); throw new Error('configured-key');"),
        {
          configurationJson: '{"api_key": "configured-key"}',
        },
      );
      assert.deepEqual(fixture.listener.logs("stdout"), ["key [redacted]"]);
      assert.match(failure(outcome)[1], /Error: \[redacted\]/);
    });
  });
}

describe("modules in processes", { skip: noSandboxes }, () => {
  it("begin anew with each message, in the workspace of their agent, with other files of the payload", async () => {
    await using fixture = new RunnerFixture();
    fixture.write("lib/add.ts", "export const add = (a: number, b: number): number => a + b;");
    const source = `import { add } from "./lib/add.ts"; import { appendFileSync, readFileSync } from "node:fs";
      let n = 0; ${handle('appendFileSync("seen", message.body); return { complete: [add(++n, 1), readFileSync("seen", "utf8"), process.argv.length] };')}`;
    fixture.write("a.mjs", source);
    const results: unknown[] = [];
    for (const body of ["x", "y"]) {
      const outcome = await fixture.run({
        ...{ agentId: "adder", bundleFingerprint: "f", body },
        config: moduleInProcess("a.mjs", own),
      });
      results.push(outcome.kind === "succeeded" ? outcome.actions.completeRun : outcome);
    }
    assert.deepEqual(results, [
      [2, "x", 2],
      [2, "xy", 2],
    ]);
  });

  it("have the variables that their policy passes on", async () => {
    await using fixture = new RunnerFixture();
    fixture.runtimeEnv.PASSED_ON = "a value of the machine";
    fixture.write(
      "a.mjs",
      handle("return { complete: [Object.keys(process.env).sort(), process.env.PASSED_ON.length] };"),
    );
    const config = moduleInProcess("a.mjs", own, { environment: ["PASSED_ON"] });
    const outcome = await fixture.run({ bundleFingerprint: "f", config });
    assert.ok(outcome.kind === "succeeded", JSON.stringify(outcome));
    const names = ["HOME", "LANG", "PASSED_ON", "PATH", "PWD", "TMPDIR"];
    assert.deepEqual(outcome.actions.completeRun, [names, "a value of the machine".length]);
  });
});

describe("modules in threads", () => {
  it("do not run where sandboxes are required", async () => {
    await using fixture = new RunnerFixture();
    fixture.requireSandbox = true;
    assert.equal(failure(await call(fixture, handle(""), "thread"))[0], "sandbox.required");
  });

  it("has an empty environment, and keeps its thread for the next task of the same module only", async () => {
    await using fixture = new RunnerFixture();
    fixture.write(
      "a.mjs",
      `let n = 0; ${handle("return { complete: [Object.keys(process.env).length, ++n] };")}`,
    );
    const results: unknown[] = [];
    for (let i = 0; i < 3; i++) {
      const task = moduleTask("a.mjs", "thread");
      fixture.runner.start(task);
      const outcome = await fixture.listener.outcome(task.ref);
      results.push(outcome.kind === "succeeded" && outcome.actions.completeRun);
    }
    assert.deepEqual(results, [
      [0, 1],
      [0, 2],
      [0, 3],
    ]);
  });

  it("is interrupted by a stop, while it waits for a thread or runs in one", async () => {
    await using fixture = new RunnerFixture();
    fixture.write(
      "wait.mjs",
      handle("console.log('up'); await new Promise(() => setInterval(() => {}, 1000));"),
    );
    const tasks = Array.from({ length: 7 }, () => moduleTask("wait.mjs", "thread"));
    for (const task of tasks) fixture.runner.start(task);
    const { listener } = fixture;
    await listener.until(() => listener.logs("stdout").length === 4);
    for (const task of tasks.toReversed()) fixture.runner.stop(task.ref);
    for (const task of tasks) assert.equal((await listener.outcome(task.ref)).kind, "interrupted");
    assert.equal(listener.logs("stdout").length, 4);
    assert.equal((await call(fixture, handle("return { complete: 1 };"), "thread")).kind, "succeeded");
  });

  it("shares four threads with many modules, each task in its turn", async () => {
    await using fixture = new RunnerFixture();
    const outcomes = await Promise.all(
      Array.from({ length: 12 }, (_, i) => call(fixture, handle(`return { complete: ${i} };`), "thread")),
    );
    assert.deepEqual(
      outcomes.map((outcome) => outcome.kind === "succeeded" && outcome.actions.completeRun),
      Array.from({ length: 12 }, (_, i) => i),
    );
  });
});
