// Saving a run's files into a folder: `--save` and `troupe runs save`.
//
// - A name from a worker never leads out of the folder, and no file overwrites another one of the run.
//   Of several files of one name the newest has it; the others are in folders named after their ids.
// - A file appears under its name only when it is complete and matches the server's SHA-256.
// - Nothing that was in the folder before is replaced without --force, and nothing is ever written through a link in it.

import { createHash } from "node:crypto";
import { createWriteStream, readdirSync } from "node:fs";
import { lstat, mkdir, mkdtemp, rename, rm } from "node:fs/promises";
import { dirname, join, normalize, resolve, sep } from "node:path";
import { pipeline } from "node:stream/promises";
import { makeFolder } from "../lib/files.ts";
import { type Call, CommandFailed, UsageError } from "./command.ts";
import type { NamedRun, RunFile } from "./named-run.ts";
import type { ServerCall } from "./session.ts";
import { writeFailure } from "./text.ts";

export type SavedFile = Pick<RunFile, "artifact_id" | "name" | "sha256" | "url">;

/** Prefix of the folders that files are downloaded into; a killed command may have left one. */
const UNFINISHED = ".saving-";

/**
 * To be called before a run is started for its files.
 *
 * @param folder null when nothing is saved
 * @throws UsageError when the folder holds something and --force was not given
 */
export function checkSaveFolder(call: Call, folder: string | null = call.text("save")): void {
  if (folder === null || call.flag("force") === true || isEmpty(folder)) return;
  throw new UsageError(
    `${folder} is not empty. Give a folder that is, or that does not exist; --force saves into this one and replaces files of the same names.`,
  );
}

/** What is not a folder is reported when it is written to. */
function isEmpty(folder: string): boolean {
  try {
    return readdirSync(folder).every((name) => name.startsWith(UNFINISHED));
  } catch {
    return true;
  }
}

/**
 * Copies the outputs of a run into the folder of --save, its other files where it has no outputs.
 *
 * @returns where each one is, by artifact id; nothing without --save
 */
export async function saveRunFiles(
  call: ServerCall,
  run: NamedRun,
  files: readonly RunFile[],
): Promise<ReadonlyMap<string, string>> {
  const folder = call.text("save");
  if (folder === null) return new Map();
  const outputs = files.filter(({ kind }) => kind === "output");
  return downloadInto(call, run, outputs.length > 0 ? outputs : files, folder);
}

/** Downloads files of a run into a folder. @returns where each one is, by artifact id */
export function downloadInto(
  { flag, interrupt }: ServerCall,
  run: Pick<NamedRun, "download">,
  files: readonly RunFile[],
  folder: string,
): Promise<ReadonlyMap<string, string>> {
  const download = async (file: RunFile) => {
    const { body } = await run.download(file, { signal: interrupt });
    return body ?? new Blob([]).stream();
  };
  return saveFiles(files, download, folder, flag("force") === true);
}

/**
 * Downloads files into a folder, which is made if needed.
 *
 * @param download opens a file's bytes; what it throws is passed on
 * @param mayReplace whether files that it holds already are replaced; else they are refused
 * @returns where each one is now, by artifact id
 * @throws CommandFailed that names the file which could not be saved; those before it are there
 */
export async function saveFiles<File extends SavedFile>(
  files: readonly File[],
  download: (file: File) => Promise<AsyncIterable<Uint8Array>>,
  folder: string,
  mayReplace = false,
): Promise<ReadonlyMap<string, string>> {
  const root = resolve(folder);
  const unfinished = await doing(root, async () => {
    makeFolder(root);
    return mkdtemp(join(root, UNFINISHED));
  });
  try {
    const places = new Map<string, string>();
    const names = savedNames(files);
    for (const file of files) {
      const place = join(root, names.get(file.artifact_id)!);
      const partial = join(unfinished, String(places.size));
      const bytes = await download(file);
      await doing(place, async () => {
        await write(bytes, partial, file.sha256);
        await makeFolders(root, dirname(names.get(file.artifact_id)!));
        if (!mayReplace && (await lstat(place).catch(() => null)) !== null) {
          throw new Error("something of that name is there already. Choose another place, or give --force.");
        }
        await rename(partial, place);
      });
      places.set(file.artifact_id, place);
    }
    return places;
  } finally {
    await rm(unfinished, { recursive: true, force: true });
  }
}

/** Makes the folders of a relative path, none of which may be a link. */
async function makeFolders(root: string, path: string): Promise<void> {
  let folder = root;
  for (const part of path.split(sep)) {
    folder = join(folder, part);
    await mkdir(folder).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== "EEXIST") throw error;
    });
    if ((await lstat(folder)).isSymbolicLink()) {
      throw new Error(`${folder} is a symlink, and nothing is written through one. Choose another place.`);
    }
  }
}

/** Ids are in the order of time: a service writes its outputs again and again, and the last ones count. */
function savedNames(files: readonly SavedFile[]): ReadonlyMap<string, string> {
  const taken = new Set<string>();
  const newestFirst = [...files].sort((a, b) => (a.artifact_id < b.artifact_id ? 1 : -1));
  return new Map(newestFirst.map((file) => [file.artifact_id, savedName(file, taken)]));
}

async function doing<T>(place: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw new CommandFailed(`Saving ${place} failed: ${writeFailure(error)}`);
  }
}

/** Writes a file and checks that it is what it should be. */
async function write(bytes: AsyncIterable<Uint8Array>, path: string, sha256: string): Promise<void> {
  const hash = createHash("sha256");
  const hashed = async function* (chunks: AsyncIterable<Uint8Array>) {
    for await (const chunk of chunks) {
      hash.update(chunk);
      yield chunk;
    }
  };
  await pipeline(bytes, hashed, createWriteStream(path));
  if (hash.digest("hex") !== sha256) throw new Error("its checksum does not match the server's; try again.");
}

/**
 * A relative name inside the folder that leaves every earlier file where it is; without regard to case, as some
 * disks have none.
 *
 * @param taken the names given so far, and their folders with a slash appended
 */
export function savedName(artifact: Pick<SavedFile, "artifact_id" | "name">, taken: Set<string>): string {
  const id = inside(artifact.artifact_id) || "file";
  const own = inside(artifact.name) || id;
  let name = own;
  for (let n = 1; !isFree(name, taken); n++) name = join(n === 1 ? id : `${id}-${n}`, own);
  taken.add(name.toLowerCase());
  for (const folder of foldersOf(name)) taken.add(`${folder}/`);
  return name;
}

/** The path without steps out of the folder; empty when nothing is left of it. */
function inside(path: string): string {
  return normalize(join(sep, path.replace(/\p{Cc}/gu, "_")))
    .slice(1)
    .replace(/\/+$/, "");
}

function isFree(name: string, taken: ReadonlySet<string>): boolean {
  const wanted = name.toLowerCase();
  if (taken.has(wanted) || taken.has(`${wanted}/`)) return false;
  return foldersOf(name).every((folder) => !taken.has(folder));
}

/** The folders of a name, in lower case: of a/b/c these are a and a/b. */
function foldersOf(name: string): readonly string[] {
  const parts = name.toLowerCase().split(sep).slice(0, -1);
  return parts.map((_, i) => parts.slice(0, i + 1).join("/"));
}
