// Workspaces: one folder per agent of a run, staged once, and the agent's own from then on.
//
// Owns: runs/<run>/agents/<agent>/work and its stamp. Does not own the attempts' folders.
//
// - A workspace becomes visible only when it is complete: it is staged beside its place and renamed into it.
// - What somebody else changed between two attempts of an agent, or put there before it was first staged, is
//   never handed to the agent: the workspace is staged afresh, and what had changed is reported.
// - The comparison is cheap and bounded: kind, size, times and inode of the first few thousand entries.
//   It notices accidents, not an adversary of the same user.
// - Nothing outside the agent's folder is read, written or removed, whatever a worker puts in the place of its
//   folders and files.

import { createHash } from "node:crypto";
import { constants, lstatSync, mkdirSync, writeFileSync } from "node:fs";
import { lstat, readdir, readFile, rename, writeFile } from "node:fs/promises";
import type { Upload } from "../../engine/graph.ts";
import { isEmptyFolder } from "../../lib/files.ts";
import { type OpenFolder, SymlinkInPath } from "../../lib/open-folder.ts";
import { removeTree } from "../../lib/remove-tree.ts";
import type { AgentFolders } from "./paths.ts";
import { stage } from "./staging.ts";

const ENTRIES_MAX = 2_000;
const CHANGES_SHOWN_MAX = 20;
/** Names in the agent's folder (paths.ts). */
const WORK = "work";
const ATTEMPTS = "attempts";
const STAMP_FILE = "staged";
const ENTRIES_FILE = "entries.jsonl";
const { O_RDONLY, O_NOFOLLOW, O_NONBLOCK } = constants;
/** Agents whose state is remembered; one that was forgotten is trusted as after a restart. */
const AGENTS_MAX = 20_000;

interface Known {
  /** Hash over the entries as the agent's last attempt left them; null when that is not known. */
  readonly signature: string | null;
}

export interface WorkspaceRequest {
  readonly folders: AgentFolders;
  /** The agent's folder, which is there. */
  readonly agent: OpenFolder;
  readonly payload: string | null;
  readonly uploads: readonly Upload[];
}

export class Workspaces {
  readonly #known = new Map<string, Known>();

  /**
   * Makes sure that the agent's workspace is there and is as the agent left it.
   *
   * @returns what somebody else had changed, empty when nothing; the workspace was then staged afresh
   * @throws StagingError when the manifest or payload is to blame
   */
  async prepare(request: WorkspaceRequest): Promise<readonly string[]> {
    const { folders, agent } = request;
    const known = this.#known.get(folders.agent);
    const changes = known === undefined ? await this.#firstLook(agent) : await changesSince(agent, known);
    if (changes === null || changes.length > 0) await stageAfresh(request, changes !== null);
    this.#remember(folders.agent, { signature: null });
    return changes ?? [];
  }

  /**
   * Notes how the agent's attempt left its workspace. To be called once no process of the attempt is left.
   *
   * @returns whether nothing is in it
   */
  async settle(folders: AgentFolders, agent: OpenFolder): Promise<boolean> {
    const isEmpty = isEmptyFolder(agent.path(WORK));
    const entries = isEmpty ? [] : await readEntries(agent);
    if (entries.length > 0) {
      await removeTree(agent.path(ENTRIES_FILE));
      await writeFile(agent.path(ENTRIES_FILE), entries.join("\n"), { flag: "wx" });
    }
    this.#remember(folders.agent, { signature: hashOf(entries) });
    return isEmpty;
  }

  /** The agent has got a folder whose workspace is there and empty. */
  adopt(folders: AgentFolders): void {
    this.#remember(folders.agent, { signature: hashOf([]) });
  }

  /** The agent has no folder any more. */
  forget(folders: AgentFolders): void {
    this.#known.delete(folders.agent);
  }

  /**
   * Looks at an agent that this process has not seen. A stamped workspace is the work of an earlier process and
   * is taken as it is; its attempts' folders are what a crash has left.
   *
   * @returns null when there is nothing to take over
   */
  async #firstLook(agent: OpenFolder): Promise<readonly string[] | null> {
    const [work, stamp] = await Promise.all([entryOf(agent.path(WORK)), entryOf(agent.path(STAMP_FILE))]);
    if (stamp !== null) await removeTree(agent.path(ATTEMPTS));
    if (work === null) return null;
    if (stamp === null) return ["the workspace was there before it was first staged"];
    return work.isDirectory() ? [] : ["the workspace is no folder"];
  }

  #remember(agent: string, known: Known): void {
    this.#known.delete(agent);
    this.#known.set(agent, known);
    if (this.#known.size <= AGENTS_MAX) return;
    const [oldest] = this.#known.keys();
    if (oldest !== undefined) this.#known.delete(oldest);
  }
}

async function stageAfresh(request: WorkspaceRequest, replaces: boolean): Promise<void> {
  const { agent, payload, uploads } = request;
  if (!replaces && uploads.length === 0) {
    // The common case of a node without uploads: a few quick calls instead of many.
    mkdirSync(agent.path(WORK), { mode: 0o700 });
    await writeStamp(agent);
    return;
  }
  await removeTree(agent.path("staging"));
  {
    using staging = agent.made("staging");
    await stage(payload, uploads, staging);
  }
  await writeStamp(agent);
  await removeTree(agent.path(WORK));
  await rename(agent.path("staging"), agent.path(WORK));
}

async function writeStamp(agent: OpenFolder): Promise<void> {
  const path = agent.path(STAMP_FILE);
  try {
    writeFileSync(path, "", { flag: "wx" });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
    await removeTree(path);
    writeFileSync(path, "", { flag: "wx" });
  }
}

async function changesSince(agent: OpenFolder, known: Known): Promise<readonly string[] | null> {
  if (known.signature === hashOf([]) && isEmptyFolder(agent.path(WORK))) return [];
  const work = lstatSync(agent.path(WORK), { throwIfNoEntry: false });
  if (work === undefined) return ["the workspace is gone"];
  if (!work.isDirectory()) return ["the workspace is no folder"];
  if (known.signature === null) return [];
  const now = await readEntries(agent);
  if (hashOf(now) === known.signature) return [];
  const before = known.signature === "" ? "" : await readRegular(agent.path(ENTRIES_FILE));
  return difference(before === "" ? [] : before.split("\n"), now);
}

/** Empty for what is no regular file. */
async function readRegular(path: string): Promise<string> {
  const found = await entryOf(path);
  if (!found?.isFile()) return "";
  return readFile(path, { encoding: "utf8", flag: O_RDONLY | O_NOFOLLOW | O_NONBLOCK }).catch(() => "");
}

/** Names what differs between two lists of entries, at most 20 of them. */
function difference(before: readonly string[], now: readonly string[]): readonly string[] {
  const nameOf = (entry: string): string => (JSON.parse(entry) as [string])[0];
  const left = new Map(before.map((entry) => [nameOf(entry), entry]));
  const changes: string[] = [];
  for (const entry of now) {
    const name = nameOf(entry);
    const old = left.get(name);
    if (old === undefined) changes.push(`added: ${name}`);
    else if (old !== entry) changes.push(`changed: ${name}`);
    left.delete(name);
  }
  for (const name of left.keys()) changes.push(`removed: ${name}`);
  if (changes.length === 0) return ["the workspace is not as the agent left it"];
  const more = changes.length - CHANGES_SHOWN_MAX;
  return more > 0 ? [...changes.slice(0, CHANGES_SHOWN_MAX), `and ${more} more`] : changes;
}

/** The first few thousand entries below the workspace, each as one line of JSON that begins with its path. */
async function readEntries(agent: OpenFolder): Promise<readonly string[]> {
  using root = openFolder(agent, WORK);
  if (root === null) return [];
  const entries: string[] = [];
  const folders = ["."];
  for (let way = folders.shift(); way !== undefined; way = folders.shift()) {
    using folder = openFolder(root, way);
    const names = folder === null ? [] : (await readdir(folder.path("."))).sort();
    for (const name of names.slice(0, ENTRIES_MAX - entries.length)) {
      const path = way === "." ? name : `${way}/${name}`;
      const entry = folder === null ? null : await entryOf(folder.path(name));
      if (entry === null) continue;
      // A folder's times follow its content, whose entries are listed themselves.
      if (entry.isDirectory()) {
        folders.push(path);
        entries.push(JSON.stringify([path, "folder"]));
      } else
        entries.push(JSON.stringify([path, entry.mode, entry.size, entry.mtimeMs, entry.ctimeMs, entry.ino]));
    }
  }
  return entries;
}

/** Null when the worker has removed it, made it unreadable, or put something else in its place. */
function openFolder(above: OpenFolder, way: string): OpenFolder | null {
  try {
    return above.folder(way);
  } catch (error) {
    const { code = "" } = error as NodeJS.ErrnoException;
    if (error instanceof SymlinkInPath || ["EACCES", "ENOENT", "ENOTDIR", "ELOOP"].includes(code))
      return null;
    throw error;
  }
}

function hashOf(entries: readonly string[]): string {
  return entries.length === 0 ? "" : createHash("sha256").update(entries.join("\n")).digest("base64");
}

async function entryOf(path: string) {
  try {
    return await lstat(path);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT" || code === "ENOTDIR") return null;
    throw error;
  }
}
