// What /proc tells about processes, for tests that must know what is left of a command.

import { existsSync, readdirSync, readFileSync, readlinkSync } from "node:fs";

/** Whether this machine has what the other functions read. */
export const seesProcesses = existsSync("/proc/self/environ");

/** Processes whose environment has these texts in it, this one aside: with a home's path, all workers of that home. */
export function processesWith(...texts: readonly string[]): readonly number[] {
  return otherProcesses().filter((pid) => {
    const environment = readProc(pid, "environ");
    return environment !== null && texts.every((text) => environment.includes(text));
  });
}

/** Ends the processes of `processesWith` with SIGKILL. */
export function endProcessesWith(text: string): void {
  for (const pid of processesWith(text)) {
    try {
      process.kill(pid, "SIGKILL");
    } catch {
      // It has ended by itself.
    }
  }
}

/** Processes that work in a folder, or in one below it. Empty where there is no /proc. */
export function processesIn(folder: string): readonly number[] {
  if (!seesProcesses) return [];
  return otherProcesses().filter((pid) => `${workingFolderOf(pid)}/`.startsWith(`${folder}/`));
}

function otherProcesses(): readonly number[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => pid !== process.pid);
}

/**
 * Which of these processes has the end of a TCP connection on this machine that uses this port; null when none has. Several
 * connections may share a port, those that have ended among them, as long as they lead elsewhere.
 */
export function holderOfPort(port: number, pids: readonly number[]): number | null {
  const end = `:${port.toString(16).toUpperCase().padStart(4, "0")}`;
  const lines = (readProc(process.pid, "net/tcp") ?? "").split("\n").map((line) => line.trim().split(/ +/));
  const ends = new Set(
    lines.filter(([, local]) => local?.endsWith(end)).map((columns) => `socket:[${columns[9]}]`),
  );
  return pids.find((pid) => openFilesOf(pid).some((file) => ends.has(file))) ?? null;
}

/** Whether a process runs; one that has ended and waits for its parent to notice does not. */
export function runs(pid: number): boolean {
  const stat = readProc(pid, "stat");
  return stat !== null && !/^ [ZX]/.test(stat.slice(stat.lastIndexOf(")") + 1));
}

/** The memory a process has now, and the most it ever had, in bytes. */
export function memoryOf(pid: number): { readonly nowBytes: number; readonly peakBytes: number } {
  const status = readProc(pid, "status") ?? "";
  const read = (name: string) => Number(new RegExp(`^${name}:\\s+(\\d+) kB`, "m").exec(status)?.[1]) * 1024;
  return { nowBytes: read("VmRSS"), peakBytes: read("VmHWM") };
}

/** How often the threads of a process have waited for something so far, and been woken. */
export function wakeUpsOf(pid: number): number {
  let sum = 0;
  for (const task of readdirSync(`/proc/${pid}/task`)) {
    const status = readProc(pid, `task/${task}/status`) ?? "";
    sum += Number(/^voluntary_ctxt_switches:\s+(\d+)/m.exec(status)?.[1] ?? 0);
  }
  return sum;
}

function openFilesOf(pid: number): readonly string[] {
  try {
    const folder = `/proc/${pid}/fd`;
    return readdirSync(folder).flatMap((fd) => linkOf(`${folder}/${fd}`) ?? []);
  } catch {
    return [];
  }
}

const workingFolderOf = (pid: number) => linkOf(`/proc/${pid}/cwd`);

function linkOf(path: string): string | null {
  try {
    return readlinkSync(path);
  } catch {
    return null;
  }
}

function readProc(pid: number, file: string): string | null {
  try {
    return readFileSync(`/proc/${pid}/${file}`, "latin1");
  } catch {
    return null;
  }
}
