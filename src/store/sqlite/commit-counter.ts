// A count of the commits outside of the database, so that a start notices when acknowledged ones are missing: SQLite
// takes a lost or damaged write-ahead log for the end of the history.
//
// - Every transaction that changes something raises the count in the database; the file is written after its commit was
//   synced, and before its caller gets the answer.
// - The file itself is never synced: after a kill it is right, after a power cut right, behind or unreadable, but never
//   ahead of what was synced. Only a file that is ahead means a loss.

import { closeSync, constants, openSync, readFileSync, writeSync } from "node:fs";
import { DatabaseSync, type StatementSync } from "node:sqlite";
import { crc32 } from "node:zlib";

const DIGITS = 16;

/** The count's file beside a database. */
export const commitCountFile = (file: string): string => `${file}-commits`;

/** The commits that are missing in a database which no other connection writes to. */
export interface MissingCommits {
  readonly stored: number;
  readonly acknowledged: number;
}

/**
 * Compares the database with the count beside it, and changes neither.
 *
 * @returns null when nothing is missing, or nothing is known
 */
export function missingCommits(file: string): MissingCommits | null {
  const acknowledged = acknowledgedCommits(file);
  if (acknowledged === null) return null;
  const stored = storedCount(file);
  return stored < acknowledged ? { stored, acknowledged } : null;
}

/** Read-only, so that a damaged log stays as it is: closing the last ordinary connection would remove it. */
function storedCount(file: string): number {
  const connection = new DatabaseSync(file, { readOnly: true });
  try {
    const has = connection.prepare("SELECT 1 FROM sqlite_master WHERE name = 'commit_count'").get();
    return has === undefined
      ? 0
      : Number(connection.prepare("SELECT commits FROM commit_count").get()?.commits);
  } finally {
    connection.close();
  }
}

/** @returns the count beside a database; null when there is none, or it was cut off while it was written */
export function acknowledgedCommits(file: string): number | null {
  try {
    const text = readFileSync(commitCountFile(file), "latin1");
    const count = Number(text.slice(0, DIGITS));
    return text === lineOf(count) ? count : null;
  } catch {
    return null;
  }
}

function lineOf(count: number): string {
  const digits = String(count).padStart(DIGITS, "0");
  return `${digits} ${crc32(digits).toString(16).padStart(8, "0")}\n`;
}

/** Counts the commits of one connection. */
export class CommitCounter {
  readonly #raise: StatementSync;
  readonly #changes: StatementSync;
  readonly #descriptor: number | null;
  #made: number;
  #isRaised = false;
  #changesSeen = 0;

  /** @param path of the count's file; null for a database in memory */
  constructor(connection: DatabaseSync, path: string | null) {
    this.#raise = connection.prepare("UPDATE commit_count SET commits = commits + 1");
    this.#changes = connection.prepare("SELECT total_changes() AS total");
    this.#descriptor = path === null ? null : openSync(path, constants.O_RDWR | constants.O_CREAT, 0o600);
    this.#made = Number(connection.prepare("SELECT commits FROM commit_count").get()?.commits);
    this.acknowledge(this.#made);
  }

  /** To be called at the end of a transaction that writes. */
  raise(): void {
    this.#raise.run();
    this.#isRaised = true;
  }

  /** To be called at the end of one that may write nothing: it would be synced for the count alone. */
  raiseIfChanged(): void {
    // A raise whose commit failed counts for nothing.
    this.#isRaised = false;
    const total = Number(this.#changes.get()?.total);
    if (total === this.#changesSeen) return;
    this.#changesSeen = total + 1;
    this.raise();
  }

  /** To be called once the commit of the transaction has returned. */
  committed(): void {
    if (!this.#isRaised) return;
    this.#isRaised = false;
    this.#made++;
  }

  /** The number of the last commit, which may not be on disk yet. */
  get made(): number {
    return this.#made;
  }

  /** To be called once the commit with this number, and so every earlier one, is on disk. */
  acknowledge(count: number): void {
    if (this.#descriptor === null) return;
    try {
      writeSync(this.#descriptor, lineOf(count), 0, "latin1");
    } catch {
      // One that stays behind raises no alarm.
    }
  }

  close(): void {
    if (this.#descriptor !== null) closeSync(this.#descriptor);
  }
}
