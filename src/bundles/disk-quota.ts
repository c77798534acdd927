// How much disk space bundles may take: a quota for all snapshots together, and the space that is free.
//
// - Bytes are reserved before the first of them is unpacked, so uploads that arrive together share one quota.
// - What is stored is measured once, when the first bundle is taken in; after that it is counted.

import { readdir, statfs } from "node:fs/promises";
import { join } from "node:path";
import { type KeyedMutex, madeOnce } from "../lib/async.ts";
import { bytesIn } from "../lib/files.ts";
import { FINGERPRINT_PATTERN } from "./layout.ts";
import { BundlesFull } from "./problem.ts";

export class DiskQuota {
  readonly #root: string;
  readonly #bytesMax: number;
  readonly #turns: KeyedMutex;
  readonly #sizes = new Map<string, number>();
  /** A failure (no file could be opened) must not refuse every later bundle. */
  readonly #measured = madeOnce(() => this.#measure());
  #storedBytes = 0;
  #reservedBytes = 0;

  /**
   * @param root the folder of all snapshots
   * @param options.bytesMax of all snapshots together; 0 for no limit
   * @param options.turns by fingerprint, in which snapshots come and go
   */
  constructor(root: string, options: { readonly bytesMax: number; readonly turns: KeyedMutex }) {
    this.#root = root;
    this.#bytesMax = options.bytesMax;
    this.#turns = options.turns;
  }

  /**
   * Sets bytes aside for a bundle that is about to be written, until the answer is disposed.
   *
   * @throws BundlesFull over the quota; an ENOSPC of the system's kind when the disk has less free
   */
  async reserve(bytes: number): Promise<Disposable> {
    const { bavail, bsize } = await statfs(this.#root);
    if (bavail * bsize < bytes) {
      const message = `ENOSPC: ${bytes} bytes are needed and ${bavail * bsize} are free`;
      throw Object.assign(new Error(message), { code: "ENOSPC", syscall: "statfs" });
    }
    if (this.#bytesMax > 0) {
      await this.#measured();
      const usedBytes = this.#storedBytes + this.#reservedBytes;
      if (usedBytes + bytes > this.#bytesMax)
        throw new BundlesFull({ bytes, usedBytes, bytesMax: this.#bytesMax });
    }
    this.#reservedBytes += bytes;
    return {
      [Symbol.dispose]: () => {
        this.#reservedBytes -= bytes;
      },
    };
  }

  /** Counts a snapshot: as large as it now is, 0 when it is gone. To be called in its turn. */
  count(fingerprint: string, bytes: number): void {
    this.#storedBytes += bytes - (this.#sizes.get(fingerprint) ?? 0);
    this.#sizes.set(fingerprint, bytes);
    if (bytes === 0) this.#sizes.delete(fingerprint);
  }

  async #measure(): Promise<void> {
    for (const name of await readdir(this.#root)) {
      if (!FINGERPRINT_PATTERN.test(name)) continue;
      await this.#turns.run(name, async () => {
        if (!this.#sizes.has(name)) this.count(name, await bytesIn(join(this.#root, name)));
      });
    }
  }
}
