// Starts workers by posix_spawn(3), through Node's foreign function interface.
//
// Node's own spawn forks: the system copies the page tables of the process that asks, and both sides fault on their pages
// afterwards. That is most of what a short command costs. posix_spawn shares the memory until the new program runs.
//
// - Only for a process that starts nothing else: it waits for all its children.
// - The orphans of workers become children of this process. While it has none, nothing is left of workers that ended.
// - A worker is started as Node starts it: a session of its own, default signals, blocking stdin, stdout and stderr.

import { accessSync, constants, openSync, readdirSync } from "node:fs";
import { constants as system } from "node:os";
import { join } from "node:path";
import { getSystemErrorName } from "node:util";
import { readProcFile } from "./process-table.ts";

const INT = "i32";
const POINTER = "buffer";
const TEXT = "string";
const calls = {
  posix_spawnp: { arguments: [POINTER, TEXT, POINTER, POINTER, POINTER, POINTER], return: INT },
  posix_spawn_file_actions_init: { arguments: [POINTER], return: INT },
  posix_spawn_file_actions_destroy: { arguments: [POINTER], return: INT },
  posix_spawn_file_actions_adddup2: { arguments: [POINTER, INT, INT], return: INT },
  posix_spawn_file_actions_addopen: { arguments: [POINTER, INT, TEXT, INT, "u32"], return: INT },
  posix_spawn_file_actions_addchdir_np: { arguments: [POINTER, TEXT], return: INT },
  posix_spawnattr_init: { arguments: [POINTER], return: INT },
  posix_spawnattr_setflags: { arguments: [POINTER, "i16"], return: INT },
  posix_spawnattr_setsigdefault: { arguments: [POINTER, POINTER], return: INT },
  posix_spawnattr_setsigmask: { arguments: [POINTER, POINTER], return: INT },
  fcntl: { arguments: [INT, INT, INT], return: INT },
  wait4: { arguments: [INT, POINTER, INT, POINTER], return: INT },
  prlimit: { arguments: [INT, INT, POINTER, POINTER], return: INT },
  prctl: { arguments: [INT, "u64", "u64", "u64", "u64"], return: INT },
} as const;

/** Numbers of Linux, the same on every architecture and in every C library. */
const SETSIGDEF = 0x04;
const SETSIGMASK = 0x08;
const SETSID = 0x80;
const F_SETFD = 2;
const FD_CLOEXEC = 1;
const F_SETFL = 4;
const WNOHANG = 1;
const RLIMIT_DATA = 2;
const PR_SET_CHILD_SUBREAPER = 36;
const SIGNAL_SET_BYTES = 128;
/** More than the C libraries need for the structures that they keep their settings in. */
const STRUCTURE_BYTES = 1_024;
const RUSAGE_BYTES = 144;
const POINTER_BYTES = 8;
/** What readProcFile shows of a file: a longer list of children has been cut. */
const CHILDREN_CHARS_MAX = 4_000;

/** A file that a worker finds open. */
export interface OpenedFile {
  readonly path: string;
  readonly isWritten: boolean;
}

/** The number of the first of them, behind stdin, stdout and stderr. */
export const FIRST_OPENED = 3;

/** As open(2) takes it. */
export function openFlags({ isWritten }: OpenedFile): number {
  return isWritten ? constants.O_WRONLY : constants.O_RDONLY;
}

export interface NativeSpec {
  readonly file: string;
  readonly args: readonly string[];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  /** Null: the worker reads nothing. */
  readonly stdinFd: number | null;
  readonly stdoutFd: number;
  readonly stderrFd: number;
  readonly files: readonly OpenedFile[];
}

export interface NativeExit {
  readonly exitCode: number | null;
  readonly signal: string | null;
  /** Processor time of the worker, and of what it started and waited for. */
  readonly cpuMs: number;
  /** The most memory that one of them held. */
  readonly rssBytesMax: number;
  /** Whether nothing is left of it for sure; false when that is not known. */
  readonly isTreeGone: boolean;
}

type Ffi = typeof import("node:ffi");
type Libc = ReturnType<typeof openLibc>;

export class NativeSpawn {
  readonly #ffi: Ffi;
  readonly #libc: Libc;
  readonly #attributes = Buffer.alloc(STRUCTURE_BYTES);
  readonly #actions = Buffer.alloc(STRUCTURE_BYTES);
  readonly #pid = Buffer.alloc(4);
  readonly #status = Buffer.alloc(4);
  readonly #usage = Buffer.alloc(RUSAGE_BYTES);
  readonly #nullFd = openSync("/dev/null", "r");
  readonly #running = new Map<number, (exit: NativeExit) => void>();
  /** What pointers lead to during a call, so that it is not collected. */
  #kept: readonly [Buffer, Buffer] = [Buffer.alloc(0), Buffer.alloc(0)];

  private constructor(ffi: Ffi, libc: Libc) {
    this.#ffi = ffi;
    this.#libc = libc;
    libc.posix_spawnattr_init(this.#attributes);
    libc.posix_spawnattr_setsigdefault(this.#attributes, Buffer.alloc(SIGNAL_SET_BYTES, 0xff));
    libc.posix_spawnattr_setsigmask(this.#attributes, Buffer.alloc(SIGNAL_SET_BYTES));
    libc.posix_spawnattr_setflags(this.#attributes, SETSID | SETSIGDEF | SETSIGMASK);
    // What the runtime was given open when it started is not for workers.
    for (const fd of readdirSync("/proc/self/fd").map(Number))
      if (fd > 2) libc.fcntl(fd, F_SETFD, FD_CLOEXEC);
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1n, 0n, 0n, 0n);
    process.on("SIGCHLD", () => this.#reap());
  }

  /** From now on this process may start nothing in another way. @returns null where it cannot be had */
  static open(): NativeSpawn | null {
    if (process.platform !== "linux") return null;
    try {
      const ffi = process.getBuiltinModule("node:ffi");
      return new NativeSpawn(ffi, openLibc(ffi));
    } catch {
      return null;
    }
  }

  /**
   * Starts a worker.
   *
   * @param onExit called once, later
   * @returns its process id
   * @throws the system's error (code ENOENT, EACCES, E2BIG, …); ERR_INVALID_ARG_VALUE for a text with a null byte
   */
  start(spec: NativeSpec, onExit: (exit: NativeExit) => void): number {
    const { file, args } = spec;
    let errno = this.#spawn(spec, file, [file, ...args]);
    if (errno === system.errno.ENOEXEC) {
      // A script without its first line: a shell's, as execvp(3) has it.
      const script = file.includes("/") ? file : (foundIn(spec.env.PATH ?? "", file) ?? file);
      errno = this.#spawn(spec, "/bin/sh", ["/bin/sh", script, ...args]);
    }
    if (errno !== 0) {
      const code = getSystemErrorName(-errno);
      throw Object.assign(new Error(`spawn ${file} ${code}`), { code });
    }
    const pid = this.#pid.readInt32LE();
    this.#running.set(pid, onExit);
    return pid;
  }

  /** @returns the system's number of an error, 0 when there is none; the id is in #pid */
  #spawn(spec: NativeSpec, file: string, words: readonly string[]): number {
    const { cwd, env, stdinFd, stdoutFd, stderrFd, files } = spec;
    const variables = Object.entries(env).map(([name, value]) => `${name}=${value}`);
    assertWithoutNull([...words, ...variables, cwd]);
    this.#kept = [Buffer.from(joined(words)), Buffer.from(joined(variables))];
    const [argv, envp] = [this.#pointersTo(this.#kept[0], words), this.#pointersTo(this.#kept[1], variables)];
    // The program is looked for in the worker's PATH.
    if (env.PATH === undefined) delete process.env.PATH;
    else if (process.env.PATH !== env.PATH) process.env.PATH = env.PATH;
    const libc = this.#libc;
    const actions = this.#actions;
    libc.posix_spawn_file_actions_init(actions);
    try {
      libc.posix_spawn_file_actions_addchdir_np(actions, cwd);
      for (const [target, fd] of [stdinFd ?? this.#nullFd, stdoutFd, stderrFd].entries()) {
        // The flags belong to the pipe's open end, which is the worker's from now on.
        if (fd !== this.#nullFd) libc.fcntl(fd, F_SETFL, 0);
        libc.posix_spawn_file_actions_adddup2(actions, fd, target);
      }
      for (const [index, opened] of files.entries()) {
        const { path } = opened;
        libc.posix_spawn_file_actions_addopen(actions, FIRST_OPENED + index, path, openFlags(opened), 0);
      }
      return libc.posix_spawnp(this.#pid, file, actions, this.#attributes, argv, envp);
    } finally {
      libc.posix_spawn_file_actions_destroy(actions);
    }
  }

  /** A list of texts as C wants it: a pointer to each, then null. */
  #pointersTo(bytes: Buffer, texts: readonly string[]): Buffer {
    const pointers = Buffer.alloc((texts.length + 1) * POINTER_BYTES);
    let at = this.#ffi.getRawPointer(bytes);
    for (const [index, text] of texts.entries()) {
      pointers.writeBigUInt64LE(at, index * POINTER_BYTES);
      at += BigInt(Buffer.byteLength(text) + 1);
    }
    return pointers;
  }

  /** Waits for every child that has ended: workers, and orphans of theirs. */
  #reap(): void {
    const ended: { onExit: (exit: NativeExit) => void; exit: Omit<NativeExit, "isTreeGone"> }[] = [];
    for (;;) {
      const pid = this.#libc.wait4(-1, this.#status, WNOHANG, this.#usage);
      if (pid <= 0) break;
      const onExit = this.#running.get(pid);
      if (onExit === undefined) continue;
      this.#running.delete(pid);
      ended.push({ onExit, exit: { ...exitOf(this.#status.readInt32LE()), ...usageOf(this.#usage) } });
    }
    if (ended.length === 0) return;
    const isTreeGone = this.orphans()?.length === 0;
    for (const { onExit, exit } of ended) onExit({ ...exit, isTreeGone });
  }

  /** What workers have left: children of this process that it did not start. @returns null when that is not known */
  orphans(): readonly number[] | null {
    // Nothing leaves the list but by waiting for it, so none is missed.
    const list = readProcFile(`/proc/self/task/${process.pid}/children`);
    if (list === null || list.length > CHILDREN_CHARS_MAX) return null;
    return list
      .split(" ")
      .filter((pid) => pid !== "" && !this.#running.has(Number(pid)))
      .map(Number);
  }

  /** Limits what the process, and each that it starts from now on, may reserve for data. They can raise it again. */
  limitData(pid: number, bytes: number): void {
    const softAndHard = new BigUint64Array(2);
    if (this.#libc.prlimit(pid, RLIMIT_DATA, null, softAndHard) !== 0) return;
    const [soft = 0n] = softAndHard;
    if (soft <= BigInt(bytes)) return;
    softAndHard[0] = BigInt(bytes);
    this.#libc.prlimit(pid, RLIMIT_DATA, softAndHard, null);
  }
}

function openLibc(ffi: Ffi) {
  return ffi.dlopen(null, calls).functions;
}

function joined(texts: readonly string[]): string {
  return texts.map((text) => `${text}\0`).join("");
}

function assertWithoutNull(texts: readonly string[]): void {
  if (!texts.some((text) => text.includes("\0"))) return;
  const message = "The command, its folder and its environment must be texts without null bytes.";
  throw Object.assign(new Error(message), { code: "ERR_INVALID_ARG_VALUE" });
}

function foundIn(path: string, name: string): string | null {
  for (const folder of path.split(":")) {
    try {
      const file = join(folder, name);
      accessSync(file, constants.X_OK);
      return file;
    } catch {
      // The next one.
    }
  }
  return null;
}

const signalNames = new Map(Object.entries(system.signals).map(([name, number]) => [number, name]));

function exitOf(status: number): Pick<NativeExit, "exitCode" | "signal"> {
  const signal = status & 0x7f;
  if (signal === 0) return { exitCode: (status >> 8) & 0xff, signal: null };
  return { exitCode: null, signal: signalNames.get(signal) ?? `SIG${signal}` };
}

/** Of `struct rusage`: seconds and microseconds of the program's time, then of the system's for it, then KiB. */
function usageOf(usage: Buffer): Pick<NativeExit, "cpuMs" | "rssBytesMax"> {
  const at = (index: number) => Number(usage.readBigInt64LE(index * 8));
  return { cpuMs: (at(0) + at(2)) * 1_000 + (at(1) + at(3)) / 1_000, rssBytesMax: at(4) * 1_024 };
}
