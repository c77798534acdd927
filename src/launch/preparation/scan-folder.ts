// Lists a folder of the user's before it is copied: the files to copy, how many entries are skipped, and what makes the
// folder unusable.
//
// - Nothing outside of the folder is taken: a symlink that leaves it forbids the whole (spec "packaging", CONTRACTS
//   §6). A link to a file inside is that file under another name; one to a folder inside stays a link.
// - What is neither file, folder nor link is skipped, and so are links to nothing and names that are not UTF-8;
//   all of them are counted.
// - The work is bounded by ENTRIES_MAX, done in small steps, and ends soon after the signal.

import { constants, type Stats } from "node:fs";
import { access, lstat, opendir, readlink, realpath, stat } from "node:fs/promises";
import { dirname, join, relative, resolve } from "node:path";
import { shown } from "../../bundles/problem.ts";
import { forEachConcurrent } from "../../lib/async.ts";
import { isInside } from "../../lib/paths.ts";
import { hasExtension } from "./input-rules.ts";

const ENTRIES_MAX = 100_000;
const LOOKS_AT_ONCE = 8;
const NAMED_MAX = 10;

export interface FoundFile {
  /** Below the folder. */
  readonly path: string;
  /** Where its bytes are: the file itself, or what a link to it leads to. */
  readonly source: string;
  readonly sizeBytes: number;
}

/** A link to another folder of the same folder. */
export interface FoundLink {
  readonly path: string;
  /** What it leads to, below the folder. */
  readonly target: string;
}

export interface FolderScan {
  readonly files: readonly FoundFile[];
  readonly links: readonly FoundLink[];
  /** Of all files. */
  readonly bytes: number;
  readonly skipped: {
    /** Files of other extensions than the allowed. */
    readonly byExtension: number;
    /** Sockets, pipes, devices, links to nothing, names that are not UTF-8. */
    readonly special: number;
  };
  /** What forbids the folder, each a clause about a path in it; the first few. */
  readonly problems: readonly { readonly code: string; readonly clause: string }[];
}

export interface ScanOptions {
  /** Lower case, with their dots; null takes all files. */
  readonly allowedExtensions: readonly string[] | null;
  readonly signal: AbortSignal;
  /** Files and folders that it may hold; ENTRIES_MAX when absent. */
  readonly entriesMax?: number;
}

/**
 * @param root real path of a folder
 * @throws the signal's reason when it is aborted; the system's error when the root itself cannot be read
 */
export async function scanFolder(root: string, options: ScanOptions): Promise<FolderScan> {
  const scan = new Scan(root, options);
  await scan.run();
  return scan;
}

class Scan implements FolderScan {
  readonly files: FoundFile[] = [];
  readonly links: FoundLink[] = [];
  readonly problems: { code: string; clause: string }[] = [];
  readonly skipped = { byExtension: 0, special: 0 };
  bytes = 0;
  readonly #root: string;
  readonly #options: ScanOptions;
  readonly #entriesMax: number;
  #entries = 0;

  constructor(root: string, options: ScanOptions) {
    this.#root = root;
    this.#options = options;
    this.#entriesMax = options.entriesMax ?? ENTRIES_MAX;
  }

  async run(): Promise<void> {
    const folders = [""];
    for (let folder = folders.pop(); folder !== undefined; folder = folders.pop()) {
      this.#options.signal.throwIfAborted();
      const names = await this.#namesIn(folder);
      if (this.#entries > this.#entriesMax) {
        this.#forbid("too_many_files", `it holds more than ${this.#entriesMax} files and folders`);
        return;
      }
      await forEachConcurrent(names, LOOKS_AT_ONCE, async (name) => {
        this.#options.signal.throwIfAborted();
        const path = join(folder, name);
        if (await this.#look(path)) folders.push(path);
      });
    }
    this.files.sort((a, b) => (a.path < b.path ? -1 : 1));
    this.problems.sort((a, b) => (a.clause < b.clause ? -1 : 1));
  }

  async #namesIn(folder: string): Promise<readonly string[]> {
    const names: string[] = [];
    try {
      for await (const { name } of await opendir(join(this.#root, folder), { bufferSize: 256 })) {
        if (++this.#entries > this.#entriesMax) break;
        names.push(name);
      }
    } catch (error) {
      if (folder === "") throw error;
      this.#forbid("not_readable", `its folder ${shown(folder)} cannot be read (${codeOf(error)})`);
    }
    return names;
  }

  /** @returns whether it is a folder to be listed */
  async #look(path: string): Promise<boolean> {
    const full = join(this.#root, path);
    // A name that is not UTF-8 is not found under its decoded form.
    const found = await lstat(full).catch(() => null);
    if (found?.isDirectory()) return true;
    if (found?.isFile()) await this.#takeFile(path, full, found);
    else if (found?.isSymbolicLink()) await this.#takeLink(path, full);
    else this.skipped.special++;
    return false;
  }

  async #takeFile(path: string, source: string, { size }: Stats): Promise<void> {
    const { allowedExtensions } = this.#options;
    if (allowedExtensions !== null && !hasExtension(path, allowedExtensions)) {
      this.skipped.byExtension++;
      return;
    }
    const refused = await access(source, constants.R_OK).then(() => null, codeOf);
    if (refused !== null) {
      this.#forbid("not_readable", `its file ${shown(path)} cannot be read (${refused})`);
      return;
    }
    this.files.push({ path, source, sizeBytes: size });
    this.bytes += size;
  }

  async #takeLink(path: string, full: string): Promise<void> {
    const written = await readlink(full);
    const real = await realpath(full).catch(() => null);
    // A link to nothing is judged by its words: what may appear there later lies where they lead.
    if (!isInside(this.#root, real ?? resolve(dirname(full), written))) {
      this.#forbid("symlink_leaves", `its symlink ${shown(path)} leads out of it (to ${shown(written)})`);
      return;
    }
    const found = real === null ? null : await stat(real);
    if (real === null || found === null) this.skipped.special++;
    else if (found.isFile()) await this.#takeFile(path, real, found);
    else if (found.isDirectory()) this.links.push({ path, target: relative(this.#root, real) });
    else this.skipped.special++;
  }

  #forbid(code: string, clause: string): void {
    if (this.problems.length < NAMED_MAX) this.problems.push({ code, clause });
  }
}

function codeOf(error: unknown): string {
  return (error as NodeJS.ErrnoException).code ?? String(error);
}
