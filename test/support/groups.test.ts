// Files that share a process, as test/run.ts has it run.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { fileURLToPath } from "node:url";
import { grouped } from "./groups.ts";

const root = mkdtempSync(join(tmpdir(), "troupe-groups-"));
after(() => rmSync(root, { recursive: true }));
const untracked = fileURLToPath(new URL("untracked-promises.ts", import.meta.url));

/** Its hook refuses every test but its own. */
const source = (name: string) => `
import { afterEach, test } from "node:test";
afterEach((t) => { if (t.name !== "${name}") throw new Error(t.name + " has met the hook of ${name}"); });
test("${name}", async () => { await null; });
`;

test("files that share a process keep their hooks to their own tests; one that waits while it loads shares none", () => {
  mkdirSync(join(root, "src", "part"), { recursive: true });
  const files = ["one", "two", "three"].map((name) => join("src", "part", `${name}.test.ts`));
  for (const [i, file] of files.entries())
    writeFileSync(join(root, file), `${i === 2 ? "await null;" : ""}${source(`test ${i}`)}`);
  const [group = "", ...alone] = grouped(root, files, root);
  assert.deepEqual(alone, files.slice(2));
  const { NODE_TEST_CONTEXT: _, ...env } = process.env;
  const { status, stdout } = spawnSync(process.execPath, ["--import", untracked, group], {
    env,
    encoding: "utf8",
  });
  assert.equal(status, 0, stdout);
  assert.match(stdout, /tests 2/);
});
