// What commands write down shows what it is there to show.

import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, beforeEach, describe, test } from "node:test";
import type { SeenEvent } from "../support/gateway-api.ts";
import { endProcessesWith, seesProcesses } from "../support/processes.ts";
import { until } from "../support/until.ts";
import { Effects } from "./effects.ts";

const skip = !seesProcesses && "it needs flock(1) of Linux";

describe("the effects of commands", { skip }, () => {
  let folder: string;
  let home: string;
  let effects: Effects;
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "troupe-effects-"));
  });
  beforeEach(async () => {
    home = await mkdtemp(join(folder, "test-"));
    effects = await Effects.start(home);
  });
  after(async () => {
    // What a failed test has left.
    endProcessesWith(folder);
    await rm(folder, { recursive: true, force: true });
  });

  /** Runs a command as an attempt of agent a of run r. */
  function attempt(n: number, ...words: readonly string[]): ChildProcess {
    const { command, environment } = effects.command(...words);
    const [file = "", ...args] = command;
    const given = { SVC_RUN_ID: "r", SVC_AGENT_ID: "a", SVC_ATTEMPT: String(n) };
    return spawn(file, args, { env: { ...process.env, ...environment, ...given }, stdio: "ignore" });
  }

  const ended = (child: ChildProcess) => once(child, "exit");
  /** Who looks at its lock would hold it for a moment, and seem to be another attempt. */
  const hasStarted = () =>
    until("it has started", async () => /^start /m.test(await readFile(join(home, "lines"), "utf8")));

  async function allEnded() {
    await until("nothing runs", async () => {
      endProcessesWith(folder);
      return (await effects.running()).length === 0;
    });
  }

  /** The history of run r, in which these things happened to attempts of its agent. */
  function history(...lines: readonly (readonly [type: string, attempt: number])[]) {
    const events = lines.map(([type, attempt], i): SeenEvent => {
      return { id: i + 1, run_id: "r", type, timestamp: "", agent_id: "a", payload: { attempt } };
    });
    return new Map([["r", events]]);
  }

  test("are those of the history when all is well", async () => {
    await ended(attempt(1, "false"));
    await ended(attempt(2, "true"));
    const events = history(
      ["sandbox_job_started", 1],
      ["sandbox_job_started", 2],
      ["sandbox_job_completed", 2],
    );
    assert.deepEqual(await effects.wrongWith(events), []);
    assert.deepEqual(await effects.running(), []);
  });

  test("show two attempts at once, also when only a grandchild of the first one is left", async () => {
    await ended(attempt(1, "sh", "-c", "sleep 600 >/dev/null 2>&1 & echo $! >&2"));
    assert.deepEqual(await effects.running(), ["r.a"]);
    await ended(attempt(2, "true"));
    const wrong = await effects.wrongWith(history(["sandbox_job_started", 1], ["sandbox_job_started", 2]));
    assert.deepEqual(wrong, ["attempt 2 of a of r began while an earlier one ran"]);
    await allEnded();
  });

  test("show an attempt that no history has, and one that was made twice", async () => {
    await ended(attempt(1, "true"));
    assert.deepEqual(await effects.wrongWith(history()), [
      "the start of attempt 1 of a of r is in no history",
    ]);
    await ended(attempt(1, "true"));
    assert.match(
      (await effects.wrongWith(history(["sandbox_job_started", 1]))).join(),
      /start .* written 2 times/,
    );
  });

  test("show a success of what did not come to its end", async () => {
    const child = attempt(1, "sleep", "600");
    await hasStarted();
    const wrong = await effects.wrongWith(history(["sandbox_job_started", 1], ["sandbox_job_completed", 1]));
    assert.deepEqual(wrong, ["attempt 1 of a of r has succeeded, and did not come to its end"]);
    child.kill("SIGKILL");
    await allEnded();
  });
});
