// Applies each mutation to a copy of the project and expects its tests to fail:
// `npm run mutations`, `npm run mutations -- journal sync` for those whose fault or file contains one of the words,
// `npm run mutations -- --from 83` to leave out the first 82 of them.

import { mkdtempSync, rmSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { forEachConcurrent } from "../../src/lib/async.ts";
import { memoryFolder } from "../support/memory-folder.ts";
import { mutations } from "./list.ts";
import { type Mutation, mutated } from "./mutation.ts";
import { ProjectCopy } from "./project-copy.ts";

interface Chosen {
  /** From 1, as it is printed. */
  readonly number: number;
  readonly mutation: Mutation;
}

const root = fileURLToPath(new URL("../..", import.meta.url));
const { values, positionals: words } = parseArgs({
  options: { from: { type: "string", default: "1" } },
  allowPositionals: true,
});
/** A test that hangs says nothing: on a busy machine it could be a healthy one. */
const RESULTS = { failed: "noticed", passed: "MISSED ", "timed out": "HANGS  " } as const;
const chosen: readonly Chosen[] = mutations
  .filter(
    ({ fault, file }) =>
      words.length === 0 || words.some((word) => fault.includes(word) || file.includes(word)),
  )
  .map((mutation, i) => ({ number: i + 1, mutation }))
  .slice(Number(values.from) - 1);
if (chosen.length === 0) {
  console.error(`No mutation matches ${words.join(" or ")} from number ${values.from} on.`);
  process.exit(1);
}

// What does not apply any more is found before the first test, not after most of them.
for (const { mutation } of chosen) mutated(root, mutation);

const memory = process.env.TMPDIR === undefined ? memoryFolder() : null;
const scratch = memory ?? mkdtempSync(join(tmpdir(), "troupe-mutations-"));
const free = Array.from(
  { length: availableParallelism() },
  (_, i) => new ProjectCopy(root, join(scratch, `${i}`)),
);
const atOnce = free.length;
let noticed = 0;
try {
  const tests = new Set(chosen.flatMap(({ mutation }) => mutation.tests));
  await forEachConcurrent([...tests], atOnce, (test) => inCopy((copy) => mustPass(copy, test)));
  await forEachConcurrent(chosen, atOnce, (one) => inCopy((copy) => tryOut(copy, one)));
} finally {
  rmSync(scratch, { recursive: true, force: true });
}
console.log(
  `${noticed} of ${chosen.length} mutations were noticed (${((100 * noticed) / chosen.length).toFixed(1)} %).`,
);
process.exitCode = noticed === chosen.length ? 0 : 1;

async function inCopy(work: (copy: ProjectCopy) => Promise<void>): Promise<void> {
  const copy = free.pop();
  if (copy === undefined) throw new Error("more at once than there are copies");
  await work(copy).finally(() => free.push(copy));
}

/** Without a fault the tests pass; otherwise their failing says nothing. */
async function mustPass(copy: ProjectCopy, test: string): Promise<void> {
  const { verdict, output } = await copy.run([test]);
  if (verdict !== "passed") throw new Error(`${test} has ${verdict} without any mutation:\n${output}`);
}

async function tryOut(copy: ProjectCopy, { number, mutation }: Chosen): Promise<void> {
  const began = performance.now();
  const { verdict, output } = await copy.runWith(mutation);
  const seconds = ((performance.now() - began) / 1_000).toFixed(1);
  if (verdict === "failed") noticed++;
  console.log(`${RESULTS[verdict]} ${number} (${seconds} s): ${mutation.fault} (${mutation.file})`);
  if (verdict !== "passed") console.log(`        ${output.split("\n").at(-1)}`);
}
