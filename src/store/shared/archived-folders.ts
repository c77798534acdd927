// Folders in a shared store, each as one archive: <name>/<SHA-256 of the archive>.
//
// - An archive is whole in the store before its name exists, and is checked against its name before it is unpacked.
// - On the way it is a file below SVC_HOME/tmp, for which the disk must have room; of a killed program it is removed
//   with what else is left there.

import { lstat } from "node:fs/promises";
import type { SharedFolders, Unused } from "../../bundles/shared-folders.ts";
import type { Clock, Randomness } from "../../engine/ports.ts";
import { KeyedMutex } from "../../lib/async.ts";
import { bytesIn, exists, writeNew } from "../../lib/files.ts";
import { HASH_PATTERN, hash, openRegular } from "../blobs.ts";
import { packFolder, placeArchive, withArchiveFile } from "./folder-archive.ts";
import { fileContent, ObjectDamaged, type StoredObject } from "./object-store.ts";
import type { SharedStore } from "./open-shared.ts";
import { checked } from "./shared-blobs.ts";

/** A day old, and in use by no row, it may be removed: until then another machine may be about to name it. */
const LATELY_MS = 12 * 60 * 60 * 1_000;

export interface ArchivedFoldersParts extends SharedStore {
  /** SVC_HOME. */
  readonly home: string;
  readonly clock: Pick<Clock, "nowMs">;
  readonly newId: Randomness["id"];
}

export class ArchivedFolders implements SharedFolders {
  readonly #parts: ArchivedFoldersParts;
  /** By path. */
  readonly #fetches = new KeyedMutex();

  constructor(parts: ArchivedFoldersParts) {
    this.#parts = parts;
  }

  async has(name: string): Promise<boolean> {
    return (await this.#newest(name)) !== null;
  }

  async names(below: string): Promise<readonly string[]> {
    const found = (await Array.fromAsync(this.#parts.objects.pages(`${below}/`))).flat();
    const oldestFirst = found.toSorted((a, b) => a.putAtMs - b.putAtMs);
    return oldestFirst.map(({ key }) => key.slice(below.length + 1, key.lastIndexOf("/")));
  }

  async store(name: string, path: string, options: { readonly isFixed: boolean }): Promise<void> {
    const { home, removals, clock } = this.#parts;
    const since = clock.nowMs() - LATELY_MS;
    if (options.isFixed && ((await this.#newest(name))?.putAtMs ?? 0) > since) return;
    const found = await lstat(path);
    await withArchiveFile(
      this.#parts,
      found.isDirectory() ? await bytesIn(path) : found.size,
      async (archive) => {
        await packFolder(path, archive, home);
        const file = await openRegular(archive, archive);
        try {
          const facts = await hash(file);
          await removals.put(`${name}/${facts.sha256}`, fileContent(file, facts));
        } finally {
          await file.close();
        }
      },
    );
  }

  fetch(name: string, path: string): Promise<boolean> {
    return this.#fetches.run(path, async () => {
      if (await exists(path)) return true;
      const archive = await this.#newest(name);
      return archive !== null && this.#fetch(archive, path);
    });
  }

  async #fetch({ key, size }: StoredObject, path: string): Promise<boolean> {
    const { home, objects } = this.#parts;
    const bytes = await objects.read(key, size, 0, size - 1);
    if (bytes === null) return false;
    // Once as the archive, once unpacked.
    return withArchiveFile(this.#parts, 2 * size, async (file) => {
      const sha256 = key.slice(key.lastIndexOf("/") + 1);
      const damaged = () => new ObjectDamaged(objects.address, key);
      await writeNew(file, checked(bytes, { sha256, size }, damaged));
      await placeArchive(file, path, { home });
      return true;
    });
  }

  async remove(name: string): Promise<void> {
    const { objects } = this.#parts;
    for await (const page of objects.pages(`${name}/`)) for (const { key } of page) await objects.remove(key);
  }

  async removeUnused(below: string, { isNamed, beforeMs, isPreview }: Unused) {
    const { objects, removals } = this.#parts;
    let count = 0;
    let bytes = 0;
    for await (const page of objects.pages(`${below}/`)) {
      for (const { key, putAtMs } of page) {
        const name = key.slice(below.length + 1, key.lastIndexOf("/"));
        if (putAtMs >= beforeMs || (await isNamed(name))) continue;
        const removal = await removals.removeUnlessPutSince(key, beforeMs, isPreview);
        if (removal.kind !== "removed") continue;
        count++;
        bytes += removal.size;
      }
    }
    return { count, bytes };
  }

  async #newest(name: string): Promise<StoredObject | null> {
    let newest: StoredObject | null = null;
    for await (const page of this.#parts.objects.pages(`${name}/`)) {
      for (const found of page) {
        if (!HASH_PATTERN.test(found.key.slice(name.length + 1))) continue;
        if (newest === null || found.putAtMs > newest.putAtMs) newest = found;
      }
    }
    return newest;
  }
}
