// Bytes that nodes get from each other where they share no store of files: a blob, or a folder as an archive, by its kind
// and key. What a node has is in its home, and goes with it.

import { FilesUnavailable } from "../bundles/shared-folders.ts";

/** The kinds that there are; what their keys are is for `ByteSource` to check. */
export interface BytesName {
  readonly kind: string;
  readonly key: string;
}

/** Some bytes, ready to be read. They are to be read once, to the end or to a `return`. */
export interface FoundBytes {
  /** When what they are was made; wall time in ms since 1970. */
  readonly madeAtMs: number;
  readonly bytes: AsyncIterable<Uint8Array>;
}

export interface ListedBytes {
  readonly key: string;
  readonly madeAtMs: number;
}

/** The kind is none, or nothing of it is listed. */
export class BytesRefused extends Error {
  override readonly name = "BytesRefused";
}

/** What this node has for others: a port, implemented in src/store. Names come from outside. */
export interface ByteSource {
  /** @returns null when it is not here, or the key is none @throws BytesRefused; errors of the system */
  open(name: BytesName): Promise<FoundBytes | null>;
  /** @returns what there is of a kind below a key @throws BytesRefused; errors of the system */
  list(kind: string, below: string): Promise<readonly ListedBytes[]>;
}

/** These bytes are not the ones that they should be, or not all of them: another node may have the right ones. */
export class WrongBytes extends Error {
  override readonly name = "WrongBytes";
}

/** A node that is alive may have it and did not give it, or it went with its node. The same may be tried again. */
export class BytesUnavailable extends FilesUnavailable {
  override readonly name = "BytesUnavailable";
}

/** Where bytes were looked for without success: `lost` are the names of nodes that do not run, and may have them. */
export type FetchOutcome =
  | { readonly kind: "fetched" }
  | { readonly kind: "nowhere"; readonly lost: readonly string[] };

/** What the other nodes have. */
export interface BytesElsewhere {
  /**
   * Gets bytes from a living node that has them.
   *
   * @param take is given the bytes, and called again from their beginning with those of another node when they are
   *   cut off, or it throws WrongBytes; any other error of it ends the fetch
   * @throws BytesUnavailable
   */
  fetch(name: BytesName, take: (found: FoundBytes) => Promise<void>): Promise<FetchOutcome>;
  /** What living nodes have of a kind below a key, in no order. @throws BytesUnavailable */
  list(kind: string, below: string): Promise<readonly ListedBytes[]>;
}
