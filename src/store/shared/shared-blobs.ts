// Blobs in a shared store, by the hash of their bytes: blobs/ab/abcd…, as in SVC_HOME, so that copying the folder there
// moves them.
//
// - What is stored has the hash of its name, and what is read is checked against it: of a whole blob with other bytes the
//   end is kept back, and the reader gets an error. A part is checked for its length alone.

import { createHash } from "node:crypto";
import { rm } from "node:fs/promises";
import { Readable } from "node:stream";
import type { BlobRemoval } from "../../runs/cleanup.ts";
import { type Blob, type Blobs, HASH_PATTERN, hash, openRegular } from "../blobs.ts";
import { fileContent, ObjectDamaged, type ObjectStore } from "./object-store.ts";
import type { Removals } from "./removals.ts";

const FOLDER = "blobs/";

export class SharedBlobs implements Blobs {
  readonly #store: ObjectStore;
  readonly #removals: Removals;

  constructor(store: ObjectStore, removals: Removals) {
    this.#store = store;
    this.#removals = removals;
  }

  async put(path: string): Promise<Blob> {
    const file = await openRegular(path, path);
    let blob: Blob;
    try {
      blob = await hash(file);
      await this.#removals.put(keyOf(blob.sha256), fileContent(file, blob));
    } finally {
      await file.close();
    }
    await rm(path, { force: true });
    return blob;
  }

  async read(blob: Blob, first: number, last: number): Promise<Readable | null> {
    if (!HASH_PATTERN.test(blob.sha256)) return null;
    const key = keyOf(blob.sha256);
    const bytes = await this.#store.read(key, blob.size, first, last);
    const isWhole = first === 0 && last === blob.size - 1;
    if (bytes === null || !isWhole) return bytes;
    return Readable.from(checked(bytes, blob, () => new ObjectDamaged(this.#store.address, key)));
  }

  async removeUnlessPutSince(
    sha256: string,
    sinceMs: number,
    { isPreview = false }: { readonly isPreview?: boolean } = {},
  ): Promise<BlobRemoval> {
    if (!HASH_PATTERN.test(sha256)) return { kind: "missing" };
    return this.#removals.removeUnlessPutSince(keyOf(sha256), sinceMs, isPreview);
  }

  async *pages(): AsyncGenerator<readonly string[]> {
    for await (const page of this.#store.pages(FOLDER)) {
      const hashes = page.map(({ key }) => key.slice(key.lastIndexOf("/") + 1));
      const found = hashes.filter((name, i) => HASH_PATTERN.test(name) && page[i]?.key === keyOf(name));
      if (found.length > 0) yield found;
    }
  }
}

function keyOf(sha256: string): string {
  return `${FOLDER}${sha256.slice(0, 2)}/${sha256}`;
}

/** Passes bytes on, the last of them only when all have the hash and the size that they must have. */
export async function* checked(
  bytes: AsyncIterable<Buffer>,
  { sha256, size }: Blob,
  damaged: () => Error,
): AsyncGenerator<Buffer> {
  const digest = createHash("sha256");
  let read = 0;
  let held: Buffer | null = null;
  for await (const chunk of bytes) {
    digest.update(chunk);
    read += chunk.length;
    if (held !== null) yield held;
    held = chunk;
  }
  if (read !== size || digest.digest("hex") !== sha256) throw damaged();
  if (held !== null) yield held;
}
