// Applies each mutation to a copy of the project and expects its tests to fail:
// `npm run mutations`, `npm run mutations -- journal sync` for those whose fault or file contains one of the words.

import { spawnSync } from "node:child_process";
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { mutations } from "./list.ts";
import { mutated } from "./mutation.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));
const LEFT_OUT = new Set([".git", "node_modules", "tmp"]);
/** A fault may make a test wait for ever; that counts as noticed. */
const FILE_MS_MAX = 240_000;

const words = process.argv.slice(2);
const chosen = mutations.filter(
  ({ fault, file }) =>
    words.length === 0 || words.some((word) => fault.includes(word) || file.includes(word)),
);
if (chosen.length === 0) {
  console.error(`No mutation matches ${words.join(" or ")}.`);
  process.exit(1);
}

const scratch = mkdtempSync(join(tmpdir(), "troupe-mutations-"));
const copy = join(scratch, "project");
let missed = 0;
try {
  cpSync(root, copy, { recursive: true, filter: (path) => !LEFT_OUT.has(relative(root, path)) });
  symlinkSync(join(root, "node_modules"), join(copy, "node_modules"));
  mustPass([...new Set(chosen.flatMap(({ tests }) => tests))]);
  for (const mutation of chosen) {
    const file = join(copy, mutation.file);
    const original = readFileSync(file);
    writeFileSync(file, mutated(copy, mutation));
    const isNoticed = runTests(mutation.tests).status !== 0;
    writeFileSync(file, original);
    if (!isNoticed) missed++;
    console.log(`${isNoticed ? "noticed" : "MISSED "}  ${mutation.fault} (${mutation.file})`);
  }
} finally {
  rmSync(scratch, { recursive: true, force: true });
}
console.log(`${chosen.length - missed} of ${chosen.length} mutations were noticed.`);
process.exitCode = missed === 0 ? 0 : 1;

/** Without a fault the tests pass; otherwise their failing says nothing. */
function mustPass(tests: readonly string[]): void {
  const { status, output } = runTests(tests);
  if (status !== 0) throw new Error(`The tests fail without any mutation:\n${output}`);
}

function runTests(tests: readonly string[]): { readonly status: number | null; readonly output: string } {
  const options = ["--test", `--test-timeout=${FILE_MS_MAX}`, "--test-reporter=dot"];
  // An inherited NODE_TEST_CONTEXT would have the tests report to whoever runs this, and succeed.
  const { NODE_TEST_CONTEXT: _, ...env } = process.env;
  const { status, stdout, stderr } = spawnSync(process.execPath, [...options, ...tests], {
    cwd: copy,
    encoding: "utf8",
    env,
  });
  return { status, output: stdout + stderr };
}
