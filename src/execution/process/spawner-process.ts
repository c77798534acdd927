// The program that starts workers: a process of its own, so small that starting one from it costs little.
// It reads requests from stdin and writes reports to stdout, as lines of JSON; spawner.ts is at the other end.
//
// - Every request for a worker is answered by `started` and later `ended`, or by `failed`.
// - It ends as soon as its stdin does: with the runtime, however that ends. Under a lease it ends the workers first.
// - It never blocks, also when the runtime at the other end of a worker's pipes is gone.

import { spawn } from "node:child_process";
import { closeSync, constants, openSync } from "node:fs";
import type { ResourceUsage } from "../../engine/task-port.ts";
import { LineSplitter } from "../output/lines.ts";
import { LeaseGuard } from "./lease-guard.ts";
import { MemoryWatch, type WatchedMemory } from "./memory-watch.ts";
import { type NativeExit, NativeSpawn, type NativeSpec, type OpenedFile, openFlags } from "./native-spawn.ts";
import { openEnd } from "./pipes.ts";
import { withMark } from "./process-marks.ts";
import { machineSource } from "./process-table.ts";
import { signalGroup } from "./process-trees.ts";
import { type Peaks, UsageMeter } from "./usage.ts";

export interface StartSpec {
  readonly file: string;
  readonly args: readonly string[];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  /** See process-marks.ts. */
  readonly mark: string;
  /** Whether nothing of its process group stays when the runtime is gone. */
  readonly endsWithRuntime: boolean;
  /** Paths of pipes whose other ends are open; no path means no input. */
  readonly stdin: string | null;
  readonly stdout: string;
  readonly stderr: string;
  /** What else it finds open, from FIRST_OPENED on. */
  readonly files: readonly OpenedFile[];
  /** What it may hold with all that it starts; null: nobody watches. */
  readonly memoryBytes: number | null;
}

export interface StartRequest extends StartSpec {
  readonly id: number;
}

/** Asks what was seen of a running worker. */
export interface PeaksRequest {
  readonly id: number;
  readonly peaksOf: number;
}

/** Until when workers may run, on the machine's monotonic clock in nanoseconds. */
export interface LeaseRequest {
  readonly untilNs: string;
}

export interface WorkerExit {
  readonly exitCode: number | null;
  readonly signal: string | null;
  /** Null where the system does not tell. */
  readonly usage: ResourceUsage | null;
  /** Null when its memory was not watched. */
  readonly memory: WatchedMemory | null;
  /** Whether nothing is left of the worker's process tree for sure; false when that is not known. */
  readonly isTreeGone: boolean;
}

/** Workers may not run any more: what is reported from now on was ended for that. */
export interface LeaseOver {
  readonly kind: "lease over";
}

export type StartReport = { readonly id: number } & (
  | { readonly kind: "started"; readonly pid: number; readonly start: string | null }
  /** `code` is the system's, such as ENOENT. */
  | { readonly kind: "failed"; readonly code: string | null; readonly message: string }
  | ({ readonly kind: "ended" } & WorkerExit)
  | { readonly kind: "peaks"; readonly peaks: Peaks | null }
);

/** Requests are checked before they are sent; this one is never reached. */
const REQUEST_BYTES_MAX = 64 * 1024 * 1024;

const native = NativeSpawn.open();
/** Opened for the first command that it is for. */
let watch: MemoryWatch | null = null;
const meter = new UsageMeter();
const guard = new LeaseGuard(() => report({ kind: "lease over" }));
/** Process groups that end with the runtime. */
const bound = new Set<number>();

/** Serves requests until stdin ends. */
function serve(): void {
  const requests = new LineSplitter(REQUEST_BYTES_MAX, (line) => {
    const request = JSON.parse(line) as StartRequest | LeaseRequest | PeaksRequest;
    if ("untilNs" in request) guard.extend(BigInt(request.untilNs));
    else if ("peaksOf" in request)
      report({ id: request.id, kind: "peaks", peaks: meter.peaksOf(request.peaksOf) });
    else start(request);
  });
  process.stdin.on("data", (chunk: Buffer) => requests.push(chunk));
  process.stdin.on("close", () => {
    for (const pid of bound) signalGroup(pid, "SIGKILL");
    if (guard.isSet) void guard.endAll().then(() => process.exit());
    else process.exit();
  });
  // The end of its stdin follows.
  process.stdout.on("error", () => guard.isSet || process.exit());
  // Meant for the runtime, which lets its workers end first.
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => {});
}

function report(given: StartReport | LeaseOver): void {
  process.stdout.write(`${JSON.stringify(given)}\n`);
}

function start(request: StartRequest): void {
  const { id, file, args, cwd, env, mark, endsWithRuntime, stdin, stdout, stderr, files, memoryBytes } =
    request;
  const failed = (error: NodeJS.ErrnoException) =>
    report({ id, kind: "failed", code: error.code ?? null, message: error.message });
  if (guard.isOver) {
    failed(new Error("The lease under which commands may run is over."));
    return;
  }
  using ends = new DisposableStack();
  const open = (path: string, flags: number) => {
    // Not blocking, lest this waits for a runtime that is gone; a worker's own end does block: who starts it sees to it.
    const fd = openEnd(path, flags);
    ends.defer(() => closeSync(fd));
    return fd;
  };
  try {
    const stdinFd = stdin === null ? null : open(stdin, constants.O_RDONLY);
    const [stdoutFd, stderrFd] = [open(stdout, constants.O_WRONLY), open(stderr, constants.O_WRONLY)];
    const spec = { file, args, cwd, env, stdinFd, stdoutFd, stderrFd, files };
    const onExit = ({ exitCode, signal, cpuMs, rssBytesMax, isTreeGone }: Exit) => {
      if (pid === undefined) return;
      bound.delete(pid);
      const memory = watch?.ended(pid, rssBytesMax) ?? null;
      const ended = (usage: ResourceUsage | null) =>
        report({ id, kind: "ended", exitCode, signal, usage, memory, isTreeGone });
      guard.ended(mark, pid, isTreeGone);
      meter.ended(pid, ended, cpuMs);
    };
    const pid = withMark(mark, () => native?.start(spec, onExit) ?? spawnByNode(spec, onExit, failed));
    if (pid === undefined) return;
    if (endsWithRuntime) bound.add(pid);
    guard.started(mark, pid);
    meter.started(pid);
    if (memoryBytes !== null) {
      watch ??= MemoryWatch.open(native);
      watch?.started(pid, mark, memoryBytes);
    }
    // Its start is looked up before it can be reaped, while the id is surely its own.
    report({ id, kind: "started", pid, start: machineSource.startOf(pid) });
  } catch (error) {
    failed(error as NodeJS.ErrnoException);
  }
}

type Exit = Omit<NativeExit, "cpuMs"> & { readonly cpuMs: number | null };

/** Where there is no native way. @returns undefined when it could not be started, which `failed` is told */
function spawnByNode(
  { file, args, cwd, env, stdinFd, stdoutFd, stderrFd, files }: NativeSpec,
  onExit: (exit: Exit) => void,
  failed: (error: Error) => void,
): number | undefined {
  // A group of its own, whose id is the worker's pid.
  const options = { cwd, env, shell: false, detached: true };
  using opened = new DisposableStack();
  const fds = files.map((one) => openSync(one.path, openFlags(one)));
  for (const fd of fds) opened.defer(() => closeSync(fd));
  const child = spawn(file, args, { ...options, stdio: [stdinFd ?? "ignore", stdoutFd, stderrFd, ...fds] });
  if (child.pid === undefined) child.once("error", failed);
  child.once("exit", (exitCode, signal) =>
    onExit({ exitCode, signal, cpuMs: null, rssBytesMax: 0, isTreeGone: false }),
  );
  return child.pid;
}

serve();
