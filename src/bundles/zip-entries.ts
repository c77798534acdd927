// The entries of a zip, read from its central directory and checked before a byte is unpacked.
//
// - Every name is relative and stays inside; links, special files, encrypted entries and duplicates are refused.
//   Names that Windows reserves, or that differ in case or accents only, are allowed: whether this machine's disk
//   treats two of them as one shows when they are written.
// - The declared sizes are within the limit and in proportion to the packed ones, and no two entries share bytes of the
//   zip; unpacking enforces the declared sizes.
// - Per entry a few numbers and a short name are kept, whatever else the zip contains.
// - The time it takes grows linearly with the directory, however deep its names nest.

import {
  type Entry,
  fromRandomAccessReaderPromise,
  getFileNameLowLevel,
  RandomAccessReader,
  type ZipFile,
} from "yauzl";
import {
  type BundleFile,
  bundleLimits,
  isLeftOut,
  isPathLeftOut,
  MANIFEST_FILE,
  nameProblem,
  tooLarge,
  tooManyEntries,
  tooManyFolders,
} from "./layout.ts";
import { BundleProblem, type BundleProblemEntry, ProblemList, shown } from "./problem.ts";
import type { ZipBytes } from "./zip-bytes.ts";

export const STORED = 0;
export const DEFLATED = 8;
/** Of an entry's own header, without its name and extra fields. */
export const ENTRY_HEADER_BYTES = 30;

export interface ZipEntryFile extends BundleFile {
  /** The name as it is in the zip. */
  readonly rawName: Buffer;
  readonly method: typeof STORED | typeof DEFLATED;
  readonly packedBytes: number;
  readonly crc32: number;
  /** Where the entry's own header begins. */
  readonly offset: number;
}

export interface ZipListing {
  /** The good ones, named relative to the folder that holds manifest.json. */
  readonly files: readonly ZipEntryFile[];
  readonly problems: readonly BundleProblemEntry[];
}

interface Listing {
  readonly problems: ProblemList;
  readonly files: ZipEntryFile[];
  /** Every name so far; true for a file. */
  readonly seen: Map<string, boolean>;
  /** Every folder that files lie in, with the file that is in its way or null. */
  readonly folders: Map<string, string | null>;
  sizeBytes: number;
  packedBytes: number;
}

/**
 * Reads and checks all entries.
 *
 * @throws BundleProblem when it is no zip, its directory is damaged, or it holds too many entries to go on
 */
export async function listEntries(bytes: ZipBytes, bytesMax: number): Promise<ZipListing> {
  const zip = await openDirectory(bytes);
  if (zip.entryCount > bundleLimits.entriesMax)
    throw BundleProblem.of("", "too_many_entries", tooManyEntries());
  const listing: Listing = {
    problems: new ProblemList(),
    files: [],
    seen: new Map(),
    folders: new Map(),
    sizeBytes: 0,
    packedBytes: 0,
  };
  try {
    for await (const entry of zip.eachEntry()) takeEntry(listing, entry);
    // Its type says boolean; it is where the last entry of the directory ended.
    await refuseFurtherEntries(bytes, Number(zip.readEntryCursor));
  } catch (error) {
    if (isFromSystem(error)) throw error;
    throw BundleProblem.of("", "invalid_zip", `the zip's directory is damaged (${(error as Error).message})`);
  }
  if (isInflated(listing)) {
    const message = `the bundle's files unpack to ${listing.sizeBytes} bytes from ${listing.packedBytes}: more than ${INFLATION_LIMIT}`;
    listing.problems.add("", "inflated", message);
  }
  if (listing.sizeBytes > bytesMax) listing.problems.add("", "too_large", tooLarge(bytesMax));
  const files = withoutFilesInFiles(listing);
  refuseSharedBytes(listing);
  return { files: belowManifest(files), problems: listing.problems.all() };
}

async function openDirectory(bytes: ZipBytes): Promise<ZipFile> {
  try {
    // Names and sizes are checked here, so that all problems are reported, each with its own code.
    const options = { lazyEntries: true, autoClose: false, decodeStrings: false, validateEntrySizes: false };
    const zip = await fromRandomAccessReaderPromise(new DirectoryReader(bytes), bytes.sizeBytes, options);
    // Errors come from the calls that cause them; the event without a listener would end the process.
    zip.on("error", () => {});
    return zip;
  } catch (error) {
    if (isFromSystem(error)) throw error;
    const message = `the upload is not a zip, or is cut off (${(error as Error).message})`;
    throw BundleProblem.of("", "not_a_zip", message);
  }
}

class DirectoryReader extends RandomAccessReader {
  readonly #bytes: ZipBytes;

  constructor(bytes: ZipBytes) {
    super();
    this.#bytes = bytes;
  }

  override read(
    buffer: Buffer,
    offset: number,
    length: number,
    position: number,
    callback: (error: Error | null) => void,
  ): void {
    this.#bytes.read(position, length).then((found) => {
      found.copy(buffer, offset);
      callback(found.length < length ? new Error("unexpected end of the file") : null);
    }, callback);
  }
}

/** Whether it is an error such as a full disk, and not a fault of the zip, which has no such code. */
export function isFromSystem(error: unknown): boolean {
  return (error as NodeJS.ErrnoException).syscall !== undefined;
}

const DIRECTORY_ENTRY_SIGNATURE = 0x02014b50;

/** Entries after the last counted one would be seen by other programs, and were not checked. */
async function refuseFurtherEntries(bytes: ZipBytes, directoryEnd: number): Promise<void> {
  const next = await bytes.read(directoryEnd, 4);
  if (next.length === 4 && next.readUInt32LE(0) === DIRECTORY_ENTRY_SIGNATURE) {
    throw new Error("it holds more entries than the zip says");
  }
}

function takeEntry(listing: Listing, entry: Entry): void {
  const name = getFileNameLowLevel(entry.generalPurposeBitFlag, entry.fileNameRaw, entry.extraFields, true);
  const isFolder = name.endsWith("/");
  const path = isFolder ? name.slice(0, -1) : name;
  const refusal = nameRefusal(path) ?? entryRefusal(entry, isFolder) ?? duplicateRefusal(listing, path);
  if (refusal !== null) {
    listing.problems.add(path, refusal.code, `the entry ${shown(name)} ${refusal.reason}`);
    return;
  }
  listing.seen.set(path, !isFolder);
  if (isFolder) return;
  listing.sizeBytes += entry.uncompressedSize;
  listing.packedBytes += entry.compressedSize;
  listing.files.push({
    path,
    isExecutable: (unixMode(entry) & 0o111) !== 0,
    sizeBytes: entry.uncompressedSize,
    // A copy: the original is part of a buffer with the extra fields and comments.
    rawName: Buffer.from(entry.fileNameRaw),
    method: entry.compressionMethod === DEFLATED ? DEFLATED : STORED,
    packedBytes: entry.compressedSize,
    crc32: entry.crc32,
    offset: entry.relativeOffsetOfLocalHeader,
  });
}

const { inflationMax, inflationFreeBytes } = bundleLimits;
const INFLATION_LIMIT = `${inflationMax} times its packed size; leave out what only fills space, or store it without compression`;

/** A zip bomb: a little data that claims to be a lot. */
function isInflated(size: { readonly sizeBytes: number; readonly packedBytes: number }): boolean {
  return size.sizeBytes > Math.max(inflationFreeBytes, inflationMax * size.packedBytes);
}

interface Refusal {
  readonly code: string;
  readonly reason: string;
}

function duplicateRefusal(listing: Listing, path: string): Refusal | null {
  return listing.seen.has(path) ? { code: "duplicate_entry", reason: "is there twice" } : null;
}

function nameRefusal(path: string): Refusal | null {
  if (path.includes("\\"))
    return { code: "invalid_name", reason: "has a backslash in its name; names use /" };
  if (path.startsWith("/") || /^[A-Za-z]:/.test(path)) {
    return { code: "absolute_name", reason: "has an absolute name; names are relative to the bundle" };
  }
  const parts = path.split("/");
  if (parts.includes("..")) return { code: "leaves_bundle", reason: "leaves the bundle through .." };
  if (parts.includes("") || parts.includes(".")) {
    return { code: "invalid_name", reason: "has an empty part, or one that is a dot" };
  }
  const reason = nameProblem(path);
  return reason === null ? null : { code: "invalid_name", reason };
}

const FILE_TYPE = 0o170000;
const REGULAR = 0o100000;
const FOLDER = 0o040000;
const LINK = 0o120000;

function unixMode(entry: Entry): number {
  return entry.externalFileAttributes >>> 16;
}

function entryRefusal(entry: Entry, isFolder: boolean): Refusal | null {
  const fileType = unixMode(entry) & FILE_TYPE;
  if (fileType === LINK)
    return { code: "symlink", reason: "is a symlink; put a copy of the file in its place" };
  if (fileType !== 0 && fileType !== (isFolder ? FOLDER : REGULAR)) {
    return { code: "special_file", reason: "is neither a file nor a folder" };
  }
  if (entry.isEncrypted())
    return { code: "encrypted", reason: "is encrypted; make the zip without a password" };
  const { compressionMethod: method, compressedSize, uncompressedSize } = entry;
  if (method !== STORED && method !== DEFLATED) {
    return { code: "unsupported_compression", reason: `is compressed by method ${method}; use deflate` };
  }
  if (isInflated({ sizeBytes: uncompressedSize, packedBytes: compressedSize })) {
    return { code: "inflated", reason: `unpacks to more than ${INFLATION_LIMIT}` };
  }
  const isLying = method === STORED && compressedSize !== uncompressedSize;
  return isLying
    ? { code: "size_mismatch", reason: "declares two different sizes though it is not compressed" }
    : null;
}

/** Reports every file that lies in what the zip also has as a file; returns the others. */
function withoutFilesInFiles(listing: Listing): readonly ZipEntryFile[] {
  return listing.files.filter(({ path }) => {
    const above = fileAbove(listing, path);
    if (listing.folders.size > bundleLimits.foldersMax)
      throw BundleProblem.of("", "too_many_entries", tooManyFolders());
    if (above === null) return true;
    const message = `the entry ${shown(path)} lies in ${shown(above)}, which is a file`;
    listing.problems.add(path, "duplicate_entry", message);
    return false;
  });
}

/** @returns the file that has the name of one of the folders above `path`; null when there is none */
function fileAbove(listing: Listing, path: string): string | null {
  const end = path.lastIndexOf("/");
  if (end < 0) return null;
  const folder = path.slice(0, end);
  const known = listing.folders.get(folder);
  if (known !== undefined) return known;
  const found = listing.seen.get(folder) === true ? folder : fileAbove(listing, folder);
  listing.folders.set(folder, found);
  return found;
}

/** A small zip whose entries all unpack the same bytes is how a bomb gets around the zip's size. */
function refuseSharedBytes(listing: Listing): void {
  let end = 0;
  for (const file of listing.files.toSorted((a, b) => a.offset - b.offset)) {
    if (file.offset < end) {
      const message = `the entry ${shown(file.path)} shares bytes of the zip with another entry`;
      listing.problems.add(file.path, "shared_bytes", message);
    }
    end = Math.max(end, file.offset + ENTRY_HEADER_BYTES + file.packedBytes);
  }
}

/** The bundle begins where manifest.json is: at the root, or in the single folder at the top. */
function belowManifest(all: readonly ZipEntryFile[]): readonly ZipEntryFile[] {
  const files = all.filter((file) => !isLeftOut(firstPart(file.path), 0));
  const top = files.some((file) => file.path === MANIFEST_FILE) ? "" : singleTop(files);
  const named = top === "" ? files : files.map((file) => ({ ...file, path: file.path.slice(top.length) }));
  return named.filter((file) => !isPathLeftOut(file.path));
}

/** @returns the folder that all files lie in, with a slash; empty when there is none */
function singleTop([first, ...others]: readonly ZipEntryFile[]): string {
  const top = first?.path.includes("/") ? `${firstPart(first.path)}/` : "";
  return others.every((file) => file.path.startsWith(top)) ? top : "";
}

function firstPart(path: string): string {
  const end = path.indexOf("/");
  return end < 0 ? path : path.slice(0, end);
}
