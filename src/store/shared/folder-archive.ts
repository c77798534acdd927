// A folder as one file, and back: a zip whose entries are stored as they are, with their modes, links as their targets.
//
// - The same content gives the same bytes, whatever machine it is on.
// - Names that no zip can hold are encoded, as in backups.
// - A link that leads into SVC_HOME leads into the home of the program that unpacks it; any other leads to a place inside of the
//   folder, or the archive is refused.

import { createReadStream, createWriteStream } from "node:fs";
import { lstat, mkdir, readlink, rename, rm, statfs, symlink } from "node:fs/promises";
import { dirname, isAbsolute, join, relative, resolve } from "node:path";
import type { Readable } from "node:stream";
import { text } from "node:stream/consumers";
import { pipeline } from "node:stream/promises";
import { type Entry, openPromise } from "yauzl";
import { ZipFile } from "yazl";
import { exists, foldersFrom, syncFolder, syncTree, writeNew } from "../../lib/files.ts";
import { isInside } from "../../lib/paths.ts";
import { removeTree } from "../../lib/remove-tree.ts";

const DATE = new Date(Date.UTC(2020, 0, 1));
const TYPES = { file: 0o100000, link: 0o120000, folder: 0o040000 } as const;
const TYPE_MASK = 0o170000;
/** No path of a link begins so by itself. */
const IN_HOME = "//SVC_HOME/";
/** The name of a file that is an archive's only content. No folder's archive has it: names there are encoded. */
const ALONE = "%file";
const TARGET_BYTES_MAX = 16 * 1024;

/** This program does not make such archives. */
export class ArchiveRefused extends Error {
  override readonly name = "ArchiveRefused";
}

/** Writes a folder, or a file, into a file that does not exist yet. @param home SVC_HOME */
export async function packFolder(folder: string, file: string, home: string): Promise<void> {
  await writeNew(file, packed(folder, home));
}

/** A folder, or a file, as an archive. Read on by who takes it; ends with the error of what cannot be read. @param home SVC_HOME */
export function packed(folder: string, home: string): Readable {
  const zip = new ZipFile();
  const bytes = zip.outputStream as Readable;
  zip.on("error", (error: Error) => bytes.destroy(error));
  addAll(zip, folder, home).catch((error: Error) => bytes.destroy(error));
  return bytes;
}

async function addAll(zip: ZipFile, folder: string, home: string): Promise<void> {
  for (const path of await pathsIn(folder))
    await addEntry(zip, {
      path,
      name: relative(folder, path) === "" ? ALONE : encoded(relative(folder, path)),
      home,
    });
  zip.end();
}

/** Everything but folders that have something in them, always in the same order; a file is all there is of it. */
async function pathsIn(folder: string): Promise<readonly string[]> {
  if (!(await lstat(folder)).isDirectory()) return [folder];
  const paths: string[] = [];
  for await (const { path, entries } of foldersFrom(folder)) {
    if (entries.length === 0 && path !== folder) paths.push(path);
    paths.push(...entries.filter((entry) => !entry.isDirectory()).map(({ name }) => join(path, name)));
  }
  return paths.sort();
}

async function addEntry(
  zip: ZipFile,
  { path, name, home }: { readonly path: string; readonly name: string; readonly home: string },
): Promise<void> {
  const found = await lstat(path);
  const options = { mtime: DATE, compress: false };
  if (found.isDirectory()) {
    zip.addEmptyDirectory(name, { mtime: DATE, mode: TYPES.folder | 0o755 });
  } else if (found.isSymbolicLink()) {
    const target = await readlink(path);
    const isOwn = isAbsolute(target) && isInside(home, target);
    const stored = isOwn ? IN_HOME + relative(home, target) : target;
    zip.addBuffer(Buffer.from(stored), name, { ...options, mode: TYPES.link | 0o777 });
  } else if (found.isFile()) {
    const mode = TYPES.file | (found.mode & 0o777);
    zip.addReadStreamLazy(name, { ...options, mode, size: found.size }, (give) =>
      give(null, readFor(zip.outputStream as Readable, path)),
    );
  } else throw new ArchiveRefused(`${name} is neither a file nor a folder, and cannot be shared.`);
}

/** A file that is closed with the archive which it is read for: its reader may leave in the middle. */
function readFor(archive: Readable, path: string): Readable {
  const file = createReadStream(path);
  const close = () => file.destroy();
  archive.once("close", close);
  file.once("close", () => archive.off("close", close));
  return file;
}

/**
 * Puts what an archive holds to its place: whole and on disk when it resolves, and nothing of it after an error.
 *
 * @param file the archive; what it holds is unpacked beside it
 * @param options.home SVC_HOME
 * @param options.finish is given the path of the folder, or file, before it comes to its place
 */
export async function placeArchive(
  file: string,
  path: string,
  { home, finish }: { readonly home: string; readonly finish?: (path: string) => Promise<void> },
): Promise<void> {
  const folder = `${file}.content`;
  try {
    await unpackFolder(file, folder, home);
    await syncTree(folder, new AbortController().signal);
    const alone = join(folder, ALONE);
    const content = (await exists(alone)) ? alone : folder;
    await finish?.(content);
    await mkdir(dirname(path), { recursive: true, mode: 0o700 });
    await rename(content, path);
    await syncFolder(dirname(path));
  } finally {
    await removeTree(folder);
  }
}

/**
 * Writes the content of an archive into a folder, which is made.
 *
 * @param home SVC_HOME
 * @throws ArchiveRefused, errors of the system; half of it may be left then
 */
export async function unpackFolder(file: string, folder: string, home: string): Promise<void> {
  const zip = await openPromise(file, { lazyEntries: true, autoClose: false, strictFileNames: true });
  const links: { readonly path: string; readonly target: string }[] = [];
  try {
    await mkdir(folder, { mode: 0o700 });
    for await (const entry of zip.eachEntry()) {
      // yauzl has refused absolute names and names with "..".
      const name = decoded(entry.fileName).replace(/\/$/, "");
      const path = join(folder, name);
      if (!isInside(folder, path)) throw new ArchiveRefused(`${JSON.stringify(name)} is no name of a file.`);
      const type = modeOf(entry) & TYPE_MASK;
      await mkdir(type === TYPES.folder ? path : dirname(path), { recursive: true, mode: 0o755 });
      if (type === TYPES.folder) continue;
      const bytes = await zip.openReadStreamPromise(entry);
      if (type === TYPES.file) {
        const mode = modeOf(entry) & 0o777;
        await pipeline(bytes, createWriteStream(path, { flags: "wx", mode }));
      } else if (type === TYPES.link && entry.uncompressedSize <= TARGET_BYTES_MAX) {
        links.push({ path, target: await text(bytes) });
      } else throw new ArchiveRefused(`${JSON.stringify(name)} is of an unknown kind.`);
    }
    // Links come last, so that nothing is written through one.
    for (const { path, target } of links) await symlink(targetOf(path, target, { folder, home }), path);
  } finally {
    zip.close();
  }
}

function targetOf(
  path: string,
  target: string,
  { folder, home }: { readonly folder: string; readonly home: string },
): string {
  const isOfHome = target.startsWith(IN_HOME);
  const place = isOfHome ? join(home, target.slice(IN_HOME.length)) : resolve(dirname(path), target);
  const isRight = isOfHome ? isInside(home, place) : !isAbsolute(target) && isInside(folder, place);
  if (!isRight)
    throw new ArchiveRefused(`The link ${JSON.stringify(path.slice(folder.length + 1))} leads out of it.`);
  return isOfHome ? place : target;
}

function modeOf({ externalFileAttributes }: Entry): number {
  return externalFileAttributes >>> 16;
}

function encoded(path: string): string {
  return path.replace(/[%\\:]/g, (one) => `%${one.charCodeAt(0).toString(16).toUpperCase()}`);
}

function decoded(name: string): string {
  return name.replaceAll("%5C", "\\").replaceAll("%3A", ":").replaceAll("%25", "%");
}

/**
 * Gives a path for an archive below SVC_HOME/tmp, and removes what was written there.
 *
 * @param bytes that must be free for it
 * @throws ENOSPC when they are not
 */
export async function withArchiveFile<Result>(
  { home, newId }: { readonly home: string; readonly newId: () => string },
  bytes: number,
  use: (path: string) => Promise<Result>,
): Promise<Result> {
  const folder = join(home, "tmp");
  if ((await mkdir(folder, { recursive: true, mode: 0o700 })) !== undefined) await syncFolder(home);
  const { bavail, bsize } = await statfs(folder);
  if (bavail * bsize < bytes) {
    const message = `ENOSPC: ${bytes} bytes are needed and ${bavail * bsize} are free`;
    throw Object.assign(new Error(message), { code: "ENOSPC", syscall: "statfs" });
  }
  const path = join(folder, `archive-${newId()}`);
  try {
    return await use(path);
  } finally {
    await rm(path, { force: true });
  }
}
