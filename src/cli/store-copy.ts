// `troupe store copy`: moves the SQLite database of a stopped program into an empty PostgreSQL database.

import { statSync } from "node:fs";
import { systemRandomness } from "../app/clock.ts";
import { loadConfig } from "../app/config.ts";
import { databaseFile, openHome } from "../store/home.ts";
import { type Call, CommandFailed, exitCodes, printAnswer, UsageError } from "./command.ts";
import { cleanText, pad, plural } from "./text.ts";

export async function store(call: Call): Promise<number> {
  const [word = ""] = call.words;
  if (word !== "copy") {
    throw new UsageError(`There is no command "store ${cleanText(word)}". Did you mean store copy?`);
  }
  process.umask(0o077);
  const to = call.text("to");
  // A given address is checked, and its password kept from being shown, as that of the environment is.
  const loaded = loadConfig(to === null ? call.env : { ...call.env, SVC_DATABASE_URL: to }, "client");
  if (loaded.kind === "invalid") throw new UsageError(loaded.problems.join("\n"));
  const { home, secretKeys, databaseUrl } = loaded.config;
  if (databaseUrl === null) {
    throw new UsageError(
      "Where to? Set SVC_DATABASE_URL, or give --to postgres://user:password@host/database",
    );
  }
  try {
    const { server, tables } = await copy(home, databaseUrl, secretKeys);
    const rows = tables.reduce((sum, table) => sum + table.rows, 0);
    printAnswer(call, { home, to: server, rows, tables }, () => [
      ...tables.map((table) => cleanText(`${pad(table.name, NAME_COLUMNS)} ${table.rows}`)),
      cleanText(`Copied ${plural(rows, "row")} from ${home} to ${server}; every table was compared.`),
    ]);
    call.terminal.note(
      "Start with SVC_DATABASE_URL and the same SVC_HOME: its files belong to the copy now. The SQLite database is as it was.",
    );
    return exitCodes.success;
  } catch (error) {
    if (error instanceof Error && /^(StoreUnusable|SecretKeyUnusable)$/.test(error.name))
      throw new CommandFailed(error.message);
    throw error;
  }
}

const NAME_COLUMNS = 18;

async function copy(home: string, url: string, given: readonly string[]) {
  // Checked before the lock, which would create the folder.
  if (statSync(databaseFile(home), { throwIfNoEntry: false }) === undefined) {
    throw new CommandFailed(`SVC_HOME ${home} has no SQLite database: there is nothing to copy.`);
  }
  const { copyToPostgres, keyNeededBy } = await import("../store/copy-to-postgres.ts");
  const { openSecretKey } = await import("../security/secret-key.ts");
  const lock = openHome(home);
  try {
    const key = await openSecretKey({ home, given, mayMake: async () => !keyNeededBy(home) });
    return await copyToPostgres({ home, url, keyId: key.id, copyId: systemRandomness.id() });
  } finally {
    lock.release();
  }
}
