// What a store that several machines share can do: a folder (folder-objects.ts) or a bucket (s3-objects.ts). Objects are
// bytes under a key, whole or absent.

import type { FileHandle } from "node:fs/promises";
import type { Readable } from "node:stream";
import { FilesUnavailable } from "../../bundles/shared-folders.ts";

/** What is to be stored. */
export interface Content {
  readonly size: number;
  /** Hex, of its bytes. */
  readonly sha256: string;
  /** @returns how many bytes were read into it, from this place on; 0 at the end */
  read(into: Buffer, at: number): Promise<number>;
}

export function fileContent(file: FileHandle, facts: Pick<Content, "size" | "sha256">): Content {
  return {
    ...facts,
    read: async (into, at) => (await file.read(into, 0, into.length, at)).bytesRead,
  };
}

/** Fills a buffer from `at` on. @returns its part that was filled: less than all at the end */
export async function filled(buffer: Buffer<ArrayBuffer>, content: Content, at: number) {
  let bytes = 0;
  while (bytes < buffer.length) {
    const read = await content.read(buffer.subarray(bytes), at + bytes);
    if (read === 0) break;
    bytes += read;
  }
  return buffer.subarray(0, bytes);
}

export interface StoredObject {
  readonly key: string;
  /** Bytes. */
  readonly size: number;
  /** When it was last put, by the clock of the store; wall time in ms since 1970. */
  readonly putAtMs: number;
}

/** Every method throws SharedStoreUnavailable when the store does not do it, after trying again for some time. */
export interface ObjectStore {
  /** Its address, without secrets. */
  readonly address: string;
  /** Whether it answers; removes what crashes have left half-written. To be called at a start. */
  check(): Promise<void>;
  /**
   * Stores an object, in place of one with the same key. It can be read, whole, by everyone when it resolves.
   *
   * @param key of a-z, 0-9, `-`, `.`, `_` and `/`
   * @throws FileChanged when its bytes are not those of its hash
   */
  put(key: string, content: Content): Promise<void>;
  /** @returns null when there is none */
  find(key: string): Promise<StoredObject | null>;
  /**
   * Opens some of an object's bytes; both ends are included.
   *
   * @param size what the object must have
   * @returns null when there is none
   * @throws ObjectDamaged when it has another size
   */
  read(key: string, size: number, first: number, last: number): Promise<Readable | null>;
  /** Nothing happens when there is none. Tried once. */
  remove(key: string): Promise<void>;
  /** The objects whose keys begin with a prefix that ends with `/`, a bounded page at a time, in no certain order. */
  pages(prefix: string): AsyncGenerator<readonly StoredObject[]>;
}

/** The store does not answer, or does not do what it was asked. The same may be tried again. */
export class SharedStoreUnavailable extends FilesUnavailable {
  override readonly name = "SharedStoreUnavailable";

  /** @param why begins with a verb: "did not answer" */
  constructor(address: string, why: string, options?: ErrorOptions) {
    super(
      `The store of files (SVC_BLOB_URL), ${address}, ${why}. Check that it is reachable and that its credentials are right, then try again; \`troupe doctor\` tests it.`,
      options,
    );
  }
}

/** What the store holds under a key is not what was put there. */
export class ObjectDamaged extends Error {
  override readonly name = "ObjectDamaged";

  constructor(address: string, key: string) {
    super(
      `The object ${key} in the store of files (SVC_BLOB_URL), ${address}, is not what was stored there. Restore it from a copy of the store, or run again what made it.`,
    );
  }
}
