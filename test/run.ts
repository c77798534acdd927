// Runs every test file, or those whose path contains one of the given words: `npm test`, `npm test -- kill zip`. With --long
// (`npm run test:long`) every test has its long size, and all tests are followed by those of both APIs on PostgreSQL, by
// those of sandboxes made by gVisor, and by the mutations.
// Temporary files lie in memory where there is room, unless TMPDIR says where.

import { spawnSync } from "node:child_process";
import { globSync, mkdtempSync, rmSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";
import { run } from "node:test";
import { spec } from "node:test/reporters";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { ENGINE_VARIABLE } from "./support/engines.ts";
import { grouped, LONGEST } from "./support/groups.ts";
import { LONG_VARIABLE } from "./support/long.ts";
import { memoryFolder } from "./support/memory-folder.ts";
import { packProgram } from "./support/packed-program.ts";
import { POSTGRES_DATA_VARIABLE, POSTGRES_VARIABLE } from "./support/postgres.ts";
import { realPython } from "./support/real-python.ts";

const root = fileURLToPath(new URL("..", import.meta.url));
const { values, positionals: words } = parseArgs({
  options: { long: { type: "boolean", default: false } },
  allowPositionals: true,
});
const files = globSync(
  ["src/**/*.test.ts", "sdk/{generator,src,test}/**/*.test.ts", "test/**/*.test.ts", "examples/**/*.test.ts"],
  { cwd: root },
)
  .filter((file) => words.length === 0 || words.some((word) => file.includes(word)))
  // The longest ones first, so that none of them is what is left in the end.
  .sort((a, b) => rank(a) - rank(b) || (a < b ? -1 : 1));
/** More than there are cores: many tests wait, for a process to end or for a time to be over. */
const FILES_AT_ONCE = availableParallelism() + 2;
/** A test that hangs fails, instead of holding up everybody. */
const TEST_MS_MAX = values.long ? 1_800_000 : 480_000;
/** What a failed test has left open keeps its process from ending, and nothing of the runner's would end it. */
const SILENCE_MS_MAX = TEST_MS_MAX + 120_000;
// A runner without files would report success.
if (files.length === 0) {
  console.error(`No test file matches ${words.join(" or ") || "the pattern"}.`);
  process.exit(1);
}
const folder = process.env.TMPDIR === undefined ? memoryFolder() : null;
const made = mkdtempSync(join(folder ?? tmpdir(), "troupe-made-"));
const env = {
  ...packProgram(join(made, "program")),
  ...realPython(),
  [POSTGRES_DATA_VARIABLE]: join(made, "postgres"),
  ...(folder !== null && { TMPDIR: folder }),
};
let status = await tested(grouped(root, files, made), {
  ...env,
  ...(values.long && { [LONG_VARIABLE]: "1" }),
});
if (status === 0 && values.long && words.length === 0) {
  const ofApis = files.filter((file) => /^test\/(gateway|runtime)\//.test(file));
  status = await tested(grouped(root, ofApis, made), { ...env, [POSTGRES_VARIABLE]: "1" });
}
if (status === 0 && values.long && words.length === 0) {
  const ofSandboxes = files.filter((file) => /sandbox|hostile-module/.test(file));
  status = await tested(grouped(root, ofSandboxes, made), { ...env, [ENGINE_VARIABLE]: "gvisor" });
}
rmSync(made, { recursive: true, force: true });
if (folder !== null) rmSync(folder, { recursive: true, force: true });
// They are what `npm test` must notice: its sizes, not the long ones.
if (status === 0 && values.long && words.length === 0) status = mutated();
process.exit(status);

function rank(file: string): number {
  if (LONGEST.test(file)) return 0;
  return /^test\/(?:integration|simulation|cluster|browser)\//.test(file) ? 1 : 2;
}

/** Runs the files in the order given, which `node --test` would not keep. @returns the exit code */
async function tested(paths: readonly string[], env: Readonly<Record<string, string>>): Promise<number> {
  const processes = new AbortController();
  const events = run({
    files: paths,
    cwd: root,
    concurrency: FILES_AT_ONCE,
    timeout: TEST_MS_MAX,
    signal: processes.signal,
    env: { ...process.env, ...env },
    execArgv: ["--import", join(root, "test/support/untracked-promises.ts")],
  });
  const open = new Set<string>();
  const silence = setTimeout(() => {
    const minutes = Math.round(SILENCE_MS_MAX / 60_000);
    console.error(`No test has ended for ${minutes} minutes. These have not: ${[...open].join(", ")}`);
    processes.abort();
    // Their own children may hold the pipe that the runner reads to its end.
    setTimeout(() => process.exit(1), 10_000).unref();
  }, SILENCE_MS_MAX);
  events.on("test:dequeue", ({ name }) => {
    if (paths.includes(name)) open.add(name);
  });
  events.on("test:complete", ({ name }) => {
    open.delete(name);
    silence.refresh();
  });
  let status = 1;
  events.on("test:summary", ({ file, success }) => {
    // Files have summaries too.
    if (file === undefined) status = success ? 0 : 1;
  });
  await pipeline(events, new spec(), process.stdout, { end: false });
  clearTimeout(silence);
  return status;
}

function mutated(): number {
  const mutations = spawnSync(process.execPath, ["test/mutations/run.ts"], { cwd: root, stdio: "inherit" });
  return mutations.status ?? 1;
}
