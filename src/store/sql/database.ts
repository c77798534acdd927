// The database as the families of tables use it. Each kind of database has this handle, its migrations and a journal.

import type { Kysely, Transaction } from "kysely";
import type { Page } from "../../lib/page.ts";
import type { Schema } from "./schema.generated.ts";

export interface Database {
  readonly kysely: Kysely<Schema>;
  /**
   * Runs one SELECT outside any transaction. It sees what is committed, maybe not on disk yet, and nothing of a
   * transaction under way.
   */
  read<Row>(sql: string, parameters: readonly unknown[]): Promise<readonly Row[]>;
  /** The same, row by row, until the texts in them come to more than `charsMax` characters; at least one row. */
  readWithin<Row>(charsMax: number, sql: string, parameters: readonly unknown[]): Promise<Page<Row>>;
  /** Resolves once everything that was committed until now is on disk. @throws JournalUnavailable */
  durable(): Promise<void>;
  /** The same of one job's commits alone: it waits for no other's. */
  durableJob(jobId: string): Promise<void>;
  /** Runs `work` in one transaction: all of it, or nothing. What resolves or rejects is on disk. */
  transaction<T>(work: (db: Transaction<Schema>) => Promise<T>): Promise<T>;
  /** The error that a caller gets for one inside a transaction: JournalUnavailable for the store's own, others unchanged. */
  explained(error: unknown): unknown;
  /** Why the store is read-only, for an operator; null while it is not damaged. */
  damage(): string | null;
}

/** The database cannot be used; the message says why, and how to fix it. */
export class StoreUnusable extends Error {
  override readonly name = "StoreUnusable";
}
