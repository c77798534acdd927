// The files of one bundle on their way from its source into the folder of its snapshot.

import { mkdir, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { forEachConcurrent } from "../lib/async.ts";
import { type BundleFile, type BundleSource, PAYLOADS_FOLDER } from "./layout.ts";
import { BundleProblem, type BundleProblemEntry, ProblemList, shown } from "./problem.ts";
import type { SealedFile } from "./sealed-file.ts";

/** Files under way at the same time. The threads that wait for the disk are four, and serve others too. */
export const FILES_AT_ONCE = 4;

export class Intake {
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
    await forEachConcurrent(files, FILES_AT_ONCE, async (file) => {
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
