// What the machine has, and what is used of it: cores, memory, the disk of a folder, and GPUs.
//
// - Inside a container, or a service with limits, what the machine has is what the kernel gives this process.
// - Nothing here holds the event loop: files are read by the thread pool, and a reading serves all who ask within a second.
// - GPUs are asked for once, and only where nvidia-smi is installed; one that does not answer in time counts as none.

import { execFile } from "node:child_process";
import { constants } from "node:fs";
import { access, readFile, statfs } from "node:fs/promises";
import { availableParallelism, cpus, totalmem } from "node:os";
import { delimiter, join } from "node:path";
import type { Clock } from "../engine/ports.ts";
import type { Amounts, Claim } from "../engine/resources.ts";

export interface Gpu {
  readonly index: number;
  readonly name: string;
  readonly memoryBytes: number;
}

/** What there is. */
export interface MachineTotals {
  readonly cpuCores: number;
  readonly memoryBytes: number;
  /** Of the file system that holds SVC_HOME. */
  readonly diskBytes: number;
  readonly gpus: readonly Gpu[];
}

/** What is used of it, by whatever runs there. */
export type MachineUse = Omit<MachineTotals, "gpus">;

/** What commands have been given of it. */
export interface Reserved extends MachineUse {
  /** How many. */
  readonly gpus: number;
  /** What is had by name, as much of it as is told; absent of a program that gives nothing by name. */
  readonly claims?: readonly Claim[];
}

/** What may be reserved of it. */
export function amountsOf({ cpuCores, memoryBytes, diskBytes, gpus }: MachineTotals): Amounts {
  return { cpuMillis: Math.floor(cpuCores * 1_000), memoryBytes, diskBytes, gpus: gpus.length };
}

const MiB = 1024 ** 2;
const GPU_TIMEOUT_MS = 5_000;
const READING_MS = 1_000;

/**
 * @param home a folder on the disk that is measured
 * @param searchPath where nvidia-smi is looked for, as in PATH
 */
export async function readMachineTotals(
  home: string,
  searchPath: string | undefined,
): Promise<MachineTotals> {
  const [{ blocks, bsize }, gpus] = await Promise.all([statfs(home), readGpus(searchPath)]);
  return {
    cpuCores: availableParallelism(),
    memoryBytes: memoryTotal(),
    diskBytes: blocks * bsize,
    gpus,
  };
}

/** Bytes. Without a limit of a control group, the kernel reports none, or more than there is. */
export function memoryTotal(): number {
  const constrained = process.constrainedMemory();
  return constrained > 0 ? Math.min(constrained, totalmem()) : totalmem();
}

async function readGpus(searchPath = ""): Promise<readonly Gpu[]> {
  const program = await findProgram("nvidia-smi", searchPath);
  if (program === null) return [];
  const args = ["--query-gpu=index,memory.total,name", "--format=csv,noheader,nounits"];
  const text = await new Promise<string>((resolve) => {
    execFile(program, args, { timeout: GPU_TIMEOUT_MS, killSignal: "SIGKILL" }, (error, stdout) =>
      resolve(error === null ? stdout : ""),
    );
  });
  return text.split("\n").flatMap((line) => {
    const [, index, mebibytes, name] = /^\s*(\d+),\s*(\d+),\s*(.+?)\s*$/.exec(line) ?? [];
    if (index === undefined || name === undefined) return [];
    return [{ index: Number(index), name, memoryBytes: Number(mebibytes) * MiB }];
  });
}

async function findProgram(name: string, searchPath: string): Promise<string | null> {
  for (const folder of searchPath.split(delimiter).filter((one) => one !== "")) {
    const path = join(folder, name);
    const isThere = await access(path, constants.X_OK).then(
      () => true,
      () => false,
    );
    if (isThere) return path;
  }
  return null;
}

/** Where the kernel tells how long the processors have worked, of a container's own group; in microseconds, in nanoseconds. */
const CPU_TIMES = [
  { path: "/sys/fs/cgroup/cpu.stat", read: /^usage_usec (\d+)$/m, unitsPerMs: 1e3 },
  { path: "/sys/fs/cgroup/cpuacct/cpuacct.usage", read: /^(\d+)$/m, unitsPerMs: 1e6 },
] as const;

async function readBusyMs(): Promise<number> {
  for (const { path, read, unitsPerMs } of CPU_TIMES) {
    const found = read.exec(await readFile(path, "utf8").catch(() => ""))?.[1];
    if (found !== undefined) return Number(found) / unitsPerMs;
  }
  return cpus().reduce((sum, { times }) => sum + times.user + times.nice + times.sys + times.irq, 0);
}

export interface MachineMeterParts {
  readonly home: string;
  readonly totals: MachineTotals;
  readonly clock: Pick<Clock, "steadyMs">;
  /** How long the processors have worked until now, together. */
  readonly busyMs?: () => Promise<number>;
}

/** Measures what is used. Processor time is that since the reading before; the first one is since the meter was opened. */
export class MachineMeter {
  readonly #parts: Required<MachineMeterParts>;
  #busyMs: number;
  #readAtMs: number;
  #latest: MachineUse;
  #reading: Promise<MachineUse> | null = null;

  private constructor(parts: Required<MachineMeterParts>, busyMs: number) {
    this.#parts = parts;
    this.#busyMs = busyMs;
    this.#readAtMs = parts.clock.steadyMs();
    this.#latest = { cpuCores: 0, memoryBytes: 0, diskBytes: 0 };
  }

  static async open({ busyMs = readBusyMs, ...parts }: MachineMeterParts): Promise<MachineMeter> {
    const meter = new MachineMeter({ ...parts, busyMs }, await busyMs());
    await meter.#readNow();
    return meter;
  }

  /** As of the last reading; a new one is under way if that is older than a second. */
  get latest(): MachineUse {
    // Callers that wait for the reading are told when it fails.
    this.read().catch(() => {});
    return this.#latest;
  }

  /** A second old at most. */
  async read(): Promise<MachineUse> {
    if (this.#parts.clock.steadyMs() - this.#readAtMs < READING_MS) return this.#latest;
    this.#reading ??= this.#readNow().finally(() => {
      this.#reading = null;
    });
    return this.#reading;
  }

  async #readNow(): Promise<MachineUse> {
    const { home, totals, clock, busyMs: readBusy } = this.#parts;
    const [busyMs, { blocks, bfree, bsize }] = await Promise.all([readBusy(), statfs(home)]);
    const nowMs = clock.steadyMs();
    const tookMs = nowMs - this.#readAtMs;
    const cpuCores = tookMs > 0 ? Math.max(0, busyMs - this.#busyMs) / tookMs : this.#latest.cpuCores;
    this.#busyMs = busyMs;
    this.#readAtMs = nowMs;
    this.#latest = {
      cpuCores: Math.min(totals.cpuCores, Math.round(cpuCores * 100) / 100),
      memoryBytes: Math.max(0, totals.memoryBytes - process.availableMemory()),
      diskBytes: (blocks - bfree) * bsize,
    };
    return this.#latest;
  }
}
