// An error that nothing catches fails its file, also in the processes of test/run.ts.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { fileURLToPath } from "node:url";

const HOOKS = fileURLToPath(new URL("./cheap-hooks.ts", import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "troupe-hooks-"));
after(() => rmSync(folder, { recursive: true }));

/** @returns what the runner prints of a file with one test, and whether the file failed */
function fileWith(body: string): { readonly failed: boolean; readonly output: string } {
  const file = join(folder, "one.test.mjs");
  writeFileSync(file, `import { test } from "node:test";\ntest("one", async () => { ${body} });\n`);
  // The runner does nothing in what it takes for a process of its own.
  const { NODE_TEST_CONTEXT: _, ...env } = process.env;
  const args = ["--import", HOOKS, "--test", file];
  const { status, stdout } = spawnSync(process.execPath, args, { env, encoding: "utf8" });
  return { failed: status !== 0, output: stdout };
}

for (const [where, body] of [
  [
    "a callback",
    'await new Promise((resolve) => setImmediate(() => { resolve(); throw new Error("lost"); }));',
  ],
  ["a promise", 'void Promise.resolve().then(() => { throw new Error("lost"); });'],
] as const)
  test(`an error in ${where} that nobody waits for fails the file, and is shown`, () => {
    const { failed, output } = fileWith(body);
    assert.ok(failed, output);
    assert.match(output, /lost/);
  });
