// Commands that wait until a test lets them go, and that tell it when they are dead: named pipes, so that nobody
// polls and nobody sleeps.

import { execFileSync } from "node:child_process";
import { mkdtemp, open, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

export interface Gates {
  /** A folder of the test's own. */
  readonly folder: string;
  /** Makes a named pipe. @returns its path, without blanks or quotes */
  pipe(name: string): string;
  /** Opens a gate: one command that reads the pipe to its end goes on. Waits until there is one. */
  open(path: string): Promise<void>;
  /** Resolves when every process that held the pipe open for writing has ended, with what they wrote. */
  released(path: string): Promise<string>;
  remove(): Promise<void>;
}

/**
 * @example
 * const gate = gates.pipe("go");
 * await run(program, graph("g", [executor("a", ["cat", gate])]));  // waits
 * await gates.open(gate);                                           // lets it end
 */
export async function makeGates(): Promise<Gates> {
  const folder = await mkdtemp(join(tmpdir(), "troupe-gates-"));
  return {
    folder,
    pipe: (name) => {
      const path = join(folder, name);
      execFileSync("mkfifo", [path]);
      return path;
    },
    open: async (path) => {
      const file = await open(path, "w");
      await file.close();
    },
    released: (path) => readFile(path, "utf8"),
    remove: () => rm(folder, { recursive: true, force: true }),
  };
}
