// A bundle's files from a folder on this machine.
//
// - Nothing outside the folder is read: a symlink is followed, as a copy, only to a target inside it.
// - Only regular files are opened; a pipe or a device is a problem, not a wait.
// - Everything wrong with the folder is reported at once, and before anything is copied.

import { constants } from "node:fs";
import { access, copyFile, opendir, realpath, stat } from "node:fs/promises";
import { isAbsolute, join } from "node:path";
import { isInside } from "../lib/paths.ts";
import { type BundleFile, bundleLimits, isLeftOut, nameProblem, tooLarge, tooManyEntries } from "./layout.ts";
import { BundleProblem, ProblemList, shown } from "./problem.ts";
import { type BundleSource, finishCopy } from "./snapshot-files.ts";

export interface FoundFile extends BundleFile {
  /** Where its bytes are, without symlinks. */
  readonly source: string;
  /** Another one whenever the file was written, replaced or touched. */
  readonly version: string;
  readonly changedAtMs: number;
}

interface Walk {
  readonly root: string;
  readonly files: FoundFile[];
  readonly problems: ProblemList;
  entries: number;
  sizeBytes: number;
}

/**
 * The source of a bundle that is a folder.
 *
 * @param path absolute
 * @param limits.bytesMax what the files may have together
 * @param limits.keepOut a folder of our own that must not lie inside
 * @throws BundleProblem with everything that is wrong
 */
export async function openFolder(
  path: string,
  limits: { readonly bytesMax: number; readonly keepOut: string },
): Promise<BundleSource> {
  const files = await listFolder(path, limits);
  const sources = new Map(files.map((file) => [file.path, file.source]));
  return {
    files,
    problems: [],
    write: async (file, target) => {
      await copy(sources.get(file.path) ?? "", target, file.path);
      return finishCopy(target, file.isExecutable);
    },
    close: async () => {},
  };
}

/** Lists a folder's files; see `openFolder`. */
export async function listFolder(
  path: string,
  limits: { readonly bytesMax: number; readonly keepOut: string },
): Promise<readonly FoundFile[]> {
  const root = await rootOf(path);
  if (isInside(root, await realpath(limits.keepOut))) {
    throw BundleProblem.of(
      "",
      "contains_home",
      `${shown(path)} holds the runtime's own data; give a folder that is only the bundle`,
    );
  }
  const walk: Walk = { root, files: [], problems: new ProblemList(), entries: 0, sizeBytes: 0 };
  await walkFolder(walk, [root], "");
  if (walk.entries > bundleLimits.entriesMax)
    throw BundleProblem.of("", "too_many_entries", tooManyEntries());
  if (walk.sizeBytes > limits.bytesMax) walk.problems.add("", "too_large", tooLarge(limits.bytesMax));
  if (!walk.problems.isEmpty) throw new BundleProblem(walk.problems.all());
  return walk.files;
}

async function rootOf(path: string): Promise<string> {
  if (!isAbsolute(path) || path.includes("\0")) {
    throw BundleProblem.of("", "not_absolute", `${shown(path)} is not the absolute path of a folder`);
  }
  try {
    const root = await realpath(path);
    if ((await stat(root)).isDirectory()) return root;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    const isGone = code === "ENOENT" || code === "ENOTDIR";
    const reason = isGone ? "does not exist on the runtime's machine" : `cannot be read (${code})`;
    throw BundleProblem.of(
      "",
      isGone ? "folder_missing" : "unreadable",
      `the folder ${shown(path)} ${reason}`,
    );
  }
  throw BundleProblem.of(
    "",
    "not_a_folder",
    `${shown(path)} is a file; give the folder that holds manifest.json`,
  );
}

/** @param chain the real folders from the root to this one; a link back to one of them is a circle */
async function walkFolder(walk: Walk, chain: readonly string[], prefix: string): Promise<void> {
  const folder = chain.at(-1) ?? walk.root;
  const found: { readonly name: string; readonly isLink: boolean }[] = [];
  try {
    for await (const entry of await opendir(folder)) {
      if (isLeftOut(entry.name, chain.length - 1)) continue;
      if (++walk.entries > bundleLimits.entriesMax) return;
      found.push({ name: entry.name, isLink: entry.isSymbolicLink() });
    }
  } catch (error) {
    const which = prefix === "" ? "itself" : shown(prefix);
    walk.problems.add(prefix, "unreadable", `the folder ${which} cannot be read (${codeOf(error)})`);
  }
  for (const { name, isLink } of found.sort((a, b) => (a.name < b.name ? -1 : 1))) {
    if (walk.entries > bundleLimits.entriesMax) return;
    const path = prefix === "" ? name : `${prefix}/${name}`;
    await walkEntry(walk, chain, { path, source: join(folder, name), isLink });
  }
}

async function walkEntry(
  walk: Walk,
  chain: readonly string[],
  { path, source, isLink }: { readonly path: string; readonly source: string; readonly isLink: boolean },
): Promise<void> {
  const { problems } = walk;
  const badName = nameProblem(path);
  if (badName !== null) return problems.add(path, "invalid_name", `the name ${shown(path)} ${badName}`);
  try {
    const real = isLink ? await realpath(source) : source;
    if (!isInside(walk.root, real)) {
      return problems.add(path, "link_outside", `the symlink ${shown(path)} points to outside the bundle`);
    }
    const found = await stat(real);
    if (found.isDirectory()) {
      if (chain.includes(real)) problems.add(path, "link_cycle", `the symlink ${shown(path)} is a circle`);
      else await walkFolder(walk, [...chain, real], path);
    } else if (!found.isFile()) {
      problems.add(path, "special_file", `${shown(path)} is neither a file nor a folder`);
    } else {
      await access(real, constants.R_OK);
      walk.sizeBytes += found.size;
      walk.files.push({
        path,
        source: real,
        isExecutable: (found.mode & 0o111) !== 0,
        sizeBytes: found.size,
        version: `${found.ino}:${found.size}:${found.mtimeMs}:${found.ctimeMs}`,
        changedAtMs: found.ctimeMs,
      });
    }
  } catch (error) {
    const code = codeOf(error);
    const reason =
      code === "ENOENT" ? "points to nothing, or has gone while it was read" : `cannot be read (${code})`;
    problems.add(path, "unreadable", `${shown(path)} ${reason}`);
  }
}

async function copy(source: string, target: string, path: string): Promise<void> {
  try {
    await copyFile(source, target, constants.COPYFILE_EXCL | constants.COPYFILE_FICLONE);
  } catch (error) {
    const code = codeOf(error);
    if (code !== "ENOENT" && code !== "EACCES" && code !== "ENOTDIR" && code !== "EISDIR") throw error;
    throw BundleProblem.of(
      `/${path}`,
      "unreadable",
      `${shown(path)} has gone or changed while it was copied (${code})`,
    );
  }
}

function codeOf(error: unknown): string {
  return (error as NodeJS.ErrnoException).code ?? String(error);
}
