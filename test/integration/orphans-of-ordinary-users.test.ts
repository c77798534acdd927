// A runtime that is not root and has a cgroup of its own: what its commands leave is ended with them, also what clears
// its environment, leaves its session, forks twice and holds nothing of its command.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readdirSync } from "node:fs";
import { readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { DelegatedCgroup, noDelegatedCgroup } from "../support/delegated-cgroup.ts";
import { oneCommand } from "../support/manifests.ts";
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

describe("orphans of a runtime that is not root", { skip: noDelegatedCgroup }, () => {
  let home: string;
  let cgroup: DelegatedCgroup;
  let program: Program;
  const start = () => startProgram({ home, through: cgroup.through });
  before(async () => {
    home = await temporaryHome();
    cgroup = new DelegatedCgroup(home);
    program = await start();
  });
  after(async () => {
    try {
      await program.stop();
      assert.deepEqual(
        readdirSync(cgroup.folder).filter((name) => name.includes("=")),
        [],
        "no cgroup of a command is left",
      );
    } finally {
      await cgroup.remove();
      await rm(home, { recursive: true, force: true });
    }
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

  test("end with their own command, by themselves and by a cancel, and not with another's", async () => {
    const kept = await orphaning("kept", "exec sleep 1000");
    const left = await orphaning("left", "exit 0");
    assert.equal((await historyOf(program, left.job)).at(-1)?.type, "job_completed");
    await isGone(left.orphan);
    assert.ok(runs(kept.orphan));
    await call(program, "POST", `/jobs/${kept.job}/cancel`);
    await historyOf(program, kept.job);
    await isGone(kept.orphan);
  });

  test("are found by cgroups, as the doctor says", async () => {
    const [file, ...args] = programWords({ args: ["doctor"], through: cgroup.through });
    const said = await new Promise<string>((resolve) => {
      execFile(file, args, { env: programEnvironment(home) }, (_, stdout) => resolve(stdout));
    });
    assert.match(said, /orphans.*cgroups, one for each command/);
  });

  test("of a runtime that was killed end at the next start", async () => {
    const { orphan } = await orphaning("survivor", "exec sleep 1000");
    await program.kill();
    assert.ok(runs(orphan));
    program = await start();
    await isGone(orphan);
  });
});
