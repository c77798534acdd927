// Files of /proc, read at once and whole: a few microseconds each, a fraction of what readFileSync takes.

import { closeSync, openSync, readSync } from "node:fs";

const buffer = Buffer.allocUnsafe(4_096);

/** The file's text, at most 4 KiB of it; null when it is not there, or its process has ended. */
export function readProcFile(path: string): string | null {
  try {
    const fd = openSync(path, "r");
    try {
      return buffer.toString("latin1", 0, readSync(fd, buffer, 0, buffer.length, 0));
    } finally {
      closeSync(fd);
    }
  } catch {
    return null;
  }
}
