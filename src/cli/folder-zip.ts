// A bundle's folder as a zip that is made while it is read.
//
// - Nothing outside the folder is read, and only regular files: the folder is listed and checked first, as when the
//   runtime takes it by path (src/bundles/folder-source.ts), and every problem is reported before anything is sent.
// - Equal folders make equal bytes, on any machine: names in order, one date, and of the mode only whether a file is
//   executable.
// - A file is open only while it is sent; memory stays flat.

import { existsSync, realpathSync, statSync } from "node:fs";
import { join, sep } from "node:path";
import type { Readable } from "node:stream";
import { ZipFile } from "yazl";
import type { Config } from "../app/config.ts";
import { openFolder } from "../bundles/folder-source.ts";
import { type BundleFile, bundleLimits, MANIFEST_FILE } from "../bundles/layout.ts";
import { BundleProblem } from "../bundles/problem.ts";
import { UsageError } from "./command.ts";

/** Before the first one that a zip can name, so that it is the same in every time zone. */
const DATE = new Date(0);
/** Larger files are stored as they are: most are compressed already, and the way to a gateway is often short. */
const COMPRESSED_BYTES_MAX = 4 * 1024 * 1024;
const MODE_PLAIN = 0o100644;
const MODE_EXECUTABLE = 0o100755;

export interface FolderZip {
  readonly bytes: Readable;
  /** Why the folder could not be read to its end; null without a failure. */
  failure(): Error | null;
}

/**
 * Opens a folder as a zip.
 *
 * @throws UsageError with every problem of the folder
 */
export async function zipFolder(folder: string, config: Config): Promise<FolderZip> {
  const root = realpathSync(folder);
  const files = await filesOf(root, config);
  return zipFiles(
    folder,
    files.map((file) => ({ ...file, place: join(root, file.path) })),
  );
}

/** A manifest alone as a zip: a bundle without payloads. */
export function zipManifest(file: string): FolderZip {
  const { size } = statSync(file);
  return zipFiles(file, [{ path: MANIFEST_FILE, place: file, isExecutable: false, sizeBytes: size }]);
}

interface ZippedFile {
  /** In the zip. */
  readonly path: string;
  /** On this machine. */
  readonly place: string;
  readonly isExecutable: boolean;
  readonly sizeBytes: number;
}

/** @param source what the user called it */
function zipFiles(source: string, files: readonly ZippedFile[]): FolderZip {
  const zip = new ZipFile();
  const bytes = zip.outputStream as Readable;
  let failure: Error | null = null;
  zip.on("error", (error: Error) => {
    failure ??= new Error(`${source} changed or could not be read while it was sent: ${error.message}`);
    bytes.destroy(failure);
  });
  for (const { path, place, isExecutable, sizeBytes } of files) {
    const mode = isExecutable ? MODE_EXECUTABLE : MODE_PLAIN;
    zip.addFile(place, path, { mtime: DATE, mode, compress: sizeBytes <= COMPRESSED_BYTES_MAX });
  }
  zip.end();
  return { bytes, failure: () => failure };
}

/** Opens a folder as the gateway would take it. @throws BundleProblem with every problem of the folder */
export function openBundleFolder(root: string, config: Config): ReturnType<typeof openFolder> {
  const bytesMax = config.bundleBytesMax * bundleLimits.expansionMax;
  // SVC_HOME must not be uploaded. While it does not exist, the root is given, which no folder has in it.
  const keepOut = existsSync(config.home) ? config.home : sep;
  return openFolder(root, { bytesMax, keepOut });
}

async function filesOf(root: string, config: Config): Promise<readonly BundleFile[]> {
  try {
    const source = await openBundleFolder(root, config);
    await source.close();
    const wrong = source.files.filter(({ path }) => /\\|^[a-zA-Z]:/.test(path));
    if (wrong.length > 0) throw new BundleProblem(wrong.map(unzippable));
    if (!source.files.some(({ path }) => path === MANIFEST_FILE)) {
      throw new UsageError(`${root} holds no ${MANIFEST_FILE}; give the folder of a bundle.`);
    }
    return source.files.toSorted((a, b) => (a.path < b.path ? -1 : 1));
  } catch (error) {
    if (!(error instanceof BundleProblem)) throw error;
    const lines = error.problems.map(({ path, message }) => `  ${path || "/"}: ${message}`);
    throw new UsageError([`${root} cannot be uploaded:`, ...lines].join("\n"));
  }
}

/** A name that means another place to programs that unzip it. */
function unzippable({ path }: BundleFile) {
  return { path, code: "invalid_name", message: "no zip can hold a name with a backslash or a drive letter" };
}
