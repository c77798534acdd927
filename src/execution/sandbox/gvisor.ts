// Sandboxes made by gVisor: runsc runs a container of the Open Container Initiative's (OCI) runtime specification, whose system
// calls a kernel of gVisor's own answers. What is inside is not among the machine's processes.
//
// - Root's runtime gives a worker's files to user 65534 of the machine, who is the worker inside, too: gVisor's own process for
//   files has root's rights, and its kernel checks those of the worker. With an ordinary user's runtime the worker is user 0
//   inside, without capabilities, because there is no other name for that user there.
// - The container's description holds the worker's variables: it is kept in memory, and removed with the sandbox.

import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import {
  chmodSync,
  copyFileSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { basename, dirname, join } from "node:path";
import { isInside } from "../../lib/paths.ts";
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
import { type Shown, writable } from "./mounts.ts";
import { ociSeccomp } from "./seccomp.ts";

/** Of /dev, whose owner an ordinary user's worker is. */
const DEVICES_BYTES = 65_536;
const KILL_MS = 5_000;
/**
 * The first process inside, which gets the orphans of all others and outlives what ends them: a worker that waits for all
 * its children would wait for theirs. It says nothing of how the worker ends.
 */
const INIT = 'trap : TERM; exec 3>&2 2>/dev/null; (exec "$@" 2>&3 3>&-); exit $?';
/** How runsc ends, and what it says then, when it could not start the first process. */
const NOT_STARTED_EXIT = 128;
const NOT_STARTED = "running container: ";
const NAME_DIGITS = 16;

interface Runsc {
  readonly file: string;
  readonly prlimit: string;
  readonly isRoot: boolean;
  /** Files of ours. */
  readonly own: string;
  /** See bundlePrefix. */
  readonly prefix: string;
}

/** See findBubblewrap. */
export function findGvisor(folder: string, find: FindProgram): SandboxEngine | string {
  const file = find("runsc");
  if (file === null)
    return "gVisor is missing, which SVC_SANDBOX_ENGINE names. Install it: `apt install runsc`.";
  const prlimit = find("prlimit");
  if (prlimit === null) return "prlimit is missing. Install util-linux.";
  const isRoot = process.getuid?.() === 0;
  const prefix = bundlePrefix(folder);
  removeLeft(prefix);
  const runsc = { file, prlimit, isRoot, own: folder, prefix };
  return {
    userOf: () => (isRoot ? SANDBOX_USER : null),
    start: (command) => startWith(runsc, command),
    advice:
      "Use gVisor of December 2022 or newer; an ordinary user needs unprivileged user namespaces (docs/sandbox.md)",
  };
}

/** How the folders of the runtime's sandboxes begin. @param folder the runtime's own */
export function bundlePrefix(folder: string): string {
  const name = createHash("sha256").update(folder).digest("hex").slice(0, NAME_DIGITS);
  return join(existsSync(MEMORY) ? MEMORY : folder, `troupe-gvisor-${name}-`);
}

/** Removes what a runtime that was killed has left. */
function removeLeft(prefix: string): void {
  const above = dirname(prefix);
  const left = readdirSync(above).filter((name) => name.startsWith(basename(prefix)));
  for (const path of left.map((name) => join(above, name))) {
    // Everybody may make files in memory.
    if (lstatSync(path, { throwIfNoEntry: false })?.uid !== process.getuid?.()) continue;
    rmSync(path, { recursive: true, force: true });
  }
}

function startWith(runsc: Runsc, command: SandboxCommand): StartedSandbox {
  const bundle = mkdtempSync(runsc.prefix);
  using made = new DisposableStack();
  made.defer(() => rmSync(bundle, { recursive: true, force: true }));
  makeRoot(join(bundle, "root"), runsc.own, command.shown);
  const description = JSON.stringify(describe(runsc, command));
  writeFileSync(join(bundle, "config.json"), description, { mode: 0o600 });
  const started = join(bundle, "pid");
  // The same for nobody else on the machine.
  const id = basename(bundle);
  const global = [
    ...["--root", join(bundle, "state"), "--network=none", "--ignore-cgroups"],
    ...["--host-fifo=open", "--oci-seccomp"],
    ...(command.hasSocket ? ["--host-uds=open"] : []),
    ...(runsc.isRoot ? [] : ["--rootless"]),
  ];
  const kept = made.move();
  return {
    file: runsc.file,
    args: [...global, "run", "--bundle", bundle, "--pid-file", started, id],
    cwd: "/",
    env: outsideEnvironment,
    files: [],
    // A worker that pretends it gets no more than the blame on its sandbox.
    wasMade: (exitCode, stderr) =>
      existsSync(started) && !(exitCode === NOT_STARTED_EXIT && stderr.startsWith(NOT_STARTED)),
    terminate: () =>
      new Promise((resolve) => {
        const words = [...global, "kill", "--all", id, "TERM"];
        execFile(runsc.file, words, { env: outsideEnvironment, timeout: KILL_MS }, (error) =>
          resolve(error === null),
        );
      }),
    [Symbol.dispose]: () => kept.dispose(),
  };
}

/** The container's root folder: all that is no mount, and the places of those that are. */
function makeRoot(root: string, own: string, shown: readonly Shown[]): void {
  const mounted: string[] = [];
  mkdirSync(root);
  chmodSync(root, 0o755);
  const make = (path: string) => {
    const steps = path.split("/").filter((step) => step !== "");
    steps.reduce((above, step) => {
      const folder = join(above, step);
      if (!existsSync(folder)) {
        mkdirSync(folder);
        chmodSync(folder, 0o755);
      }
      return folder;
    }, root);
  };
  for (const path of ["/proc", "/dev", "/sys", "/tmp"]) make(path);
  for (const one of shown) {
    // The outer mount has the places of those within it.
    if (mounted.some((path) => isInside(path, one.path))) continue;
    const at = join(root, one.path);
    if (one.kind === "link") symlinkSync(one.to, at);
    else if (one.kind === "folder") make(one.path);
    else if (one.kind === "file") {
      // What the system does not have any more is empty.
      if (existsSync(one.from) || isInside(own, one.from)) copyFileSync(one.from, at);
      else writeFileSync(at, "");
      chmodSync(at, 0o444);
    } else {
      mounted.push(one.path);
      if (statSync(one.from).isDirectory()) make(one.path);
      else writeFileSync(at, "");
    }
  }
}

/** `config.json` of a container. */
function describe(runsc: Runsc, { shown, pipe, limits, workdir, env, command }: SandboxCommand) {
  const user = runsc.isRoot ? SANDBOX_USER : 0;
  const temporary = (destination: string) => ({
    ...{ destination, type: "tmpfs", source: "tmpfs" },
    options: ["nosuid", "nodev", "mode=1777", `size=${limits.tmpBytes}`],
  });
  // What is in a mount that is read-only is so, too, even if it is a pipe.
  const pipes = pipe === null ? [] : [writable(pipe.from, pipe.path)];
  const binds = [...shown, ...pipes].flatMap((one) => {
    if (one.kind !== "mount") return [];
    const options = ["rbind", "nosuid", "nodev", one.isReadOnly ? "ro" : "rw"];
    return [{ destination: one.path, type: "bind", source: one.from, options }];
  });
  const none: readonly string[] = [];
  return {
    ociVersion: "1.0.0",
    process: {
      user: { uid: user, gid: user },
      args: [
        "/bin/sh",
        "-c",
        INIT,
        "init",
        runsc.prlimit,
        ...limitWords(limits),
        "--",
        command.file,
        ...command.args,
      ],
      env: Object.entries(env).map(([name, value]) => `${name}=${value}`),
      cwd: workdir,
      noNewPrivileges: true,
      capabilities: { bounding: none, effective: none, inheritable: none, permitted: none, ambient: none },
    },
    root: { path: "root", readonly: true },
    hostname: "sandbox",
    mounts: [
      { destination: "/proc", type: "proc", source: "proc" },
      { destination: "/dev", type: "tmpfs", source: "tmpfs", options: [`size=${DEVICES_BYTES}`] },
      { destination: "/sys", type: "tmpfs", source: "tmpfs", options: ["ro", "size=0"] },
      ...[temporary("/dev/shm"), temporary("/tmp"), ...binds],
    ],
    linux: {
      seccomp: ociSeccomp(),
      namespaces: ["pid", "network", "ipc", "uts", "mount"].map((type) => ({ type })),
    },
  };
}
