// A runtime that is an ordinary user's: what its commands leave is ended with them, also what clears its environment,
// leaves its session, forks twice and holds nothing of its command.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { oneCommand } from "../support/manifests.ts";
import { withoutPrivileges } from "../support/privileges.ts";
import { runs } from "../support/processes.ts";
import {
  type Program,
  programEnvironment,
  programWords,
  startProgram,
  temporaryHome,
} from "../support/program.ts";
import { call, historyOf } from "../support/runtime-api.ts";
import { until } from "../support/until.ts";

/** Starts an orphan and writes its process id into a file. */
const ORPHAN = `env -i setsid --fork /bin/sh -c '(/bin/sleep 1000 </dev/null >/dev/null 2>&1 & echo $! >"$0.part"; mv "$0.part" "$0")' "$PID_FILE"
until [ -e "$PID_FILE" ]; do sleep 0.01; done`;

describe("orphans of a runtime that is not root", () => {
  let home: string;
  let program: Program;
  const start = () => startProgram({ home, through: withoutPrivileges });
  before(async () => {
    home = await temporaryHome();
    program = await start();
  });
  after(async () => {
    await program.stop();
    await rm(home, { recursive: true, force: true });
  });

  /** Submits a job whose command leaves an orphan and then does this. @returns its id and the orphan's */
  async function orphaning(name: string, then: string): Promise<{ job: string; orphan: number }> {
    const pidFile = join(home, name);
    const manifest = oneCommand(name, `${ORPHAN}\n${then}`, { environment: { PID_FILE: pidFile } });
    const job = String((await call(program, "POST", "/jobs", manifest)).id);
    const text = await until(`${name} has its orphan`, () => readFile(pidFile, "utf8").catch(() => null));
    return { job, orphan: Number(text) };
  }

  const isGone = (orphan: number) => until("the orphan has ended", () => !runs(orphan));

  test("end with their own command and not with another's", async () => {
    const kept = await orphaning("kept", "exec sleep 1000");
    const left = await orphaning("left", "exit 0");
    assert.equal((await historyOf(program, left.job)).at(-1)?.type, "job_completed");
    await isGone(left.orphan);
    assert.ok(runs(kept.orphan));
  });

  test("end with a command that is cancelled", async () => {
    const { job, orphan } = await orphaning("cancelled", "exec sleep 1000");
    await call(program, "POST", `/jobs/${job}/cancel`);
    await historyOf(program, job);
    await isGone(orphan);
  });

  test("are found by limits where Node can set them, as the doctor says", async () => {
    const [file, ...args] = programWords({ args: ["doctor"], through: withoutPrivileges });
    const doctor = (more: Readonly<Record<string, string>>) =>
      new Promise<string>((resolve) => {
        execFile(file, args, { env: programEnvironment(home, more) }, (_, stdout) => resolve(stdout));
      });
    assert.match(await doctor({}), /orphans.*found by a limit/);
    assert.match(await doctor({ NODE_OPTIONS: "--no-experimental-ffi" }), /orphans.*limits cannot be set/);
  });

  test("of a runtime that was killed end at the next start", async () => {
    const { orphan } = await orphaning("survivor", "exec sleep 1000");
    await program.kill();
    assert.ok(runs(orphan));
    program = await start();
    await isGone(orphan);
  });
});
