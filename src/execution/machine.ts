// What Troupe needs of the machine: checks that `troupe doctor` and a running server share.
//
// - A check never throws: an error is its finding. It removes everything it made.
// - A finding names folders as the caller calls them, so that a server's answer does not show its paths.

import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { access, constants, mkdtemp, open, rm, statfs } from "node:fs/promises";
import { createServer } from "node:net";
import { dirname, join } from "node:path";
import { canMark } from "./process/process-marks.ts";

export interface Finding {
  readonly name: string;
  readonly state: "ok" | "warn" | "fail";
  readonly text: string;
  /** What to do about it. */
  readonly fix?: string;
}

const NODE_MAJOR = 26;
const MiB = 1024 ** 2;
const SPACE_WARN_BYTES = 2048 * MiB;
const SPACE_FAIL_BYTES = 100 * MiB;
const SYNCED_WRITES = 9;
const SYNC_WARN_MS = 20;
const TOOL_TIMEOUT_MS = 2_000;
const TOOL_TEXT_CHARS_MAX = 200;
/** How what a check writes into a folder begins. */
const SCRATCH = ".troupe-doctor-";

export function checkNode(): Finding {
  const major = Number(process.versions.node.split(".")[0]);
  if (major >= NODE_MAJOR) return { name: "node", state: "ok", text: process.version };
  return {
    name: "node",
    state: "fail",
    text: `${process.version} is too old`,
    fix: `Install Node ${NODE_MAJOR}, or run \`npm ci\` without --omit=optional: it brings one.`,
  };
}

/**
 * Whether the home can be written, and whether its disk has room. While it does not exist yet, the nearest folder
 * above it stands for it.
 *
 * @param shown what findings call the folder
 */
export async function checkHome(home: string, shown: string): Promise<readonly Finding[]> {
  const present = nearestExisting(home);
  try {
    await access(present, constants.W_OK | constants.X_OK);
    await rm(await mkdtemp(join(present, SCRATCH)), { recursive: true });
    const text = present === home ? `${shown} can be written` : `${shown} will be made at the first start`;
    const { bavail, bsize } = await statfs(present);
    return [{ name: "home", state: "ok", text }, checkSpace(bavail * bsize)];
  } catch (error) {
    const fix = `Give this user write permission to ${shown}, or point SVC_HOME at another folder.`;
    return [{ name: "home", state: "fail", text: `${shown} cannot be written (${codeOf(error)})`, fix }];
  }
}

/** The folder itself, or the nearest one above it that exists. */
export function nearestExisting(path: string): string {
  let present = path;
  while (!existsSync(present) && dirname(present) !== present) present = dirname(present);
  return present;
}

function checkSpace(freeBytes: number): Finding {
  const text = `${freeBytes >= 1024 * MiB ? `${(freeBytes / MiB / 1024).toFixed(1)} GiB` : `${Math.floor(freeBytes / MiB)} MiB`} free`;
  if (freeBytes >= SPACE_WARN_BYTES) return { name: "disk", state: "ok", text };
  return {
    name: "disk",
    state: freeBytes < SPACE_FAIL_BYTES ? "fail" : "warn",
    text,
    fix: "Free some space, lower SVC_RETENTION_DAYS, or point SVC_HOME at a larger disk.",
  };
}

/**
 * How fast the disk of a folder makes writes durable, measured without holding the event loop: synced writes into a file
 * of its own, which is removed afterwards.
 */
export async function checkDiskSync(folder: string): Promise<Finding> {
  const path = join(folder, `${SCRATCH}sync-${process.pid}`);
  const file = await open(path, "w", 0o600);
  try {
    const times: number[] = [];
    for (let i = 0; i < SYNCED_WRITES; i++) {
      const fromMs = performance.now();
      await file.write("x".repeat(512));
      await file.datasync();
      times.push(performance.now() - fromMs);
    }
    times.sort((a, b) => a - b);
    return syncFinding(times[Math.floor(SYNCED_WRITES / 2)] ?? 0);
  } finally {
    await file.close();
    await rm(path, { force: true });
  }
}

function syncFinding(medianMs: number): Finding {
  const text = `a synced write takes ${medianMs.toFixed(2)} ms`;
  if (medianMs < SYNC_WARN_MS) return { name: "disk sync", state: "ok", text };
  const fix = "The disk syncs slowly; a local SSD makes every job faster.";
  return { name: "disk sync", state: "warn", text, fix };
}

/**
 * Whether a port can be listened on.
 *
 * @returns null when it can, else the system's code for why not
 */
export function tryToListen(host: string, port: number): Promise<string | null> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once("error", (error) => resolve(codeOf(error)));
    server.listen({ host, port, exclusive: true }, () => server.close(() => resolve(null)));
  });
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
];

/**
 * The programs that workers are run with, on this process's PATH.
 *
 * @param timeoutMs after which a program that prints nothing counts as missing
 */
export function checkTools({ timeoutMs = TOOL_TIMEOUT_MS } = {}): Promise<readonly Finding[]> {
  return Promise.all(tools.map((tool) => checkTool(tool, timeoutMs)));
}

function checkTool({ name, args, missing, need }: Tool, timeoutMs: number): Promise<Finding> {
  return new Promise((resolve) => {
    execFile(name, args, { timeout: timeoutMs, killSignal: "SIGKILL" }, (error, stdout) => {
      // One that is there but complains (a mkfifo without --version) is there.
      if (error !== null && typeof error.code === "string") {
        resolve({ name, state: missing, text: "not found on the PATH", fix: need });
      } else if (error?.killed === true) {
        const text = `did not answer within ${timeoutMs / 1_000} s`;
        resolve({ name, state: missing, text, fix: need });
      } else {
        const [line = ""] = stdout.split("\n", 1);
        resolve({ name, state: "ok", text: line.slice(0, TOOL_TEXT_CHARS_MAX) || "present" });
      }
    });
  });
}

/** By what the processes that a command leaves behind are found, and ended with it. */
export function checkProc(): Finding {
  const name = "orphans";
  if (!existsSync("/proc/self/limits")) {
    const text = "there is no /proc: a worker's processes are found by their process group only";
    return { name, state: "warn", text, fix: "On Linux, mount /proc; elsewhere nothing is to be done." };
  }
  if (canMark()) return { name, state: "ok", text: "found by a limit that they inherit (of file locks)" };
  return {
    name,
    state: "warn",
    text: "found by their process group and their parents only: limits cannot be set",
    fix: "Use Node 26.9 or newer, with node:ffi, such as the one that npm installs with Troupe.",
  };
}

/** The system's name for an error, which unlike its message holds no path. */
function codeOf(error: unknown): string {
  return (error as NodeJS.ErrnoException).code ?? "unknown error";
}
