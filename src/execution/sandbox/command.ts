// How a command is started in a sandbox: the words that bubblewrap, and what stands before and behind it, are given.
//
// An ordinary user's runtime starts one bubblewrap. Root's starts two: the first, as root, makes a root folder that holds what
// the sandbox may see and nothing else; there root's rights are given up for good, and the second one makes the sandbox out of
// that folder, as any user's would. Otherwise user 65534 of the sandbox would be root of the machine.
//
// - The worker's variables are in no list of processes, and in effect for the worker only: they could change how the
//   programs before it behave. A file without a name holds them, which bubblewrap reads.
// - The limits are set inside: they count what is in the sandbox, not what else its user runs.

import { closeSync, existsSync, openSync, readSync, unlinkSync, writeFileSync } from "node:fs";
import type { SandboxLimits } from "../../engine/sandbox.ts";
import { FIRST_OPENED, type OpenedFile } from "../process/native-spawn.ts";
import { type Device, deviceMounts, folder, type Words } from "./mounts.ts";

/** Of nobody, in the sandbox. */
const USER = "65534";
/** Where files without a name are made: in memory, if the system has that. */
const MEMORY = "/dev/shm";

export interface Tools {
  readonly bwrap: string;
  readonly prlimit: string;
  /** Null: the runtime is no root, and has no rights to give up. */
  readonly setpriv: string | null;
}

export interface SandboxCommand {
  readonly tools: Tools;
  /** Files that bubblewrap reads, in this order: the filter of system calls, and what becomes files of /etc. */
  readonly files: readonly string[];
  /** The user of the machine that the worker is; null where the runtime is no root. */
  readonly user: number | null;
  readonly mounts: Words;
  readonly devices: readonly Device[];
  readonly limits: SandboxLimits;
  /** Where the command starts, inside. */
  readonly workdir: string;
  /** Paths of a file with the variables, and of one for what becomes of the sandbox. */
  readonly variables: string;
  readonly status: string;
  readonly command: { readonly file: string; readonly args: Words };
}

interface Started {
  readonly file: string;
  readonly args: Words;
  readonly files: readonly OpenedFile[];
}

/** The numbers of the open files: what becomes of the sandbox, the variables, the filter, and what becomes files of /etc. */
const STATUS = FIRST_OPENED;
const VARIABLES = STATUS + 1;
const FILTER = STATUS + 2;
export const SETTINGS_FROM = STATUS + 3;

export function sandboxCommand(given: SandboxCommand): Started {
  const { tools, files, user, mounts, variables, status } = given;
  const own = sandboxWords(given);
  const args =
    tools.setpriv === null
      ? [...mounts, ...own]
      : [
          ...[...mounts, ...folder("/tmp")],
          // A new /dev is made of the one that is seen, as /proc can only be made where one is.
          ...["--dev-bind", "/dev", "/dev", "--dev-bind", "/proc", "/proc", "--die-with-parent", "--"],
          ...[tools.setpriv, "--reuid", String(user), "--regid", String(user), "--clear-groups"],
          ...["--inh-caps=-all", "--bounding-set=-all", "--no-new-privs"],
          ...[tools.bwrap, "--bind", "/", "/", ...own],
        ];
  const read = [variables, ...files].map((path) => ({ path, isWritten: false }));
  return { file: tools.bwrap, args, files: [{ path: status, isWritten: true }, ...read] };
}

function sandboxWords({ tools, devices, limits, workdir, command }: SandboxCommand): Words {
  const temporary = (path: string) => [
    ...["--perms", "1777", "--size", String(limits.tmpBytes), "--tmpfs", path],
  ];
  return [
    ...["--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-net"],
    ...["--unshare-cgroup-try", "--disable-userns", "--uid", USER, "--gid", USER, "--hostname", "sandbox"],
    ...["--cap-drop", "ALL", "--new-session", "--die-with-parent", "--seccomp", String(FILTER)],
    ...["--args", String(VARIABLES), "--json-status-fd", String(STATUS)],
    ...["--proc", "/proc", "--dev", "/dev", ...deviceMounts(devices)],
    ...[...temporary("/tmp"), ...temporary("/dev/shm"), "--remount-ro", "/dev", "--remount-ro", "/"],
    ...["--chdir", workdir, "--", tools.prlimit, ...limitWords(limits), "--"],
    ...[command.file, ...command.args],
  ];
}

function limitWords({ processes, fileBytes, cpuSeconds }: SandboxLimits): Words {
  return [
    ...["--core=0", `--nproc=${processes}`, `--fsize=${fileBytes}`],
    ...(cpuSeconds === null ? [] : [`--cpu=${cpuSeconds}`]),
  ];
}

/** A file without a name, read and written by its path for as long as this is not disposed of. */
export interface MemoryFile extends Disposable {
  readonly path: string;
  /** What is in it, if it is not large. */
  text(): string;
}

const TEXT_BYTES_MAX = 4_096;
let made = 0;

/** @param inFolder where the file is made if there is no better place; it has no name when this returns */
function memoryFile(inFolder: string, content: string): MemoryFile {
  const name = `${existsSync(MEMORY) ? MEMORY : inFolder}/troupe-${process.pid}-${++made}`;
  const fd = openSync(name, "wx+", 0o600);
  using unused = new DisposableStack();
  unused.defer(() => closeSync(fd));
  unlinkSync(name);
  writeFileSync(fd, content);
  unused.move();
  return {
    path: `/proc/${process.pid}/fd/${fd}`,
    text: () => {
      const bytes = Buffer.alloc(TEXT_BYTES_MAX);
      return bytes.toString("utf8", 0, readSync(fd, bytes, 0, bytes.length, 0));
    },
    [Symbol.dispose]: () => closeSync(fd),
  };
}

/** The variables of a worker, as bubblewrap reads them. */
export function writeVariables(env: Readonly<Record<string, string>>, inFolder: string): MemoryFile {
  const words = Object.entries(env).flatMap(([variable, value]) => ["--setenv", variable, value]);
  if (words.some((word) => word.includes("\0")))
    throw new Error("A variable of the sandbox holds a NUL character.");
  return memoryFile(inFolder, ["--clearenv", ...words].map((word) => `${word}\0`).join(""));
}

/** What bubblewrap says of how its command ended. */
export const openStatus = (inFolder: string): MemoryFile => memoryFile(inFolder, "");

/** Whether the sandbox was made, so that an exit code is its command's. */
export function wasMade(status: MemoryFile): boolean {
  return status.text().includes('"exit-code"');
}
