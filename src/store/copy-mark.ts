// The mark of a home whose SQLite database was copied into a PostgreSQL database (`troupe store copy`): from then on the home
// belongs to that one. A start from the old database would do again what the copy has done since.

import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";

export interface CopyMark {
  /** The PostgreSQL database has the same (cluster.copied_from). */
  readonly id: string;
  /** Its server, for texts. */
  readonly server: string;
}

/** Beside the SQLite database. */
export const COPY_MARK = "troupe.db-copied";

/** @returns null for a home without the mark */
export function readCopyMark(home: string): CopyMark | null {
  try {
    return JSON.parse(readFileSync(join(home, COPY_MARK), "utf8")) as CopyMark;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
    throw error;
  }
}

export function writeCopyMark(home: string, mark: CopyMark): void {
  writeFileSync(join(home, COPY_MARK), `${JSON.stringify(mark)}\n`, { mode: 0o600, flush: true });
}

export function removeCopyMark(home: string): void {
  rmSync(join(home, COPY_MARK), { force: true });
}
