// What `troupe doctor` asks of the store: does it open, and how fast does it sync here?

import { mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { sql } from "kysely";
import { openSqlite } from "./database.ts";

const COMMITS = 25;

/**
 * Times synced commits in a database of its own, removed afterwards.
 *
 * @param folder where to make it: the disk to be measured
 * @returns the median in ms
 * @throws StoreUnusable
 */
export async function medianCommitMs(folder: string): Promise<number> {
  const scratch = mkdtempSync(join(folder, ".troupe-doctor-"));
  try {
    const database = openSqlite(join(scratch, "scratch.db"));
    try {
      const times: number[] = [];
      for (let n = 0; n < COMMITS; n++) {
        const fromMs = performance.now();
        await database.transaction((db) => sql`INSERT INTO garbage VALUES ('doctor', ${n})`.execute(db));
        times.push(performance.now() - fromMs);
      }
      return times.sort((a, b) => a - b)[Math.floor(COMMITS / 2)] ?? 0;
    } finally {
      await database.close();
    }
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}
