// Who is about to write down the name of a snapshot, or has just let go of it. Nothing that is held is removed, and
// what nothing names is removed as soon as nobody holds it any more.
//
// H1. A mark on disk says that a snapshot may be nobody's. It is there before the snapshot is, and before a record
//     lets go of it; so what a killed process has left is found by the next start.
// H2. A hold ends in one call, `release`; the last one settles a marked snapshot.

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

  /** @returns whether nobody holds it any more and it is marked, so that it is to be settled */
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
