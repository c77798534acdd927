// Blobs of nodes that share no store of files: each keeps in its home what was put there, and what it has fetched from another
// node to be read here. A content that no row names any more is removed by every node from its own home.

import type { Readable } from "node:stream";
import { type BytesElsewhere, BytesUnavailable } from "../../cluster/bytes.ts";
import { KeyedMutex } from "../../lib/async.ts";
import type { Blob, Blobs, FileBlobs } from "../blobs.ts";

export class FetchedBlobs implements Blobs {
  readonly #here: FileBlobs;
  readonly #elsewhere: () => BytesElsewhere | null;
  /** By hash: nothing is fetched twice. */
  readonly #fetches = new KeyedMutex();

  /** @param elsewhere null while other nodes cannot be asked */
  constructor(here: FileBlobs, elsewhere: () => BytesElsewhere | null) {
    this.#here = here;
    this.#elsewhere = elsewhere;
  }

  put(path: string): Promise<Blob> {
    return this.#here.put(path);
  }

  /** The first read of what only another node has takes as long as fetching all of it. @throws BytesUnavailable */
  async read(blob: Blob, first: number, last: number): Promise<Readable | null> {
    const found = await this.#here.read(blob, first, last);
    if (found !== null) return found;
    await this.#fetches.run(blob.sha256, () => this.#fetch(blob));
    return this.#here.read(blob, first, last);
  }

  async #fetch(blob: Blob): Promise<void> {
    const { sha256 } = blob;
    const elsewhere = this.#elsewhere();
    if (elsewhere === null || (await this.#here.open(sha256)) !== null) return;
    const name = { kind: "blobs", key: sha256 };
    const outcome = await elsewhere.fetch(name, ({ bytes }) => this.#here.putCopy(blob, bytes));
    if (outcome.kind === "nowhere" && outcome.lost.length > 0) throw notRunning("The artifact", outcome.lost);
  }

  removeUnlessPutSince(...given: Parameters<Blobs["removeUnlessPutSince"]>) {
    return this.#here.removeUnlessPutSince(...given);
  }

  pages(): AsyncGenerator<readonly string[]> {
    return this.#here.pages();
  }
}

/** Of what no living node has. */
export function notRunning(what: string, lost: readonly string[]): BytesUnavailable {
  return new BytesUnavailable(
    `${what} is on none of the nodes that run now. It may be on ${lost.join(", ")}: start that node again, or make anew what is lost. With SVC_BLOB_URL, files do not go with their node.`,
  );
}
