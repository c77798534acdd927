// Snapshots of bundles: <root>/<fingerprint>/, each written once and never changed.
//
// Owns: everything below its root. Does not own which snapshot a bundle's name stands for (BundleRecords).
//
// S1. A snapshot's folder is complete, checked, read-only and on disk before its name exists.
// S2. Its name is the SHA-256 over its files (name, executable or not, content), so equal bundles are stored once.
// S3. A crash leaves at most something below <root>/incoming, which the next start removes.
// S4. Files are copies (clones, where the file system can), never hard links: nobody else's write reaches them.
// S5. A snapshot's folder has the time at which it was last taken in or let go of (`touch`). Nothing that has been given
//     a name lately is removed: whoever was told the name may be about to write it down.

import { createHash } from "node:crypto";
import { createWriteStream } from "node:fs";
import { mkdir, readdir, rename, rm, stat, utimes } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { bytesIn } from "../folder-bytes.ts";
import { KeyedTurns } from "../keyed-turns.ts";
import { forEachOf } from "../several.ts";
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
import { BundleProblem, type BundleProblemEntry, ProblemList, shown } from "./problem.ts";
import type { SealedFile } from "./sealed-file.ts";

export interface Snapshot {
  readonly fingerprint: string;
  readonly sizeBytes: number;
  readonly definition: Definition;
}

export interface UnusedSnapshots {
  readonly isNamed: (fingerprint: string) => Promise<boolean>;
  readonly beforeMs: number;
  readonly isPreview: boolean;
}

const FINGERPRINT_PATTERN = /^[0-9a-f]{64}$/;
/** Files under way at the same time. The threads that wait for the disk are four, and serve others too. */
const FILES_AT_ONCE = 4;

export class Snapshots {
  readonly root: string;
  readonly #incoming: string;
  readonly #bytesMax: number;
  readonly #nowMs: () => number;
  /** By fingerprint: nothing is taken in while it is being removed. */
  readonly #turns = new KeyedTurns();
  #incomingSeq = 0;

  /**
   * @param options.bytesMax what the files of one snapshot may have together
   * @param options.nowMs wall time in ms since 1970
   */
  constructor(root: string, options: { readonly bytesMax: number; readonly nowMs: () => number }) {
    this.root = root;
    this.#incoming = join(root, "incoming");
    this.#bytesMax = options.bytesMax;
    this.#nowMs = options.nowMs;
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
   * Takes a bundle in, and closes its source.
   *
   * @param folder an empty folder from `withTemporary`
   * @throws BundleProblem with everything that is wrong with it; nothing is kept then
   */
  async take(source: BundleSource, folder: string): Promise<Snapshot> {
    const content = join(folder, "content");
    try {
      const [defining, others] = split(source.files);
      const intake = new Intake(source, content);
      // The small files that can make the bundle invalid come first.
      await intake.write(defining);
      const definition = await readChecked(content, [...source.problems, ...intake.problems]);
      await intake.write(others);
      if (intake.problems.length > 0) throw new BundleProblem(intake.problems);
      const { fingerprint, sizeBytes } = this.#fingerprint(source.files, intake);
      await forEachOf(intake.folders, FILES_AT_ONCE, syncFolder);
      await this.#keep(content, fingerprint);
      return { fingerprint, sizeBytes, definition };
    } finally {
      await source.close();
    }
  }

  #fingerprint(
    files: readonly BundleFile[],
    intake: Intake,
  ): { readonly fingerprint: string; readonly sizeBytes: number } {
    const total = createHash("sha256");
    let sizeBytes = 0;
    for (const file of files.toSorted(byPath)) {
      const sealed = intake.sealed(file);
      total.update(`${JSON.stringify([file.path, file.isExecutable, sealed.sha256])}\n`);
      sizeBytes += sealed.sizeBytes;
    }
    // Looked at again: files of a folder may have grown since they were listed.
    if (sizeBytes > this.#bytesMax) throw BundleProblem.of("", "too_large", tooLarge(this.#bytesMax));
    return { fingerprint: total.digest("hex"), sizeBytes };
  }

  async #keep(content: string, fingerprint: string): Promise<void> {
    await this.#turns.run(fingerprint, async () => {
      try {
        await rename(content, this.folder(fingerprint));
      } catch (error) {
        const { code } = error as NodeJS.ErrnoException;
        // The same content is there already (S2); it is whole, because its name exists (S1).
        if (code !== "ENOTEMPTY" && code !== "EEXIST") throw error;
        await this.touch(fingerprint);
      }
    });
    await syncFolder(this.root);
  }

  /**
   * To be called before a record lets go of the snapshot (S5).
   *
   * @returns the time that it has now, wall time in ms since 1970; null when it is not there, which is no error
   */
  async touch(fingerprint: string): Promise<number | null> {
    const nowMs = this.#nowMs();
    const now = new Date(nowMs);
    try {
      await utimes(this.folder(fingerprint), now, now);
      return nowMs;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
      return null;
    }
  }

  /**
   * Removes one snapshot, as `removeUnused` does it.
   *
   * @returns its bytes, 0 when it is not there; null when it stays
   */
  removeOne(fingerprint: string, request: UnusedSnapshots): Promise<number | null> {
    return this.#turns.run(fingerprint, async () => {
      const isThere = (await stat(this.folder(fingerprint)).catch(() => null)) !== null;
      return isThere ? this.#removeUnused(fingerprint, request) : 0;
    });
  }

  /**
   * Removes the snapshots that are not named, and that have not been touched since `beforeMs`.
   *
   * @param request.isNamed whether anything that is written down has the snapshot
   * @param request.isPreview only counts them
   */
  async removeUnused(request: UnusedSnapshots): Promise<{ readonly count: number; readonly bytes: number }> {
    let count = 0;
    let bytes = 0;
    for (const name of await readdir(this.root)) {
      if (!FINGERPRINT_PATTERN.test(name)) continue;
      const size = await this.#turns.run(name, () => this.#removeUnused(name, request));
      if (size === null) continue;
      count++;
      bytes += size;
    }
    return { count, bytes };
  }

  /** @returns its bytes; null when it stays */
  async #removeUnused(
    fingerprint: string,
    { isNamed, beforeMs, isPreview }: UnusedSnapshots,
  ): Promise<number | null> {
    const folder = this.folder(fingerprint);
    if (await isNamed(fingerprint)) return null;
    // Looked at after the names: who lets go of a snapshot touches it first.
    const found = await stat(folder).catch(() => null);
    if (found === null || found.mtimeMs >= beforeMs) return null;
    const size = await bytesIn(folder);
    if (!isPreview) {
      // Out of its place in one step, so that nobody ever finds half of it (S1, S3).
      const removed = join(this.#incoming, String(++this.#incomingSeq));
      await rename(folder, removed);
      await rm(removed, { recursive: true, force: true });
    }
    return size;
  }
}

/** The files of one bundle on their way into its folder. */
class Intake {
  readonly #source: BundleSource;
  readonly #content: string;
  readonly #folders = new Set<string>();
  readonly #sealed = new Map<string, SealedFile>();
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

  sealed({ path }: BundleFile): SealedFile {
    const found = this.#sealed.get(path);
    if (found === undefined) throw new Error(`${path} was not written.`);
    return found;
  }

  /** Writes the files, and notes what is wrong with them. */
  async write(files: readonly BundleFile[]): Promise<void> {
    await this.#makeFolder(join(this.#content, PAYLOADS_FOLDER));
    for (const { path } of files) await this.#makeFolder(dirname(join(this.#content, path)));
    await forEachOf(files, FILES_AT_ONCE, async (file) => {
      const target = join(this.#content, file.path);
      try {
        this.#sealed.set(file.path, await this.#source.write(file, target));
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
      // Half of a file says nothing.
      await rm(join(this.#content, path), { force: true });
    } else if (path === PAYLOADS_FOLDER) {
      this.#problems.add(
        path,
        "not_a_folder",
        `${shown(path)} is a file, and must be the folder of the payload`,
      );
    } else if ((error as NodeJS.ErrnoException).code === "EEXIST") {
      // Names were compared as they are; a disk may compare them in its own way.
      const said = `${shown(path)} differs from another name in case or accents only, and this disk takes both for one`;
      this.#problems.add(path, "duplicate_entry", said);
    } else throw error;
  }
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
  // A manifest that was refused is not missing: known problems of a file hide what follows from them.
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
  const said = `the upload is larger than ${bytesMax} bytes (SVC_BUNDLE_MAX_BYTES)`;
  return BundleProblem.of("", "upload_too_large", said);
}
