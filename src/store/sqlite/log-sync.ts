// Syncs of the write-ahead log, off the main thread: a commit returns when its frames are written, and what it causes
// outside waits until they are on disk.
//
// - One sync is under way at a time, and covers the commits made before it began; those made meanwhile share the next
//   one. The log is read from its begin, so a commit that is on disk has all earlier ones with it.
// - Once a sync has failed nothing is durable any more: the system may have dropped what it could not write, and reports
//   that only once.

import { closeSync, fdatasync, openSync } from "node:fs";
import type { CommitCounter } from "./commit-counter.ts";

/** Like fs.fdatasync. */
export type SyncFile = (descriptor: number, done: (error: Error | null) => void) => void;

export interface LogSyncOptions {
  /** The log's path; null for a database in memory, where everything counts as durable. */
  readonly path: string | null;
  readonly counter: CommitCounter;
  readonly syncFile?: SyncFile | undefined;
  /** Called once, before anyone is told. @returns the errors for those who wait, and for those who come later */
  readonly failed: (error: Error) => { readonly waiting: Error; readonly later: Error };
}

interface Waiting {
  /** The commit, by number, that has to be on disk. */
  readonly commit: number;
  resolve(): void;
  reject(error: Error): void;
}

const DURABLE = Promise.resolve();

export class LogSync {
  readonly #counter: CommitCounter;
  readonly #syncFile: SyncFile;
  readonly #failed: LogSyncOptions["failed"];
  readonly #descriptor: number | null;
  /** The last commit that is on disk. */
  #synced: number;
  /** The last commit of each job that a commit behind it has changed. */
  readonly #unsynced = new Map<string, number>();
  #isSyncing = false;
  #waiting: Waiting[] = [];
  #failure: Error | null = null;
  /** Called after each sync. */
  onSynced: () => void = () => {};

  /** @param options.path of a log whose content was synced when it was opened */
  constructor({ path, counter, syncFile = fdatasync, failed }: LogSyncOptions) {
    this.#counter = counter;
    this.#syncFile = syncFile;
    this.#failed = failed;
    // SQLite keeps one file for as long as the database is open, and has no locks on it that closing this would release.
    this.#descriptor = path === null ? null : openSync(path, "r+");
    this.#synced = path === null ? Number.POSITIVE_INFINITY : counter.made;
  }

  /**
   * Resolves once everything that was committed until now is on disk.
   *
   * @throws JournalUnavailable
   */
  durable(): Promise<void> {
    if (this.#failure !== null) return Promise.reject(this.#failure);
    return this.#until(this.#counter.made);
  }

  /**
   * Resolves once everything that was committed of a job until now is on disk, which is at once while only others' commits
   * are synced, also after a sync has failed.
   *
   * @throws JournalUnavailable
   */
  durableJob(jobId: string): Promise<void> {
    const commit = this.#unsynced.get(jobId);
    if (commit === undefined) return DURABLE;
    if (this.#failure !== null) return Promise.reject(this.#failure);
    return this.#until(commit);
  }

  /** Notes what the last commit has changed. */
  committed(jobIds: Iterable<string>): void {
    if (this.#descriptor === null) return;
    for (const jobId of jobIds) this.#unsynced.set(jobId, this.#counter.made);
  }

  #until(commit: number): Promise<void> {
    if (commit <= this.#synced) return DURABLE;
    return new Promise((resolve, reject) => {
      this.#waiting.push({ commit, resolve, reject });
      this.#sync();
    });
  }

  /** Whether a sync has failed: then the log must stay as it is. */
  get hasFailed(): boolean {
    return this.#failure !== null;
  }

  #sync(): void {
    if (this.#isSyncing || this.#descriptor === null) return;
    this.#isSyncing = true;
    const covered = this.#counter.made;
    this.#syncFile(this.#descriptor, (error) => {
      this.#isSyncing = false;
      if (error === null) this.#reached(covered);
      else this.#fail(error);
    });
  }

  #reached(covered: number): void {
    this.#synced = covered;
    this.#counter.acknowledge(covered);
    for (const [jobId, commit] of this.#unsynced) if (commit <= covered) this.#unsynced.delete(jobId);
    const waiting = this.#waiting;
    this.#waiting = waiting.filter(({ commit }) => commit > covered);
    if (this.#waiting.length > 0) this.#sync();
    for (const { commit, resolve } of waiting) if (commit <= covered) resolve();
    this.onSynced();
  }

  #fail(error: Error): void {
    const { waiting, later } = this.#failed(error);
    this.#failure = later;
    for (const { reject } of this.#waiting) reject(waiting);
    this.#waiting = [];
  }

  /** To be called when nothing is under way. */
  close(): void {
    if (this.#descriptor !== null) closeSync(this.#descriptor);
  }
}
