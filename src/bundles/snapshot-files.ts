// The files of one bundle on their way from its source into the folder of its snapshot: each is written once, hashed
// meanwhile, and then read-only and on disk.

import { createHash, type Hash } from "node:crypto";
import { constants } from "node:fs";
import { type FileHandle, mkdir, open, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { forEachConcurrent } from "../lib/async.ts";
import { type BundleFile, PAYLOADS_FOLDER } from "./layout.ts";
import { BundleProblem, type BundleProblemEntry, ProblemList, shown } from "./problem.ts";

/** Where a bundle's files come from. */
export interface BundleSource {
  /** The good ones. */
  readonly files: readonly BundleFile[];
  /** What is wrong with the others; such a bundle is not taken. */
  readonly problems: readonly BundleProblemEntry[];
  /** Writes the file's bytes to `target`, a name that does not exist yet. Several may be written at once. */
  write(file: BundleFile, target: string): Promise<WrittenFile>;
  close(): Promise<void>;
}

/** Files written at the same time. Node has four threads for the disk, and others use them too. */
export const FILES_AT_ONCE = 4;

export class FileWriter {
  readonly #source: BundleSource;
  readonly #content: string;
  readonly #folders = new Set<string>();
  readonly #written = new Map<string, WrittenFile>();
  readonly #problems = new ProblemList();

  constructor(source: BundleSource, content: string) {
    this.#source = source;
    this.#content = content;
  }

  get problems(): readonly BundleProblemEntry[] {
    return this.#problems.all();
  }

  /** Those that were made so far, with the bundle's own. */
  get folders(): readonly string[] {
    return [...this.#folders];
  }

  written({ path }: BundleFile): WrittenFile {
    const found = this.#written.get(path);
    if (found === undefined) throw new Error(`${path} was not written.`);
    return found;
  }

  /** Writes the files, and notes what is wrong with them. */
  async write(files: readonly BundleFile[]): Promise<void> {
    await this.#makeFolder(join(this.#content, PAYLOADS_FOLDER));
    for (const { path } of files) await this.#makeFolder(dirname(join(this.#content, path)));
    await forEachConcurrent(files, FILES_AT_ONCE, async (file) => {
      const target = join(this.#content, file.path);
      try {
        this.#written.set(file.path, await this.#source.write(file, target));
      } catch (error) {
        await this.#note(file.path, error);
      }
    });
  }

  async #makeFolder(folder: string): Promise<void> {
    if (this.#folders.has(folder)) return;
    if (folder !== this.#content) await this.#makeFolder(dirname(folder));
    this.#folders.add(folder);
    await mkdir(folder, { recursive: true, mode: 0o755 });
  }

  async #note(path: string, error: unknown): Promise<void> {
    if (error instanceof BundleProblem) {
      for (const problem of error.problems) this.#problems.addEntry(problem);
      // A part of a file is not kept.
      await rm(join(this.#content, path), { force: true });
    } else if (path === PAYLOADS_FOLDER) {
      this.#problems.add(
        path,
        "not_a_folder",
        `${shown(path)} is a file, and must be the folder of the payload`,
      );
    } else if ((error as NodeJS.ErrnoException).code === "EEXIST") {
      // Names were compared exactly; a disk may compare them differently.
      const message = `${shown(path)} differs from another name in case or accents only, and this disk takes both for one`;
      this.#problems.add(path, "duplicate_entry", message);
    } else throw error;
  }
}

export interface WrittenFile {
  /** Hex, of the content. */
  readonly sha256: string;
  readonly sizeBytes: number;
}

type Chunks = Iterable<Buffer> | AsyncIterable<Buffer>;

const READ_CHUNK_BYTES = 256 * 1024;

/** Writes a file that does not exist yet. @throws what `chunks` throws; half a file is left then */
export async function writeFileOnce(
  target: string,
  chunks: Chunks,
  isExecutable: boolean,
): Promise<WrittenFile> {
  const file = await open(target, "wx");
  try {
    const digest = createHash("sha256");
    let sizeBytes = 0;
    for await (const chunk of chunks) {
      const written = file.writeFile(chunk);
      digest.update(chunk);
      sizeBytes += chunk.length;
      await written;
    }
    return await finished(file, { digest, sizeBytes, isExecutable });
  } finally {
    await file.close();
  }
}

/** Hashes a file that has just been copied to `target`, and makes it read-only. */
export async function finishCopy(target: string, isExecutable: boolean): Promise<WrittenFile> {
  const file = await open(target, constants.O_RDONLY | constants.O_NOFOLLOW);
  try {
    const digest = createHash("sha256");
    const chunk = Buffer.allocUnsafe(READ_CHUNK_BYTES);
    let sizeBytes = 0;
    for (;;) {
      const { bytesRead } = await file.read(chunk, 0, chunk.length, null);
      if (bytesRead === 0) break;
      digest.update(chunk.subarray(0, bytesRead));
      sizeBytes += bytesRead;
    }
    return await finished(file, { digest, sizeBytes, isExecutable });
  } finally {
    await file.close();
  }
}

async function finished(
  file: FileHandle,
  content: { readonly digest: Hash; readonly sizeBytes: number; readonly isExecutable: boolean },
): Promise<WrittenFile> {
  await file.chmod(content.isExecutable ? 0o500 : 0o400);
  await file.sync();
  return { sha256: content.digest.digest("hex"), sizeBytes: content.sizeBytes };
}
