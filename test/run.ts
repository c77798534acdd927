// Runs every test file, or those whose path contains one of the given words: `npm test`, `npm test -- kill zip`.
// Temporary files lie in memory where there is room, unless TMPDIR says where.

import { spawnSync } from "node:child_process";
import { globSync, rmSync } from "node:fs";
import { availableParallelism } from "node:os";
import { fileURLToPath } from "node:url";
import { memoryFolder } from "./support/memory-folder.ts";

const root = fileURLToPath(new URL("..", import.meta.url));
const words = process.argv.slice(2);
const LONGEST = /\/(simulation|kill|dashboard|cli-gateway|gateway-fire-[a-z]+|gateway-guide)\.test\.ts$/;
const files = globSync(
  ["src/**/*.test.ts", "sdk/{generator,src,test}/**/*.test.ts", "test/**/*.test.ts", "examples/**/*.test.ts"],
  { cwd: root },
)
  .filter((file) => words.length === 0 || words.some((word) => file.includes(word)))
  // The longest ones first, so that none of them is what is left in the end.
  .sort((a, b) => Number(LONGEST.test(b)) - Number(LONGEST.test(a)) || (a < b ? -1 : 1));
/** One more than there are cores: many tests wait, for a process to end or for a time to be over. */
const FILES_AT_ONCE = availableParallelism() + 1;
/** A test that hangs fails, instead of holding up everybody. */
const FILE_MS_MAX = 240_000;
// A runner without files would report success.
if (files.length === 0) {
  console.error(`No test file matches ${words.join(" or ") || "the pattern"}.`);
  process.exit(1);
}
const folder = process.env.TMPDIR === undefined ? memoryFolder() : null;
const { status } = spawnSync(
  process.execPath,
  ["--test", `--test-concurrency=${FILES_AT_ONCE}`, `--test-timeout=${FILE_MS_MAX}`, ...files],
  {
    cwd: root,
    stdio: "inherit",
    env: { ...process.env, ...(folder !== null && { TMPDIR: folder }) },
  },
);
if (folder !== null) rmSync(folder, { recursive: true, force: true });
process.exit(status ?? 1);
