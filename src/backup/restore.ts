// Restores a backup into an empty home.
//
// - Into an empty home only. What an interrupted restore has left does not count, and is removed.
// - Everything is checked against the archive's hashes, and on disk, before anything is moved into place.
// - While SVC_HOME/restoring exists, no program starts (src/store/home.ts): it is created first and removed last, so a
//   restore that is killed at any point leaves nothing that could start.
// - A restore that fails leaves the home as it was.

import { createHash } from "node:crypto";
import { createWriteStream } from "node:fs";
import { mkdir, readdir, readFile, rename, rm, symlink } from "node:fs/promises";
import { dirname, join } from "node:path";
import { pipeline } from "node:stream/promises";
import { openPromise, type Entry as ZipEntry, type ZipFile } from "yauzl";
import { exists, syncFolder, syncTree } from "../lib/files.ts";
import { CONTENT_FOLDERS, databaseFile, openHome, RESTORING } from "../store/home.ts";
import { contentNamedIn, damageIn, needsKey } from "../store/sqlite/database-copy.ts";
import {
  ABOUT_FILE,
  type About,
  DATABASE_FILE,
  type EntryKind,
  FILE_TYPE_MASK,
  FORMAT,
  fileTypes,
  KEY_FILE,
  pathOfName,
  SUMS_FILE,
  sumLine,
} from "./layout.ts";

const TEXT_BYTES_MAX = 64 * 1024;
/** What a home may hold and still count as empty: the lock, the key of the old home, what file systems make. */
const NO_CONTENT: ReadonlySet<string> = new Set(["lock.db", "lock.db-journal", KEY_FILE, "lost+found"]);

/** The archive or the home cannot be used; the message says why, and what to do. Nothing was changed. */
export class RestoreRefused extends Error {
  override readonly name = "RestoreRefused";
}

export interface RestoreReport {
  readonly about: About;
  readonly files: number;
  readonly bytes: number;
  /** Whether the secret.key of the old home has to be put into the home before it can start. */
  readonly lacksKey: boolean;
  /** Paths that the database names and the backup did not have. */
  readonly missing: readonly string[];
}

/** @throws RestoreRefused; StoreUnusable when a program uses the home; the system's errors about files */
export async function restore(request: {
  readonly file: string;
  readonly home: string;
  readonly signal: AbortSignal;
}): Promise<RestoreReport> {
  const { home, signal } = request;
  const archive = await openArchive(request.file);
  try {
    const lock = openHome(home);
    try {
      await removeCutRestore(home);
      const present = (await readdir(home)).filter((name) => !NO_CONTENT.has(name));
      if (present.length > 0) {
        throw new RestoreRefused(
          `SVC_HOME ${home} is not empty: it holds ${present.slice(0, 5).join(", ")}. A backup is restored into an empty folder: set SVC_HOME to one, or move what is there away.`,
        );
      }
      return await restoreInto(home, { archive, file: request.file, signal });
    } finally {
      lock.release();
    }
  } finally {
    archive.close();
  }
}

async function openArchive(file: string): Promise<ZipFile> {
  try {
    return await openPromise(file, { lazyEntries: true, autoClose: false, strictFileNames: true });
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code !== undefined) throw error;
    throw new RestoreRefused(`${file} is no backup of Troupe, or only the start of one (${message}).`);
  }
}

interface Work {
  readonly archive: ZipFile;
  readonly file: string;
  readonly signal: AbortSignal;
}

async function restoreInto(home: string, work: Work): Promise<RestoreReport> {
  const staging = join(home, RESTORING);
  await mkdir(staging, { mode: 0o700 });
  await syncFolder(home);
  try {
    const unpacked = await unpack(staging, work).catch((error: unknown) => {
      // The system's errors have a code; what has none, the zip's reader found wrong in the archive.
      const isKnown = error instanceof RestoreRefused || (error as { code?: unknown }).code !== undefined;
      throw isKnown ? error : damaged(work.file, (error as Error).message);
    });
    await checkKey(home);
    const missing = await check(staging, work.file);
    const hasKey = unpacked.about.has_key || (await exists(join(home, KEY_FILE)));
    const lacksKey = !hasKey && needsKey(join(staging, DATABASE_FILE));
    await syncTree(staging, work.signal);
    for (const name of CONTENT_FOLDERS) await moveInto(home, name);
    if (!(await exists(join(home, KEY_FILE)))) await moveInto(home, KEY_FILE);
    await moveInto(home, DATABASE_FILE);
    await syncFolder(home);
    await rm(staging, { recursive: true });
    await syncFolder(home);
    return { ...unpacked, lacksKey, missing };
  } catch (error) {
    await removeCutRestore(home);
    throw error;
  }
}

/** Removes all that a restore which has not ended has made; the home was empty when it began. */
async function removeCutRestore(home: string): Promise<void> {
  if (!(await exists(join(home, RESTORING)))) return;
  const database = databaseFile(home);
  const made = [
    ...CONTENT_FOLDERS.map((name) => join(home, name)),
    database,
    `${database}-wal`,
    `${database}-shm`,
  ];
  for (const path of made) await rm(path, { recursive: true, force: true });
  await rm(join(home, RESTORING), { recursive: true, force: true });
}

async function moveInto(home: string, name: string): Promise<void> {
  const from = join(home, RESTORING, name);
  if (await exists(from)) await rename(from, join(home, name));
}

/** A key that the home has already must be the one of the archive. */
async function checkKey(home: string): Promise<void> {
  const texts = await Promise.all(
    [join(home, RESTORING, KEY_FILE), join(home, KEY_FILE)].map((path) =>
      readFile(path, "utf8").catch(() => null),
    ),
  );
  const [given, own] = texts.map((text) => text?.trim());
  if (given === undefined || own === undefined || given === own) return;
  throw new RestoreRefused(
    `SVC_HOME has another ${KEY_FILE} than the backup. Remove the one that is not the old home's.`,
  );
}

/** Unpacks every entry, and compares all of them with SHA256SUMS, which must be the last one. */
async function unpack(staging: string, { archive, file, signal }: Work) {
  const sums: string[] = [];
  const links: { readonly path: string; readonly target: string }[] = [];
  let [files, bytes, isComplete] = [0, 0, false];
  let about: About | null = null;
  for await (const entry of archive.eachEntry()) {
    signal.throwIfAborted();
    if (isComplete) throw damaged(file, `it goes on after ${SUMS_FILE}`);
    const path = safePath(entry, file);
    if (path === SUMS_FILE) {
      const expected = sums.join("");
      const found = (await bytesOf(archive, entry, Buffer.byteLength(expected))).toString();
      const wrong = found === expected ? undefined : firstDifference(found, sums);
      if (wrong !== undefined) throw damaged(file, `${wrong} is not what ${SUMS_FILE} says`);
      isComplete = true;
      continue;
    }
    const kind = kindOf(entry);
    const place = join(staging, path);
    const digest = createHash("sha256");
    await mkdir(kind === "folder" ? place : dirname(place), { recursive: true, mode: 0o700 });
    if (kind === "link" || path === ABOUT_FILE) {
      const content = await bytesOf(archive, entry, TEXT_BYTES_MAX);
      digest.update(content);
      // Links come last, so that no entry is written through one.
      if (kind === "link") links.push({ path: place, target: content.toString() });
      else about = aboutOf(content.toString(), file);
    } else if (kind === "file") {
      const mode = 0o400 | ((entry.externalFileAttributes >>> 16) & 0o300);
      await pipeline(
        await archive.openReadStreamPromise(entry),
        async function* (chunks: AsyncIterable<Buffer>) {
          for await (const chunk of chunks) {
            digest.update(chunk);
            yield chunk;
          }
        },
        createWriteStream(place, { flags: "wx", mode }),
        { signal },
      );
    }
    files++;
    bytes += entry.uncompressedSize;
    if (about === null) throw damaged(file, `it does not begin with ${ABOUT_FILE}`);
    sums.push(sumLine({ path, kind, sha256: digest.digest("hex") }));
  }
  if (!isComplete || about === null) throw damaged(file, `it has no ${SUMS_FILE}`);
  for (const { path, target } of links) await symlink(target, path);
  return { about, files, bytes };
}

/** The name of the first entry whose line is another one. */
function firstDifference(found: string, sums: readonly string[]): string {
  const lines = found.split("\n");
  const line = sums.find((sum, i) => sum !== `${lines[i]}\n`) ?? SUMS_FILE;
  return line.trim().split("  ").at(-1) ?? line;
}

/** yauzl has refused absolute names and names with ".."; only what a backup holds is left. */
function safePath({ fileName }: ZipEntry, file: string): string {
  const path = pathOfName(fileName).replace(/\/$/, "");
  const [first = "", ...rest] = path.split("/");
  const isContent = rest.length > 0 && (CONTENT_FOLDERS as readonly string[]).includes(first);
  const isOwn = [ABOUT_FILE, KEY_FILE, DATABASE_FILE, SUMS_FILE].includes(path);
  if ((isContent && !rest.some((part) => part === "" || part === "..")) || isOwn) return path;
  throw damaged(file, `it holds ${JSON.stringify(path)}, which no backup has`);
}

function kindOf({ externalFileAttributes }: ZipEntry): EntryKind {
  const type = (externalFileAttributes >>> 16) & FILE_TYPE_MASK;
  return type === fileTypes.link ? "link" : type === fileTypes.folder ? "folder" : "file";
}

async function bytesOf(
  archive: ZipFile,
  entry: ZipEntry,
  bytesMax = Number.POSITIVE_INFINITY,
): Promise<Buffer> {
  if (entry.uncompressedSize > bytesMax) throw new Error(`${entry.fileName} is larger than it can be`);
  const chunks: Buffer[] = [];
  for await (const chunk of await archive.openReadStreamPromise(entry)) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}

function aboutOf(text: string, file: string): About {
  let about: Partial<About> = {};
  try {
    about = (JSON.parse(text) as About | null) ?? {};
  } catch {
    // Its format is not known either.
  }
  if (about.format === FORMAT) return about as About;
  throw new RestoreRefused(
    `${file} has the format ${JSON.stringify(about.format)}, which this version does not know. Restore it with the Troupe that made it, or a newer one.`,
  );
}

/** Checks the database. @returns what it names and is not there */
async function check(staging: string, file: string): Promise<readonly string[]> {
  const path = join(staging, DATABASE_FILE);
  if (!(await exists(path))) throw damaged(file, `it has no ${DATABASE_FILE}`);
  const damage = damageIn(path);
  if (damage !== null) throw damaged(file, `its database is damaged (${damage})`);
  const missing = new Set<string>();
  for (const content of contentNamedIn(path)) {
    if (!(await exists(join(staging, content.path)))) missing.add(content.path);
  }
  return [...missing];
}

function damaged(file: string, reason: string): RestoreRefused {
  return new RestoreRefused(`${file} is damaged or is no backup of Troupe: ${reason}. Nothing was restored.`);
}
