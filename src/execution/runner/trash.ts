// The trash: folders that are done with, out of the way at once and removed while nobody waits.
//
// Removing a folder can hold up a thread for milliseconds, where a file system waits for its journal. Moving one
// does not.
//
// - What was discarded is not where it was any more, whether it could be moved or not.
// - Folders in waiting are bounded: past the bound, the caller waits until they are removed.
// - What a crash has left here is removed by the next runtime of this home.
// - Nothing else goes: a symlink that a worker put in a folder's place, or on the way to it, is not followed.

import { lstatSync, mkdirSync, readdirSync, renameSync, unlinkSync } from "node:fs";
import { rmdir } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import type { Clock, EngineLog } from "../../engine/ports.ts";
import { entriesOfSmall } from "../../lib/files.ts";
import { OpenFolder } from "../../lib/open-folder.ts";
import { removeTree } from "../../lib/remove-tree.ts";
import { openBelow } from "./paths.ts";

const WAITING_MAX = 256;
const REMOVED_AFTER_MS = 50;
/** What may be removed at once, without holding up the event loop. */
const FILE_BYTES_MAX = 1024 * 1024;

export class Trash {
  readonly #home: string;
  readonly #folder: string;
  readonly #clock: Clock;
  readonly #log: EngineLog;
  readonly #waiting: string[];
  #seq: number;
  #cancelTimer: (() => void) | null = null;
  #removing: Promise<void> | null = null;

  /**
   * @param home what is discarded is below it
   * @param folder its own folder, on the same file system; only one runtime may use it
   */
  constructor(home: string, folder: string, clock: Clock, log: EngineLog) {
    this.#home = home;
    this.#folder = folder;
    this.#clock = clock;
    this.#log = log;
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    const left = readdirSync(folder);
    this.#waiting = left.map((name) => join(folder, name));
    this.#seq = left.reduce((last, name) => Math.max(last, Number(name) || 0), 0);
    if (left.length > 0) this.#removeLater();
  }

  /**
   * Takes a folder away.
   *
   * @throws the system's error when it can neither be moved nor removed; SymlinkInPath when one leads to it
   */
  async discard(path: string): Promise<void> {
    if (this.#waiting.length >= WAITING_MAX) await this.#removeAll();
    const moved = join(this.#folder, String(++this.#seq));
    using above = openBelow(this.#home, dirname(path));
    const discarded = above.path(basename(path));
    try {
      renameSync(discarded, moved);
    } catch {
      await removeTree(discarded);
      return;
    }
    this.#waiting.push(moved);
    this.#removeLater();
  }

  /** Removes what is left; nothing may be discarded afterwards. May be called twice. */
  async close(): Promise<void> {
    this.#cancelTimer?.();
    await this.#removeAll();
    // What could not be removed stays for the next start.
    await rmdir(this.#folder).catch(() => {});
  }

  #removeLater(): void {
    this.#cancelTimer ??= this.#clock.after(REMOVED_AFTER_MS, () => {
      this.#cancelTimer = null;
      void this.#removeAll();
    });
  }

  #removeAll(): Promise<void> {
    this.#removing ??= this.#removeWaiting().finally(() => {
      this.#removing = null;
    });
    return this.#removing;
  }

  async #removeWaiting(): Promise<void> {
    for (let path = this.#waiting.pop(); path !== undefined; path = this.#waiting.pop()) {
      try {
        await removeUsual(path);
      } catch (error) {
        this.#log.warn({ folder: path, error: String(error) }, "An attempt's folder is left.");
      }
    }
  }
}

/**
 * Removes a folder with a few small files and empty folders in it; any other one by the long way. Only folders take
 * a detour through the thread pool: for a small file the detour would be what takes time.
 */
async function removeUsual(path: string): Promise<void> {
  try {
    using folder = OpenFolder.open(path);
    const folders: string[] = [];
    for (const entry of entriesOfSmall(folder.path(".")) ?? []) {
      const inner = folder.path(entry.name);
      if (entry.isDirectory()) folders.push(inner);
      else if (lstatSync(inner).size <= FILE_BYTES_MAX) unlinkSync(inner);
    }
    for (const inner of folders) await rmdir(inner);
    await rmdir(path);
  } catch {
    await removeTree(path);
  }
}
