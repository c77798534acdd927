// Whether the store takes writes, for health checks.
//
// - While writes succeed, a check costs nothing: it reports the last write.
// - Once one has failed, a check tries a small write, at most once per PROBE_MS, so that it notices the recovery even
//   when nothing else writes.

import { sql } from "kysely";
import { JournalUnavailable } from "../../engine/journal.ts";
import type { Database } from "./database.ts";

const PROBE_MS = 1_000;

export class StoreWatch {
  /** The same database; what is written through this one is watched. */
  readonly database: Database;
  readonly #nowMs: () => number;
  #problem: string | null = null;
  #probe: Promise<unknown> | null = null;
  #probedAtMs = Number.NEGATIVE_INFINITY;

  /** @param nowMs wall time in ms since 1970 */
  constructor(database: Database, nowMs: () => number) {
    this.#nowMs = nowMs;
    // The current transaction, with the error of a part that was rolled back alone. Transactions never overlap.
    let underWay: { problem: string | null } = { problem: null };
    const noted = (error: unknown) => {
      if (error instanceof JournalUnavailable) underWay.problem = error.message;
      return error;
    };
    this.database = {
      ...database,
      explained: (error) => noted(database.explained(error)),
      transaction: async (work) => {
        const own: typeof underWay = { problem: null };
        try {
          const value = await database.transaction((db) => {
            underWay = own;
            return work(db);
          });
          this.#problem = own.problem;
          return value;
        } catch (error) {
          if (error instanceof JournalUnavailable) this.#problem = error.message;
          throw error;
        }
      },
    };
  }

  /** Why the store takes no writes; null while it does. */
  async problem(): Promise<string | null> {
    const damage = this.database.damage();
    if (damage !== null || this.#problem === null) return damage;
    if (this.#probe === null && Math.abs(this.#nowMs() - this.#probedAtMs) >= PROBE_MS) {
      this.#probedAtMs = this.#nowMs();
      this.#probe = this.database
        .transaction((db) => sql`UPDATE schema_migrations SET name = name`.execute(db))
        .catch((error: unknown) => {
          if (!(error instanceof JournalUnavailable)) throw error;
        })
        .finally(() => {
          this.#probe = null;
        });
    }
    await this.#probe;
    return this.#problem;
  }
}
