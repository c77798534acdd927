// New databases for tests: copies of one that is migrated once in each process of tests. Migrating takes 8 ms of the processor,
// and opening a copy one; a run of all tests makes thousands. That a new file is migrated, every start of the program shows.

import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openSqlite, type SqliteDatabase } from "../../src/store/sqlite/database.ts";

let migrated: Promise<Buffer> | undefined;

/** Makes a database and opens it. @param file does not exist yet */
export async function newDatabase(file: string): Promise<SqliteDatabase> {
  migrated ??= migrate();
  await writeFile(file, await migrated, { mode: 0o600, flag: "wx" });
  return openSqlite(file);
}

async function migrate(): Promise<Buffer> {
  const folder = await mkdtemp(join(tmpdir(), "troupe-migrated-"));
  const file = join(folder, "troupe.db");
  await openSqlite(file).close();
  const content = await readFile(file);
  await rm(folder, { recursive: true });
  return content;
}
