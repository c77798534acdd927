// Runs every test file, or those whose path contains one of the given words: `npm test`, `npm test -- kill zip`.

import { spawnSync } from "node:child_process";
import { globSync } from "node:fs";

const root = new URL("..", import.meta.url).pathname;
const words = process.argv.slice(2);
const files = globSync(
  ["src/**/*.test.ts", "sdk/{generator,src,test}/**/*.test.ts", "test/**/*.test.ts", "examples/**/*.test.ts"],
  { cwd: root },
)
  .filter((file) => words.length === 0 || words.some((word) => file.includes(word)))
  .sort();
/** A test that hangs fails, instead of holding up everybody. */
const FILE_MS_MAX = 240_000;
// A runner without files would report success.
if (files.length === 0) {
  console.error(`No test file matches ${words.join(" or ") || "the pattern"}.`);
  process.exit(1);
}
const { status } = spawnSync(
  process.execPath,
  ["--test", "--test-concurrency=2", `--test-timeout=${FILE_MS_MAX}`, ...files],
  {
    cwd: root,
    stdio: "inherit",
  },
);
process.exit(status ?? 1);
