// Groups of the kernel that keep a command, with everything that it starts, within the memory and the cores that are its own.
//
// - They are made beside or below this program's own group: by version 2 of control groups where that may be done, else by
//   version 1, else not at all. What can be had is found out by the first command that asks for it: a start and other
//   commands do not pay for that.
// - A command joins its group before its program begins: nothing of it is outside, and nothing of the runtime inside.
// - When a group has no memory left the kernel ends what is in it, and counts that.
// - A group is removed with its command. What a predecessor has left is removed when the first one is made.

import { mkdir, readdir, readFile, rmdir, writeFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import type { Amounts, Enforcement } from "../../engine/resources.ts";
import { madeOnce } from "../../lib/async.ts";

const NAME = /^troupe-(\d+)-\d+$/;
/** The group into which this program moves, because one with processes of its own can have none below it (version 2). */
const MAIN = "troupe-main";
const PERIOD_US = 100_000;
/** The least that the kernel takes. */
const QUOTA_US_MIN = 1_000;

export interface ControlGroupsParts {
  /** Where the system shows them. */
  readonly root?: string;
  /** What the system says of this process's own groups. */
  readonly own?: string;
  readonly pid?: number;
  /** The process that waits for this one, and may be in the same group. */
  readonly parentPid?: number;
  readonly isAlive?: (pid: number) => boolean;
  readonly makeGroup?: (path: string) => Promise<unknown>;
  readonly removeGroup?: (path: string) => Promise<void>;
}

/** How one version of control groups is told what a group may have; each setting is a file. */
interface Version {
  readonly enforcement: Enforcement;
  /** Folders in which groups are made. */
  readonly memory: string;
  readonly cpu: string | null;
  readonly memorySettings: (bytes: number) => readonly Setting[];
  readonly cpuSettings: (quotaUs: number) => readonly Setting[];
  /** The file that counts processes that were ended for want of memory. */
  readonly counter: string;
}

interface Setting {
  readonly file: string;
  readonly value: string;
  /** Whether the kernel may lack it. */
  readonly isOptional?: boolean;
}

export class ControlGroups {
  readonly #parts: Required<ControlGroupsParts>;
  readonly #version = madeOnce(() => this.#find());
  #made = 0;
  /** Groups that could not be removed yet. */
  #left: string[] = [];

  constructor({
    root = "/sys/fs/cgroup",
    own = "/proc/self/cgroup",
    pid = process.pid,
    parentPid = process.ppid,
    isAlive = isProcess,
    makeGroup = (path) => mkdir(path),
    removeGroup = rmdir,
  }: ControlGroupsParts = {}) {
    this.#parts = { root, own, pid, parentPid, isAlive, makeGroup, removeGroup };
  }

  /** To be called before this program has started any other, which would be in its group. */
  async open(): Promise<void> {
    const path = await this.#secondFolder(await this.#own());
    if (path !== null && !(await wordsIn(path, "cgroup.subtree_control")).includes("memory"))
      await this.#delegate(path);
  }

  /** @returns null when nothing is enforced of what is asked for */
  async make(demand: Amounts): Promise<ControlGroup | null> {
    const version = await this.#version();
    return version === null ? null : this.#makeBy(version, demand);
  }

  /** What is left of commands that have ended. */
  async close(): Promise<void> {
    await this.#remove([]);
  }

  #own(): Promise<string> {
    return readFile(this.#parts.own, "utf8").catch(() => "");
  }

  async #find(): Promise<Version | null> {
    const own = await this.#own();
    for (const find of [() => this.#findSecond(own), () => this.#findFirst(own)]) {
      const version = await find();
      if (version === null) continue;
      await this.#removeStale(version);
      if (await this.#works(version)) return version;
    }
    return null;
  }

  async #makeBy(version: Version, demand: Amounts): Promise<ControlGroup | null> {
    const { memory, cpu } = version;
    const name = `troupe-${this.#parts.pid}-${++this.#made}`;
    const quotaUs = Math.max(QUOTA_US_MIN, Math.round((demand.cpuMillis / 1_000) * PERIOD_US));
    const settings = new Map<string, Setting[]>();
    if (demand.memoryBytes > 0)
      settings.set(join(memory, name), [...version.memorySettings(demand.memoryBytes)]);
    if (demand.cpuMillis > 0 && cpu !== null) {
      const path = join(cpu, name);
      settings.set(path, [...(settings.get(path) ?? []), ...version.cpuSettings(quotaUs)]);
    }
    const paths = [...settings.keys()];
    if (paths.length === 0) return null;
    try {
      for (const [path, its] of settings) {
        await this.#parts.makeGroup(path);
        for (const setting of its) await write(path, setting);
      }
    } catch (error) {
      await this.#remove(paths);
      throw error;
    }
    const counter = demand.memoryBytes > 0 ? join(memory, name, version.counter) : null;
    return {
      enforcement: version.enforcement,
      joinPaths: paths.map((path) => join(path, "cgroup.procs")),
      ranOutOfMemory: async () => counter !== null && (await killsIn(counter)) > 0,
      [Symbol.asyncDispose]: () => this.#remove(paths),
    };
  }

  /** Where there may be groups of version 2. */
  async #secondFolder(own: string): Promise<string | null> {
    const folder = await this.#folderOf(this.#parts.root, /^0::(.*)$/m.exec(own)?.[1]);
    if (folder === null) return null;
    // What has started this program may have been moved with a predecessor.
    const path = basename(folder) === MAIN ? dirname(folder) : folder;
    return (await wordsIn(path, "cgroup.controllers")).includes("memory") ? path : null;
  }

  async #findSecond(own: string): Promise<Version | null> {
    const path = await this.#secondFolder(own);
    if (path === null) return null;
    const enabled = await wordsIn(path, "cgroup.subtree_control");
    if (!enabled.includes("memory")) return null;
    return {
      enforcement: "cgroup2",
      memory: path,
      cpu: enabled.includes("cpu") ? path : null,
      memorySettings: (bytes) => [
        { file: "memory.max", value: String(bytes) },
        { file: "memory.swap.max", value: "0", isOptional: true },
        { file: "memory.oom.group", value: "1", isOptional: true },
      ],
      cpuSettings: (quotaUs) => [{ file: "cpu.max", value: `${quotaUs} ${PERIOD_US}` }],
      counter: "memory.events",
    };
  }

  /** Lets groups below this program's own one have limits, if nothing but this program is in it. */
  async #delegate(path: string): Promise<void> {
    const { pid, parentPid } = this.#parts;
    const pids = await wordsIn(path, "cgroup.procs");
    if (pids.some((one) => one !== String(pid) && one !== String(parentPid))) return;
    try {
      await mkdir(join(path, MAIN), { recursive: true });
      for (const one of pids) await writeFile(join(path, MAIN, "cgroup.procs"), one);
      await writeFile(join(path, "cgroup.subtree_control"), "+memory");
      await writeFile(join(path, "cgroup.subtree_control"), "+cpu").catch(() => {});
    } catch {
      // It may not: then nothing is enforced this way.
    }
  }

  async #findFirst(own: string): Promise<Version | null> {
    const { root } = this.#parts;
    const pathOf = (controller: string) =>
      own
        .split("\n")
        .map((line) => line.split(":"))
        .find(([, controllers = ""]) => controllers.split(",").includes(controller))?.[2];
    const memory = await this.#folderOf(join(root, "memory"), pathOf("memory"));
    if (memory === null) return null;
    return {
      enforcement: "cgroup1",
      memory,
      cpu: await this.#folderOf(join(root, "cpu"), pathOf("cpu")),
      memorySettings: (bytes) => [
        { file: "memory.limit_in_bytes", value: String(bytes) },
        // With swap, where that is counted.
        { file: "memory.memsw.limit_in_bytes", value: String(bytes), isOptional: true },
      ],
      cpuSettings: (quotaUs) => [
        { file: "cpu.cfs_period_us", value: String(PERIOD_US) },
        { file: "cpu.cfs_quota_us", value: String(quotaUs) },
      ],
      counter: "memory.oom_control",
    };
  }

  /** In a container the system may show the own group as the root. */
  async #folderOf(root: string, path: string | undefined): Promise<string | null> {
    if (path === undefined) return null;
    for (const folder of [join(root, path), root])
      if ((await namesIn(folder)).includes("cgroup.procs")) return folder;
    return null;
  }

  /** Makes a group as it would be for a command, and removes it. */
  async #works(version: Version): Promise<boolean> {
    const demand = { cpuMillis: 1_000, memoryBytes: 64 * 1024 ** 2, diskBytes: 0, gpus: 0 };
    try {
      await using group = await this.#makeBy(version, demand);
      await group!.ranOutOfMemory();
      return true;
    } catch {
      return false;
    }
  }

  /** The id of this process may have been a predecessor's, as in containers. */
  async #removeStale({ memory, cpu }: Version): Promise<void> {
    const { pid, isAlive } = this.#parts;
    const isStale = (name: string) => {
      const maker = Number(NAME.exec(name)?.[1]);
      return maker === pid || (maker > 0 && !isAlive(maker));
    };
    for (const folder of new Set([memory, cpu ?? memory]))
      await this.#remove((await namesIn(folder)).filter(isStale).map((name) => join(folder, name)));
  }

  /** A group with processes cannot be removed: some are about to go, and are looked at again later. */
  async #remove(paths: readonly string[]): Promise<void> {
    const left: string[] = [];
    for (const path of [...this.#left.splice(0), ...paths]) {
      await this.#parts.removeGroup(path).catch((error: NodeJS.ErrnoException) => {
        if (error.code !== "ENOENT") left.push(path);
      });
    }
    this.#left.push(...left);
  }
}

/** It is removed when nothing of the command is left. */
export interface ControlGroup extends AsyncDisposable {
  readonly enforcement: Enforcement;
  /** A process that writes 0 into each of these files is in the group from then on. */
  readonly joinPaths: readonly string[];
  /** Whether the kernel has ended something of it because its memory was used up. */
  ranOutOfMemory(): Promise<boolean>;
}

const JOIN = 'while [ "$1" != -- ]; do echo 0 >"$1" || exit 126; shift; done; shift; exec "$@"';

/** The same command, which joins groups first. */
export function joining(
  joinPaths: readonly string[],
  { file, args }: { readonly file: string; readonly args: readonly string[] },
): { readonly file: string; readonly args: readonly string[] } {
  return { file: "/bin/sh", args: ["-c", JOIN, "troupe", ...joinPaths, "--", file, ...args] };
}

async function write(folder: string, { file, value, isOptional = false }: Setting): Promise<void> {
  try {
    await writeFile(join(folder, file), value);
  } catch (error) {
    if (!isOptional) throw error;
  }
}

async function killsIn(counter: string): Promise<number> {
  const count = /^oom_kill (\d+)$/m.exec(await readFile(counter, "utf8"))?.[1];
  if (count === undefined) throw new Error(`${counter} does not count`);
  return Number(count);
}

async function wordsIn(folder: string, file: string): Promise<readonly string[]> {
  const text = await readFile(join(folder, file), "utf8").catch(() => "");
  return text.split(/\s+/).filter((word) => word !== "");
}

const namesIn = (folder: string) => readdir(folder).catch((): string[] => []);

function isProcess(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}
