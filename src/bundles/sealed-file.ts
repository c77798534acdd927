// A file of a snapshot: written once and hashed on the way; read-only and on disk when it is called sealed.

import { createHash, type Hash } from "node:crypto";
import { constants } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";

export interface SealedFile {
  /** Hex, of the content. */
  readonly sha256: string;
  readonly sizeBytes: number;
}

type Chunks = Iterable<Buffer> | AsyncIterable<Buffer>;

const READ_CHUNK_BYTES = 256 * 1024;

/** Writes a file that does not exist yet. @throws what `chunks` throws; half a file is left then */
export async function writeSealed(
  target: string,
  chunks: Chunks,
  isExecutable: boolean,
): Promise<SealedFile> {
  const file = await open(target, "wx");
  try {
    const digest = createHash("sha256");
    let sizeBytes = 0;
    for await (const chunk of chunks) {
      const written = file.writeFile(chunk);
      digest.update(chunk);
      sizeBytes += chunk.length;
      await written;
    }
    return await sealed(file, { digest, sizeBytes, isExecutable });
  } finally {
    await file.close();
  }
}

/** Seals a file that has just been copied to `target`. */
export async function sealCopy(target: string, isExecutable: boolean): Promise<SealedFile> {
  const file = await open(target, constants.O_RDONLY | constants.O_NOFOLLOW);
  try {
    const digest = createHash("sha256");
    const chunk = Buffer.allocUnsafe(READ_CHUNK_BYTES);
    let sizeBytes = 0;
    for (;;) {
      const { bytesRead } = await file.read(chunk, 0, chunk.length, null);
      if (bytesRead === 0) break;
      digest.update(chunk.subarray(0, bytesRead));
      sizeBytes += bytesRead;
    }
    return await sealed(file, { digest, sizeBytes, isExecutable });
  } finally {
    await file.close();
  }
}

async function sealed(
  file: FileHandle,
  content: { readonly digest: Hash; readonly sizeBytes: number; readonly isExecutable: boolean },
): Promise<SealedFile> {
  await file.chmod(content.isExecutable ? 0o500 : 0o400);
  await file.sync();
  return { sha256: content.digest.digest("hex"), sizeBytes: content.sizeBytes };
}
