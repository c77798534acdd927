// `troupe secrets rotate`: encrypts all stored secrets under the first key. No other program may use the home, or the PostgreSQL
// database.

import { statSync } from "node:fs";
import type { Config } from "../app/config.ts";
import { Reencryption } from "../security/encryption.ts";
import {
  addKey,
  openSecretKey,
  removeOlderKeys,
  type SecretKey,
  type SecretKeyPlace,
  secretKeyFile,
} from "../security/secret-key.ts";
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
  const config = configFor(call, "client");
  const { home, secretKeys, databaseUrl } = config;
  try {
    const report = await rotate(config);
    return print(call, { home, isFile: secretKeys.length === 0, isShared: databaseUrl !== null, ...report });
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

async function rotate({ home, secretKeys: given, databaseUrl, databaseIsPooled }: Config) {
  // Checked before the lock, which would create the folder.
  if (databaseUrl === null && statSync(databaseFile(home), { throwIfNoEntry: false }) === undefined) {
    throw new CommandFailed(`SVC_HOME ${home} has no database: there is nothing to encrypt again.`);
  }
  const lock = openHome(home);
  try {
    if (databaseUrl === null) return await rotateHere(home, given);
    const { rotateKey } = await import("../store/postgres/rotate-key.ts");
    const open = () => openSecretKey({ home, given, mayMake: async () => false });
    return await withNewKey({ home, given, open }, async (key, values) => {
      const keyIds = [key.id, ...key.older.map(({ id }) => id)] as const;
      const reencrypt = (encrypted: string) => values.value(encrypted);
      await rotateKey({ url: databaseUrl, isPooled: databaseIsPooled, keyIds, reencrypt });
      return 0;
    });
  } finally {
    lock.release();
  }
}

async function rotateHere(home: string, given: readonly string[]) {
  checkHomeState(home);
  const database = openSqlite(databaseFile(home));
  try {
    const mayMake = async () => !holdsEncrypted(database.connection);
    const open = () => openSecretKey({ home, given, mayMake });
    return await withNewKey({ home, given, open }, async (_, values) => {
      const { damagedRows } = await rewriteEncrypted(database, (value) => values.value(value));
      return damagedRows;
    });
  } finally {
    await database.close();
  }
}

/** @param rewrite encrypts all values again. @returns how many rows keep the older key */
async function withNewKey(
  { home, given, open }: Pick<SecretKeyPlace, "home" | "given"> & { readonly open: () => Promise<SecretKey> },
  rewrite: (key: SecretKey, values: Reencryption) => Promise<number>,
) {
  let key = await open();
  // With several keys in the file, an earlier rotation was interrupted.
  const isFile = given.length === 0;
  if (isFile && key.older.length === 0) {
    await addKey(secretKeyFile(home));
    key = await open();
  }
  const values = new Reencryption(key);
  const damagedRows = await rewrite(key, values);
  if (isFile && damagedRows === 0) await removeOlderKeys(secretKeyFile(home));
  const { reencrypted, current, unreadable } = values;
  return { reencrypted, current, unreadable, damagedRows };
}

interface Report {
  readonly home: string;
  readonly isFile: boolean;
  /** Whether other homes have to get the new key. */
  readonly isShared: boolean;
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
  const backup = report.isShared ? "pg_dump" : "`troupe backup`";
  if (report.isFile && report.isShared)
    terminal.note(
      "Copy secret.key into the SVC_HOME of every other node before its start: it is refused without it.",
    );
  terminal.note(
    report.isFile
      ? `The old key is no longer in secret.key. Backups made before need it: make a new one with ${backup}.`
      : `No stored value needs the other keys: remove them. Backups made before need them: make a new one with ${backup}.`,
  );
  return exitCodes.success;
}
