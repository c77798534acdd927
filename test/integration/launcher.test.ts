// The launcher beside the program: so it is under a Node that is older than the program needs.

import assert from "node:assert/strict";
import { rm } from "node:fs/promises";
import { test } from "node:test";
import { processesWith, seesProcesses } from "../support/processes.ts";
import { startProgram, temporaryHome } from "../support/program.ts";
import { until } from "../support/until.ts";

/** A process that cannot become another one, as with Node 20. */
const env = { NODE_OPTIONS: "--import=data:text/javascript,process.execve=undefined" };

test("kill -9 of the launcher ends the program behind it, and the next start has the home to itself", {
  skip: !seesProcesses && "there is no /proc to look at",
}, async () => {
  const home = await temporaryHome();
  try {
    await using first = await startProgram({ home, env });
    assert.ok(processesWith(home).length >= 2, "the launcher and the program");
    process.kill(first.pid, "SIGKILL");
    await until("nothing of it is left", () => processesWith(home).length === 0);
    await using second = await startProgram({ home, env });
    assert.equal((await second.stop()).code, 0, "SIGTERM reaches the program, and its exit code comes back");
  } finally {
    await rm(home, { recursive: true, force: true });
  }
});
