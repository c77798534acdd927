// The program that tests start as a process. test/run.ts packs it once, as it is published: started from there it takes
// 0.4 s of the processor, and from the sources of a checkout 0.7 s, a hundred times in a run of all tests. A test file
// that is run without test/run.ts starts the checkout.

import { spawnSync } from "node:child_process";
import { cpSync, mkdirSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

/** Set by test/run.ts: the folder of the packed program. */
const PROGRAM_VARIABLE = "TROUPE_TEST_PROGRAM";
const checkout = fileURLToPath(new URL("../..", import.meta.url));
const packed = process.env[PROGRAM_VARIABLE];

export const launcher = launcherIn(packed ?? checkout);
/** For tests that look at the program's own files as it loads them. */
export const checkoutLauncher = launcherIn(checkout);

/** Variables of the programs that tests start: what is compiled for a program that is removed is removed with it. */
export const launcherEnvironment: Readonly<Record<string, string>> =
  packed === undefined ? {} : { NODE_COMPILE_CACHE: join(packed, "compiled") };

function launcherIn(folder: string): string {
  return join(folder, "bin", "troupe.mjs");
}

/**
 * Packs the program.
 *
 * @param folder does not exist yet
 * @returns variables for the tests that are to start it
 */
export function packProgram(folder: string): Readonly<Record<string, string>> {
  mkdirSync(folder);
  symlinkSync(join(checkout, "node_modules"), join(folder, "node_modules"));
  const pack = [join(checkout, "deploy", "pack.ts"), join(folder, "dist")];
  const { status } = spawnSync(process.execPath, pack, { stdio: "inherit" });
  if (status !== 0) throw new Error("The program cannot be packed.");
  for (const name of ["bin", "package.json"])
    cpSync(join(checkout, name), join(folder, name), { recursive: true });
  return { [PROGRAM_VARIABLE]: folder };
}
