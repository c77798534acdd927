// What this home has for other nodes, by kind and key:
//
//   blobs/<sha256>                                an artifact
//   bundles/<fingerprint>                         a snapshot
//   runs/<run>                                    what was prepared for a run
//   resources/<blueprint>/<name>~<version>        a resource of a blueprint
//   models/<model>/<sha256>                       the file of a model
//
// - Kinds and keys come from outside: only those of these shapes lead to a path, and no link is followed on the way.
// - What is given out has been whole before it had its name. What is removed meanwhile ends with an error.

import type { Stats } from "node:fs";
import { lstat, readlink } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { type ByteSource, type BytesName, BytesRefused, type FoundBytes } from "../../cluster/bytes.ts";
import { isMissing, namesIn } from "../../lib/files.ts";
import { OpenFolder, SymlinkInPath } from "../../lib/open-folder.ts";
import { type FileBlobs, openRegular } from "../blobs.ts";
import { packed } from "../shared/folder-archive.ts";

const HASH = "[0-9a-f]{64}";
/** What folderName makes. */
const FOLDER = "(?:[a-z0-9][a-z0-9_-]{0,63}|[a-z0-9-]{0,40}~[0-9a-f]{24})";
const VERSION = "[A-Za-z0-9][A-Za-z0-9._-]{0,63}~[0-9a-f]{16}(?:-[A-Za-z0-9_-]{1,64})?";

const KEYS: ReadonlyMap<string, RegExp> = new Map(
  Object.entries({
    blobs: HASH,
    bundles: HASH,
    runs: FOLDER,
    resources: `${FOLDER}/${VERSION}`,
    models: `${FOLDER}/${HASH}`,
  }).map(([kind, key]) => [kind, new RegExp(`^${key}$`)]),
);
const LISTED = "resources";
const LISTED_BELOW = new RegExp(`^${FOLDER}$`);

/** The way below SVC_HOME of a kind's folder, or file; null when the key is none. @throws BytesRefused */
export function wayOf({ kind, key }: BytesName): string | null {
  const form = KEYS.get(kind);
  if (form === undefined) throw new BytesRefused("There is no such kind of bytes.");
  if (!form.test(key)) return null;
  return kind === "runs" ? `runs/${key}/prepared` : `${kind}/${key}`;
}

export class HomeBytes implements ByteSource {
  readonly #home: string;
  readonly #blobs: Pick<FileBlobs, "open">;

  /** @param home SVC_HOME */
  constructor(home: string, blobs: Pick<FileBlobs, "open">) {
    this.#home = home;
    this.#blobs = blobs;
  }

  async open(name: BytesName): Promise<FoundBytes | null> {
    const way = wayOf(name);
    if (way === null) return null;
    return name.kind === "blobs" ? this.#openBlob(name.key) : this.#openFolder(way);
  }

  async #openBlob(sha256: string): Promise<FoundBytes | null> {
    const found = await this.#blobs.open(sha256);
    if (found === null) return null;
    return { madeAtMs: (await lstat(found.path)).mtimeMs, bytes: bytesOf(found.path) };
  }

  async #openFolder(way: string): Promise<FoundBytes | null> {
    const found = await this.#below(dirname(way), (folder) => lstat(folder.path(basename(way))));
    if (found === null || !(found.isDirectory() || found.isFile())) return null;
    return { madeAtMs: found.mtimeMs, bytes: this.#packed(way) };
  }

  /** The folder that it is in is held open meanwhile. */
  async *#packed(way: string): AsyncGenerator<Uint8Array> {
    using folder = OpenFolder.below(this.#home, dirname(way));
    yield* packed(folder.path(basename(way)), this.#home) as AsyncIterable<Uint8Array>;
  }

  /** The versions that runs find. */
  async list(kind: string, below: string) {
    if (kind !== LISTED) throw new BytesRefused("Nothing of this kind is listed.");
    if (!LISTED_BELOW.test(below)) return [];
    const names = (await namesIn(join(this.#home, kind, below))).filter((name) => !name.includes("~"));
    const listed = await Promise.all(names.map((name) => this.#shown(`${kind}/${below}`, name)));
    return listed.filter((one) => one !== null);
  }

  async #shown(way: string, name: string) {
    const key = await this.#below(way, (folder) => readlink(folder.path(name)).catch(nullIfNoLink));
    if (key === null || wayOf({ kind: LISTED, key: `${basename(way)}/${key}` }) === null) return null;
    const found = await this.#below(way, (folder): Promise<Stats> => lstat(folder.path(key)));
    return found === null ? null : { key, madeAtMs: found.mtimeMs };
  }

  /** @returns null when something of the way is missing, or a link */
  async #below<Found>(way: string, look: (folder: OpenFolder) => Promise<Found>): Promise<Found | null> {
    try {
      using folder = OpenFolder.below(this.#home, way);
      return await look(folder);
    } catch (error) {
      if (isMissing(error) || error instanceof SymlinkInPath) return null;
      throw error;
    }
  }
}

/** The file is opened when its first bytes are asked for, and closed with the last, or when nobody asks for more. */
async function* bytesOf(path: string): AsyncGenerator<Uint8Array> {
  yield* (await openRegular(path, path)).createReadStream() as AsyncIterable<Uint8Array>;
}

function nullIfNoLink(error: NodeJS.ErrnoException): null {
  if (isMissing(error) || error.code === "EINVAL") return null;
  throw error;
}
