// The real SQLite journal on a disk whose power is cut: the files are taken as the last sync left them, and of what a
// commit has written since, any part in any order (torn-files.ts). The real store opens what is left.
//
// D1. Every commit that was acknowledged is there, whole; of the one that was under way everything or nothing.
// D2. What is there opens without a complaint, its pages fit together, and each row is what was written.
//
// What is synced when follows from SQLite's protocol, which is not observed here: with synchronous=FULL a commit's
// frames are synced before it returns, a log that begins again has its header synced before its frames, and the log is
// synced before a checkpoint writes to the database.

import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import type { CommitAnswer, JobChanges, Journal } from "../../src/engine/journal.ts";
import { unpackLines } from "../../src/store/sql/packed-lines.ts";
import { commitCountFile } from "../../src/store/sqlite/commit-counter.ts";
import { openSqlite, type SqliteDatabase } from "../../src/store/sqlite/database.ts";
import { SqliteJournal } from "../../src/store/sqlite/journal.ts";
import { quickCheck } from "../../src/store/sqlite/quick-check.ts";
import type { MemoryJournal, StoredJob } from "../support/memory-journal.ts";
import type { Counts } from "./kinds.ts";
import type { Random } from "./random.ts";
import { tornFile } from "./torn-files.ts";

const LOG_HEADER_BYTES = 32;
/** The value of PRAGMA synchronous with which every commit is synced. */
const FULL = 2;

interface Files {
  readonly database: Buffer;
  readonly log: Buffer;
  /** The count of commits beside the database, which is never synced. */
  readonly commits: Buffer;
}

const nothing = Buffer.alloc(0);

export class Disk {
  readonly #random: Random;
  readonly #counts: Counts;
  readonly #root = mkdtempSync(join(tmpdir(), "troupe-disk-"));
  #lives = 0;
  #database: SqliteDatabase;
  journal: Journal;

  constructor(random: Random, counts: Counts) {
    this.#random = random;
    this.#counts = counts;
    this.#database = this.#open({ database: nothing, log: nothing, commits: nothing });
    this.journal = new SqliteJournal(this.#database);
  }

  #open({ database, log, commits }: Files): SqliteDatabase {
    const folder = join(this.#root, String(++this.#lives));
    mkdirSync(folder);
    const file = join(folder, "troupe.db");
    if (database.length > 0) writeFileSync(file, database);
    if (log.length > 0) writeFileSync(`${file}-wal`, log);
    if (commits.length > 0) writeFileSync(commitCountFile(file), commits);
    const opened = openSqlite(file);
    // A checkpoint comes after so many pages; by default a short life would never see one.
    opened.connection.exec(`PRAGMA wal_autocheckpoint = ${this.#random.pick([4, 20, 100])}`);
    return opened;
  }

  #reopen(files: Files): void {
    const before = this.#database;
    this.#database = this.#open(files);
    void before.close();
    rmSync(dirname(before.file), { recursive: true });
    this.journal = new SqliteJournal(this.#database);
  }

  #read(): Files {
    const { file } = this.#database;
    return {
      database: readFileSync(file),
      log: readFileSync(`${file}-wal`),
      commits: readFileSync(commitCountFile(file)),
    };
  }

  /** The process is killed: the operating system still has all that was written. */
  kill(): void {
    this.#reopen(this.#read());
  }

  commit(batch: readonly JobChanges[]): Promise<CommitAnswer> {
    return this.journal.commit(batch);
  }

  /**
   * Cuts the power while a batch is committed, and starts again.
   *
   * @param memory what the disk has before the batch
   * @returns whether the batch is there
   */
  async cut(batch: readonly JobChanges[], memory: MemoryJournal): Promise<boolean> {
    const before = this.#read();
    const { synchronous } = this.#database.connection.prepare("PRAGMA synchronous").get()!;
    // With less, the log is synced by checkpoints alone.
    const synced = Number(synchronous) >= FULL ? before : { ...before, log: nothing };
    await this.journal.commit(batch);
    this.#reopen(this.#leftOf(synced, this.#read()));
    const { file } = this.#database;
    assert.deepEqual(quickCheck(file), { damage: null, changedRows: [] }, "D2: what is left is sound");
    const isThere = await this.#hasBatch(batch, memory);
    this.#counts.add(isThere ? "commit that survived a power cut" : "commit lost in a power cut");
    return isThere;
  }

  #leftOf(synced: Files, written: Files): Files {
    const random = this.#random;
    const commits = random.pick([nothing, synced.commits, Buffer.from("000")]);
    if (!synced.database.equals(written.database) && random.chance(0.5)) {
      this.#counts.add("power cut in a checkpoint");
      const database = tornFile(random, synced.database, written.database);
      return { database, log: written.log, commits: random.pick([commits, written.commits]) };
    }
    const header = written.log.subarray(0, LOG_HEADER_BYTES);
    const rest = synced.log.subarray(LOG_HEADER_BYTES);
    const begun = Buffer.concat([header, rest]);
    const isNew = !header.equals(synced.log.subarray(0, LOG_HEADER_BYTES));
    if (isNew) this.#counts.add("power cut in a log that begins again");
    const log =
      isNew && random.chance(0.3)
        ? tornFile(random, synced.log, begun)
        : tornFile(random, begun, written.log);
    return { database: synced.database, log, commits };
  }

  /** Told by the first part that the batch would change. */
  async #hasBatch(batch: readonly JobChanges[], memory: MemoryJournal): Promise<boolean> {
    for (const { jobId, owner, epoch, revision } of batch) {
      const job = memory.jobs.get(jobId);
      const isCurrent =
        job === undefined
          ? revision === 0
          : job.owner === owner && job.epoch === epoch && job.revision === revision;
      if (!isCurrent) continue;
      const stored = await this.journal.load(jobId);
      return stored !== null && stored.revision > revision;
    }
    return false;
  }

  /** Compares everything that is stored with what should be. */
  async compare(memory: MemoryJournal): Promise<void> {
    const { connection } = this.#database;
    const rows = connection.prepare("SELECT job_id FROM jobs ORDER BY job_id").all();
    assert.deepEqual(
      rows.map((row) => row.job_id),
      [...memory.jobs.keys()].sort(),
      "D1: the jobs that were accepted are there, and no others",
    );
    for (const [jobId, job] of memory.jobs) {
      assert.deepEqual(this.#eventsOf(jobId), job.events, `D1: the history of ${jobId}`);
      assert.deepEqual(this.#lettersOf(jobId), lettersOf(job), `D1: the dead letters of ${jobId}`);
      // The end of a damaged job is told by its history; nobody reads the rest of it again.
      if (job.progress.failureJson?.includes("runtime.record_damaged")) continue;
      assert.deepEqual(await this.journal.load(jobId), await memory.load(jobId), `D1: ${jobId} is there`);
    }
  }

  #eventsOf(jobId: string): string[] {
    const sql = "SELECT lines FROM events WHERE job_id = ? ORDER BY first_seq";
    const rows = this.#database.connection.prepare(sql).all(jobId);
    return rows.flatMap(({ lines }) => unpackLines(String(lines)));
  }

  #lettersOf(jobId: string): string[] {
    const sql = "SELECT dead_letter_id AS id, retried_at AS at FROM dead_letters WHERE job_id = ?";
    const rows = this.#database.connection.prepare(sql).all(jobId);
    return rows.map(({ id, at }) => `${id} ${at === null ? "open" : "sent again"}`).sort();
  }

  async close(): Promise<void> {
    await this.#database.close();
    rmSync(this.#root, { recursive: true });
  }
}

function lettersOf({ deadLetters, retriedLetters }: StoredJob): string[] {
  return deadLetters
    .map(({ deadLetterId: id }) => `${id} ${retriedLetters.has(id) ? "sent again" : "open"}`)
    .sort();
}
