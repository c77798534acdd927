// SQLite's errors by what they concern, and what they mean for an operator.
//
// - Only a transient error is answered with "try again". An error of one row is reported to the writer of that row,
//   and one of the file ends all writing (database.ts).

import { JournalUnavailable } from "../../engine/journal.ts";

const BUSY = 5;
const READ_ONLY = 8;
const IO_ERROR = 10;
const CORRUPT = 11;
const FULL = 13;
const CANNOT_OPEN = 14;
const FORMAT = 24;
const NOT_A_DATABASE = 26;
/** PERM, BUSY, LOCKED, NOMEM, READONLY, INTERRUPT, IOERR, FULL, CANTOPEN, PROTOCOL, SCHEMA. */
const PASSING: ReadonlySet<number> = new Set([
  3,
  BUSY,
  6,
  7,
  READ_ONLY,
  9,
  IO_ERROR,
  FULL,
  CANNOT_OPEN,
  15,
  17,
]);
const DAMAGE: ReadonlySet<number> = new Set([CORRUPT, FORMAT, NOT_A_DATABASE]);
/** Extended codes of damage whose primary code may pass: READONLY_DBMOVED, IOERR_DATA, IOERR_CORRUPTFS. */
const DAMAGE_EXTENDED: ReadonlySet<number> = new Set([1032, 8202, 8458]);
/** IOERR_FSYNC, IOERR_DIR_FSYNC: everything was written, but whether it is on disk is unknown. */
const SYNC_FAILED: ReadonlySet<number> = new Set([1034, 1290]);

/** What an error concerns: it may be transient; the database file; the row or the work that caused it. */
export type ErrorScope = "passing" | "file" | "row";

function codeOf(error: unknown): number | null {
  const { code, errcode } = (error ?? {}) as { readonly code?: unknown; readonly errcode?: unknown };
  return code === "ERR_SQLITE_ERROR" && typeof errcode === "number" ? errcode : null;
}

/** @returns what the error concerns; one that is not SQLite's comes from the work that met it */
export function scopeOf(error: unknown): ErrorScope {
  const code = codeOf(error);
  if (code === null) return "row";
  if (DAMAGE.has(code & 0xff) || DAMAGE_EXTENDED.has(code)) return "file";
  return PASSING.has(code & 0xff) ? "passing" : "row";
}

/** Whether another connection holds the lock. */
export function isBusy(error: unknown): boolean {
  return ((codeOf(error) ?? 0) & 0xff) === BUSY;
}

/** What an operator does about a damaged database; `file` is its name or path. */
export function damageText(file: string, reason: string): string {
  return (
    `The database ${file} is damaged or is no database (${reason}). Nothing is written to it any more. Stop the program, ` +
    "move SVC_HOME away, and restore the newest backup with `troupe restore FILE`."
  );
}

/** Rows that are not what was written; the caller appends which. */
export function changedRowsText(file: string): string {
  return (
    `Rows of the database ${file} have changed since Troupe wrote them: the file was changed from outside, or the disk ` +
    "is failing. Everything else goes on. Check the disk, and restore the newest backup with `troupe restore FILE` if " +
    "these jobs matter. The first rows:"
  );
}

/** What an operator does when the disk did not take what was written. */
export function unsyncedText(file: string, reason: string): string {
  return (
    `Syncing the database ${file} to the disk failed (${reason}), so that the last changes may be lost. Nothing is ` +
    "written to it any more. Check the disk, then restart the program."
  );
}

export function readOnlyText(file: string): string {
  return `The database ${file} is read-only. Give this user write permission to the file and its folder.`;
}

/** Explains SQLite's error to an operator in a sentence, with what to do. */
export function explain(error: unknown, file: string): string {
  const code = codeOf(error);
  const reason = error instanceof Error ? error.message : String(error);
  if (scopeOf(error) === "file") return damageText(file, reason);
  switch (code === null ? null : code & 0xff) {
    case BUSY:
      return `The database ${file} is locked by another program. Close that program (a database browser, a backup), then try again.`;
    case READ_ONLY:
      return readOnlyText(file);
    case IO_ERROR:
      return `Reading or writing the database ${file} failed (${reason}). Check the disk's health and free space.`;
    case FULL:
      return `The disk is full: the database ${file} cannot grow. Free some space; nothing that was acknowledged is lost.`;
    case CANNOT_OPEN:
      return `The database ${file} cannot be opened (${reason}). Check that its folder exists and may be written.`;
    default:
      return `The database ${file} failed: ${reason}.`;
  }
}

/** Converts a transient error of a rolled-back write into the port's own. Others stay unchanged. */
export function asUnavailable(error: unknown, file: string): unknown {
  if (scopeOf(error) !== "passing") return error;
  const text = explain(error, file);
  return SYNC_FAILED.has(codeOf(error) ?? 0)
    ? new JournalUnavailable(`${text} Whether the change was written is not known.`, "unknown")
    : new JournalUnavailable(text);
}
