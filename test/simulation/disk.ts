// The real SQLite journal on a disk whose power is cut: the files are taken as the last sync left them, and of what a
// commit has written since, any part in any order (torn-files.ts). The real store opens what is left.
//
// D1. Every commit that was acknowledged is there, whole; of the one that was under way everything or nothing.
// D2. What is there opens without a complaint, its pages fit together, and each row is what was written.
// D3. A commit is acknowledged once a sync has ended that began after it; never when a sync has failed since.
//
// The store's own syncs are observed here, and are slow or fail. What SQLite syncs by itself follows from its protocol: a
// log that begins again has its header synced before its frames, and the log is synced before a checkpoint writes to
// the database.

import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { sql } from "kysely";
import {
  type CommitAnswer,
  type JobChanges,
  type Journal,
  JournalUnavailable,
} from "../../src/engine/journal.ts";
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

interface Files {
  readonly database: Buffer;
  readonly log: Buffer;
  /** The count of commits beside the database, which is never synced. */
  readonly commits: Buffer;
}

const nothing = Buffer.alloc(0);

/** A sync of the log that has begun. */
interface Sync {
  /** What it covers. */
  readonly log: Buffer;
  readonly commits: number;
  readonly done: (error: Error | null) => void;
}

type Plan = (delayMs: number, run: () => void) => void;

/** Lets everything settle that can. */
const settle = () => new Promise((resolve) => setImmediate(resolve));

export class Disk {
  readonly #random: Random;
  readonly #counts: Counts;
  readonly #plan: Plan;
  /** What the last sync has left of the log, and how many commits that are. */
  #syncedLog: Buffer = nothing;
  #syncedCommits = 0;
  #syncing: Sync | null = null;
  /** While the power is about to be cut, a sync ends only when it is told to. */
  #isHeld = false;
  /** Time has ended: nothing that is planned happens any more. */
  #isClosed = false;
  readonly #root = mkdtempSync(join(tmpdir(), "troupe-disk-"));
  #lives = 0;
  #others = 0;
  #database: SqliteDatabase;
  journal: Journal;

  /** @param plan what calls back in the time of the simulation */
  constructor(random: Random, counts: Counts, plan: Plan) {
    this.#random = random;
    this.#counts = counts;
    this.#plan = plan;
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
    this.#syncing = null;
    const opened = openSqlite(file, { syncFile: (_, done) => this.#beginSync(file, done) });
    this.#syncedLog = readFileSync(`${file}-wal`);
    this.#syncedCommits = opened.counter.made;
    // A checkpoint comes after so many pages; by default a short life would never see one.
    opened.connection.exec(`PRAGMA wal_autocheckpoint = ${this.#random.pick([4, 20, 100])}`);
    return opened;
  }

  #beginSync(file: string, done: Sync["done"]): void {
    // One of a former life, whose files are gone.
    if (file !== this.#database.file) return;
    const sync = { log: readFileSync(`${file}-wal`), commits: this.#database.counter.made, done };
    this.#syncing = sync;
    if (this.#isHeld) return;
    if (this.#isClosed) {
      this.#endSync(null);
      return;
    }
    const isSlow = this.#random.chance(0.1);
    if (isSlow) this.#counts.add("slow sync");
    this.#plan(isSlow ? this.#random.between(20, 300) : this.#random.between(0, 2), () => {
      if (this.#syncing === sync) this.#endSync(null);
    });
  }

  #endSync(error: Error | null): void {
    const { log, commits, done } = this.#syncing!;
    this.#syncing = null;
    if (error === null) {
      this.#syncedLog = log;
      this.#syncedCommits = commits;
    }
    done(error);
  }

  /** Whether nothing waits to be synced. */
  get isIdle(): boolean {
    return this.#syncing === null;
  }

  #reopen(files: Files): void {
    const before = this.#database;
    this.#isHeld = false;
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

  async commit(batch: readonly JobChanges[]): Promise<CommitAnswer> {
    const { counter } = this.#database;
    const before = counter.made;
    const answer = await this.journal.commit(batch);
    const isSynced = counter !== this.#database.counter || this.#syncedCommits > before;
    assert.ok(isSynced, `D3: commit ${before + 1} is acknowledged, and ${this.#syncedCommits} are synced`);
    return answer;
  }

  /**
   * Cuts the power while a batch is written or synced, and starts again. Sometimes another write is being synced
   * already, and sometimes the sync fails first. To be called while the disk is idle.
   *
   * @param memory what the disk has before the batch
   * @returns whether the batch is there
   */
  async cut(batch: readonly JobChanges[], memory: MemoryJournal): Promise<boolean> {
    this.#isHeld = true;
    const other = this.#random.chance(0.3) ? await this.#writeOther() : null;
    const before = this.#read();
    const committing = outcomeOf(this.journal.commit(batch));
    await settle();
    const written = this.#read();
    if (other !== null) {
      assert.equal(other.outcome(), null, "D3: a write is not acknowledged before its sync has ended");
      this.#endSync(null);
      await settle();
      assert.equal(other.outcome(), "resolved", "and then it is");
    }
    assert.equal(committing.outcome(), null, "D3: no sync has ended that began after the commit");
    if (this.#syncing !== null && this.#random.chance(0.3)) await this.#failSync(committing);
    this.#reopen(this.#leftOf({ ...before, log: this.#syncedLog }, written));
    const { file } = this.#database;
    assert.deepEqual(quickCheck(file), { damage: null, changedRows: [] }, "D2: what is left is sound");
    if (other !== null) assert.ok(this.#hasOther(other.name), "D1: the other write is there");
    const isThere = await this.#hasBatch(batch, memory);
    this.#counts.add(isThere ? "commit that survived a power cut" : "commit lost in a power cut");
    return isThere;
  }

  /** A write that is no batch. @returns its name and its outcome, once it is being synced */
  async #writeOther() {
    this.#counts.add("commit made while another is synced");
    const name = `other-${++this.#others}`;
    const write = outcomeOf(
      this.#database.transaction((db) => sql`INSERT INTO garbage VALUES ('test', ${name})`.execute(db)),
    );
    await settle();
    return { name, ...write };
  }

  #hasOther(name: string): boolean {
    const select = this.#database.connection.prepare(
      "SELECT 1 FROM garbage WHERE kind = 'test' AND name = ?",
    );
    return select.get(name) !== undefined;
  }

  /** After a sync that failed, nothing is acknowledged any more. */
  async #failSync({ outcome }: Outcome): Promise<void> {
    this.#counts.add("failing sync");
    this.#endSync(new Error("EIO: i/o error, fdatasync"));
    await settle();
    assert.equal(outcome(), "unknown", "D3: a commit whose sync has failed is not acknowledged");
    const next = outcomeOf(this.journal.commit([]));
    await settle();
    assert.equal(next.outcome(), "damaged", "D3: nor is a later one");
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
    const sql = `SELECT brief_lines AS lines FROM jobs WHERE job_id = ?1 AND brief_lines IS NOT NULL
      UNION ALL SELECT * FROM (SELECT lines FROM events WHERE job_id = ?1 ORDER BY first_seq)`;
    const rows = this.#database.connection.prepare(sql).all(jobId);
    return rows.flatMap(({ lines }) => unpackLines(String(lines)));
  }

  #lettersOf(jobId: string): string[] {
    const sql = "SELECT dead_letter_id AS id, retried_at AS at FROM dead_letters WHERE job_id = ?";
    const rows = this.#database.connection.prepare(sql).all(jobId);
    return rows.map(({ id, at }) => `${id} ${at === null ? "open" : "sent again"}`).sort();
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#isHeld = false;
    if (this.#syncing !== null) this.#endSync(null);
    await this.#database.close();
    rmSync(this.#root, { recursive: true });
  }
}

interface Outcome {
  /** How it ended: resolved, or the outcome of the write that failed; null while it has not. */
  outcome(): string | null;
}

function outcomeOf(promise: Promise<unknown>): Outcome {
  let outcome: string | null = null;
  promise.then(
    () => {
      outcome = "resolved";
    },
    (error: unknown) => {
      outcome = error instanceof JournalUnavailable ? error.outcome : String(error);
    },
  );
  return { outcome: () => outcome };
}

function lettersOf({ deadLetters, retriedLetters }: StoredJob): string[] {
  return deadLetters
    .map(({ deadLetterId: id }) => `${id} ${retriedLetters.has(id) ? "sent again" : "open"}`)
    .sort();
}
