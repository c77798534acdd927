// Whether a home is whole enough to start in. A database that is missing is not an empty home: everything beside it would
// belong to nothing, and be removed by the next sweep.

import { readdirSync, renameSync, rmSync, statSync } from "node:fs";
import { basename, join } from "node:path";
import { databaseFile } from "./home.ts";
import { StoreUnusable } from "./sql/database.ts";
import { acknowledgedCommits, commitCountFile } from "./sqlite/commit-counter.ts";

/** Folders of a home whose content only rows of its database explain. */
export const CONTENT_FOLDERS = ["blobs", "bundles", "runs", "evidence", "resources", "models"] as const;
/** In a home: what a restore has not finished. While it is there, the home is not whole. */
export const RESTORING = "restoring";

/**
 * To be called before the database is opened, which would create it.
 *
 * @param options.newDatabase goes on without the lost database; its remaining write-ahead log is kept under another name
 * @throws StoreUnusable when content, or the count of acknowledged commits, is there without a database; or a restore was
 *   not finished
 */
export function checkHomeState(home: string, options: { readonly newDatabase?: boolean } = {}): void {
  if (isThere(join(home, RESTORING))) {
    throw new StoreUnusable(
      `SVC_HOME ${home} holds a restore that was interrupted. Run \`troupe restore FILE\` again with this SVC_HOME: it starts over.`,
    );
  }
  const file = databaseFile(home);
  if (sizeOf(file) > 0) return;
  const wal = `${file}-wal`;
  const found = CONTENT_FOLDERS.filter((name) => holdsFile(join(home, name)));
  const left = [
    ...found.map((name) => `${name}/`),
    ...(sizeOf(wal) > 0 ? ["troupe.db-wal"] : []),
    ...((acknowledgedCommits(file) ?? 0) > 0
      ? [`${basename(commitCountFile(file))} (acknowledged commits)`]
      : []),
  ];
  if (left.length === 0) return;
  if (!options.newDatabase) {
    throw new StoreUnusable(
      `The database ${file} is ${isThere(file) ? "empty" : "missing"}, but SVC_HOME holds ${left.join(", ")}, which belong to it. ` +
        "Put the database back, or restore a backup into an empty folder with `troupe restore FILE`. To go on without " +
        "it, start once with --new-database: jobs and runs are lost, and their files stay until `troupe gc --confirm`.",
    );
  }
  // SQLite would delete the log of an empty database; it may hold all that is left of the lost one.
  if (sizeOf(wal) > 0) renameSync(wal, `${wal}.lost-${statSync(wal).mtimeMs.toFixed(0)}`);
  for (const lost of [`${file}-shm`, commitCountFile(file)]) rmSync(lost, { force: true });
}

/** Whether there is a file anywhere below; what is being received does not count. */
function holdsFile(folder: string): boolean {
  const entries = readdirOf(folder).filter(({ name }) => name !== "incoming");
  return entries.some((entry) => !entry.isDirectory() || holdsFile(join(folder, entry.name)));
}

function readdirOf(folder: string) {
  try {
    return readdirSync(folder, { withFileTypes: true });
  } catch {
    return [];
  }
}

function isThere(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false }) !== undefined;
}

function sizeOf(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0;
}
