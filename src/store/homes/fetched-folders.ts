// Folders of nodes that share no store of files: what one has in its home, another fetches into the same place of its own
// when it needs it. So everything is stored where it was made, and removed by each node from its own home.
//
// - What comes is an archive; it is a file below SVC_HOME/tmp, checked and unpacked there before it comes to its place.
// - It keeps the time at which it was made: the newest of several versions counts, whichever node made or fetched it.

import { open, utimes } from "node:fs/promises";
import { join } from "node:path";
import type { SharedFolders } from "../../bundles/shared-folders.ts";
import { type BytesElsewhere, type BytesName, type FoundBytes, WrongBytes } from "../../cluster/bytes.ts";
import type { Randomness } from "../../engine/ports.ts";
import { KeyedMutex } from "../../lib/async.ts";
import { exists, writeNew } from "../../lib/files.ts";
import { hash } from "../blobs.ts";
import { placeArchive, withArchiveFile } from "../shared/folder-archive.ts";
import { notRunning } from "./fetched-blobs.ts";
import { type HomeBytes, wayOf } from "./home-bytes.ts";

export interface FetchedFoldersParts {
  /** SVC_HOME. */
  readonly home: string;
  readonly here: HomeBytes;
  /** Null while other nodes cannot be asked. */
  readonly elsewhere: () => BytesElsewhere | null;
  readonly newId: Randomness["id"];
}

/** What can be made again from its package, and is not missed. */
const MADE_AGAIN: ReadonlySet<string> = new Set(["resources", "models"]);
const NOTHING = { count: 0, bytes: 0 };

export class FetchedFolders implements SharedFolders {
  readonly #parts: FetchedFoldersParts;
  /** By path. */
  readonly #fetches = new KeyedMutex();

  constructor(parts: FetchedFoldersParts) {
    this.#parts = parts;
  }

  async has(name: string): Promise<boolean> {
    const way = wayOf(bytesName(name));
    return way !== null && (await exists(join(this.#parts.home, way)));
  }

  /** @throws BytesUnavailable */
  async names(below: string): Promise<readonly string[]> {
    const { here, elsewhere } = this.#parts;
    const { kind, key } = bytesName(below);
    const lists = [await here.list(kind, key), (await elsewhere()?.list(kind, key)) ?? []];
    return (
      lists
        .flat()
        // Two may be of one tick of the file system's clock; all nodes must choose the same one.
        .toSorted((a, b) => a.madeAtMs - b.madeAtMs || (a.key < b.key ? -1 : 1))
        .map((one) => one.key)
    );
  }

  /** It is in the home already. */
  async store(): Promise<void> {}

  /** @throws BytesUnavailable */
  fetch(name: string, path: string): Promise<boolean> {
    return this.#fetches.run(path, async () => {
      if (await exists(path)) return true;
      const asked = bytesName(name);
      const outcome = await this.#parts.elsewhere()?.fetch(asked, (found) => this.#take(asked, found, path));
      if (outcome === undefined || outcome.kind === "fetched") return outcome !== undefined;
      const { lost } = outcome;
      if (lost.length > 0 && !MADE_AGAIN.has(asked.kind)) throw notRunning(`What is called ${name}`, lost);
      return false;
    });
  }

  async #take({ kind, key }: BytesName, { madeAtMs, bytes }: FoundBytes, path: string): Promise<void> {
    const { home } = this.#parts;
    // How large it is, is not known before it is here.
    await withArchiveFile(this.#parts, 0, async (file) => {
      await writeNew(file, bytes);
      await placeArchive(file, path, {
        home,
        async finish(content) {
          if (kind === "models") await checkHash(content, key.slice(key.lastIndexOf("/") + 1));
          await utimes(content, new Date(madeAtMs), new Date(madeAtMs));
        },
      });
    });
  }

  async remove(): Promise<void> {}

  async removeUnused() {
    return NOTHING;
  }
}

/** @throws WrongBytes */
async function checkHash(path: string, sha256: string): Promise<void> {
  await using file = await open(path, "r");
  if ((await hash(file)).sha256 !== sha256)
    throw new WrongBytes(`The file is not the one of the hash ${sha256}.`);
}

function bytesName(name: string): BytesName {
  const end = name.indexOf("/");
  return { kind: name.slice(0, end), key: name.slice(end + 1) };
}
