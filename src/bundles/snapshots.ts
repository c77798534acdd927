// Snapshots of bundles: <root>/<fingerprint>/, each written once and never changed.
//
// Owns: everything below its root. Does not own which snapshot a bundle refers to (BundleRecords).
//
// - A snapshot's folder is complete, checked, read-only and on disk before its name exists.
// - Its name is the SHA-256 over its files (name, executable or not, content), so equal bundles are stored once.
// - A crash leaves at most something below <root>/incoming, which the next start removes.
// - Files are copies (clones, where the file system can), never hard links: writes to the originals do not reach them.
// - A caller that got a snapshot's name holds it until the name is stored (holds.ts). A held snapshot stays; an
//   unreferenced one is removed when its last hold ends, or at the next start.
// - Where machines share a store, a snapshot is in it before its name is given to anybody, and one that another machine
//   has taken in is fetched when it is first needed (`ensure`): once, and whole.
// - A snapshot's folder has the time at which it was last taken in (`touch`). The sweep keeps young ones, so that an
//   interrupted addition of a blueprint finds its snapshot again.

import { createHash } from "node:crypto";
import { createWriteStream } from "node:fs";
import { mkdir, readdir, rename, stat, utimes } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { forEachConcurrent, KeyedMutex } from "../lib/async.ts";
import { bytesIn, exists, isMissing, syncFolder } from "../lib/files.ts";
import { removeTree } from "../lib/remove-tree.ts";
import { Slices } from "../lib/slices.ts";
import { type Definition, readDefinition } from "./definition.ts";
import { DiskQuota } from "./disk-quota.ts";
import { openFolder } from "./folder-source.ts";
import { Holds } from "./holds.ts";
import {
  type BundleFile,
  CONFIG_FILES,
  FINGERPRINT_PATTERN,
  MANIFEST_FILE,
  PAYLOADS_FOLDER,
  tooLarge,
} from "./layout.ts";
import { refuseWrongPolicies } from "./policies.ts";
import { BundleProblem, type BundleProblemEntry } from "./problem.ts";
import type { SharedFolders, Unused } from "./shared-folders.ts";
import { type BundleSource, FILES_AT_ONCE, FileWriter } from "./snapshot-files.ts";

export interface Snapshot {
  readonly fingerprint: string;
  readonly sizeBytes: number;
  readonly definition: Definition;
}

export interface SnapshotsOptions {
  /** What the files of one snapshot may have together. */
  readonly bytesMax: number;
  /** What all snapshots may have together; 0 for no limit. */
  readonly totalBytesMax: number;
  /** Wall time in ms since 1970. */
  readonly nowMs: () => number;
  /** Whether a stored record references the snapshot. */
  readonly isNamed: (fingerprint: string) => Promise<boolean>;
  /** Null: this machine's are all there are. */
  readonly shared: SharedFolders | null;
}

/** The names of snapshots in a shared store. */
const SHARED = "bundles";

export class Snapshots {
  readonly root: string;
  readonly #incoming: string;
  readonly #options: SnapshotsOptions;
  /** By fingerprint: nothing is taken in while it is being removed. */
  readonly #turns = new KeyedMutex();
  /** By fingerprint: nothing is fetched twice. */
  readonly #fetches = new KeyedMutex();
  readonly #holds: Holds;
  readonly #quota: DiskQuota;
  #incomingSeq = 0;

  constructor(root: string, options: SnapshotsOptions) {
    this.root = root;
    this.#incoming = join(root, "incoming");
    this.#options = options;
    this.#holds = new Holds(root);
    this.#quota = new DiskQuota(root, { bytesMax: options.totalBytesMax, turns: this.#turns });
  }

  /** Makes the root, and removes what a crash left half-written or unreferenced. To be called once, first. */
  async open(): Promise<void> {
    const made = await mkdir(this.root, { recursive: true, mode: 0o700 });
    if (made !== undefined) await syncFolder(dirname(this.root));
    await removeTree(this.#incoming);
    await mkdir(this.#incoming);
    for (const fingerprint of await this.#holds.left()) {
      await this.#holds.mark(fingerprint);
      await this.#settle(fingerprint);
    }
  }

  /** @returns the snapshot's folder, whether or not there is such a snapshot */
  folder(fingerprint: string): string {
    if (!FINGERPRINT_PATTERN.test(fingerprint)) throw new Error(`"${fingerprint}" is not a fingerprint.`);
    return join(this.root, fingerprint);
  }

  /** Fetches a snapshot that only other machines have; nothing happens when it is here, or nowhere. */
  async ensure(fingerprint: string): Promise<void> {
    const { shared } = this.#options;
    if (shared === null || (await exists(this.folder(fingerprint)))) return;
    await this.#fetches.run(fingerprint, async () => {
      if (await exists(this.folder(fingerprint))) return;
      await this.withTemporary(async (folder) => {
        const fetched = join(folder, "fetched");
        if (!(await shared.fetch(`${SHARED}/${fingerprint}`, fetched))) return;
        const source = await openFolder(fetched, { bytesMax: this.#options.bytesMax, keepOut: this.root });
        await this.take(source, folder, { isMarked: false, fetched: fingerprint });
        await this.release(fingerprint);
      });
    });
  }

  /**
   * Stores the snapshots of this machine that are not in the shared store, as those from before there was one.
   *
   * @param told is called with the error of one that cannot be stored
   */
  async shareAll(told: (error: unknown) => void): Promise<void> {
    const { shared } = this.#options;
    if (shared === null) return;
    for (const name of await readdir(this.root)) {
      if (!FINGERPRINT_PATTERN.test(name)) continue;
      try {
        if (!(await shared.has(`${SHARED}/${name}`))) await this.#share(name);
      } catch (error) {
        told(error);
      }
    }
  }

  async #share(fingerprint: string): Promise<void> {
    await this.#options.shared?.store(`${SHARED}/${fingerprint}`, this.folder(fingerprint), {
      isFixed: true,
    });
  }

  /** @returns the folder of a snapshot's payloads, which exists as long as the snapshot */
  payloads(fingerprint: string): string {
    return join(this.folder(fingerprint), PAYLOADS_FOLDER);
  }

  /** Gives `use` an empty folder of its own, which is removed afterwards. */
  async withTemporary<Result>(use: (folder: string) => Promise<Result>): Promise<Result> {
    const folder = join(this.#incoming, String(++this.#incomingSeq));
    await mkdir(folder, { mode: 0o700 });
    try {
      return await use(folder);
    } finally {
      await removeTree(folder);
    }
  }

  /**
   * Saves an upload in `folder`.
   *
   * @returns where it is, and the hex SHA-256 of its bytes
   * @throws BundleProblem `upload_too_large` when it is larger than `bytesMax`
   */
  async receive(
    upload: Readable,
    folder: string,
    bytesMax: number,
  ): Promise<{ readonly path: string; readonly sha256: string }> {
    const path = join(folder, "upload.zip");
    const digest = createHash("sha256");
    const arriving = async function* (chunks: AsyncIterable<Buffer>) {
      let sizeBytes = 0;
      for await (const chunk of chunks) {
        sizeBytes += chunk.length;
        if (sizeBytes > bytesMax) throw uploadTooLarge(bytesMax);
        digest.update(chunk);
        yield chunk;
      }
    };
    await pipeline(upload, arriving, createWriteStream(path));
    return { path, sha256: digest.digest("hex") };
  }

  /**
   * Takes a bundle in, and closes its source. The caller holds the snapshot.
   *
   * @param folder an empty folder from `withTemporary`
   * @param options.isMarked whether it is removed with its last hold, or after a crash, unless a record references it
   * @param options.fetched what it must be, when it comes from the shared store
   * @throws BundleProblem with everything that is wrong with it; BundlesFull. Nothing is kept then
   */
  async take(
    source: BundleSource,
    folder: string,
    options: { readonly isMarked: boolean; readonly fetched?: string },
  ): Promise<Snapshot> {
    const content = join(folder, "content");
    try {
      using _reserved = await this.#quota.reserve(
        source.files.reduce((sum, file) => sum + file.sizeBytes, 0),
      );
      const [defining, others] = split(source.files);
      const writer = new FileWriter(source, content);
      // The small files that can make the bundle invalid come first.
      await writer.write(defining);
      const definition = await readChecked(content, [...source.problems, ...writer.problems]);
      await writer.write(others);
      if (writer.problems.length > 0) throw new BundleProblem(writer.problems);
      await refuseWrongPolicies(content, definition.graph);
      const { fingerprint, sizeBytes } = await this.#fingerprint(source.files, writer);
      const { fetched = fingerprint } = options;
      if (fetched !== fingerprint)
        throw new Error(`What is stored as bundle ${fetched} is another one: ${fingerprint}.`);
      await forEachConcurrent(writer.folders, FILES_AT_ONCE, syncFolder);
      await this.#keep(content, { fingerprint, sizeBytes, ...options });
      return { fingerprint, sizeBytes, definition };
    } finally {
      await source.close();
    }
  }

  async #fingerprint(
    files: readonly BundleFile[],
    writer: FileWriter,
  ): Promise<{ readonly fingerprint: string; readonly sizeBytes: number }> {
    const total = createHash("sha256");
    let sizeBytes = 0;
    const sorted = files.toSorted(byPath);
    const slices = new Slices();
    for (const file of sorted) {
      if (slices.isOver) await slices.breathe();
      const { sha256, sizeBytes: fileBytes } = writer.written(file);
      total.update(`${JSON.stringify([file.path, file.isExecutable, sha256])}\n`);
      sizeBytes += fileBytes;
    }
    // Checked again: files of a folder may have grown since they were listed.
    const { bytesMax } = this.#options;
    if (sizeBytes > bytesMax) throw BundleProblem.of("", "too_large", tooLarge(bytesMax));
    return { fingerprint: total.digest("hex"), sizeBytes };
  }

  async #keep(content: string, kept: Kept): Promise<void> {
    const { fingerprint } = kept;
    this.hold(fingerprint);
    try {
      await this.#turns.run(fingerprint, async () => {
        if (kept.isMarked) await this.#holds.mark(fingerprint);
        try {
          await rename(content, this.folder(fingerprint));
        } catch (error) {
          const { code } = error as NodeJS.ErrnoException;
          // The same content is there already; it is whole, because its name exists.
          if (code !== "ENOTEMPTY" && code !== "EEXIST") throw error;
          await this.touch(fingerprint);
        }
        this.#quota.count(fingerprint, kept.sizeBytes);
      });
      await syncFolder(this.root);
      if (kept.fetched === undefined) await this.#share(fingerprint);
    } catch (error) {
      await this.release(fingerprint);
      throw error;
    }
  }

  /** Keeps a snapshot where it is until `release`. */
  hold(fingerprint: string): void {
    this.#holds.hold(fingerprint);
  }

  /** Ends a hold: removes the snapshot when this was the last one and no record references it. */
  async release(fingerprint: string): Promise<void> {
    if (this.#holds.release(fingerprint)) await this.#settle(fingerprint);
  }

  /** Holds a snapshot whose reference a record is about to drop. */
  async holdMarked(fingerprint: string): Promise<void> {
    this.hold(fingerprint);
    await this.#turns.run(fingerprint, () => this.#holds.mark(fingerprint));
  }

  #settle(fingerprint: string): Promise<void> {
    const { isNamed } = this.#options;
    return this.#turns.run(fingerprint, async () => {
      try {
        const request = { isNamed, beforeMs: Number.POSITIVE_INFINITY, isPreview: false };
        await this.#removeUnused(fingerprint, request);
        // If it is held again by now, the last hold settles it.
        if (!this.#holds.isHeld(fingerprint)) await this.#holds.unmark(fingerprint);
      } catch (error) {
        // After an error of the system it stays marked: the next start, or a sweep, tries again.
        if ((error as NodeJS.ErrnoException).syscall === undefined) throw error;
      }
    });
  }

  /**
   * Makes the snapshot young.
   *
   * @returns the time that it has now, wall time in ms since 1970; null when it is not there, which is no error
   */
  async touch(fingerprint: string): Promise<number | null> {
    const nowMs = this.#options.nowMs();
    const now = new Date(nowMs);
    try {
      await utimes(this.folder(fingerprint), now, now);
      return nowMs;
    } catch (error) {
      if (!isMissing(error)) throw error;
      return null;
    }
  }

  /**
   * Removes one snapshot, as `removeUnused` does it.
   *
   * @returns its bytes, 0 when it is not there; null when it stays
   */
  removeOne(fingerprint: string, request: Unused): Promise<number | null> {
    return this.#turns.run(fingerprint, async () => {
      return (await exists(this.folder(fingerprint))) ? this.#removeUnused(fingerprint, request) : 0;
    });
  }

  /**
   * Removes the snapshots that are not named, and that have not been touched since `beforeMs`.
   *
   * @param request.isNamed whether a stored record references the snapshot
   * @param request.isPreview only counts them
   */
  async removeUnused(request: Unused): Promise<{ readonly count: number; readonly bytes: number }> {
    let count = 0;
    let bytes = 0;
    for (const name of await readdir(this.root)) {
      if (!FINGERPRINT_PATTERN.test(name)) continue;
      const size = await this.#turns.run(name, () => this.#removeUnused(name, request));
      if (size === null) continue;
      count++;
      bytes += size;
    }
    const shared = await this.#options.shared?.removeUnused(SHARED, request);
    // A snapshot and its archive are one thing less.
    return { count: Math.max(count, shared?.count ?? 0), bytes: bytes + (shared?.bytes ?? 0) };
  }

  /** @returns its bytes; null when it stays */
  async #removeUnused(fingerprint: string, { isNamed, beforeMs, isPreview }: Unused): Promise<number | null> {
    const folder = this.folder(fingerprint);
    if (await isNamed(fingerprint)) return null;
    const found = await stat(folder).catch(() => null);
    if (found === null || found.mtimeMs >= beforeMs) return null;
    const size = await bytesIn(folder);
    // Checked last, with no await from here to the removal.
    if (this.#holds.isHeld(fingerprint)) return null;
    if (!isPreview) {
      // Moved away in one step, so that it is never seen half removed.
      const removed = join(this.#incoming, String(++this.#incomingSeq));
      await rename(folder, removed);
      this.#quota.count(fingerprint, 0);
      await removeTree(removed);
    }
    return size;
  }
}

interface Kept {
  readonly fingerprint: string;
  readonly sizeBytes: number;
  readonly isMarked: boolean;
  readonly fetched?: string;
}

/** Reads the bundle's definition; throws with everything that is known to be wrong by now. */
async function readChecked(content: string, known: readonly BundleProblemEntry[]): Promise<Definition> {
  if (known.length === 0) return readDefinition(content);
  const further = await readDefinition(content).then(
    () => [],
    (error: unknown) => {
      if (error instanceof BundleProblem) return error.problems;
      throw error;
    },
  );
  // A manifest that was refused is not missing: known problems of a file hide those that follow from them.
  const added = further.filter((one) => !known.some(({ path }) => path.endsWith(one.path)));
  throw new BundleProblem([...known, ...added]);
}

function split(files: readonly BundleFile[]): readonly [BundleFile[], BundleFile[]] {
  const names: readonly string[] = [MANIFEST_FILE, ...CONFIG_FILES];
  const defining = files.filter((file) => names.includes(file.path));
  return [defining, files.filter((file) => !names.includes(file.path))];
}

function byPath(a: BundleFile, b: BundleFile): number {
  return a.path < b.path ? -1 : a.path > b.path ? 1 : 0;
}

function uploadTooLarge(bytesMax: number): BundleProblem {
  const message = `the upload is larger than ${bytesMax} bytes (SVC_BUNDLE_MAX_BYTES)`;
  return BundleProblem.of("", "upload_too_large", message);
}
