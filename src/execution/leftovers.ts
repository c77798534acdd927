// What commands of this home have left behind and nothing here uses: processes, and folders in runs/.
//
// - What is in use is looked up again at the moment at which something is removed. An attempt is under way from before it
//   has its folder until after, and no later one has a folder of that name.
// - Symlinks are not followed: a worker may have put one in any place.

import { lstat, opendir, readdir } from "node:fs/promises";
import { join } from "node:path";
import { removeTree } from "../lib/remove-tree.ts";
import type { ProcessEntry } from "./process/process-table.ts";
import type { ProcessTrees } from "./process/process-trees.ts";
import type { Trash } from "./runner/trash.ts";

/** Folders in runs/ that are looked at, and those that are found. */
const RUNS_MAX = 10_000;
const FOUND_MAX = 1_000;
const RUNS_PER_LOOK = 500;
/** A run's folder may be there before its row is. */
const RUN_AGE_MS = 60 * 60 * 1_000;
const ATTEMPT_AGE_MS = 60 * 1_000;

export interface LeftFolders {
  /** Names in runs/ that no run has. */
  readonly runs: readonly string[];
  /** Paths of attempts' folders. */
  readonly attempts: readonly string[];
  /** How many folders are in runs/, and whether all of them were looked at. */
  readonly present: number;
  readonly isComplete: boolean;
}

export interface LeftoversParts {
  /** SVC_HOME. */
  readonly home: string;
  readonly trees: ProcessTrees;
  readonly trash: Trash;
  /** Whether a folder is, or has in it, that of an attempt under way; or is an attempt's that is kept for another one. */
  readonly isInUse: (path: string) => boolean;
}

export class Leftovers {
  readonly #parts: LeftoversParts;

  constructor(parts: LeftoversParts) {
    this.#parts = parts;
  }

  processes(): Promise<readonly ProcessEntry[]> {
    return this.#parts.trees.escaped();
  }

  /** Ends a process that was found, unless it is a command's. @returns whether it is gone */
  endProcess(found: ProcessEntry): Promise<boolean> {
    return this.#parts.trees.endStray(found);
  }

  /**
   * @param nowMs wall time
   * @param runsThere tells which of some names are those of runs
   */
  async folders(
    nowMs: number,
    runsThere: (names: readonly string[]) => Promise<ReadonlySet<string>>,
  ): Promise<LeftFolders> {
    const root = join(this.#parts.home, "runs");
    const [runs, attempts]: [string[], string[]] = [[], []];
    let present = 0;
    for await (const names of slicesIn(root)) {
      const there = await runsThere(names);
      for (const name of names) {
        if (present === RUNS_MAX || runs.length + attempts.length >= FOUND_MAX)
          return { runs, attempts, present, isComplete: false };
        present++;
        const run = join(root, name);
        if (!there.has(name)) {
          if (!this.#parts.isInUse(run) && (await isOlder(run, nowMs - RUN_AGE_MS))) runs.push(name);
          continue;
        }
        for (const attempt of await attemptsIn(run)) {
          if (!this.#parts.isInUse(attempt) && (await isOlder(attempt, nowMs - ATTEMPT_AGE_MS)))
            attempts.push(attempt);
        }
      }
    }
    return { runs, attempts, present, isComplete: true };
  }

  /** Removes a folder in runs/. @returns false when it is in use */
  async removeRun(name: string): Promise<boolean> {
    const path = join(this.#parts.home, "runs", name);
    if (this.#parts.isInUse(path)) return false;
    await removeTree(path);
    return true;
  }

  /** Removes an attempt's folder. @returns false when it is in use. @throws the system's error; SymlinkInPath */
  async removeAttempt(path: string): Promise<boolean> {
    if (this.#parts.isInUse(path)) return false;
    await this.#parts.trash.discard(path);
    return true;
  }
}

/** The names of a folder's folders. */
async function* slicesIn(root: string): AsyncGenerator<readonly string[]> {
  let names: string[] = [];
  for await (const entry of await opendir(root)) {
    if (!entry.isDirectory()) continue;
    names.push(entry.name);
    if (names.length < RUNS_PER_LOOK) continue;
    yield names;
    names = [];
  }
  yield names;
}

async function attemptsIn(run: string): Promise<readonly string[]> {
  const found: string[] = [];
  if (!(await foldersIn(run)).includes("agents")) return found;
  for (const agent of await foldersIn(join(run, "agents"))) {
    const path = join(run, "agents", agent);
    if (!(await foldersIn(path)).includes("attempts")) continue;
    for (const attempt of (await foldersIn(join(path, "attempts"))).slice(0, FOUND_MAX))
      found.push(join(path, "attempts", attempt));
  }
  return found;
}

/** None in a folder that is gone meanwhile, or closed to us. */
async function foldersIn(path: string): Promise<readonly string[]> {
  const entries = await readdir(path, { withFileTypes: true }).catch(() => []);
  return entries.filter((entry) => entry.isDirectory()).map(({ name }) => name);
}

async function isOlder(path: string, beforeMs: number): Promise<boolean> {
  const found = await lstat(path).catch(() => null);
  return found !== null && found.mtimeMs < beforeMs;
}
