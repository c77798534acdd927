// Modules in processes of their own that are out to do harm. What they reach is shown to be in reach of a thread first.

import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import {
  commandOf,
  hastyClock,
  RunnerFixture,
  type TaskChanges,
  taskStart,
} from "../../../test/support/execution.ts";
import { moduleInProcess, noSandboxes } from "../../../test/support/sandboxes.ts";
import type { JsonObject } from "../../engine/json.ts";
import type { TaskOutcome } from "../../engine/task-port.ts";

const REPLY = "/sandbox/attempt/out/reply";

describe("a hostile module in a process", { skip: noSandboxes, concurrency: 2 }, () => {
  let fixture: RunnerFixture;
  before(() => {
    fixture = new RunnerFixture(undefined, hastyClock);
  });
  after(() => fixture[Symbol.asyncDispose]());

  let modules = 0;
  /** Calls handle(message, context) with this body; `fs` and `child` are node:fs and node:child_process. */
  async function called(
    body: string,
    changes: TaskChanges = {},
    policy: JsonObject = {},
  ): Promise<TaskOutcome> {
    const name = `m${++modules}.mjs`;
    const source = `import * as fs from "node:fs"; import * as child from "node:child_process";
      export async function handle(message, context) { ${body} }`;
    fixture.write(name, source);
    const config = moduleInProcess(name, {}, policy);
    return await fixture.run({ bundleFingerprint: "f", agentId: name, ...changes, config });
  }

  async function failureOf(body: string, changes: TaskChanges = {}, policy: JsonObject = {}) {
    const outcome = await called(body, changes, policy);
    assert.ok(outcome.kind === "failed", JSON.stringify(outcome));
    return outcome;
  }

  async function completed(body: string, changes: TaskChanges = {}, policy: JsonObject = {}) {
    const outcome = await called(body, changes, policy);
    assert.ok(outcome.kind === "succeeded", JSON.stringify(outcome));
    return outcome.actions.completeRun;
  }

  test("ends its process in many ways, and fails its message only", async () => {
    const endings: readonly (readonly [string, RegExp])[] = [
      ["process.exit(0);", /ended before handle\(\) had returned/],
      ["process.exit(3);", /ended with exit code 3/],
      ["console.error('the end is near'); process.kill(process.pid, 'SIGKILL');", /It said: the end is near/],
      ["process.on('exit', () => { process.exitCode = 9; });", /exit code 9/],
      ["Promise.reject(new Error('nobody caught')); await new Promise(() => {});", /nobody caught/],
    ];
    for (const [body, expected] of endings) {
      const { code, message } = await failureOf(body);
      assert.equal(code, "module.threw");
      assert.match(message, expected);
    }
  });

  test("is ended at its deadline: deaf to signals in a loop, or waiting for what never comes", async () => {
    const deaf = "process.on('SIGTERM', () => {}); for (;;) {}";
    for (const body of [deaf, "await new Promise(() => {});"])
      assert.equal((await failureOf(body, { timeoutMs: 300 })).code, "module.timeout");
  });

  test("gets no more memory than it may have", async () => {
    const heap = await failureOf(
      "const all = []; for (let i = 0; i < 100; i++) all.push(new Array(1e6).fill(0.5));",
    );
    assert.equal(heap.code, "module.out_of_memory");
    const outside = "const all = []; for (let i = 0; i < 40; i++) all.push(Buffer.alloc(16 << 20, 1));";
    const bounded = await called(outside, {}, { limits: { memory_mb: 128 } });
    if (commandOf(bounded).enforcement === "none") assert.equal(bounded.kind, "succeeded");
    else assert.equal(bounded.kind === "failed" && bounded.code, "resource.memory_exceeded");
  });

  test("sees neither the home, nor the runtime's environment, nor its network", async () => {
    await using server = createServer((_request, response) => response.end("reached"));
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const { port } = server.address() as AddressInfo;
    writeFileSync(join(fixture.home, "secret"), "of the home");
    const body = `const reach = async (get) => { try { return await get(); } catch (error) { return null; } };
      const { home, port } = message.body;
      return { complete: [
        await reach(() => fs.readFileSync(home + "/secret", "utf8")),
        await reach(() => fs.readdirSync("/proc/" + process.ppid + "/fd").length > 0 &&
          fs.readFileSync("/proc/" + process.ppid + "/environ", "utf8").includes("RUNTIME_OWN")),
        await reach(async () => (await fetch("http://127.0.0.1:" + port)).text()),
        await reach(() => process.kill(message.body.pid, 0)),
        await reach(() => fs.readFileSync("/etc/shadow", "utf8").length > 0),
        await reach(() => (fs.writeFileSync(import.meta.dirname + "/../x", "x"), true)),
        Object.keys(process.env).filter((name) => name !== "PWD").sort(),
      ] };`;
    const asked = { home: fixture.home, port, pid: process.pid };
    const inThread = await run(fixture, body, asked);
    assert.deepEqual((inThread as unknown[])[0], "of the home");
    assert.deepEqual((inThread as unknown[])[2], "reached");
    assert.deepEqual((inThread as unknown[])[3], true);
    const [home, environ, network, kill, shadow, written, names] = (await completed(body, {
      body: asked,
    })) as unknown[];
    assert.deepEqual([home, network, kill, shadow, written], [null, null, null, null, null]);
    assert.notEqual(environ, true);
    assert.deepEqual(names, ["HOME", "LANG", "PATH", "TMPDIR"]);
  });

  test("writes its reply itself: what that says counts for no more than what it may return", async () => {
    const forged = (content: string) =>
      `fs.writeFileSync("${REPLY}", ${JSON.stringify(content)}); process.exit(0);`;
    assert.equal(await completed(forged('returned\n{"complete":"itself"}')), "itself");
    for (const [content, code] of [
      ["", "module.threw"],
      ["succeeded\n{}", "module.threw"],
      ["returned\n{", "module.invalid_output"],
      ['returned\n{"artifacts": []}', "module.invalid_output"],
      ['returned\n{"__proto__": {"emit": [{"type": "t", "body": 1}]}}', "module.invalid_output"],
      ["out_of_memory\n", "module.threw"],
    ] as const)
      assert.equal((await failureOf(forged(content))).code, code, content);
    assert.equal(Object.hasOwn(Object.prototype, "emit"), false);
  });

  test("leaves something else in the reply's place", async () => {
    const planted = join(fixture.home, "planted");
    writeFileSync(planted, 'returned\n{"complete": "of the home"}');
    for (const [make, code] of [
      [`fs.symlinkSync("${planted}", "${REPLY}")`, "module.threw"],
      [`fs.mkdirSync("${REPLY}")`, "module.threw"],
      [`child.execFileSync("mkfifo", ["${REPLY}"])`, "module.threw"],
      [
        `fs.writeFileSync("${REPLY}", "returned\\n"); fs.truncateSync("${REPLY}", 2 ** 33)`,
        "message.body_too_large",
      ],
    ] as const)
      assert.equal((await failureOf(`${make}; process.exit(0);`)).code, code, make);
  });

  test("has closed its descriptors, changed the language, or left processes, and is understood nevertheless", async () => {
    assert.equal(await completed("for (const fd of [0, 1, 2]) fs.closeSync(fd); return { complete: 1 };"), 1);
    const changed = `JSON.stringify = () => '{"complete": "of its own"}'; process.exit = () => {};
      Object.prototype.kind = "failed"; Array.prototype[Symbol.iterator] = null; return {};`;
    assert.equal(await completed(changed), "of its own");
    const later = `child.spawn("sh", ["-c", "while :; do echo 'threw\\n' >${REPLY}.x; done"], { detached: true, stdio: "ignore" });
      return { complete: "at once" };`;
    assert.equal(await completed(later), "at once");
  });

  test("prints what a command could act by, and does not act", async () => {
    const result = { emit_messages: [{ type: "t", body: 1 }], complete_run: "by print" };
    const outcome = await called(
      `console.log('${JSON.stringify(result)}'); return { complete: "returned" };`,
    );
    assert.ok(outcome.kind === "succeeded", JSON.stringify(outcome));
    assert.deepEqual([outcome.actions.emits, outcome.actions.completeRun], [[], "returned"]);
  });

  test("gets and returns as much as a message holds", async () => {
    const body = "x".repeat(4_000_000);
    assert.equal(await completed("return { complete: message.body };", { body }), body);
    const { code } = await failureOf("return { complete: message.body + message.body };", { body });
    assert.equal(code, "message.body_too_large");
  });
});

/** The same in a thread. @returns what it completes the run with */
async function run(fixture: RunnerFixture, body: string, asked: JsonObject): Promise<unknown> {
  fixture.write(
    "thread.mjs",
    `import * as fs from "node:fs"; export async function handle(message) { ${body} }`,
  );
  const task = taskStart({
    kind: "module",
    bundleFingerprint: "f",
    body: asked,
    config: {
      kind: "module",
      ...{ module: "thread.mjs", timeoutSeconds: 0, maxAttempts: 1, retryBackoffMs: 0, config: {} },
    },
  });
  fixture.runner.start(task);
  const outcome = await fixture.listener.outcome(task.ref);
  assert.ok(outcome.kind === "succeeded", JSON.stringify(outcome));
  return outcome.actions.completeRun;
}
