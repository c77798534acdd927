// What is put into a shared store while another machine removes it is there afterwards.
//
// A removal looks how old the object is, and then removes it; a put in between would be lost. So a removal has a mark in
// the store before it looks, and until it has removed. A put looks for marks behind it, and for its object behind that,
// and puts again until there is no mark and the object is there. Then every removal that has not seen the put is over,
// and has removed nothing since.

import { createHash } from "node:crypto";
import type { Clock } from "../../engine/ports.ts";
import type { BlobRemoval } from "../../runs/cleanup.ts";
import type { Content, ObjectStore, StoredObject } from "./object-store.ts";

const MARKS = "removing/";
const WAIT_MS = 1_000;
/** A removal that has not removed by then does not. */
const REMOVAL_MS_MAX = 60_000;
/** A mark that is older than the object by so much, by the clock of the store, is that of a removal that was killed. */
const MARK_MS_MAX = 10 * 60 * 1_000;

const noBytes: Content = {
  size: 0,
  sha256: createHash("sha256").digest("hex"),
  read: async () => 0,
};

export class Removals {
  readonly #store: ObjectStore;
  readonly #remover: string;
  readonly #clock: Pick<Clock, "after" | "steadyMs">;

  /** @param remover unlike that of every other program that uses the store */
  constructor(store: ObjectStore, remover: string, clock: Pick<Clock, "after" | "steadyMs">) {
    this.#store = store;
    this.#remover = remover;
    this.#clock = clock;
  }

  /** Stores an object that stays, also when another program is about to remove an older one of its key. */
  async put(key: string, content: Content): Promise<void> {
    for (;;) {
      await this.#store.put(key, content);
      const marks = await this.#marks(key);
      const found = await this.#store.find(key);
      if (found !== null && !marks.some((mark) => found.putAtMs - mark.putAtMs < MARK_MS_MAX)) return;
      await new Promise<void>((resolve) => this.#clock.after(WAIT_MS, resolve));
    }
  }

  /** Removes an object unless it was put after `sinceMs`, wall time in ms since 1970; a preview removes nothing. */
  async removeUnlessPutSince(key: string, sinceMs: number, isPreview: boolean): Promise<BlobRemoval> {
    const before = await this.#removable(key, sinceMs);
    if (before.kind !== "removed" || isPreview) return before;
    const mark = `${this.#marksOf(key)}${this.#remover}`;
    const startedMs = this.#clock.steadyMs();
    await this.#store.put(mark, noBytes);
    try {
      const found = await this.#removable(key, sinceMs);
      if (found.kind !== "removed") return found;
      if (this.#clock.steadyMs() - startedMs > REMOVAL_MS_MAX) return { kind: "kept" };
      await this.#store.remove(key);
      return found;
    } finally {
      await this.#store.remove(mark);
    }
  }

  async #removable(key: string, sinceMs: number): Promise<BlobRemoval> {
    const found = await this.#store.find(key);
    if (found === null) return { kind: "missing" };
    return found.putAtMs >= sinceMs ? { kind: "kept" } : { kind: "removed", size: found.size };
  }

  async #marks(key: string): Promise<readonly StoredObject[]> {
    const all = (await Array.fromAsync(this.#store.pages(MARKS))).flat();
    return all.filter((mark) => mark.key.startsWith(this.#marksOf(key)));
  }

  #marksOf(key: string): string {
    return `${MARKS}${key.replaceAll("/", "-")}.`;
  }
}
