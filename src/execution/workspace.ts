// Workspaces: one folder per agent of a run, staged once, and the agent's own from then on.
//
// Owns: runs/<run>/agents/<agent>/work and its stamp. Does not own the attempts' folders.
//
// W1. A workspace becomes visible only when it is complete: it is staged beside its place and renamed into it.
// W2. What somebody else changed between two attempts of an agent, or put there before it was first staged, is
//     never handed to the agent: the workspace is staged afresh, and what had changed is reported.
// W3. The comparison is cheap and bounded: kind, size, times and inode of the first few thousand entries.
//     It notices accidents, not an adversary of the same user.

import { createHash } from "node:crypto";
import { mkdirSync, writeFileSync } from "node:fs";
import { lstat, mkdir, readdir, readFile, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Upload } from "../engine/graph.ts";
import type { AgentFolders } from "./paths.ts";
import { removeTree } from "./remove-tree.ts";
import { isEmptyFolder } from "./small-folder.ts";
import { stage } from "./staging.ts";

const ENTRIES_MAX = 2_000;
const CHANGES_SHOWN_MAX = 20;
/** Agents whose state is remembered; one that was forgotten is trusted as after a restart. */
const AGENTS_MAX = 20_000;

interface Known {
  /** Hash over the entries as the agent's last attempt left them; null when that is not known. */
  readonly signature: string | null;
}

export interface WorkspaceRequest {
  readonly folders: AgentFolders;
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
    const { folders } = request;
    const known = this.#known.get(folders.agent);
    const changes = known === undefined ? await this.#firstLook(folders) : await changesSince(folders, known);
    if (changes === null || changes.length > 0) await stageAfresh(request, changes !== null);
    this.#remember(folders.agent, { signature: null });
    return changes ?? [];
  }

  /** Notes how the agent's attempt left its workspace. To be called once no process of the attempt is left. */
  async settle(folders: AgentFolders): Promise<void> {
    const entries = await readEntries(folders.work);
    if (entries.length > 0) await writeFile(entriesFile(folders), entries.join("\n"));
    this.#remember(folders.agent, { signature: hashOf(entries) });
  }

  /**
   * Looks at an agent that this process has not seen. A stamped workspace is the work of an earlier process and
   * is taken as it is; its attempts' folders are litter of a crash.
   *
   * @returns null when there is nothing to take over
   */
  async #firstLook(folders: AgentFolders): Promise<readonly string[] | null> {
    const [work, stamp] = await Promise.all([entryOf(folders.work), entryOf(stampFile(folders))]);
    if (stamp !== null) await removeTree(folders.attempts);
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
  const { folders, payload, uploads } = request;
  if (!replaces && uploads.length === 0) {
    // The common case of a node without uploads: two quick calls instead of many.
    mkdirSync(folders.work, { recursive: true, mode: 0o700 });
    writeFileSync(stampFile(folders), "");
    return;
  }
  const staging = join(folders.agent, "staging");
  await removeTree(staging);
  await mkdir(staging, { recursive: true, mode: 0o700 });
  await stage(payload, uploads, staging);
  await writeFile(stampFile(folders), "");
  await removeTree(folders.work);
  await rename(staging, folders.work);
}

async function changesSince(folders: AgentFolders, known: Known): Promise<readonly string[] | null> {
  if (known.signature === hashOf([]) && isEmptyFolder(folders.work)) return [];
  const work = await entryOf(folders.work);
  if (work === null) return ["the workspace is gone"];
  if (!work.isDirectory()) return ["the workspace is no folder"];
  if (known.signature === null) return [];
  const now = await readEntries(folders.work);
  if (hashOf(now) === known.signature) return [];
  const before = known.signature === "" ? "" : await readFile(entriesFile(folders), "utf8").catch(() => "");
  return difference(before === "" ? [] : before.split("\n"), now);
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

/** The first few thousand entries below a folder, each as one line of JSON that begins with its path. */
async function readEntries(root: string): Promise<readonly string[]> {
  if (isEmptyFolder(root)) return [];
  const entries: string[] = [];
  const folders = [""];
  for (let folder = folders.shift(); folder !== undefined; folder = folders.shift()) {
    const names = await namesIn(join(root, folder));
    for (const name of names.slice(0, ENTRIES_MAX - entries.length)) {
      const path = folder === "" ? name : `${folder}/${name}`;
      const entry = await entryOf(join(root, path));
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

/** The names in a folder, sorted; none when the worker made it unreadable. */
async function namesIn(folder: string): Promise<string[]> {
  try {
    return (await readdir(folder)).sort();
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "EACCES" || code === "ENOENT" || code === "ENOTDIR") return [];
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

function stampFile(folders: AgentFolders): string {
  return join(folders.agent, "staged");
}

function entriesFile(folders: AgentFolders): string {
  return join(folders.agent, "entries.jsonl");
}
