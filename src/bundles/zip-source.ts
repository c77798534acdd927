// A bundle's files from a zip on this machine, unpacked one after the other in constant memory.

import { createWriteStream } from "node:fs";
import { pipeline } from "node:stream/promises";
import { crc32 } from "node:zlib";
import { openPromise, type ZipFile } from "yauzl";
import type { BundleSource } from "./layout.ts";
import { BundleProblem, shown } from "./problem.ts";
import { listEntries, type ZipEntryFile } from "./zip-entries.ts";

/**
 * Opens a zip and judges what it says that it holds.
 *
 * @param bytesMax what the files may have together when they are unpacked
 * @throws BundleProblem with everything that is wrong; a file that lies about its size or content is found out
 *   by `write`
 */
export async function openZip(file: string, bytesMax: number): Promise<BundleSource> {
  const zip = await open(file);
  try {
    const files = await listEntries(zip, bytesMax);
    const entries = new Map(files.map((one) => [one.path, one]));
    return {
      files,
      write: async ({ path }, target) => {
        const found = entries.get(path);
        if (found === undefined) throw new Error(`The zip has no file ${path}.`);
        await unpack(zip, found, target);
      },
      close: async () => zip.close(),
    };
  } catch (error) {
    zip.close();
    throw error;
  }
}

async function open(file: string): Promise<ZipFile> {
  try {
    // Names and sizes are judged by us, so that all problems are reported, each with a code of ours.
    const options = { lazyEntries: true, autoClose: false, decodeStrings: false, validateEntrySizes: false };
    const zip = await openPromise(file, options);
    // Errors reach us through the calls that cause them; the event without a listener would end the process.
    zip.on("error", () => {});
    return zip;
  } catch (error) {
    if (isFromSystem(error)) throw error;
    throw BundleProblem.of(
      "",
      "not_a_zip",
      `the upload is not a zip, or is cut off (${(error as Error).message})`,
    );
  }
}

async function unpack(zip: ZipFile, file: ZipEntryFile, target: string): Promise<void> {
  try {
    const content = await zip.openReadStreamPromise(file.entry);
    await pipeline(
      content,
      (chunks: AsyncIterable<Buffer>) => checked(chunks, file),
      createWriteStream(target, { flags: "wx" }),
    );
  } catch (error) {
    if (error instanceof BundleProblem || isFromSystem(error)) throw error;
    throw damaged(file, `cannot be unpacked (${(error as Error).message})`);
  }
}

/** Passes the bytes on, and stops as soon as they are not what the entry declared. */
async function* checked(chunks: AsyncIterable<Buffer>, file: ZipEntryFile): AsyncGenerator<Buffer> {
  let sizeBytes = 0;
  let sum = 0;
  for await (const chunk of chunks) {
    sizeBytes += chunk.length;
    if (sizeBytes > file.sizeBytes) break;
    sum = crc32(chunk, sum);
    yield chunk;
  }
  if (sizeBytes !== file.sizeBytes) {
    throw BundleProblem.of(
      `/${file.path}`,
      "size_mismatch",
      `the entry ${shown(file.path)} declares ${file.sizeBytes} bytes and holds ${sizeBytes > file.sizeBytes ? "more" : sizeBytes}`,
    );
  }
  if (sum !== file.entry.crc32) throw damaged(file, "does not have the checksum that it declares");
}

function damaged(file: ZipEntryFile, said: string): BundleProblem {
  return BundleProblem.of(`/${file.path}`, "damaged_entry", `the entry ${shown(file.path)} ${said}`);
}

/** A full disk, say: nothing that whoever made the zip could mend. The zip's own faults carry no such code. */
function isFromSystem(error: unknown): boolean {
  return (error as NodeJS.ErrnoException).syscall !== undefined;
}
