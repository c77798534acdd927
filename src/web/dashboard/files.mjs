// Files of a folder as answers.
//
// - No path leads out of the folder: not by dots, not by symlinks, not by encodings. Names that begin with a dot are
//   not served.
// - Only regular files are opened: what waits for a writer, such as a pipe, holds nothing up.

import { constants, createReadStream } from "node:fs";
import { lstat, open, opendir, realpath } from "node:fs/promises";
import { extname, join, sep } from "node:path";
import served from "./served.json" with { type: "json" };

const LISTED_MAX = 1_000;
/** Of a folder's entries, folders below it included. */
const LOOKED_AT_MAX = 20_000;

export const contentTypeOf = (name) =>
  served.contentTypes[extname(name).toLowerCase()] ?? "application/octet-stream";

/**
 * Finds a regular file below a folder.
 *
 * @param path relative, with slashes; already decoded
 * @returns {path, size}; null when there is none
 */
export async function fileInside(folder, path) {
  const parts = path.split("/").filter((part) => part !== "");
  if (parts.some((part) => part.startsWith(".") || part.includes("\0") || part.includes(sep))) return null;
  try {
    const root = await realpath(folder);
    const real = await realpath(join(root, ...parts));
    if (real !== root && !real.startsWith(root + sep)) return null;
    const file = await open(real, constants.O_RDONLY | constants.O_NONBLOCK);
    try {
      const stats = await file.stat();
      return stats.isFile() ? { path: real, size: stats.size } : null;
    } finally {
      await file.close();
    }
  } catch {
    return null;
  }
}

/**
 * Lists the regular files of a folder and of those below it, in the order of their names. Symlinks are not followed, names
 * that begin with a dot are left out, and of very many files only some are found.
 *
 * @param isWanted asked of each path, relative and with slashes, of files and folders alike
 * @returns [{name, size}], where `name` is such a path; at most 1,000
 */
export async function filesBelow(folder, isWanted) {
  const found = [];
  const folders = [""];
  let looked = 0;
  for (const below of folders) {
    const entries = await opendir(join(folder, below)).catch(() => []);
    for await (const entry of entries) {
      if (++looked > LOOKED_AT_MAX) break;
      const name = below === "" ? entry.name : `${below}/${entry.name}`;
      if (entry.name.startsWith(".") || !isWanted(name)) continue;
      if (entry.isDirectory()) folders.push(name);
      else if (entry.isFile()) found.push(name);
    }
  }
  const names = found.sort().slice(0, LISTED_MAX);
  const sizes = await Promise.all(
    names.map((name) =>
      lstat(join(folder, name)).then(
        ({ size }) => size,
        () => null,
      ),
    ),
  );
  return names.map((name, i) => ({ name, size: sizes[i] })).filter(({ size }) => size !== null);
}

/** Sends the file, or for HEAD what GET would say of it. @param headers beside its length */
export function sendFile(request, response, file, headers) {
  response.writeHead(200, { ...headers, "content-length": file.size });
  if (request.method === "HEAD" || file.size === 0) {
    response.end();
    return;
  }
  // Not more than was announced, should the file grow meanwhile.
  const bytes = createReadStream(file.path, { end: file.size - 1 });
  bytes.once("error", () => response.destroy());
  response.once("close", () => bytes.destroy());
  bytes.pipe(response);
}
