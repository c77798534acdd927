// The machine's processes, read from /proc, or from `ps` where there is no /proc.
//
// - A process is identified by its id and its start together: ids are used again.
// - Reading the table never blocks the event loop, and a process that ends meanwhile is left out.

import { execFile } from "node:child_process";
import { closeSync, existsSync, openSync, readdirSync, readSync } from "node:fs";
import { readdir, readFile } from "node:fs/promises";
import { promisify } from "node:util";
import { canMark, markIn } from "./process-marks.ts";

export interface ProcessEntry {
  readonly pid: number;
  readonly parentPid: number;
  readonly groupId: number;
  /** Differs between two processes that had the same id. */
  readonly start: string;
  /** Ended, all its threads too, and only waits for its parent to notice. */
  readonly zombie: boolean;
  /** The number in its limits (process-marks.ts); null where that is not shown. */
  readonly mark: string | null;
}

/** A way to look at the machine's processes. */
export interface ProcessSource {
  /** Whether what is started carries a mark that `read` shows. */
  showsMarks(): boolean;
  /** Rejects when it cannot see all of them. */
  read(): Promise<readonly ProcessEntry[]>;
  /** The start of the process that has this id now; null when there is none, or it cannot be had at once. */
  startOf(pid: number): string | null;
}

export const procSource: ProcessSource = { showsMarks: canMark, read: readProc, startOf };
export const psSource: ProcessSource = { showsMarks: () => false, read: readPs, startOf: () => null };

/** The source this machine has. */
export const machineSource: ProcessSource = existsSync("/proc/self/limits") ? procSource : psSource;

/** Without room to read a process, whether it is there is not known. */
const NO_ROOM: ReadonlySet<unknown> = new Set(["EMFILE", "ENFILE", "ENOMEM"]);

/** Processes read at a time: enough to be quick, and few enough not to fill the thread pool. */
const READERS = 4;

async function readProc(): Promise<readonly ProcessEntry[]> {
  const pids = (await readdir("/proc")).filter((name) => /^\d+$/.test(name)).map(Number);
  const entries: ProcessEntry[] = [];
  const reader = async () => {
    for (let pid = pids.pop(); pid !== undefined; pid = pids.pop()) {
      const entry = await readOne(pid);
      if (entry !== null) entries.push(entry);
    }
  };
  await Promise.all(Array.from({ length: READERS }, reader));
  return entries;
}

async function readOne(pid: number): Promise<ProcessEntry | null> {
  try {
    const stat = parseStat(await readFile(`/proc/${pid}/stat`, "latin1"));
    const { parentPid, groupId, start, zombie } = stat;
    const mark = zombie ? null : markIn(await readFile(`/proc/${pid}/limits`, "latin1"));
    return { pid, parentPid, groupId, start, zombie, mark };
  } catch (error) {
    if (NO_ROOM.has((error as NodeJS.ErrnoException).code)) throw error;
    return null;
  }
}

function startOf(pid: number): string | null {
  return statOf(pid)?.start ?? null;
}

/** What /proc/PID/stat shows. CPU times are in clock ticks. */
export interface ProcessStat {
  readonly parentPid: number;
  readonly groupId: number;
  readonly start: string;
  readonly zombie: boolean;
  readonly threads: number;
  readonly ownTicks: number;
  /** Of children that it has waited for, and of theirs. */
  readonly reapedTicks: number;
}

/** Null when there is no such process, or no /proc. */
export function statOf(pid: number | "self"): ProcessStat | null {
  const text = readProcFile(`/proc/${pid}/stat`);
  return text === null ? null : parseStat(text);
}

/** The name in parentheses may hold anything, so fields are counted from the last parenthesis. */
function parseStat(text: string): ProcessStat {
  const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
  const number = (index: number) => Number(fields[index] ?? 0);
  const threads = number(17);
  return {
    // The first thread may end before others, which go on, or are only about to close what the process has open.
    zombie: (fields[0] === "Z" || fields[0] === "X") && threads <= 1,
    parentPid: number(1),
    groupId: number(2),
    ownTicks: number(11) + number(12),
    reapedTicks: number(13) + number(14),
    threads,
    start: fields[19] ?? "",
  };
}

const procFile = Buffer.allocUnsafe(4_096);

/**
 * A file of /proc, read at once: a few microseconds, a fraction of what readFileSync takes.
 *
 * @returns at most 4 KiB of it; null when it is not there, or its process has ended
 */
export function readProcFile(path: string): string | null {
  try {
    const fd = openSync(path, "r");
    try {
      return procFile.toString("latin1", 0, readSync(fd, procFile, 0, procFile.length, 0));
    } finally {
      closeSync(fd);
    }
  } catch {
    return null;
  }
}

/**
 * The children of a process, those of its first `threadsMax` threads: they belong to the thread that started them. Of a
 * thread with more than some 500 children the first ones; empty where the system does not list them.
 */
export function childrenOf(pid: number, threads: number, threadsMax: number): number[] {
  const threadIds = threads <= 1 ? [String(pid)] : threadsOf(pid).slice(0, threadsMax);
  return threadIds.flatMap((id) => {
    const text = readProcFile(`/proc/${pid}/task/${id}/children`) ?? "";
    // The last one may have been cut.
    return text
      .slice(0, text.lastIndexOf(" ") + 1)
      .split(" ")
      .filter(Boolean)
      .map(Number);
  });
}

function threadsOf(pid: number): string[] {
  try {
    return readdirSync(`/proc/${pid}/task`);
  } catch {
    return [];
  }
}

const PS_OUTPUT_BYTES_MAX = 32 * 1024 * 1024;

async function readPs(): Promise<readonly ProcessEntry[]> {
  const { stdout } = await promisify(execFile)("ps", ["-A", "-o", "pid=,ppid=,pgid=,stat=,lstart="], {
    maxBuffer: PS_OUTPUT_BYTES_MAX,
    env: { PATH: process.env.PATH, TZ: process.env.TZ, LC_ALL: "C" },
  });
  return stdout.split("\n").flatMap((line) => {
    const match = /^\s*(\d+)\s+(\d+)\s+(\d+)\s+(\S+)\s+(.+?)\s*$/.exec(line);
    if (match === null) return [];
    const [, pid, parentPid, groupId, state = "", start = ""] = match;
    const ids = { pid: Number(pid), parentPid: Number(parentPid), groupId: Number(groupId) };
    return [{ ...ids, start, zombie: state.startsWith("Z"), mark: null }];
  });
}
