// Checkpoints off the main thread: SQLite syncs the write-ahead log and the database in them, and the log's header with
// the first transaction of a log that begins again. All of this is done by a thread with connections of its own.
//
// - Most of the log is copied while others write. What is left then, and the log's new begin, take a turn of the write
//   gate; reads never wait.
// - While something reads an older state (a backup), the log cannot begin again: it grows, and each time that it has grown
//   by LOG_PAGES_MAX the next attempt is made.
// - The thread ends when it was not needed for a while, since an idle program should be small.

import type { StatementSync } from "node:sqlite";
import { Worker } from "node:worker_threads";
import type { Clock, EngineLog } from "../../engine/ports.ts";
import type { CheckpointAnswer, CheckpointStep } from "./checkpoint-thread.ts";
import type { SqliteDatabase } from "./database.ts";

/** 16 MB: what a start after a kill reads again in some 20 ms. */
const LOG_PAGES_MAX = 4_000;
const IDLE_MS = 10_000;

export interface CheckpointsOptions {
  readonly clock: Pick<Clock, "after">;
  readonly log: EngineLog;
  /** How long the log grows; fewer in tests. */
  readonly logPagesMax?: number;
}

export class Checkpoints {
  readonly #database: SqliteDatabase;
  readonly #options: CheckpointsOptions;
  readonly #logPagesMax: number;
  readonly #lookAtLog: StatementSync;
  #dueAtPages: number;
  #underWay: Promise<void> | null = null;
  #thread: Worker | null = null;
  #cancelIdle: () => void = () => {};
  #isClosed = false;

  /** Takes the checkpoints of a database from SQLite. To be closed before the database is. */
  constructor(database: SqliteDatabase, options: CheckpointsOptions) {
    this.#database = database;
    this.#options = options;
    this.#logPagesMax = options.logPagesMax ?? LOG_PAGES_MAX;
    this.#dueAtPages = this.#logPagesMax;
    database.connection.exec("PRAGMA wal_autocheckpoint = 0");
    this.#lookAtLog = database.connection.prepare("PRAGMA wal_checkpoint(NOOP)");
    database.sync.onSynced = () => this.#synced();
  }

  #synced(): void {
    // Inside a transaction SQLite does not tell; another sync comes after it.
    if (this.#underWay !== null || this.#isClosed || this.#database.connection.isTransaction) return;
    if (this.#logPages() < this.#dueAtPages) return;
    this.#underWay = this.#checkpoint().finally(() => {
      this.#underWay = null;
    });
  }

  #logPages(): number {
    return Number(this.#lookAtLog.get()?.log);
  }

  async #checkpoint(): Promise<void> {
    this.#cancelIdle();
    const problem =
      (await this.#ask("copy")) ?? (await this.#database.gate.runElsewhere(() => this.#ask("restart")));
    if (problem !== null) this.#options.log.warn({ reason: problem }, "a checkpoint of the database failed");
    await this.#database.gate.look(() => {
      const left = this.#logPages();
      this.#dueAtPages = left < this.#logPagesMax ? this.#logPagesMax : left + this.#logPagesMax;
    });
    this.#cancelIdle = this.#options.clock.after(IDLE_MS, () => void this.#endThread());
  }

  #ask(step: CheckpointStep): Promise<CheckpointAnswer> {
    const thread = this.#thread ?? this.#start();
    thread.ref();
    return new Promise((resolve) => {
      const settle = (answer: CheckpointAnswer) => {
        thread.off("message", settle).off("exit", lost).unref();
        resolve(answer);
      };
      const lost = () => settle("its thread has ended");
      thread.on("message", settle).on("exit", lost);
      thread.postMessage(step);
    });
  }

  #start(): Worker {
    const thread = new Worker(new URL("./checkpoint-thread.ts", import.meta.url), {
      workerData: this.#database.file,
      env: {},
      argv: [],
      execArgv: [],
      resourceLimits: { maxOldGenerationSizeMb: 32, maxYoungGenerationSizeMb: 2 },
    });
    this.#thread = thread;
    let reason = "";
    thread.on("error", (error) => {
      reason = (error as Error).message;
    });
    thread.on("exit", () => {
      if (this.#thread === thread) this.#thread = null;
      if (reason !== "") this.#options.log.warn({ reason }, "the thread of the checkpoints was lost");
    });
    return thread;
  }

  async #endThread(): Promise<void> {
    const thread = this.#thread;
    if (thread === null) return;
    this.#thread = null;
    thread.ref();
    const ended = new Promise((resolve) => thread.once("exit", resolve));
    thread.postMessage("end" satisfies CheckpointStep);
    await ended;
  }

  /** Starts no further one, and resolves once nothing is under way. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#cancelIdle();
    await this.#underWay;
    this.#cancelIdle();
    await this.#endThread();
  }
}
