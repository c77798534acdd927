// `troupe secrets rotate`: encrypts all stored secrets under the first key. The home must be in use by no other program.

import { statSync } from "node:fs";
import { Reencryption } from "../security/encryption.ts";
import { addKey, openSecretKey, removeOlderKeys, secretKeyFile } from "../security/secret-key.ts";
import { checkHomeState, databaseFile, openHome } from "../store/home.ts";
import { openSqlite } from "../store/sqlite/database.ts";
import { holdsEncrypted, rewriteEncrypted } from "../store/sqlite/encrypted-values.ts";
import { type Call, CommandFailed, exitCodes, printAnswer, UsageError } from "./command.ts";
import { configFor } from "./connection.ts";
import { cleanText, plural } from "./text.ts";

export async function secrets(call: Call): Promise<number> {
  const [word = ""] = call.words;
  if (word !== "rotate") {
    throw new UsageError(`There is no command "secrets ${cleanText(word)}". Did you mean secrets rotate?`);
  }
  process.umask(0o077);
  const { home, secretKeys, databaseUrl } = configFor(call, "client");
  if (databaseUrl !== null) {
    throw new CommandFailed(
      "Values in a PostgreSQL database are not encrypted again. Put a new key before the present one in SVC_SECRET_KEY of every " +
        "program: what is stored from then on is encrypted with the first, and all of them decrypt.",
    );
  }
  try {
    const report = await rotate(home, secretKeys);
    return print(call, { home, isFile: secretKeys.length === 0, ...report });
  } catch (error) {
    if (!(error instanceof Error) || error instanceof CommandFailed || error instanceof UsageError)
      throw error;
    if (error.name === "StoreUnusable" || error.name === "SecretKeyUnusable")
      throw new CommandFailed(error.message);
    throw new CommandFailed(
      `Encrypting the secrets again failed (${error.message}). Nothing is lost; run the command again to continue.`,
    );
  }
}

async function rotate(home: string, given: readonly string[]) {
  // Checked before the lock, which would create the folder.
  if (statSync(databaseFile(home), { throwIfNoEntry: false }) === undefined) {
    throw new CommandFailed(`SVC_HOME ${home} has no database: there is nothing to encrypt again.`);
  }
  const lock = openHome(home);
  try {
    checkHomeState(home);
    const database = openSqlite(databaseFile(home));
    try {
      const open = () =>
        openSecretKey({ home, given, mayMake: async () => !holdsEncrypted(database.connection) });
      const isFile = given.length === 0;
      let key = await open();
      // With several keys in the file, an earlier rotation was interrupted.
      if (isFile && key.older.length === 0) {
        await addKey(secretKeyFile(home));
        key = await open();
      }
      const values = new Reencryption(key);
      const { damagedRows } = await rewriteEncrypted(database, (value) => values.value(value));
      if (isFile && damagedRows === 0) await removeOlderKeys(secretKeyFile(home));
      const { reencrypted, current, unreadable } = values;
      return { reencrypted, current, unreadable, damagedRows };
    } finally {
      await database.close();
    }
  } finally {
    lock.release();
  }
}

interface Report {
  readonly home: string;
  readonly isFile: boolean;
  readonly reencrypted: number;
  readonly current: number;
  readonly unreadable: number;
  readonly damagedRows: number;
}

function print(call: Call, report: Report): number {
  const { terminal } = call;
  const { reencrypted, current, unreadable, damagedRows } = report;
  printAnswer(call, { reencrypted, current, unreadable, damaged_rows: damagedRows }, () => {
    const [before, place] = report.isFile
      ? ["", `the new key in ${secretKeyFile(report.home)}`]
      : [`, ${current} were before`, "the first key of SVC_SECRET_KEY"];
    return cleanText(`Encrypted ${plural(reencrypted, "value")} with ${place}${before}.`);
  });
  if (unreadable > 0) {
    terminal.note(
      `warning: ${plural(unreadable, "value")} cannot be decrypted with any of the keys and are left unchanged. If you have the key, add it after the first one and run this again.`,
    );
  }
  if (damagedRows > 0) {
    terminal.note(
      `warning: ${plural(damagedRows, "row")} of the database changed after they were written and keep the older key. Keep that key until their jobs are removed, then run this again.`,
    );
  }
  if (unreadable + damagedRows > 0) return exitCodes.failure;
  terminal.note(
    report.isFile
      ? "The old key is no longer in secret.key. Backups made before need it: make a new one with `troupe backup`."
      : "No stored value needs the other keys: remove them. Backups made before need them: make a new one with `troupe backup`.",
  );
  return exitCodes.success;
}
