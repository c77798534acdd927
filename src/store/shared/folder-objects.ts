// Objects as files of a folder that several machines have, such as an NFS mount: <root>/<key>.
//
// - A file is complete, of the content that was asked for, read-only and on disk before its name exists.
// - The folder itself is never made: in the place of a mount that is missing, its files would land on this machine alone.
// - A crash leaves at most a file below <root>/incoming, which `check` removes a day later: until then it may be another
//   machine's that is being written.

import { createHash } from "node:crypto";
import { mkdir, open, rename, rm, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { Readable } from "node:stream";
import { FileChanged } from "../../lib/copy-file.ts";
import { foldersFrom, isMissing, namesIn, syncFolder } from "../../lib/files.ts";
import { isSystemError } from "../../runs/cleanup.ts";
import {
  type Content,
  filled,
  ObjectDamaged,
  type ObjectStore,
  SharedStoreUnavailable,
  type StoredObject,
} from "./object-store.ts";

const INCOMING = "incoming";
const INCOMING_AGE_MS = 24 * 60 * 60 * 1_000;
const OBJECTS_PER_PAGE = 200;
const CHUNK_BYTES = 256 * 1024;

export class FolderObjects implements ObjectStore {
  readonly address: string;
  readonly #root: string;
  readonly #writer: string;
  readonly #nowMs: () => number;
  #incomingSeq = 0;

  /**
   * @param root absolute
   * @param writer unlike that of every other program that uses the folder
   * @param nowMs wall time in ms since 1970
   */
  constructor(root: string, writer: string, nowMs: () => number) {
    this.address = `the folder ${root}`;
    this.#root = root;
    this.#writer = writer;
    this.#nowMs = nowMs;
  }

  check(): Promise<void> {
    return this.#asked("cannot be read", async () => {
      await stat(this.#root);
      for (const name of await namesIn(join(this.#root, INCOMING))) {
        const path = join(this.#root, INCOMING, name);
        const found = await stat(path).catch(() => null);
        if (found !== null && found.mtimeMs < this.#nowMs() - INCOMING_AGE_MS)
          await rm(path, { force: true });
      }
    });
  }

  put(key: string, content: Content): Promise<void> {
    return this.#asked("did not take a file", async () => {
      await makeBelow(this.#root, INCOMING);
      const temporary = join(this.#root, INCOMING, `${this.#writer}-${++this.#incomingSeq}`);
      try {
        await writeCopy(content, temporary);
        const path = this.#path(key);
        await makeBelow(this.#root, dirname(key));
        await rename(temporary, path);
        await syncFolder(dirname(path));
      } finally {
        await rm(temporary, { force: true });
      }
    });
  }

  find(key: string): Promise<StoredObject | null> {
    return this.#asked("cannot be read", async () => {
      const found = await stat(this.#path(key)).catch(nullIfMissing);
      if (found === null) await stat(this.#root);
      // The rename of a put stamps the change time.
      return found?.isFile() ? { key, size: found.size, putAtMs: found.ctimeMs } : null;
    });
  }

  read(key: string, size: number, first: number, last: number): Promise<Readable | null> {
    return this.#asked("cannot be read", async () => {
      const file = await open(this.#path(key), "r").catch(nullIfMissing);
      if (file === null) {
        await stat(this.#root);
        return null;
      }
      if ((await file.stat()).size === size) return file.createReadStream({ start: first, end: last });
      await file.close();
      throw new ObjectDamaged(this.address, key);
    });
  }

  remove(key: string): Promise<void> {
    return this.#asked("did not remove a file", () => rm(this.#path(key), { force: true }));
  }

  async *pages(prefix: string): AsyncGenerator<readonly StoredObject[]> {
    const keys = this.#keys(prefix);
    for (;;) {
      const page: StoredObject[] = [];
      const isOver = await this.#asked("cannot be listed", async () => {
        while (page.length < OBJECTS_PER_PAGE) {
          const next = await keys.next();
          if (next.done === true) return true;
          const found = await this.find(next.value);
          if (found !== null) page.push(found);
        }
        return false;
      });
      if (page.length > 0) yield page;
      if (isOver) return;
    }
  }

  async *#keys(prefix: string): AsyncGenerator<string> {
    await stat(this.#root);
    for await (const { path, entries } of foldersFrom(join(this.#root, prefix), "skip")) {
      for (const entry of entries)
        if (entry.isFile()) yield join(path, entry.name).slice(this.#root.length + 1);
    }
  }

  #path(key: string): string {
    return join(this.#root, key);
  }

  async #asked<Result>(failure: string, work: () => Promise<Result>): Promise<Result> {
    try {
      return await work();
    } catch (error) {
      if (!isSystemError(error)) throw error;
      const { code } = error as NodeJS.ErrnoException;
      throw new SharedStoreUnavailable(this.address, `${failure} (${code})`, { cause: error });
    }
  }
}

/** Makes folders, and puts their names on disk. `root` must be there. */
async function makeBelow(root: string, way: string): Promise<void> {
  let path = root;
  for (const name of way.split("/")) {
    const parent = path;
    path = join(parent, name);
    const isNew = await mkdir(path, { mode: 0o700 }).then(
      () => true,
      (error: NodeJS.ErrnoException) => {
        if (error.code === "EEXIST") return false;
        throw error;
      },
    );
    if (isNew) await syncFolder(parent);
  }
}

async function writeCopy(content: Content, path: string): Promise<void> {
  const copy = await open(path, "wx", 0o400);
  try {
    const digest = createHash("sha256");
    const chunk = Buffer.allocUnsafe(CHUNK_BYTES);
    for (let at = 0; ; ) {
      const bytes = await filled(chunk, content, at);
      if (bytes.length === 0) break;
      at += bytes.length;
      digest.update(bytes);
      await copy.appendFile(bytes);
    }
    if (digest.digest("hex") !== content.sha256)
      throw new FileChanged("The file changed while it was stored.");
    await copy.sync();
  } finally {
    await copy.close();
  }
}

function nullIfMissing(error: NodeJS.ErrnoException): null {
  if (isMissing(error) || error.code === "ENOTDIR") return null;
  throw error;
}
