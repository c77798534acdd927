// The parts of the shipped blueprints that are written in Python, by themselves: test/examples holds their tests.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { globSync } from "node:fs";
import { basename } from "node:path";
import { it } from "node:test";
import { fileURLToPath } from "node:url";

const folder = fileURLToPath(new URL("../examples", import.meta.url));

for (const file of globSync("test_*.py", { cwd: folder }).sort()) {
  it(`${basename(file, ".py")} passes`, () => {
    const { status, stderr } = spawnSync("python3", ["-B", "-m", "unittest", "-v", file], {
      cwd: folder,
      encoding: "utf8",
      // Nobody else could end one that hangs: this process waits for it.
      timeout: 120_000,
      killSignal: "SIGKILL",
    });
    assert.equal(status, 0, stderr);
    assert.match(stderr, /^Ran [1-9]\d* tests/m);
  });
}
