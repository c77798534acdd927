// Holds on snapshots: by callers that are about to store a reference to one, or have just removed theirs. A held snapshot
// is not removed; an unreferenced one is removed when its last hold ends.
//
// - A mark on disk says that a snapshot may be unreferenced. It is written before the snapshot, and before a record
//   drops its reference, so the next start finds what a killed process has left.
// - A hold ends with one call, `release`; the last one settles a marked snapshot.

import { readdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { FINGERPRINT_PATTERN } from "./layout.ts";

const MARK = ".unsettled";

export class Holds {
  readonly #root: string;
  readonly #counts = new Map<string, number>();
  readonly #marked = new Set<string>();

  constructor(root: string) {
    this.#root = root;
  }

  hold(fingerprint: string): void {
    this.#counts.set(fingerprint, (this.#counts.get(fingerprint) ?? 0) + 1);
  }

  isHeld(fingerprint: string): boolean {
    return this.#counts.has(fingerprint);
  }

  /** @returns whether this was the last hold of a marked snapshot, which is to be settled now */
  release(fingerprint: string): boolean {
    const left = (this.#counts.get(fingerprint) ?? 0) - 1;
    if (left > 0) this.#counts.set(fingerprint, left);
    else this.#counts.delete(fingerprint);
    return left <= 0 && this.#marked.has(fingerprint);
  }

  async mark(fingerprint: string): Promise<void> {
    await writeFile(this.#markOf(fingerprint), "", { mode: 0o600 });
    this.#marked.add(fingerprint);
  }

  async unmark(fingerprint: string): Promise<void> {
    this.#marked.delete(fingerprint);
    await rm(this.#markOf(fingerprint), { force: true });
  }

  /** Marks that an earlier process has left. */
  async left(): Promise<readonly string[]> {
    const names = (await readdir(this.#root)).filter((name) => name.endsWith(MARK));
    return names.map((name) => name.slice(0, -MARK.length)).filter((name) => FINGERPRINT_PATTERN.test(name));
  }

  #markOf(fingerprint: string): string {
    return join(this.#root, `${fingerprint}${MARK}`);
  }
}
