// The machine's processes, read from /proc, or from `ps` where there is no /proc.
//
// T1. A process is identified by its id and its start together: ids are used again.
// T2. Reading never blocks the event loop, and a process that ends meanwhile is left out.

import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { open, readdir, readFile, stat } from "node:fs/promises";
import { readProcFile } from "./proc-file.ts";
import { markIn } from "./process-marks.ts";

/** The variable by which a worker's whole process tree is found, wherever it went. */
export const MARK_VARIABLE = "SVC_TASK_MARK";

export interface ProcessEntry {
  readonly pid: number;
  readonly parentPid: number;
  readonly groupId: number;
  /** Differs between two processes that had the same id. */
  readonly start: string;
  /** Ended, and only waits for its parent to notice. */
  readonly zombie: boolean;
  /** The mark in its limits or in its environment; null without one, or when it cannot be seen. */
  readonly mark: string | null;
}

/** A file as the system knows it, whatever its name. */
export interface FileIdentity {
  readonly dev: number;
  readonly ino: number;
}

/** A way to look at the machine's processes. */
export interface ProcessSource {
  /** Whether it shows marks. */
  readonly seesMarks: boolean;
  /** @param markPrefix only marks that begin so are in the answer */
  read(markPrefix: string): Promise<readonly ProcessEntry[]>;
  /** The processes among the given ones that hold one of the files open, as far as that can be seen. */
  holders(
    processes: readonly ProcessEntry[],
    files: readonly FileIdentity[],
  ): Promise<readonly ProcessEntry[]>;
  /** The start of the process that has this id now; null when there is none, or it cannot be had at once. */
  startOf(pid: number): string | null;
}

export const procSource: ProcessSource = { seesMarks: true, read: readProc, holders, startOf };
export const psSource: ProcessSource = {
  seesMarks: false,
  read: readPs,
  holders: async () => [],
  startOf: () => null,
};

/** The source this machine has. */
export const machineSource: ProcessSource = existsSync("/proc/self/environ") ? procSource : psSource;

/** Processes read at a time: enough to be quick, and few enough not to fill the thread pool. */
const READERS = 4;

async function readProc(markPrefix: string): Promise<readonly ProcessEntry[]> {
  const pids = (await readdir("/proc")).filter((name) => /^\d+$/.test(name)).map(Number);
  const entries: ProcessEntry[] = [];
  const reader = async () => {
    for (let pid = pids.pop(); pid !== undefined; pid = pids.pop()) {
      const entry = await readOne(pid, markPrefix);
      if (entry !== null) entries.push(entry);
    }
  };
  await Promise.all(Array.from({ length: READERS }, reader));
  return entries;
}

async function readOne(pid: number, markPrefix: string): Promise<ProcessEntry | null> {
  try {
    const seen = parseStat(await readFile(`/proc/${pid}/stat`, "latin1"));
    if (seen === null) return null;
    if (seen.zombie) return { pid, ...seen, mark: null };
    const limit = markIn(await readFile(`/proc/${pid}/limits`, "latin1").catch(() => ""));
    const mark = limit?.startsWith(markPrefix) ? limit : await readMark(pid, markPrefix);
    return { pid, ...seen, mark };
  } catch {
    return null;
  }
}

async function holders(
  processes: readonly ProcessEntry[],
  files: readonly FileIdentity[],
): Promise<readonly ProcessEntry[]> {
  const found: ProcessEntry[] = [];
  for (const entry of processes) if (await holdsOne(entry.pid, files)) found.push(entry);
  return found;
}

async function holdsOne(pid: number, files: readonly FileIdentity[]): Promise<boolean> {
  // Another user's process cannot be looked into, and one that ends meanwhile holds nothing.
  const fds = await readdir(`/proc/${pid}/fd`).catch(() => []);
  for (const fd of fds) {
    const open = await stat(`/proc/${pid}/fd/${fd}`).catch(() => null);
    if (open !== null && files.some(({ dev, ino }) => dev === open.dev && ino === open.ino)) return true;
  }
  return false;
}

type Stat = Omit<ProcessEntry, "pid" | "mark">;

/** The name in parentheses may hold anything, so fields are counted from the last parenthesis. */
function parseStat(text: string): Stat | null {
  const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
  const [state, parent, group] = fields;
  const start = fields[19];
  if (state === undefined || parent === undefined || group === undefined || start === undefined) return null;
  return { parentPid: Number(parent), groupId: Number(group), start, zombie: state === "Z" || state === "X" };
}

const ENVIRONMENT_BYTES_MAX = 8 * 1024 * 1024;
const READ_BYTES = 64 * 1024;

/** The mark in a process's environment; another user's process cannot be seen, and has none of ours. */
async function readMark(pid: number, markPrefix: string): Promise<string | null> {
  const wanted = `${MARK_VARIABLE}=${markPrefix}`;
  let text = "";
  try {
    await using file = await open(`/proc/${pid}/environ`, "r");
    const chunk = Buffer.allocUnsafe(READ_BYTES);
    for (;;) {
      const { bytesRead } = await file.read(chunk, 0, READ_BYTES, null);
      text += chunk.toString("latin1", 0, bytesRead);
      if (bytesRead === 0 || text.length > ENVIRONMENT_BYTES_MAX) break;
    }
  } catch {
    return null;
  }
  const at = text.startsWith(wanted) ? 0 : text.indexOf(`\0${wanted}`) + 1;
  if (at === 0 && !text.startsWith(wanted)) return null;
  const end = text.indexOf("\0", at);
  return text.slice(at + MARK_VARIABLE.length + 1, end === -1 ? text.length : end);
}

function startOf(pid: number): string | null {
  const text = readProcFile(`/proc/${pid}/stat`);
  return text === null ? null : (parseStat(text)?.start ?? null);
}

const PS_OUTPUT_BYTES_MAX = 32 * 1024 * 1024;

async function readPs(): Promise<readonly ProcessEntry[]> {
  const output = await new Promise<string>((resolve, reject) => {
    const args = ["-A", "-o", "pid=,ppid=,pgid=,stat=,lstart="];
    const options = {
      maxBuffer: PS_OUTPUT_BYTES_MAX,
      env: { PATH: process.env.PATH, TZ: process.env.TZ, LC_ALL: "C" },
    };
    execFile("ps", args, options, (error, stdout) => (error === null ? resolve(stdout) : reject(error)));
  });
  return output.split("\n").flatMap((line) => {
    const match = /^\s*(\d+)\s+(\d+)\s+(\d+)\s+(\S+)\s+(.+?)\s*$/.exec(line);
    if (match === null) return [];
    const [, pid, parentPid, groupId, state = "", start = ""] = match;
    const zombie = state.startsWith("Z");
    const ids = { pid: Number(pid), parentPid: Number(parentPid), groupId: Number(groupId) };
    return [{ ...ids, start, zombie, mark: null }];
  });
}
