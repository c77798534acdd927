// Sandboxes made by bubblewrap: the words that it, and what stands before and behind it, are given.
//
// An ordinary user's runtime starts one bubblewrap. Root's starts two: the first, as root, makes a root folder that holds what
// the sandbox may see and nothing else; there root's rights are given up for good, and the second one makes the sandbox out of
// that folder, as any user's would. Otherwise user 65534 of the sandbox would be root of the machine.
//
// - The worker's variables are in no list of processes, and in effect for the worker only: they could change how the
//   programs before it behave. A file without a name holds them, which bubblewrap reads.
// - The limits are set inside: they count what is in the sandbox, not what else its user runs.

import { closeSync, existsSync, openSync, readSync, unlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { isInside } from "../../lib/paths.ts";
import { FIRST_OPENED } from "../process/native-spawn.ts";
import {
  type FindProgram,
  limitWords,
  MEMORY,
  outsideEnvironment,
  SANDBOX_USER,
  type SandboxCommand,
  type SandboxEngine,
  type StartedSandbox,
} from "./engine.ts";
import type { Device, Shown, Words } from "./mounts.ts";
import { userOf } from "./ownership.ts";
import { seccompBytes, seccompProgram } from "./seccomp.ts";

interface Tools {
  readonly bwrap: string;
  readonly prlimit: string;
  /** Null: the runtime is no root, and has no rights to give up. */
  readonly setpriv: string | null;
}

const USER = String(SANDBOX_USER);

/** The numbers of the open files: what becomes of the sandbox, the variables, the filter, and what becomes files of /etc. */
const STATUS = FIRST_OPENED;
const VARIABLES = STATUS + 1;
const FILTER = STATUS + 2;
const SETTINGS_FROM = STATUS + 3;

/**
 * @param folder where files of ours are kept
 * @returns why there are no sandboxes, and what to do about it
 */
export function findBubblewrap(folder: string, find: FindProgram): SandboxEngine | string {
  const program = seccompProgram();
  if (program === null) return "they need Linux on x64 or arm64. Run the command on such a node.";
  const bwrap = find("bwrap");
  if (bwrap === null) return "bubblewrap is missing. Install it: `apt install bubblewrap`.";
  const prlimit = find("prlimit");
  const isRoot = process.getuid?.() === 0;
  const setpriv = isRoot ? find("setpriv") : null;
  if (prlimit === null || (isRoot && setpriv === null))
    return "prlimit and setpriv are missing. Install util-linux.";
  const filter = join(folder, "filter");
  writeFileSync(filter, seccompBytes(program), { mode: 0o600 });
  const tools = { bwrap, prlimit, setpriv };
  return {
    userOf: isRoot ? userOf : () => null,
    start: (command) => startWith(tools, filter, folder, command),
    advice: isRoot
      ? "Start Troupe as an ordinary user, or give root CAP_SYS_ADMIN, CAP_SETUID and user namespaces (in a container: docs/sandbox.md)"
      : "Allow unprivileged user namespaces (docs/sandbox.md), and use bubblewrap 0.8 or newer",
  };
}

function startWith(tools: Tools, filter: string, folder: string, command: SandboxCommand): StartedSandbox {
  using opened = new DisposableStack();
  const variables = opened.use(writeVariables(command.env, folder));
  const status = opened.use(memoryFile(folder, ""));
  // What the system does not have any more is empty.
  const settings = command.shown.flatMap((one) => (one.kind === "file" ? [one.from] : []));
  const files = [filter, ...settings].map((path) =>
    existsSync(path) || isInside(folder, path) ? path : "/dev/null",
  );
  const read = [variables.path, ...files].map((path) => ({ path, isWritten: false }));
  const kept = opened.move();
  return {
    file: tools.bwrap,
    args: outerWords(tools, command),
    cwd: "/",
    env: outsideEnvironment,
    files: [{ path: status.path, isWritten: true }, ...read],
    // Whether its command has ended, so that an exit code is that one's.
    wasMade: () => status.text().includes('"exit-code"'),
    terminate: null,
    [Symbol.dispose]: () => kept.dispose(),
  };
}

function outerWords(tools: Tools, command: SandboxCommand): Words {
  const mounts = mountWords(command.shown);
  const own = sandboxWords(tools, command);
  const user = String(command.user);
  if (tools.setpriv === null) return [...mounts, ...own];
  return [
    ...[...mounts, ...folderWords("/tmp")],
    // A new /dev is made of the one that is seen, as /proc can only be made where one is.
    ...["--dev-bind", "/dev", "/dev", "--dev-bind", "/proc", "/proc", "--die-with-parent", "--"],
    ...[tools.setpriv, "--reuid", user, "--regid", user, "--clear-groups"],
    ...["--inh-caps=-all", "--bounding-set=-all", "--no-new-privs"],
    ...[tools.bwrap, "--bind", "/", "/", ...own],
  ];
}

/** What bubblewrap makes on the way to a mount is closed to all but its owner: every folder has its mode. */
const folderWords = (path: string): Words => ["--perms", "0755", "--dir", path];

function mountWords(shown: readonly Shown[]): Words {
  let files = SETTINGS_FROM;
  return shown.flatMap((one) => {
    switch (one.kind) {
      case "folder":
        return folderWords(one.path);
      case "link":
        return ["--symlink", one.to, one.path];
      case "file":
        return ["--perms", "0444", "--file", String(files++), one.path];
      case "mount":
        return [one.isReadOnly ? "--ro-bind" : "--bind", one.from, one.path];
      default:
        return one satisfies never;
    }
  });
}

function deviceWords(devices: readonly Device[]): Words {
  return devices.flatMap(({ above, real, path }) => [
    ...above.flatMap((folder) => folderWords(folder)),
    ...["--dev-bind", real, path],
  ]);
}

function sandboxWords(tools: Tools, { devices, limits, workdir, command }: SandboxCommand): Words {
  const temporary = (path: string) => [
    ...["--perms", "1777", "--size", String(limits.tmpBytes), "--tmpfs", path],
  ];
  return [
    ...["--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-net"],
    ...["--unshare-cgroup-try", "--disable-userns", "--uid", USER, "--gid", USER, "--hostname", "sandbox"],
    ...["--cap-drop", "ALL", "--new-session", "--die-with-parent", "--seccomp", String(FILTER)],
    ...["--args", String(VARIABLES), "--json-status-fd", String(STATUS)],
    ...["--proc", "/proc", "--dev", "/dev", ...deviceWords(devices)],
    ...[...temporary("/tmp"), ...temporary("/dev/shm"), "--remount-ro", "/dev", "--remount-ro", "/"],
    ...["--chdir", workdir, "--", tools.prlimit, ...limitWords(limits), "--"],
    ...[command.file, ...command.args],
  ];
}

/** A file without a name, read and written by its path for as long as this is not disposed of. */
interface MemoryFile extends Disposable {
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
function writeVariables(env: Readonly<Record<string, string>>, inFolder: string): MemoryFile {
  const words = Object.entries(env).flatMap(([variable, value]) => ["--setenv", variable, value]);
  return memoryFile(inFolder, ["--clearenv", ...words].map((word) => `${word}\0`).join(""));
}
