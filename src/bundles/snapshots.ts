// Snapshots of bundles: <root>/<fingerprint>/, each written once and never changed.
//
// Owns: everything below its root. Does not own which snapshot a bundle's name stands for (BundleRecords).
//
// S1. A snapshot's folder is complete, checked, read-only and on disk before its name exists.
// S2. Its name is the SHA-256 over its files (name, executable or not, content), so equal bundles are stored once.
// S3. A crash leaves at most something below <root>/incoming, which the next start removes.
// S4. Files are copies (clones, where the file system can), never hard links: nobody else's write reaches them.

import { createHash } from "node:crypto";
import { constants, createWriteStream } from "node:fs";
import { chmod, mkdir, open, rename, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { syncFolder } from "../sync-folder.ts";
import { type Definition, readDefinition } from "./definition.ts";
import {
  type BundleFile,
  type BundleSource,
  CONFIG_FILES,
  MANIFEST_FILE,
  PAYLOADS_FOLDER,
  tooLarge,
} from "./layout.ts";
import { BundleProblem } from "./problem.ts";

export interface Snapshot {
  readonly fingerprint: string;
  readonly sizeBytes: number;
  readonly definition: Definition;
}

const FINGERPRINT_PATTERN = /^[0-9a-f]{64}$/;
const READ_CHUNK_BYTES = 256 * 1024;

export class Snapshots {
  readonly root: string;
  readonly #incoming: string;
  readonly #bytesMax: number;
  #incomingSeq = 0;

  /** @param bytesMax what the files of one snapshot may have together */
  constructor(root: string, bytesMax: number) {
    this.root = root;
    this.#incoming = join(root, "incoming");
    this.#bytesMax = bytesMax;
  }

  /** Makes the root, and removes what a crash left half-written. To be called once, before anything else. */
  async open(): Promise<void> {
    const made = await mkdir(this.root, { recursive: true, mode: 0o700 });
    if (made !== undefined) await syncFolder(dirname(this.root));
    await rm(this.#incoming, { recursive: true, force: true });
    await mkdir(this.#incoming);
  }

  /** @returns the snapshot's folder, whether or not there is such a snapshot */
  folder(fingerprint: string): string {
    if (!FINGERPRINT_PATTERN.test(fingerprint)) throw new Error(`"${fingerprint}" is not a fingerprint.`);
    return join(this.root, fingerprint);
  }

  /** Gives `use` an empty folder of its own, which is removed afterwards. */
  async withTemporary<Result>(use: (folder: string) => Promise<Result>): Promise<Result> {
    const folder = join(this.#incoming, String(++this.#incomingSeq));
    await mkdir(folder, { mode: 0o700 });
    try {
      return await use(folder);
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  }

  /** Saves an upload in `folder`. @throws BundleProblem when it is larger than `bytesMax` */
  async receive(upload: Readable, folder: string, bytesMax: number): Promise<string> {
    const file = join(folder, "upload.zip");
    await pipeline(
      upload,
      (chunks: AsyncIterable<Buffer>) => bounded(chunks, bytesMax),
      createWriteStream(file),
    );
    return file;
  }

  /**
   * Takes a bundle in, and closes its source.
   *
   * @param folder an empty folder from `withTemporary`
   * @throws BundleProblem when the bundle is not as it must be; nothing is kept then
   */
  async take(source: BundleSource, folder: string): Promise<Snapshot> {
    const content = join(folder, "content");
    try {
      await mkdir(join(content, PAYLOADS_FOLDER), { recursive: true, mode: 0o755 });
      const [defining, others] = split(source.files);
      // The small files that can make the bundle invalid come first.
      for (const file of defining) await writeFile(source, file, content);
      const definition = await readDefinition(content);
      for (const file of others) await writeFile(source, file, content);
      const { fingerprint, sizeBytes } = await this.#seal(content, source.files);
      await this.#keep(content, fingerprint);
      return { fingerprint, sizeBytes, definition };
    } finally {
      await source.close();
    }
  }

  /** Makes everything read-only and durable, and computes the fingerprint on the way. */
  async #seal(
    content: string,
    files: readonly BundleFile[],
  ): Promise<{ fingerprint: string; sizeBytes: number }> {
    const total = createHash("sha256");
    const folders = new Set([content, join(content, PAYLOADS_FOLDER)]);
    let sizeBytes = 0;
    for (const file of [...files].sort(byPath)) {
      const path = join(content, file.path);
      const sealed = await sealFile(path, file.isExecutable);
      total.update(`${JSON.stringify([file.path, file.isExecutable, sealed.sha256])}\n`);
      sizeBytes += sealed.sizeBytes;
      // Looked at again: files of a folder may have grown since they were listed.
      if (sizeBytes > this.#bytesMax) throw BundleProblem.of("", "too_large", tooLarge(this.#bytesMax));
      for (let above = dirname(path); !folders.has(above); above = dirname(above)) folders.add(above);
    }
    for (const folder of folders) await syncFolder(folder);
    return { fingerprint: total.digest("hex"), sizeBytes };
  }

  async #keep(content: string, fingerprint: string): Promise<void> {
    try {
      await rename(content, this.folder(fingerprint));
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      // The same content is there already (S2); it is whole, because its name exists (S1).
      if (code !== "ENOTEMPTY" && code !== "EEXIST") throw error;
    }
    await syncFolder(this.root);
  }
}

function split(files: readonly BundleFile[]): readonly [BundleFile[], BundleFile[]] {
  const names: readonly string[] = [MANIFEST_FILE, ...CONFIG_FILES];
  const defining = files.filter((file) => names.includes(file.path));
  return [defining, files.filter((file) => !names.includes(file.path))];
}

function byPath(a: BundleFile, b: BundleFile): number {
  return a.path < b.path ? -1 : a.path > b.path ? 1 : 0;
}

async function writeFile(source: BundleSource, file: BundleFile, content: string): Promise<void> {
  const target = join(content, file.path);
  await mkdir(dirname(target), { recursive: true, mode: 0o755 });
  await source.write(file, target);
}

async function sealFile(path: string, isExecutable: boolean): Promise<{ sha256: string; sizeBytes: number }> {
  await chmod(path, isExecutable ? 0o555 : 0o444);
  const file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW);
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
    await file.sync();
    return { sha256: digest.digest("hex"), sizeBytes };
  } finally {
    await file.close();
  }
}

async function* bounded(chunks: AsyncIterable<Buffer>, bytesMax: number): AsyncGenerator<Buffer> {
  let sizeBytes = 0;
  for await (const chunk of chunks) {
    sizeBytes += chunk.length;
    if (sizeBytes > bytesMax) {
      throw BundleProblem.of(
        "",
        "too_large",
        `the upload is larger than ${bytesMax} bytes (SVC_BUNDLE_MAX_BYTES)`,
      );
    }
    yield chunk;
  }
}
