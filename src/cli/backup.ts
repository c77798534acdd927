// `troupe backup` and `troupe restore`: a home as one file, and back. Both work on SVC_HOME itself, without a server.

import { lstat } from "node:fs/promises";
import type { Config } from "../app/config.ts";
import { programVersion } from "../lib/version.ts";
import { type Call, CommandFailed, exitCodes, printAnswer } from "./command.ts";
import { configFor } from "./connection.ts";
import { listenForInterrupts } from "./interrupts.ts";
import { bytes, cleanText, plural, writeFailure } from "./text.ts";

const PATHS_SHOWN = 10;

export async function backup(call: Call): Promise<number> {
  const [file = ""] = call.words;
  return inHome(call, `Writing the backup ${file}`, async ({ home, blobUrl, databaseUrl }, signal) => {
    if (databaseUrl !== null) {
      throw new CommandFailed(
        "A backup holds a SQLite database, and SVC_DATABASE_URL is set: back that database up with `pg_dump`, and then copy " +
          "SVC_HOME (docs/operating.md).",
      );
    }
    const { backUp } = await import("../backup/backup.ts");
    if (call.flag("force") !== true && (await lstat(file).catch(() => null)) !== null) {
      throw new CommandFailed(`${file} exists already. Choose another name, or replace it with --force.`);
    }
    const withKey = call.flag("with-key") === true;
    const createdAt = new Date().toISOString();
    const withArtifacts = blobUrl === null;
    const request = { home, file, withKey, withArtifacts, createdAt, version: programVersion(), signal };
    const { missing, damaged, hasKey, ...size } = await backUp(request);
    const { terminal } = call;
    const has = { has_key: hasKey, has_artifacts: withArtifacts };
    printAnswer(call, { file, ...size, ...has, missing, damaged }, () =>
      cleanText(`Backed up ${home} to ${file}: ${plural(size.files, "file")}, ${bytes(size.bytes)}.`),
    );
    if (!hasKey) {
      terminal.note(
        "The secret key is not in it: keep a copy of secret.key (or SVC_SECRET_KEY) apart. Without it the backup restores, but not its secrets.",
      );
    }
    if (!withArtifacts) {
      terminal.note(
        "The contents of artifacts are not in it: they are in the store that SVC_BLOB_URL names. Back that up by its own means, after this.",
      );
    }
    notePaths(call, missing, "missing from the home, and so from the backup");
    notePaths(call, damaged, "damaged in the home, and so in the backup");
    return missing.length + damaged.length === 0 ? exitCodes.success : exitCodes.failure;
  });
}

export async function restore(call: Call): Promise<number> {
  const [file = ""] = call.words;
  return inHome(call, `Restoring ${file}`, async ({ home, secretKeys }, signal) => {
    const { restore: restoreHome } = await import("../backup/restore.ts");
    const { about, missing, lacksKey, ...size } = await restoreHome({ file, home, signal });
    const { terminal } = call;
    const document = { home, ...size, created_at: about.created_at, has_key: about.has_key, missing };
    printAnswer(call, document, () => {
      const restored = `${plural(size.files, "file")}, ${bytes(size.bytes)}, as of ${about.created_at}`;
      return cleanText(`Restored ${file} to ${home}: ${restored}. \`troupe up\` starts it.`);
    });
    if (lacksKey && secretKeys.length === 0) {
      terminal.note(
        `The secret key was not in the backup: put the old home's secret.key into ${home} before the start, or set SVC_SECRET_KEY.`,
      );
    }
    notePaths(call, missing, "missing from the backup");
    return missing.length === 0 ? exitCodes.success : exitCodes.failure;
  });
}

/** Does the work with files private to this user, and turns errors into messages. */
async function inHome(
  call: Call,
  doing: string,
  work: (config: Config, signal: AbortSignal) => Promise<number>,
): Promise<number> {
  process.umask(0o077);
  const interrupts = listenForInterrupts(() => process.exit(exitCodes.interrupted));
  try {
    return await work(configFor(call, "client"), interrupts.signal);
  } catch (error) {
    if (interrupts.signal.aborted) return exitCodes.interrupted;
    if (!(error instanceof Error) || error instanceof CommandFailed) throw error;
    if (error.name === "StoreUnusable" || error.name === "RestoreRefused")
      throw new CommandFailed(error.message);
    throw new CommandFailed(`${doing} failed: ${writeFailure(error)}.`);
  } finally {
    interrupts.release();
  }
}

function notePaths({ terminal }: Call, paths: readonly string[], text: string): void {
  if (paths.length === 0) return;
  terminal.note(`warning: ${plural(paths.length, "path")} ${text}:`);
  for (const path of paths.slice(0, PATHS_SHOWN)) terminal.note(cleanText(`  ${path}`));
  if (paths.length > PATHS_SHOWN) terminal.note(`  … and ${paths.length - PATHS_SHOWN} more`);
}
