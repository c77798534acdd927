// A bundle's files from a zip on this machine, unpacked and checked against what the zip's directory declared.
//
// - Only the directory is believed. An entry whose own header says otherwise is refused: another program would
//   unpack something else.
// - Unpacking stops as soon as an entry holds more than it declared.
// - Memory stays flat: small entries are unpacked whole, others chunk by chunk.

import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { crc32, createInflateRaw, inflateRawSync } from "node:zlib";
import { BundleProblem, shown } from "./problem.ts";
import { type BundleSource, type WrittenFile, writeFileOnce } from "./snapshot-files.ts";
import { ZipBytes } from "./zip-bytes.ts";
import { DEFLATED, ENTRY_HEADER_BYTES, isFromSystem, listEntries, type ZipEntryFile } from "./zip-entries.ts";

/**
 * Opens a zip and checks its directory.
 *
 * @param bytesMax what the files may have together when they are unpacked
 * @returns the good entries, and what is wrong with the others; a file that lies about its size or content is found
 *   out by `write`
 * @throws BundleProblem when it cannot be read as a zip
 */
export async function openZip(path: string, bytesMax: number): Promise<BundleSource> {
  const bytes = await ZipBytes.open(path);
  try {
    const { files, problems } = await listEntries(bytes, bytesMax);
    const entries = new Map(files.map((file) => [file.path, file]));
    return {
      files,
      problems,
      write: (file, target) => {
        const entry = entries.get(file.path);
        if (entry === undefined) throw new Error(`The zip has no file ${file.path}.`);
        return unpack(bytes, entry, target);
      },
      close: () => bytes.close(),
    };
  } catch (error) {
    await bytes.close();
    throw error;
  }
}

/** An entry of at most this size, packed and unpacked, takes less time at once than a stream takes to set up. */
const SMALL_BYTES = 32 * 1024;
const INFLATE_CHUNK_BYTES = 128 * 1024;

/**
 * Unpacks an entry to `target`, which must not exist.
 *
 * @throws BundleProblem when the entry is not what the directory says; half a file may be left then
 */
async function unpack(bytes: ZipBytes, file: ZipEntryFile, target: string): Promise<WrittenFile> {
  try {
    const start = await contentStart(bytes, file);
    const write = (chunks: Iterable<Buffer> | AsyncIterable<Buffer>) =>
      writeFileOnce(target, checked(chunks, file), file.isExecutable);
    if (file.packedBytes <= SMALL_BYTES && file.sizeBytes <= SMALL_BYTES) {
      const packed = await bytes.read(start, file.packedBytes);
      return await write([file.method === DEFLATED ? inflated(packed, file) : packed]);
    }
    if (file.method !== DEFLATED) return await write(bytes.stream(start, file.packedBytes));
    const packed = Readable.from(bytes.stream(start, file.packedBytes));
    return await pipeline(packed, createInflateRaw({ chunkSize: INFLATE_CHUNK_BYTES }), write);
  } catch (error) {
    if (error instanceof BundleProblem || isFromSystem(error)) throw error;
    throw damaged(file, `cannot be unpacked (${(error as Error).message})`);
  }
}

const ENTRY_SIGNATURE = 0x04034b50;

/** @returns where the content begins, after the entry's own header */
async function contentStart(bytes: ZipBytes, file: ZipEntryFile): Promise<number> {
  const header = await bytes.read(file.offset, ENTRY_HEADER_BYTES + file.rawName.length);
  if (header.length < ENTRY_HEADER_BYTES || header.readUInt32LE(0) !== ENTRY_SIGNATURE) {
    throw damaged(file, "is not where the zip's directory says");
  }
  const nameBytes = header.readUInt16LE(26);
  if (nameBytes !== file.rawName.length || !header.subarray(ENTRY_HEADER_BYTES).equals(file.rawName)) {
    throw contradicts(file, "another name");
  }
  if (header.readUInt16LE(8) !== file.method) throw contradicts(file, "another compression");
  if (!agrees(header, file)) throw contradicts(file, "another size or checksum");
  return file.offset + ENTRY_HEADER_BYTES + nameBytes + header.readUInt16LE(28);
}

const SIZES_FOLLOW = 1 << 3;
/** In place of a number that is somewhere else: after the content, or in a field for large zips. */
const ELSEWHERE: ReadonlySet<number> = new Set([0, 0xffffffff]);

function agrees(header: Buffer, file: ZipEntryFile): boolean {
  if ((header.readUInt16LE(6) & SIZES_FOLLOW) !== 0) return true;
  const says = (at: number, declared: number) => {
    const found = header.readUInt32LE(at);
    return found === declared || ELSEWHERE.has(found);
  };
  return says(14, file.crc32) && says(18, file.packedBytes) && says(22, file.sizeBytes);
}

function inflated(packed: Buffer, file: ZipEntryFile): Buffer {
  try {
    return inflateRawSync(packed, { maxOutputLength: file.sizeBytes + 1 });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ERR_BUFFER_TOO_LARGE") throw sizeMismatch(file, "more");
    throw error;
  }
}

/** Passes the bytes on, and stops as soon as they are not what the entry declared. */
async function* checked(
  chunks: Iterable<Buffer> | AsyncIterable<Buffer>,
  file: ZipEntryFile,
): AsyncGenerator<Buffer> {
  let sizeBytes = 0;
  let sum = 0;
  for await (const chunk of chunks) {
    sizeBytes += chunk.length;
    if (sizeBytes > file.sizeBytes) throw sizeMismatch(file, "more");
    sum = crc32(chunk, sum);
    yield chunk;
  }
  if (sizeBytes !== file.sizeBytes) throw sizeMismatch(file, String(sizeBytes));
  if (sum !== file.crc32) throw damaged(file, "does not have the checksum that it declares");
}

function sizeMismatch(file: ZipEntryFile, holds: string): BundleProblem {
  const message = `the entry ${shown(file.path)} declares ${file.sizeBytes} bytes and holds ${holds}`;
  return BundleProblem.of(`/${file.path}`, "size_mismatch", message);
}

function contradicts(file: ZipEntryFile, what: string): BundleProblem {
  const message = `the entry ${shown(file.path)} has ${what} in its own header than in the zip's directory`;
  return BundleProblem.of(`/${file.path}`, "contradictory_entry", message);
}

function damaged(file: ZipEntryFile, reason: string): BundleProblem {
  return BundleProblem.of(`/${file.path}`, "damaged_entry", `the entry ${shown(file.path)} ${reason}`);
}
