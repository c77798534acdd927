// Free space of the database: pages that a removal has left are used again by what is written next. What is more than
// a reserve is given back to the disk, a little at a time.
//
// Only a database that was created with `auto_vacuum = INCREMENTAL` can give pages back (connect, in database.ts); an
// older one keeps its size, and uses it.

import type { SqliteDatabase } from "./database.ts";

/** A step moves this many pages at most, which takes a millisecond or so. */
const PAGES_PER_STEP = 64;
/** What stays for the next writes: so many pages (16 MiB), or a tenth of the file. */
const RESERVE_PAGES_MIN = 4_096;
const RESERVE_SHARE = 0.1;

export class SqliteFreeSpace {
  readonly #database: SqliteDatabase;

  constructor(database: SqliteDatabase) {
    this.#database = database;
  }

  /** Gives a little back, if there is too much. @returns whether there is more to give */
  async shrink(): Promise<boolean> {
    const { connection, gate, explained } = this.#database;
    const number = (pragma: string) =>
      Number(Object.values(connection.prepare(`PRAGMA ${pragma}`).get() ?? {})[0]);
    return gate.run(() => {
      const free = number("freelist_count");
      const reserve = Math.max(RESERVE_PAGES_MIN, Math.floor(number("page_count") * RESERVE_SHARE));
      if (free <= reserve || number("auto_vacuum") !== 2) return false;
      try {
        // A row for each page: all of them must be fetched, or the rest is not done.
        connection.prepare(`PRAGMA incremental_vacuum(${Math.min(PAGES_PER_STEP, free - reserve)})`).all();
      } catch (error) {
        throw explained(error);
      }
      return true;
    });
  }
}
