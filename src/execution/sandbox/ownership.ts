// Whose the files of a sandbox are where the runtime is root: its worker is an unprivileged user, one of its own for each
// run, and may use nothing that is not that user's or everybody's.
//
// - No symlink is followed: a worker may have put one into its folders before.

import { createHash } from "node:crypto";
import { chownSync, lchownSync, readdirSync, statSync } from "node:fs";
import { chmod, chown, lchown, lstat, readdir, realpath } from "node:fs/promises";
import { join } from "node:path";
import { OpenFolder } from "../../lib/open-folder.ts";
import type { Places } from "../runner/attempt-places.ts";

/** Users that systemd gives to services for a time, and nobody else to anybody. */
const FIRST_USER = 61_184;
const USERS = 4_000;
const EVERYBODY_READS = 0o004;

export function userOf(runId: string): number {
  return FIRST_USER + (createHash("sha256").update(runId).digest().readUInt32BE() % USERS);
}

/** Gives a worker's files to its user. To be called while nothing of the worker runs. */
export async function giveTo(
  user: number,
  { agent, attempt, pipes, volumes, folders, brought }: Places,
): Promise<void> {
  using work = agent.folder("work");
  // Nobody else writes there: what belongs to the user at its top does so altogether.
  if (statSync(work.path(".")).uid !== user) await giveTree(work, user);
  // At once, for these are few: waiting for each would take longer.
  for (const name of readdirSync(attempt.path("."))) lchownSync(attempt.path(name), user, user);
  chownSync(attempt.path("."), user, user);
  // It may open them again, as /dev/stdout.
  for (const pipe of [pipes.stdout, pipes.stderr]) lchownSync(pipe, user, user);
  using shared = OpenFolder.open(folders.shared);
  chownSync(shared.path("."), user, user);
  for (const { need, path } of volumes) {
    using volume = OpenFolder.open(path);
    if (need.isReadOnly) await showTree(volume);
    else await giveTree(volume, user);
  }
  for (const links of [brought.resources, brought.models])
    if (links !== null)
      for (const name of await readdir(links)) await showOnce(await realpath(join(links, name)));
}

/** Shows everybody a file or folder that stays as it is, once. */
async function showOnce(path: string): Promise<void> {
  const found = await lstat(path);
  if ((found.mode & EVERYBODY_READS) !== 0) return;
  if (found.isDirectory()) {
    using folder = OpenFolder.open(path);
    await showTree(folder);
  } else if (found.isFile()) await chmod(path, shownMode(found.mode));
}

/** Lets everybody read a tree. The top is last: it tells that all of it is shown. */
async function showTree(root: OpenFolder): Promise<void> {
  for (const entry of await readdir(root.path("."), { withFileTypes: true })) {
    const path = root.path(entry.name);
    if (entry.isDirectory()) {
      using folder = root.folder(entry.name);
      await showTree(folder);
    } else if (entry.isFile()) await chmod(path, shownMode((await lstat(path)).mode));
  }
  await chmod(root.path("."), 0o755);
}

/** Everybody may read it, and start it if its owner may. */
function shownMode(mode: number): number {
  return (mode & 0o777) | 0o444 | (mode & 0o100 ? 0o111 : 0);
}

/** The top is last: it tells that all of it has been given. */
async function giveTree(root: OpenFolder, user: number): Promise<void> {
  for (const entry of await readdir(root.path("."), { withFileTypes: true })) {
    if (entry.isDirectory()) {
      using folder = root.folder(entry.name);
      await giveTree(folder, user);
    } else await lchown(root.path(entry.name), user, user);
  }
  await chown(root.path("."), user, user);
}
