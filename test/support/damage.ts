// Damage as disks and people do it to a database that no program has open.

import { open, stat } from "node:fs/promises";
import { DatabaseSync } from "node:sqlite";

/** Overwrites the first page of a table: from then on SQLite cannot read it. */
export async function overwriteRootPage(file: string, table: string): Promise<void> {
  const db = new DatabaseSync(file, { readOnly: true });
  const { page_size: size } = db.prepare("PRAGMA page_size").get() as { page_size: number };
  const root = db.prepare("SELECT rootpage FROM sqlite_master WHERE name = ?").get(table)?.rootpage as number;
  db.close();
  await using handle = await open(file, "r+");
  await handle.write(Buffer.alloc(size, 0xa5), 0, size, (root - 1) * size);
}

/** Flips one bit in the middle of a file. */
export async function flipBit(file: string): Promise<void> {
  const { size } = await stat(file);
  await using handle = await open(file, "r+");
  const place = Math.floor(size / 2);
  const byte = Buffer.alloc(1);
  await handle.read(byte, 0, 1, place);
  byte[0] = (byte[0] ?? 0) ^ 1;
  await handle.write(byte, 0, 1, place);
}
