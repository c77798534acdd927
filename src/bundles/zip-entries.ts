// What a zip says that it holds, read from its central directory and judged before a byte is unpacked.
//
// Z1. Every name is relative and stays inside; links, special files, encrypted entries and duplicates are refused.
// Z2. The declared sizes are within the limit; unpacking holds each entry to what it declared.
// Z3. Per entry a few numbers and a short name are kept, whatever the zip carries beside them.

import { Entry, getFileNameLowLevel, type ZipFile } from "yauzl";
import {
  type BundleFile,
  bundleLimits,
  isLeftOut,
  MANIFEST_FILE,
  nameProblem,
  tooLarge,
  tooManyEntries,
} from "./layout.ts";
import { BundleProblem, ProblemList, shown } from "./problem.ts";

export interface ZipEntryFile extends BundleFile {
  readonly entry: Entry;
}

interface Listing {
  readonly problems: ProblemList;
  readonly files: ZipEntryFile[];
  /** Every name so far, as a file system without case would see it; true for a file. */
  readonly seen: Map<string, boolean>;
  sizeBytes: number;
}

/**
 * Reads and judges all entries.
 *
 * @returns the bundle's files, named relative to the folder that holds manifest.json
 * @throws BundleProblem with everything that is wrong
 */
export async function listEntries(zip: ZipFile, bytesMax: number): Promise<readonly ZipEntryFile[]> {
  if (zip.entryCount > bundleLimits.entriesMax)
    throw BundleProblem.of("", "too_many_entries", tooManyEntries());
  const listing: Listing = { problems: new ProblemList(), files: [], seen: new Map(), sizeBytes: 0 };
  try {
    for await (const entry of zip.eachEntry()) takeEntry(listing, entry);
  } catch (error) {
    throw BundleProblem.of("", "invalid_zip", `the zip's directory is damaged (${(error as Error).message})`);
  }
  const { problems, files } = listing;
  if (listing.sizeBytes > bytesMax) problems.add("", "too_large", tooLarge(bytesMax));
  for (const file of files) refuseFileAsFolder(listing, file.path);
  if (!problems.isEmpty) throw new BundleProblem(problems.all());
  return belowManifest(files);
}

function takeEntry(listing: Listing, entry: Entry): void {
  const name = getFileNameLowLevel(entry.generalPurposeBitFlag, entry.fileNameRaw, entry.extraFields, true);
  const isFolder = name.endsWith("/");
  const path = isFolder ? name.slice(0, -1) : name;
  const key = foldedName(path);
  const refusal = nameRefusal(path) ?? entryRefusal(entry, isFolder) ?? duplicateRefusal(listing, key);
  if (refusal !== null) {
    listing.problems.add(path, refusal.code, `the entry ${shown(name)} ${refusal.said}`);
    return;
  }
  listing.seen.set(key, !isFolder);
  if (isFolder) return;
  listing.sizeBytes += entry.uncompressedSize;
  listing.files.push({
    path,
    isExecutable: (unixMode(entry) & 0o111) !== 0,
    sizeBytes: entry.uncompressedSize,
    entry: essence(entry),
  });
}

function duplicateRefusal(listing: Listing, key: string): Refusal | null {
  return listing.seen.has(key)
    ? { code: "duplicate_entry", said: "is there twice, or differs from another in case only" }
    : null;
}

interface Refusal {
  readonly code: string;
  readonly said: string;
}

function nameRefusal(path: string): Refusal | null {
  if (path.includes("\\")) return { code: "invalid_name", said: "has a backslash in its name; names use /" };
  if (path.startsWith("/") || /^[A-Za-z]:/.test(path)) {
    return { code: "absolute_name", said: "has an absolute name; names are relative to the bundle" };
  }
  const parts = path.split("/");
  if (parts.includes("..")) return { code: "leaves_bundle", said: "leaves the bundle through .." };
  if (parts.includes("") || parts.includes(".")) {
    return { code: "invalid_name", said: "has an empty part, or one that is a dot" };
  }
  const said = nameProblem(path);
  return said === null ? null : { code: "invalid_name", said };
}

const FILE_TYPE = 0o170000;
const REGULAR = 0o100000;
const FOLDER = 0o040000;
const LINK = 0o120000;
const STORED = 0;
const DEFLATED = 8;

function unixMode(entry: Entry): number {
  return entry.externalFileAttributes >>> 16;
}

function entryRefusal(entry: Entry, isFolder: boolean): Refusal | null {
  const fileType = unixMode(entry) & FILE_TYPE;
  if (fileType === LINK)
    return { code: "symlink", said: "is a symlink; put a copy of the file in its place" };
  if (fileType !== 0 && fileType !== (isFolder ? FOLDER : REGULAR)) {
    return { code: "special_file", said: "is neither a file nor a folder" };
  }
  if (entry.isEncrypted())
    return { code: "encrypted", said: "is encrypted; make the zip without a password" };
  if (entry.compressionMethod !== STORED && entry.compressionMethod !== DEFLATED) {
    return {
      code: "unsupported_compression",
      said: `is compressed by method ${entry.compressionMethod}; use deflate`,
    };
  }
  const isLying = entry.compressionMethod === STORED && entry.compressedSize !== entry.uncompressedSize;
  return isLying
    ? { code: "size_mismatch", said: "declares two different sizes though it is not compressed" }
    : null;
}

/** Two names that one file system or another takes for the same. */
function foldedName(path: string): string {
  return path.normalize("NFC").toLowerCase();
}

/** Reports a file that lies in what the zip also has as a file. */
function refuseFileAsFolder(listing: Listing, path: string): void {
  for (let end = path.lastIndexOf("/"); end > 0; end = path.lastIndexOf("/", end - 1)) {
    const above = path.slice(0, end);
    if (listing.seen.get(foldedName(above)) !== true) continue;
    const said = `the entry ${shown(path)} lies in ${shown(above)}, which is a file`;
    listing.problems.add(path, "duplicate_entry", said);
    return;
  }
}

/** What unpacking needs of an entry; the extra fields and comments are let go (Z3). */
function essence(entry: Entry): Entry {
  const { compressedSize, uncompressedSize, compressionMethod, generalPurposeBitFlag, crc32 } = entry;
  const { relativeOffsetOfLocalHeader } = entry;
  return Object.assign(new Entry(), {
    compressedSize,
    uncompressedSize,
    compressionMethod,
    generalPurposeBitFlag,
    crc32,
    relativeOffsetOfLocalHeader,
  });
}

/** The bundle begins where manifest.json is: at the root, or in the single folder at the top. */
function belowManifest(all: readonly ZipEntryFile[]): readonly ZipEntryFile[] {
  const files = all.filter((file) => !isLeftOut(firstPart(file.path), 0));
  const top = files.some((file) => file.path === MANIFEST_FILE) ? "" : singleTop(files);
  return files
    .map((file) => ({ ...file, path: file.path.slice(top.length) }))
    .filter((file) => !file.path.split("/").some(isLeftOut));
}

function singleTop(files: readonly ZipEntryFile[]): string {
  const tops = new Set(files.map((file) => (file.path.includes("/") ? firstPart(file.path) : "")));
  const [top] = tops;
  return tops.size === 1 && top !== undefined && top !== "" ? `${top}/` : "";
}

function firstPart(path: string): string {
  return path.split("/", 1)[0] ?? "";
}
