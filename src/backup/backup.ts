// A backup of a home, made by a process of its own while a program may be running in it.
//
// - The archive's database is a consistent state of the home's. All content that its rows reference is in the archive.
// - The running program is not blocked: the database is read by another reader of the SQLite file, files as they are.
//   If files were removed meanwhile, a later state of the database, which does not reference them, is copied; new
//   content that it references is added.
// - Content that two states in a row reference, and that is missing both times, was lost by the home: it is reported.
// - The archive appears under its name complete and on disk, or not at all.

import { lstat, mkdtemp, opendir, readlink, rename, rm } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import { exists, isMissing, syncFolder } from "../lib/files.ts";
import { databaseFile } from "../store/home.ts";
import { StoreUnusable } from "../store/sql/database.ts";
import { contentNamedIn, copyDatabase, type NamedContent } from "../store/sqlite/database-copy.ts";
import { ArchiveWriter } from "./archive-writer.ts";
import { ABOUT_FILE, type About, DATABASE_FILE, FORMAT, KEY_FILE } from "./layout.ts";

/** Each is about what came since the one before, so a few are enough; the bound is for what cannot be foreseen. */
const MOMENTS_MAX = 20;

export interface BackupRequest {
  /** SVC_HOME. */
  readonly home: string;
  /** Where the archive goes; what is there is replaced. */
  readonly file: string;
  /** Whether secret.key is put into it. */
  readonly withKey: boolean;
  /** Whether the home has the bytes of artifacts; else they are in a store of their own, and not in the backup. */
  readonly withArtifacts: boolean;
  readonly version: string;
  readonly createdAt: string;
  readonly signal: AbortSignal;
}

export interface BackupReport {
  readonly files: number;
  /** Of the files in the archive. */
  readonly bytes: number;
  readonly hasKey: boolean;
  /** Paths that the database names and the home does not have, or whose bytes are not those that their name says. */
  readonly missing: readonly string[];
  readonly damaged: readonly string[];
}

/** @throws StoreUnusable when the home has no database that can be read; the system's errors about files */
export async function backUp(request: BackupRequest): Promise<BackupReport> {
  const { home, signal } = request;
  const file = resolve(request.file);
  const hasKey = request.withKey && (await exists(join(home, KEY_FILE)));
  if (!(await exists(databaseFile(home)))) {
    throw new StoreUnusable(`SVC_HOME ${home} has no database: there is nothing to back up.`);
  }
  // Beside the archive, so that a rename puts it into its place; the first moment needs as much room as the database.
  const folder = await mkdtemp(join(dirname(file), `.${basename(file)}.`));
  try {
    const archive = new ArchiveWriter(join(folder, "archive"), signal);
    const about: About = {
      format: FORMAT,
      troupe_version: request.version,
      created_at: request.createdAt,
      has_key: hasKey,
    };
    archive.addText(ABOUT_FILE, `${JSON.stringify(about, null, 2)}\n`);
    if (hasKey) await archive.addFile(KEY_FILE, join(home, KEY_FILE), home);
    const copy = join(folder, DATABASE_FILE);
    const found = await new Content(archive, request).collect(copy);
    await archive.addFile(DATABASE_FILE, copy, home);
    await archive.finish();
    await rename(join(folder, "archive"), file);
    await syncFolder(dirname(file));
    return { ...archive.size, hasKey, ...found };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

class Content {
  readonly #archive: ArchiveWriter;
  readonly #home: string;
  readonly #signal: AbortSignal;
  readonly #withArtifacts: boolean;
  readonly #done = new Set<string>();
  readonly #damaged: string[] = [];

  constructor(archive: ArchiveWriter, { home, signal, withArtifacts }: BackupRequest) {
    this.#archive = archive;
    this.#home = home;
    this.#signal = signal;
    this.#withArtifacts = withArtifacts;
  }

  /** Leaves at `copy` a moment of the database all of whose content is in the archive. */
  async collect(copy: string) {
    let missing: ReadonlySet<string> = new Set();
    for (let moment = 1; ; moment++) {
      await copyDatabase(databaseFile(this.#home), copy, this.#signal);
      const before = missing;
      missing = await this.#addNamedBy(copy);
      const isLost = [...missing].every((path) => before.has(path));
      if (isLost || moment === MOMENTS_MAX) return { missing: [...missing], damaged: this.#damaged };
    }
  }

  /** @returns what is not there */
  async #addNamedBy(copy: string): Promise<ReadonlySet<string>> {
    const missing = new Set<string>();
    for (const content of contentNamedIn(copy)) {
      if (this.#done.has(content.path) || (content.kind === "blob" && !this.#withArtifacts)) continue;
      this.#signal.throwIfAborted();
      try {
        await this.#add(content);
        this.#done.add(content.path);
      } catch (error) {
        if (!isMissing(error)) throw error;
        missing.add(content.path);
      }
    }
    return missing;
  }

  async #add({ kind, path }: NamedContent): Promise<void> {
    if (kind !== "resource") {
      const sha256 = await this.#addTree(path);
      if ((kind === "blob" || kind === "model") && sha256 !== basename(path)) this.#damaged.push(path);
      return;
    }
    // The link, and the version that it leads to.
    await this.#addTree(path);
    await this.#addTree(join(dirname(path), await readlink(join(this.#home, path))));
  }

  /** Adds a file, or a folder with all that is in it. @returns the hash of a file */
  async #addTree(path: string): Promise<string | null> {
    this.#signal.throwIfAborted();
    const source = join(this.#home, path);
    if (!(await lstat(source)).isDirectory()) {
      return this.#archive.has(path) ? null : this.#archive.addFile(path, source, this.#home);
    }
    let isEmpty = true;
    for await (const { name } of await opendir(source)) {
      isEmpty = false;
      await this.#addTree(`${path}/${name}`);
    }
    if (isEmpty && !this.#archive.has(path)) this.#archive.addEmptyFolder(path);
    return null;
  }
}
