// The launcher: beside the program under a Node that is older than the program needs, else the program's own process.

import assert from "node:assert/strict";
import { rm } from "node:fs/promises";
import { test } from "node:test";
import { start } from "../support/command-line.ts";
import { processesWith, seesProcesses } from "../support/processes.ts";
import { startProgram, temporaryHome } from "../support/program.ts";
import { until } from "../support/until.ts";

/** What the launcher finds with Node 20: it is too old for the program, and cannot become another process. */
const OLD =
  "process.execve=undefined;Object.defineProperty(process,'versions',{value:{...process.versions,node:'20.0.0'}})";
const env = { NODE_OPTIONS: `--import=data:text/javascript,${OLD}` };

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

test("under a Node that is new enough, the launcher's process is the program, without warnings of Node's experiments", {
  skip: !seesProcesses && "there is no /proc to look at",
}, async () => {
  // Without execve it could only start another one, and two would be seen.
  const cannotChange = { NODE_OPTIONS: "--import=data:text/javascript,process.execve=undefined" };
  await using program = await startProgram({ env: cannotChange });
  assert.deepEqual(processesWith(program.home), [program.pid]);
  const { out, err } = await start(["doctor"], program.home).ended;
  assert.match(out, /found by a limit that they inherit/, "it uses node:ffi, which is experimental");
  assert.equal(err, "");
});
