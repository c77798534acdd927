// What `troupe doctor` looks at. Each check answers with findings and throws nothing; nothing it makes stays.

import { spawnSync } from "node:child_process";
import { accessSync, constants, existsSync, mkdtempSync, rmSync, statfsSync } from "node:fs";
import { createServer } from "node:net";
import { dirname, join } from "node:path";
import type { Config } from "../config.ts";
import { RuntimeClient } from "./client.ts";
import { defaultUrl } from "./connection.ts";
import { bytes, cleanText } from "./text.ts";

export interface Finding {
  readonly name: string;
  readonly state: "ok" | "warn" | "fail";
  readonly text: string;
  readonly mend?: string;
}

const NODE_MAJOR = 26;
const GiB = 1024 ** 3;
const SPACE_WARN_BYTES = 2 * GiB;
const SPACE_FAIL_BYTES = GiB / 10;
const COMMIT_WARN_MS = 20;
const SCRATCH = ".troupe-doctor-";
const LOOK_TIMEOUT_MS = 2_000;

/** @param config null when it is not valid; what depends on it is left out */
export async function checkMachine(config: Config | null): Promise<readonly Finding[]> {
  const findings = [checkNode()];
  if (config !== null) {
    const home = checkHome(config.home);
    findings.push(...home);
    if (home.every(({ state }) => state !== "fail")) findings.push(await checkStore(config.home));
    findings.push(await checkPort(config));
  }
  return [...findings, ...checkTools(), checkProc()];
}

function checkNode(): Finding {
  const major = Number(process.versions.node.split(".")[0]);
  if (major >= NODE_MAJOR) return { name: "node", state: "ok", text: process.version };
  return {
    name: "node",
    state: "fail",
    text: `${process.version} is too old`,
    mend: `Install Node ${NODE_MAJOR}, or run \`npm ci\` without --omit=optional: it brings one.`,
  };
}

/** Writes into the home, or into the nearest folder above it while it does not exist yet. */
function checkHome(home: string): readonly Finding[] {
  const present = nearestExisting(home);
  try {
    accessSync(present, constants.W_OK | constants.X_OK);
    rmSync(mkdtempSync(join(present, SCRATCH)), { recursive: true });
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    const mend = `Give this user write permission to ${present}, or point SVC_HOME at another folder.`;
    return [{ name: "home", state: "fail", text: `${home} cannot be written: ${reason}`, mend }];
  }
  const text = present === home ? `${home} can be written` : `${home} will be made at the first start`;
  const { bavail, bsize } = statfsSync(present);
  return [{ name: "home", state: "ok", text }, checkSpace(bavail * bsize)];
}

function checkSpace(freeBytes: number): Finding {
  const text = `${bytes(freeBytes)} free`;
  if (freeBytes >= SPACE_WARN_BYTES) return { name: "disk", state: "ok", text };
  return {
    name: "disk",
    state: freeBytes < SPACE_FAIL_BYTES ? "fail" : "warn",
    text,
    mend: "Free some space, lower SVC_RETENTION_DAYS, or point SVC_HOME at a larger disk.",
  };
}

/** The folder itself, or the nearest one above it that exists. */
function nearestExisting(path: string): string {
  let present = path;
  while (!existsSync(present) && dirname(present) !== present) present = dirname(present);
  return present;
}

/** Opens the store of the home, and times synced commits beside it, on the same disk. */
async function checkStore(home: string): Promise<Finding> {
  const { openSqlite } = await import("../store/sqlite/database.ts");
  const { databaseFile } = await import("../store/home.ts");
  const { medianCommitMs } = await import("../store/sqlite/self-check.ts");
  try {
    if (!(await isInUse(home)) && existsSync(databaseFile(home)))
      await openSqlite(databaseFile(home)).close();
    const medianMs = await medianCommitMs(nearestExisting(home));
    const text = `SQLite opens; a synced commit takes ${medianMs.toFixed(2)} ms`;
    if (medianMs < COMMIT_WARN_MS) return { name: "store", state: "ok", text };
    const mend = "The disk syncs slowly; a local SSD makes every job faster.";
    return { name: "store", state: "warn", text, mend };
  } catch (error) {
    // The store's own errors say how to mend them.
    return { name: "store", state: "fail", text: error instanceof Error ? error.message : String(error) };
  }
}

/** Whether a runtime has this home; its store is then open, and not to be touched. */
async function isInUse(home: string): Promise<boolean> {
  if (!existsSync(home)) return false;
  const { openHome } = await import("../store/home.ts");
  try {
    openHome(home).release();
    return false;
  } catch {
    return true;
  }
}

async function checkPort(config: Config): Promise<Finding> {
  const port = config.runtimeApiPort;
  const name = "port";
  if (port === 0) return { name, state: "ok", text: "the runtime API takes any free port" };
  const refused = await tryToListen(config.runtimeApiHost, port);
  if (refused === null) return { name, state: "ok", text: `${port} is free` };
  if (refused !== "EADDRINUSE") {
    const mend = "Choose another address with SVC_RUNTIME_API_HOST and SVC_RUNTIME_API_PORT.";
    return {
      name,
      state: "fail",
      text: `${config.runtimeApiHost}:${port} cannot be used (${refused})`,
      mend,
    };
  }
  const version = await runningVersion(defaultUrl(config) ?? "");
  if (version !== null) return { name, state: "ok", text: `${port} is held by a running Troupe ${version}` };
  const mend = "End the program that listens there, or set SVC_RUNTIME_API_PORT.";
  return { name, state: "fail", text: `${port} is held by another program`, mend };
}

function tryToListen(host: string, port: number): Promise<string | null> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once("error", (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
    server.listen({ host, port, exclusive: true }, () => server.close(() => resolve(null)));
  });
}

async function runningVersion(baseUrl: string): Promise<string | null> {
  const client = new RuntimeClient({ baseUrl, signal: AbortSignal.timeout(LOOK_TIMEOUT_MS) });
  const health = await client.health().catch(() => null);
  return health === null ? null : cleanText(health.version);
}

interface Tool {
  readonly name: string;
  readonly args: readonly string[];
  readonly missing: "warn" | "fail";
  readonly need: string;
}

const tools: readonly Tool[] = [
  {
    name: "sh",
    args: ["-c", "echo present"],
    missing: "fail",
    need: "Commands given as one string run through /bin/sh.",
  },
  {
    name: "mkfifo",
    args: ["--version"],
    missing: "fail",
    need: "Workers write through named pipes; install coreutils.",
  },
  {
    name: "python3",
    args: ["--version"],
    missing: "warn",
    need: "Python workers, the examples' among them, need it: `apt install python3`.",
  },
  {
    name: "bwrap",
    args: ["--version"],
    missing: "warn",
    need: "Sandboxed workers need bubblewrap: `apt install bubblewrap`.",
  },
];

function checkTools(): readonly Finding[] {
  return tools.map(({ name, args, missing, need }) => {
    const run = spawnSync(name, args, { encoding: "utf8", timeout: LOOK_TIMEOUT_MS });
    const isThere = run.error === undefined;
    if (!isThere) return { name, state: missing, text: "not found on the PATH", mend: need };
    return { name, state: "ok", text: cleanText(run.stdout.split("\n", 1)[0] ?? "") || "present" };
  });
}

function checkProc(): Finding {
  if (existsSync("/proc/self/environ"))
    return { name: "/proc", state: "ok", text: "escaped processes can be found" };
  return {
    name: "/proc",
    state: "warn",
    text: "not there: a worker's processes are found by their group only",
    mend: "On Linux, mount /proc; elsewhere nothing is to be done.",
  };
}
