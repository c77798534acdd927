// A bundle's files from a zip on this machine, unpacked in constant memory.

import type { BundleSource } from "./layout.ts";
import { ZipBytes } from "./zip-bytes.ts";
import { unpack } from "./zip-content.ts";
import { listEntries } from "./zip-entries.ts";

/**
 * Opens a zip and judges what it says that it holds.
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
