// The program as its next version might be: the same with another version number and one more migration, which adds to the
// tables and admits this version; and as a later one that does not admit it any more.

import { cpSync, globSync, mkdtempSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { launcher } from "./packed-program.ts";

const MIGRATION = "9001-later.sql";

/** To every table, and a table. */
export const ADDITIONS = {
  postgres: `DO $$ DECLARE one text; BEGIN
      FOR one IN SELECT tablename FROM pg_tables WHERE schemaname = current_schema()
      LOOP EXECUTE 'ALTER TABLE ' || quote_ident(one) || ' ADD COLUMN later TEXT NOT NULL DEFAULT ''x'''; END LOOP;
    END $$;
    CREATE TABLE later (id BIGINT PRIMARY KEY);`,
  sqlite: (tables: readonly string[]) =>
    `${tables.map((table) => `ALTER TABLE ${table} ADD COLUMN later TEXT NOT NULL DEFAULT 'x';`).join("")}
    CREATE TABLE later (id INTEGER PRIMARY KEY) STRICT;
    INSERT INTO schema_migrations (name) VALUES ('${MIGRATION}');`,
};

/**
 * @param isLater whether it admits only programs of its own version
 * @returns its launcher, in a folder that is the caller's to remove
 */
export function nextVersion(
  version: string,
  isLater = false,
): { readonly folder: string; readonly launcher: string } {
  const root = dirname(dirname(launcher));
  const folder = mkdtempSync(join(tmpdir(), "troupe-next-"));
  for (const path of globSync(["bin", "src", "sdk/src", "sdk/package.json", "dist", "package.json"], {
    cwd: root,
  }))
    cpSync(join(root, path), join(folder, path), { recursive: true });
  symlinkSync(join(root, "node_modules"), join(folder, "node_modules"));
  for (const path of globSync(["package.json", "dist/package.json"], { cwd: folder })) {
    const file = join(folder, path);
    const stated = JSON.parse(readFileSync(file, "utf8")) as object;
    writeFileSync(file, JSON.stringify({ ...stated, version }));
  }
  const last = "9002-removal.sql";
  for (const path of globSync("{src,dist/src}/store/postgres/migrations", { cwd: folder })) {
    writeFileSync(join(folder, path, MIGRATION), ADDITIONS.postgres);
    const admits = `UPDATE schema_admits SET oldest = '${last}', version = '${version}'`;
    if (isLater) writeFileSync(join(folder, path, last), admits);
  }
  return { folder, launcher: join(folder, "bin", "troupe.mjs") };
}
