// Commands that wait until a test lets them go, and that tell it when they are dead: named pipes, so that no command
// polls or sleeps.

import { execFileSync } from "node:child_process";
import { constants, openSync } from "node:fs";
import { mkdtemp, open, rm } from "node:fs/promises";
import { Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { until } from "./until.ts";

/**
 * A test never waits inside an open of the system: that would take one of the four threads that everything with files
 * goes through, and could not be given up.
 */
const WITHOUT_WAITING = constants.O_NONBLOCK;

export interface Gates {
  /** A folder of the test's own. */
  readonly folder: string;
  /** Makes a named pipe. @returns its path, without blanks or quotes */
  pipe(name: string): string;
  /** Opens a gate: one command that reads the pipe to its end goes on. Waits until there is one. */
  open(path: string): Promise<void>;
  /** Resolves when every process that held the pipe open for writing has ended, with what they wrote. */
  released(path: string): Promise<string>;
  /** Whether any process has the pipe open for reading; `exec 9<>pipe` does that without waiting for a writer. */
  isHeld(path: string): Promise<boolean>;
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
  const readers = new Set<Socket>();
  return {
    folder,
    pipe: (name) => {
      const path = join(folder, name);
      execFileSync("mkfifo", [path]);
      return path;
    },
    open: async (path) => void (await until(`a command reads ${path}`, () => letGo(path))),
    released: async (path) => {
      const fd = openSync(path, constants.O_RDONLY | WITHOUT_WAITING);
      // Ends when the last writer has gone, not before the first one has come.
      const reader = new Socket({ fd, readable: true, writable: false });
      readers.add(reader);
      try {
        return await text(reader);
      } finally {
        readers.delete(reader);
      }
    },
    isHeld: letGo,
    remove: async () => {
      // Those of a test that failed.
      for (const reader of readers) reader.destroy();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/** @returns false when nobody reads the pipe yet */
async function letGo(path: string): Promise<boolean> {
  try {
    await (await open(path, constants.O_WRONLY | WITHOUT_WAITING)).close();
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENXIO") return false;
    throw error;
  }
}
