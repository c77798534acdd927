// Which files of a folder have changed since a snapshot was taken of it.
//
// - Files are compared by content and by whether they are executable: one that was touched, or rewritten with the same
//   content, has not changed.
// - Cheap to call: a folder is listed at most once a second, and a file is read again only when its inode, size or one
//   of its times has changed.
// - A caller waits for a bounded number of bytes, the smallest files first. Larger files are compared in the
//   background, one folder at a time; until then they count as unchanged.

import { constants } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { join, resolve } from "node:path";
import { forEachConcurrent, Semaphore } from "../lib/async.ts";
import { type FoundFile, listFolder } from "./folder-source.ts";
import { bundleLimits } from "./layout.ts";
import { BundleProblem } from "./problem.ts";
import { FILES_AT_ONCE } from "./snapshot-files.ts";

const LOOK_AGAIN_MS = 1_000;
const FOLDERS_KEPT = 1_000;
const BYTES_WAITED_FOR = 64 * 1024 * 1024;
const CHUNK_BYTES = 256 * 1024;

/** A file and what it was in the snapshot. */
interface Pair {
  readonly file: FoundFile;
  readonly original: FoundFile;
}

interface Compared {
  readonly version: string;
  readonly isSame: boolean;
}

class Comparison {
  readonly fingerprint: string;
  checkedAtMs = 0;
  /** Paths in the folder, in their order. */
  changes: Promise<readonly string[]> = Promise.resolve([]);
  isLooking = false;
  isReading = false;
  /** Of the snapshot, which never changes; by path. */
  originals: ReadonlyMap<string, FoundFile> | null = null;
  /** By path. */
  readonly compared = new Map<string, Compared>();

  constructor(fingerprint: string) {
    this.fingerprint = fingerprint;
  }
}

export class FolderChanges {
  readonly #snapshots: string;
  readonly #bytesMax: number;
  readonly #nowMs: () => number;
  /** By folder; the latest ones. */
  readonly #comparisons = new Map<string, Comparison>();
  readonly #background = new Semaphore(1);

  /**
   * @param parts.home SVC_HOME, with the folder of the snapshots
   * @param parts.bundleBytesMax SVC_BUNDLE_MAX_BYTES
   * @param parts.nowMs wall time in ms since 1970
   */
  constructor(parts: {
    readonly home: string;
    readonly bundleBytesMax: number;
    readonly nowMs: () => number;
  }) {
    this.#snapshots = resolve(parts.home, "bundles");
    this.#bytesMax = parts.bundleBytesMax * bundleLimits.expansionMax;
    this.#nowMs = parts.nowMs;
  }

  /**
   * @returns the paths of the files that were changed, added or removed, in their order; what has changed within the last
   *   second may be missing
   * @throws BundleProblem when the folder cannot be taken in as it is now
   */
  of(folder: string, fingerprint: string): Promise<readonly string[]> {
    const comparison = this.#comparison(folder, fingerprint);
    const nowMs = this.#nowMs();
    const age = nowMs - comparison.checkedAtMs;
    // A clock that steps back does not extend the cache.
    if (comparison.isLooking || (age >= 0 && age < LOOK_AGAIN_MS)) return comparison.changes;
    comparison.checkedAtMs = nowMs;
    comparison.isLooking = true;
    comparison.changes = this.#look(folder, comparison).finally(() => {
      comparison.isLooking = false;
    });
    return comparison.changes;
  }

  #list(folder: string): Promise<readonly FoundFile[]> {
    return listFolder(folder, { bytesMax: this.#bytesMax, keepOut: this.#snapshots });
  }

  #comparison(folder: string, fingerprint: string): Comparison {
    const kept = this.#comparisons.get(folder);
    if (kept?.fingerprint === fingerprint) return kept;
    const comparison = new Comparison(fingerprint);
    this.#comparisons.delete(folder);
    this.#comparisons.set(folder, comparison);
    const [oldest] = this.#comparisons.keys();
    if (this.#comparisons.size > FOLDERS_KEPT && oldest !== undefined) this.#comparisons.delete(oldest);
    return comparison;
  }

  async #look(folder: string, comparison: Comparison): Promise<readonly string[]> {
    const files = await this.#list(folder);
    const originals = await this.#originals(comparison);
    // The snapshot was removed: a newer one was added meanwhile, and is compared from now on.
    if (originals === null) return [];
    const pairs: Pair[] = [];
    const changed: string[] = [];
    const paths = new Set<string>();
    for (const file of files) {
      const original = originals.get(file.path);
      paths.add(file.path);
      if (original === undefined || !isAlike(file, original)) changed.push(file.path);
      else pairs.push({ file, original });
    }
    for (const path of originals.keys()) if (!paths.has(path)) changed.push(path);
    for (const path of comparison.compared.keys()) if (!paths.has(path)) comparison.compared.delete(path);
    await this.#read(comparison, pairs);
    for (const { file } of pairs) {
      if (comparison.compared.get(file.path)?.isSame === false) changed.push(file.path);
    }
    return changed.sort();
  }

  async #originals(comparison: Comparison): Promise<Comparison["originals"]> {
    if (comparison.originals !== null) return comparison.originals;
    try {
      const files = await this.#list(join(this.#snapshots, comparison.fingerprint));
      comparison.originals = new Map(files.map((file) => [file.path, file]));
    } catch (error) {
      if (!(error instanceof BundleProblem)) throw error;
    }
    return comparison.originals;
  }

  /** Compares what is not known yet. */
  async #read(comparison: Comparison, pairs: readonly Pair[]): Promise<void> {
    const unknown = pairs
      .filter(({ file }) => comparison.compared.get(file.path)?.version !== file.version)
      .sort((a, b) => a.file.sizeBytes - b.file.sizeBytes);
    let bytes = 0;
    const later = unknown.findIndex(({ file }) => {
      bytes += file.sizeBytes;
      return bytes > BYTES_WAITED_FOR;
    });
    const now = later < 0 ? unknown : unknown.slice(0, later);
    const compare = (pair: Pair) => compareFiles(comparison, pair);
    await forEachConcurrent(now, FILES_AT_ONCE, compare);
    if (later < 0 || comparison.isReading) return;
    comparison.isReading = true;
    void this.#background
      .run(() => forEachConcurrent(unknown.slice(later), 1, compare))
      .finally(() => {
        comparison.isReading = false;
      });
  }
}

function isAlike(one: FoundFile, other: FoundFile): boolean {
  return one.sizeBytes === other.sizeBytes && one.isExecutable === other.isExecutable;
}

async function compareFiles(comparison: Comparison, { file, original }: Pair): Promise<void> {
  const isSame = await isSameContent(file.source, original.source).catch(() => null);
  // Gone, or unreadable, since it was listed: the next look reports it.
  if (isSame === null) return;
  // A file that was written a moment ago may be written again without getting another time: it is read again.
  const isSettled = file.changedAtMs < comparison.checkedAtMs - LOOK_AGAIN_MS;
  comparison.compared.set(file.path, { version: isSettled ? file.version : "", isSame });
}

async function isSameContent(path: string, other: string): Promise<boolean> {
  // Not to wait for a pipe, nor to follow a link, that has taken the file's place.
  const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
  await using one = await open(path, flags);
  await using two = await open(other, flags);
  const chunks = [Buffer.allocUnsafe(CHUNK_BYTES), Buffer.allocUnsafe(CHUNK_BYTES)] as const;
  for (;;) {
    const [a, b] = await Promise.all([filled(one, chunks[0]), filled(two, chunks[1])]);
    if (!a.equals(b)) return false;
    if (a.length < CHUNK_BYTES) return true;
  }
}

/** The next bytes of a file: as many as the chunk has room for, or those up to the file's end. */
async function filled(file: FileHandle, chunk: Buffer): Promise<Buffer> {
  let length = 0;
  while (length < chunk.length) {
    const { bytesRead } = await file.read(chunk, length, chunk.length - length, null);
    if (bytesRead === 0) break;
    length += bytesRead;
  }
  return chunk.subarray(0, length);
}
