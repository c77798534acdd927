// Group commit: writes submitted at the same moment share one transaction, and so one sync of the disk.
//
// - A work that resolved is on disk; one that rejected has written nothing.
// - Works run one after the other, in the order of their submission; a later one sees the writes of earlier ones.
// - A work that throws is rolled back and rejects alone. When the transaction itself fails, all of them reject.
// - Between two groups the database is free for the journal and others.

import { CompiledQuery, type Transaction } from "kysely";
import type { Clock } from "../../engine/ports.ts";
import type { Database } from "./database.ts";
import type { Schema } from "./schema.generated.ts";

const WORKS_PER_COMMIT_MAX = 256;

const SAVEPOINT = CompiledQuery.raw("savepoint work");
const RELEASE = CompiledQuery.raw("release work");
const ROLL_BACK = CompiledQuery.raw("rollback to work");

/** Must await nothing but `db`, because it blocks all other writes. */
export type Work<T> = (db: Transaction<Schema>) => Promise<T>;

interface Waiting {
  readonly work: Work<unknown>;
  resolve(value: unknown): void;
  reject(error: unknown): void;
}

export class CommitGroup {
  readonly #database: Database;
  readonly #soon: Clock["soon"];
  #waiting: Waiting[] = [];
  #isUnderWay = false;

  /** @param soon calls back after the current requests were handled: those that arrive until then join the group */
  constructor(database: Database, soon: Clock["soon"]) {
    this.#database = database;
    this.#soon = soon;
  }

  /**
   * Runs `work` in a transaction that others may share, and resolves with its value after the commit.
   *
   * @throws JournalUnavailable when nothing was written and the same may be tried again; and what `work` throws
   */
  run<T>(work: Work<T>): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      this.#waiting.push({ work, resolve: resolve as Waiting["resolve"], reject });
      this.#next();
    });
  }

  #next(): void {
    if (this.#isUnderWay || this.#waiting.length === 0) return;
    this.#isUnderWay = true;
    this.#soon(() => void this.#commit(this.#waiting.splice(0, WORKS_PER_COMMIT_MAX)));
  }

  async #commit(group: readonly Waiting[]): Promise<void> {
    try {
      const settlements = await this.#database.transaction((db) => this.#runEach(db, group));
      for (const settle of settlements) settle();
    } catch (error) {
      for (const one of group) one.reject(error);
    } finally {
      this.#isUnderWay = false;
      this.#next();
    }
  }

  /** @returns callbacks that settle each work, to be called after the commit */
  async #runEach(db: Transaction<Schema>, group: readonly Waiting[]): Promise<(() => void)[]> {
    const settlements: (() => void)[] = [];
    for (const { work, resolve, reject } of group) {
      try {
        const value = await atSavepoint(db, () => work(db));
        settlements.push(() => resolve(value));
      } catch (error) {
        if (error instanceof TransactionLost) throw error.cause;
        const reason = this.#database.explained(error);
        settlements.push(() => reject(reason));
      }
    }
    return settlements;
  }
}

/** SQLite rolls back the whole transaction for some errors: then that error is the cause, and not the lost savepoint. */
class TransactionLost extends Error {
  override readonly name = "TransactionLost";
}

/** Does work inside a transaction that is undone alone when it throws. May be nested. */
export async function atSavepoint<T>(db: Transaction<Schema>, work: () => Promise<T>): Promise<T> {
  await db.executeQuery(SAVEPOINT);
  try {
    const value = await work();
    await db.executeQuery(RELEASE);
    return value;
  } catch (cause) {
    if (cause instanceof TransactionLost) throw cause;
    try {
      await db.executeQuery(ROLL_BACK);
      await db.executeQuery(RELEASE);
    } catch {
      throw new TransactionLost("the transaction was rolled back", { cause });
    }
    throw cause;
  }
}
