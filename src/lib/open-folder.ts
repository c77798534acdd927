// A folder held open: an entry named through it is in it, whatever becomes of the folder's path meanwhile.
//
// Node has no openat(2). On Linux a path through /proc/self/fd does the same; elsewhere the folder's path is used, and
// a folder that is replaced by a symlink between two calls is not noticed.

import {
  chmodSync,
  closeSync,
  constants,
  existsSync,
  lstatSync,
  mkdirSync,
  openSync,
  readlinkSync,
  realpathSync,
} from "node:fs";
import { basename, dirname, join } from "node:path";
import { isMissing } from "./files.ts";

const DESCRIPTORS = "/proc/self/fd";
const hasDescriptorPaths = existsSync(DESCRIPTORS);
const FOLDER_FLAGS = constants.O_RDONLY | constants.O_DIRECTORY;
/** Linux's O_PATH, which Node does not name: opens a folder whatever its mode. */
const O_PATH = 0o10000000;
const OWNER_ALL = 0o700;

/** A path to the very file that is open as `fd`; `path` where the system has no such paths. */
export function pathOfDescriptor(fd: number, path: string): string {
  return hasDescriptorPaths ? join(DESCRIPTORS, String(fd)) : path;
}

/** A symlink is on the way to a folder that must be reached without one. */
export class SymlinkInPath extends Error {
  override readonly name = "SymlinkInPath";

  constructor(path: string) {
    super(`${path} is, or is reached through, a symlink.`);
  }
}

export class OpenFolder implements Disposable {
  readonly #fd: number;
  readonly #base: string;

  private constructor(path: string, flags: number) {
    this.#fd = openSync(path, flags);
    this.#base = pathOfDescriptor(this.#fd, path);
  }

  /** Opens a folder. @throws the system's error; ENOTDIR or ELOOP when `path` itself is a symlink */
  static open(path: string): OpenFolder {
    return new OpenFolder(path, FOLDER_FLAGS | constants.O_NOFOLLOW);
  }

  /** Opens a folder of one's own, and takes the rights to all that is in it. @throws as `open` */
  static openWithAllRights(path: string): OpenFolder {
    const flags = hasDescriptorPaths ? O_PATH | constants.O_DIRECTORY : FOLDER_FLAGS;
    using found = new OpenFolder(path, flags | constants.O_NOFOLLOW);
    chmodSync(found.#base, OWNER_ALL);
    return new OpenFolder(found.#base, FOLDER_FLAGS);
  }

  /**
   * Opens a folder below `root`.
   *
   * @param root may be reached through symlinks
   * @param way from `root` to the folder
   * @throws SymlinkInPath when a part of the way is a symlink; the system's error
   */
  static below(root: string, way: string): OpenFolder {
    using from = new OpenFolder(root, FOLDER_FLAGS);
    return from.folder(way);
  }

  /** Opens a folder below `root`, and makes it if it is missing. @throws as `below` */
  static madeBelow(root: string, way: string): OpenFolder {
    using from = new OpenFolder(root, FOLDER_FLAGS);
    return from.made(way);
  }

  /** Opens a folder below this one, and makes what is missing on the way to it. @throws as `folder` */
  made(way: string): OpenFolder {
    try {
      return this.folder(way);
    } catch (error) {
      if (!isMissing(error)) throw error;
      using above = this.made(dirname(way));
      try {
        mkdirSync(above.path(basename(way)), { mode: OWNER_ALL });
      } catch (refusal) {
        if ((refusal as NodeJS.ErrnoException).code !== "EEXIST") throw refusal;
      }
      return above.folder(basename(way));
    }
  }

  /** Opens a folder below this one. @throws SymlinkInPath when a part of the way is a symlink; the system's error */
  folder(way: string): OpenFolder {
    const path = this.path(way);
    const isEntry = !way.includes("/") && path !== this.#base;
    if (hasDescriptorPaths && isEntry) return openEntry(path, way);
    const folder = new OpenFolder(path, FOLDER_FLAGS);
    if (folder.realPath() === join(this.realPath(), way)) return folder;
    folder[Symbol.dispose]();
    throw new SymlinkInPath(way);
  }

  /** The path of an entry, for as long as the folder is open. */
  path(name: string): string {
    return join(this.#base, name);
  }

  /** The path of the folder that this one is in, so many steps above. Not to be joined: that would take the steps back. */
  pathAbove(steps: number): string {
    return this.#base + "/..".repeat(steps);
  }

  /** Where the folder is now, without symlinks. */
  realPath(): string {
    return hasDescriptorPaths ? readlinkSync(this.#base) : realpathSync(this.#base);
  }

  [Symbol.dispose](): void {
    closeSync(this.#fd);
  }
}

/** Opens a folder that is one step away: the system itself sees to it that no symlink is followed. */
function openEntry(path: string, name: string): OpenFolder {
  try {
    return OpenFolder.open(path);
  } catch (error) {
    if (lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink()) throw new SymlinkInPath(name);
    throw error;
  }
}
