// SVC_HOME: the folder of everything on disk.
//
// - At most one program uses a home. The lock is the operating system's (an exclusive lock inside SQLite), so it
//   ends with the process, however that ends.
// - A home is private to its user: others may not enter it, whatever mode its folders were created with.
// - Nothing starts in an incomplete home. A missing database is not an empty home: everything beside it would be
//   unreferenced, and the next sweep would remove it.

import { chmodSync, lstatSync, readdirSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { makeFolder } from "../lib/files.ts";
import { StoreUnusable } from "./sql/database.ts";
import { acknowledgedCommits, commitCountFile } from "./sqlite/commit-counter.ts";
import { explain, isBusy } from "./sqlite/errors.ts";

export interface Home {
  readonly path: string;
  release(): void;
}

/** Folders of a home whose content only rows of its database explain. */
export const CONTENT_FOLDERS = ["blobs", "bundles", "runs", "evidence", "resources", "models"] as const;
/** In a home: the folder of an unfinished restore. While it exists, the home is incomplete. */
export const RESTORING = "restoring";
/** Beside the folders, what must be private in a home. */
const FILES = [
  "troupe.db",
  "troupe.db-wal",
  "troupe.db-shm",
  "lock.db",
  "lock.db-journal",
  "secret.key",
  "cluster.json",
];
const OTHERS = 0o077;
const STICKY = 0o1000;
/** A predecessor that was killed a moment ago may still be on its way out. */
const LOCK_WAIT_MS = 1_000;

/** The store's file in a home. */
export const databaseFile = (home: string): string => join(home, "troupe.db");

/**
 * Creates the folder if needed, checks that it can be written, and locks it.
 *
 * @throws StoreUnusable when it cannot be written, or another program uses it
 */
export function openHome(path: string): Home {
  try {
    makeFolder(path, 0o700);
    const probe = join(path, ".write-test");
    writeFileSync(probe, "x");
    rmSync(probe);
  } catch (error) {
    throw new StoreUnusable(
      `SVC_HOME ${path} cannot be written (${(error as Error).message}). Choose a folder that this user may write, or free some space.`,
    );
  }
  const lock = new DatabaseSync(join(path, "lock.db"), { timeout: LOCK_WAIT_MS });
  try {
    lock.exec("PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE; COMMIT");
  } catch (error) {
    lock.close();
    if (!isBusy(error)) throw new StoreUnusable(explain(error, join(path, "lock.db")));
    throw new StoreUnusable(
      `SVC_HOME ${path} is in use by another Troupe. Stop that one first, or set SVC_HOME to another folder.`,
    );
  }
  return { path, release: () => lock.close() };
}

/**
 * Whether others may enter a home, or read what lies in it.
 *
 * @param options.fix takes the permission away where the home is this user's own; a folder that is shared by all, such as
 *   /tmp, stays as it is, and so do files that are not of a home
 * @returns the paths that others may still read or enter
 */
export function pathsOpenToOthers(home: string, { fix }: { readonly fix: boolean }): readonly string[] {
  const names = ["", ...CONTENT_FOLDERS, "processes", "tmp", "volumes", ...FILES];
  return names.map((name) => join(home, name)).filter((path) => isOpen(path, fix));
}

function isOpen(path: string, fix: boolean): boolean {
  const found = lstatSync(path, { throwIfNoEntry: false });
  if (found === undefined || found.isSymbolicLink() || (found.mode & OTHERS) === 0) return false;
  if (!fix || (found.mode & STICKY) !== 0 || found.uid !== process.geteuid?.()) return true;
  try {
    chmodSync(path, found.mode & 0o700);
    return false;
  } catch {
    return true;
  }
}

/** @throws StoreUnusable when a restore was not finished */
export function checkRestored(home: string): void {
  if (!isThere(join(home, RESTORING))) return;
  throw new StoreUnusable(
    `SVC_HOME ${home} holds a restore that was interrupted. Run \`troupe restore FILE\` again with this SVC_HOME: it starts over.`,
  );
}

/**
 * To be called before the database is opened, which would create it.
 *
 * @param options.newDatabase goes on without the lost database; its remaining write-ahead log is kept under another name
 * @throws StoreUnusable when content, or the count of acknowledged commits, is there without a database; or a restore was
 *   not finished
 */
export function checkHomeState(home: string, options: { readonly newDatabase?: boolean } = {}): void {
  checkRestored(home);
  const file = databaseFile(home);
  if (sizeOf(file) > 0) return;
  const wal = `${file}-wal`;
  const left = [
    ...contentOf(home),
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

/** Removes the SQLite database of a home that joins a cluster: nothing is in it. */
export function removeDatabase(home: string): void {
  const file = databaseFile(home);
  for (const path of [file, `${file}-wal`, `${file}-shm`, commitCountFile(file)])
    rmSync(path, { force: true });
}

/** The folders of a home that hold what only its database explains. */
export function contentOf(home: string): readonly string[] {
  return CONTENT_FOLDERS.filter((name) => holdsFile(join(home, name))).map((name) => `${name}/`);
}

/** Whether there is a file anywhere below; uploads in progress do not count. */
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
