// Volumes: named folders of this home that are kept over runs, volumes/<name>.
//
// - A volume is one node's. The first command that names it makes it, and where several nodes share a database it is that
//   node's from then on, until it is removed.
// - Who has it at a time is the machine's to say (allotment.ts); nothing here locks.
// - Commands may put anything into a volume, and in its place: no symlink is followed, neither by what measures nor by what
//   removes.

import { existsSync, readdirSync } from "node:fs";
import { lstat, opendir } from "node:fs/promises";
import { join } from "node:path";
import { VOLUME_NAME } from "../engine/manifest/resources.ts";
import type { VolumeNeed } from "../engine/resources.ts";
import { OpenFolder, SymlinkInPath } from "../lib/open-folder.ts";
import { removeTree } from "../lib/remove-tree.ts";
import { AttemptFailure } from "./runner/attempt.ts";

/** Of one home: all are told with each heartbeat. */
export const VOLUMES_MAX = 256;
const FOLDER = "volumes";
const BLOCK_BYTES = 512;
const READ_AT_ONCE = { bufferSize: 256 };
const MiB = 1024 ** 2;
/** A command may nest folders as it likes, and each is opened from the top. */
const DEPTH_MAX = 200;
/** Folders that are seen and not looked into yet, when a volume is measured. */
const WAITING_MAX = 200_000;

/** Which node has a volume, of those that share a database. A port, implemented in src/store. */
export interface VolumeOwners {
  /** This node has it from now on, unless another one has. @returns the name of that one, or null */
  claim(name: string): Promise<string | null>;
  /** It is no node's any more, if it was this one's. */
  giveUp(name: string): Promise<void>;
}

export class Volumes {
  readonly #home: string;
  readonly #owners: VolumeOwners | null;
  readonly #names = new Set<string>();
  /** Those that are known to be this node's. */
  readonly #claimed = new Set<string>();

  /** @param owners null: no other node has the database */
  constructor(home: string, owners: VolumeOwners | null) {
    this.#home = home;
    this.#owners = owners;
    if (!existsSync(join(home, FOLDER))) return;
    for (const entry of readdirSync(join(home, FOLDER), { withFileTypes: true }))
      if ((entry.isDirectory() || entry.isSymbolicLink()) && VOLUME_NAME.test(entry.name))
        // A link is none, but a person who sees it can remove it.
        this.#names.add(entry.name);
  }

  /** Those that are there. */
  get names(): readonly string[] {
    return [...this.#names].sort();
  }

  has(name: string): boolean {
    return this.#names.has(name);
  }

  /**
   * Makes a volume, if it is not there, and looks whether it has room.
   *
   * @returns its path
   * @throws AttemptFailure; SymlinkInPath; the system's error
   */
  async prepare({ name, isReadOnly, bytesMax }: VolumeNeed): Promise<string> {
    if (!this.#names.has(name) && this.#names.size >= VOLUMES_MAX) {
      const message = `Volume "${name}" is new, and this machine has ${VOLUMES_MAX} already.`;
      throw new AttemptFailure("resource.volume_full", message);
    }
    const other = this.#claimed.has(name) ? null : ((await this.#owners?.claim(name)) ?? null);
    if (other !== null) {
      const message = `Volume "${name}" is on the node "${other}", which had it first.`;
      throw new AttemptFailure("resource.volume_elsewhere", message);
    }
    this.#claimed.add(name);
    this.#names.add(name);
    using folder = OpenFolder.madeBelow(this.#home, join(FOLDER, name));
    if (bytesMax !== null && !isReadOnly) await requireRoom(folder, name, bytesMax);
    return join(this.#home, FOLDER, name);
  }

  /** Whether more is in a volume than may be. */
  async isOverfull({ name, isReadOnly, bytesMax }: VolumeNeed): Promise<boolean> {
    if (bytesMax === null || isReadOnly) return false;
    using folder = openedOrNull(this.#home, join(FOLDER, name));
    if (folder === null) return false;
    const bytes = await bytesIn(folder, bytesMax);
    return bytes === null || bytes > bytesMax;
  }

  /** Removes a volume with all that is in it. Nobody may have it meanwhile. @throws the system's error */
  async remove(name: string): Promise<void> {
    using folder = OpenFolder.below(this.#home, FOLDER);
    await removeTree(folder.path(name));
    await this.#owners?.giveUp(name);
    this.#names.delete(name);
    this.#claimed.delete(name);
  }
}

async function requireRoom(folder: OpenFolder, name: string, bytesMax: number): Promise<void> {
  const bytes = await bytesIn(folder, bytesMax);
  if (bytes !== null && bytes <= bytesMax) return;
  const message =
    bytes === null
      ? `Volume "${name}" cannot be measured for its size_mb: it has folders nested deeper than ${DEPTH_MAX}, or more than ${WAITING_MAX} in one.`
      : `Volume "${name}" holds more than the ${bytesMax / MiB} MiB of its size_mb.`;
  throw new AttemptFailure("resource.volume_full", message);
}

/**
 * What the files of a folder take of the disk, as far as it can be seen. Each counts as something, so that the number of those
 * that are empty is bounded, too.
 *
 * @param enough stops beyond that
 * @returns null when its folders are nested too deep, or too many
 */
async function bytesIn(root: OpenFolder, enough: number): Promise<number | null> {
  let bytes = 0;
  const ways = ["."];
  for (let way = ways.pop(); way !== undefined && bytes <= enough; way = ways.pop()) {
    if (ways.length > WAITING_MAX || way.split("/").length > DEPTH_MAX) return null;
    using folder = openedOrNull(root, way);
    const entries = folder === null ? null : await opendir(folder.path("."), READ_AT_ONCE).catch(() => null);
    if (folder === null || entries === null) continue;
    for await (const entry of entries) {
      const blocks = (await lstat(folder.path(entry.name)).catch(() => null))?.blocks ?? 0;
      bytes += Math.max(1, blocks) * BLOCK_BYTES;
      if (entry.isDirectory()) ways.push(join(way, entry.name));
      if (bytes > enough) break;
    }
  }
  return bytes;
}

/** Null when it is gone, cannot be opened, or something else is in its place. */
function openedOrNull(above: OpenFolder | string, way: string): OpenFolder | null {
  try {
    return typeof above === "string" ? OpenFolder.below(above, way) : above.folder(way);
  } catch (error) {
    if (error instanceof SymlinkInPath || (error as NodeJS.ErrnoException).code !== undefined) return null;
    throw error;
  }
}
