// Process trees: every process that a worker started, found and ended wherever it went.
//
// A worker is the leader of a process group, and carries a mark that its descendants inherit (process-marks.ts). Its
// tree is everything with its mark, its group, and everything below it by parentage.
//
// - Only processes of this home are ever signalled: the mark begins with a number that no other home has (of 8e10).
// - A process is signalled only if it is still the one that was found (ids are used again).
// - After `endStrays` nothing runs that a command of this home had started and left, in this or an earlier runtime.
// - A mark is live from before its worker is spawned until its tree is over; what is found with a mark of this
//   home that is not live has escaped, and is ended by the next sweep.
//
// Where marks cannot be set or seen, groups are recorded as files instead; a descendant that leaves its group there is
// found only while its parents live.

import { createHash, randomBytes, randomInt } from "node:crypto";
import { mkdirSync, readdirSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Clock } from "../../engine/ports.ts";
import { machineSource, type ProcessEntry, type ProcessSource } from "./process-table.ts";

const POLL_FIRST_MS = 10;
const POLL_LAST_MS = 200;
/** How long processes may take to go after SIGKILL; longer only in an uninterruptible system call. */
const GONE_WITHIN_MS = 10_000;
/** How long a look at the process table may hold up a signal: reading a stuck process can take for ever. */
const LOOK_MS_MAX = 1_000;
/** A mark is a number of 19 digits, as the limit holds it: 11 of the home, and 8 of the command. */
const HOMES_FROM = 10 ** 10;
const HOMES = 8 * 10 ** 10;
const COMMAND_DIGITS = 8;
/** Between the recorded and the shown time of a start. */
const START_TOLERANCE_MS = 3_000;

/** A worker that was spawned: the leader of its group. */
export interface ProcessTree {
  readonly mark: string;
  readonly pid: number;
  /** Start of the leader as the process table shows it; null when that is not known. */
  readonly start: string | null;
  /** Whatever was seen in the tree while it could be seen, by id and start: parentage is lost with a parent. */
  readonly seen: Map<number, string>;
}

export class ProcessTrees {
  readonly #folder: string;
  readonly #markPrefix: string;
  readonly #clock: Clock;
  readonly #source: ProcessSource;
  readonly #liveMarks = new Set<string>();
  /** Of those whose groups are recorded. */
  readonly #livePids = new Set<number>();
  /** A process that carries the mark of what it starts for a moment. */
  #sparedPid = process.pid;
  #mayHaveEscaped = false;
  #markSeq = randomInt(10 ** COMMAND_DIGITS);
  #reading: Promise<readonly ProcessEntry[]> | null = null;
  #nextReading: Promise<readonly ProcessEntry[]> | null = null;

  /** @param home folder of this runtime; only one runtime at a time may use it */
  constructor(home: string, clock: Clock, source: ProcessSource = machineSource) {
    this.#clock = clock;
    this.#source = source;
    this.#folder = join(home, "processes");
    mkdirSync(this.#folder, { recursive: true, mode: 0o700 });
    this.#markPrefix = homeNumber(this.#folder);
  }

  /** Never signals this process, which starts the others. */
  spare(pid: number): void {
    this.#sparedPid = pid;
  }

  /** Makes the mark of a worker that is about to be spawned. */
  newMark(): string {
    let mark: string;
    do {
      this.#markSeq = (this.#markSeq + 1) % 10 ** COMMAND_DIGITS;
      mark = this.#markPrefix + String(this.#markSeq).padStart(COMMAND_DIGITS, "0");
    } while (this.#liveMarks.has(mark));
    this.#liveMarks.add(mark);
    return mark;
  }

  /**
   * Notes that the worker with this mark runs as the leader of group `pid`.
   *
   * @param givenStart as the process table shows it; null when that is not known
   */
  started(mark: string, pid: number, givenStart: string | null): ProcessTree {
    const start = givenStart ?? this.#source.startOf(pid);
    if (!this.#source.showsMarks()) {
      this.#livePids.add(pid);
      writeFileSync(join(this.#folder, String(pid)), start ?? new Date(this.#clock.nowMs()).toISOString());
    }
    return { mark, pid, start, seen: new Map() };
  }

  /**
   * Notes that a worker is over, or was never started; what is left of it from now on has escaped.
   *
   * @param isGone whether nothing is left for sure
   */
  ended(mark: string, tree: ProcessTree | null, isGone = false): void {
    this.#liveMarks.delete(mark);
    this.#mayHaveEscaped ||= !isGone;
    if (tree !== null && this.#livePids.delete(tree.pid)) this.#forget(tree.pid);
  }

  /**
   * Signals the whole tree: the group at once, then whatever left the group. For a worker that still runs.
   *
   * @param sparesGroup leaves the group alone if something has left it
   */
  async signal(tree: ProcessTree, signal: NodeJS.Signals, sparesGroup = false): Promise<void> {
    // The tree is looked at before the group is hit: afterwards, parentage is lost.
    const before = await this.#look(tree);
    const outside = before.filter((entry) => entry.groupId !== tree.pid);
    if (!sparesGroup || outside.length === 0) signalGroup(tree.pid, signal);
    this.#signalAll(outside, signal);
  }

  /** Waits until the tree is gone, or the wait is over. */
  async gone(tree: ProcessTree, isOver: () => boolean): Promise<void> {
    await this.#poll(isOver, async () => (await this.#members(tree)).length === 0);
  }

  /** Kills whatever is left of the tree until nothing is. @returns false when it does not go, even so */
  async kill(tree: ProcessTree): Promise<boolean> {
    return await this.#pollFor(GONE_WITHIN_MS, async () => {
      const left = await this.#members(tree);
      this.#signalAll(left, "SIGKILL");
      return left.length === 0;
    });
  }

  /** Whether something may have escaped since the last sweep. */
  get mayHaveEscaped(): boolean {
    return this.#mayHaveEscaped;
  }

  /** Ends everything of this home whose mark is not live. @returns how many processes */
  async sweep(): Promise<number> {
    this.#mayHaveEscaped = false;
    const escaped = await this.escaped();
    this.#signalAll(escaped, "SIGKILL");
    return escaped.length;
  }

  /** Sweeps until nothing is left that is not live. @returns how many processes were ended */
  async endStrays(): Promise<number> {
    const found = new Set<string>();
    const gone = await this.#pollFor(GONE_WITHIN_MS, async () => {
      const escaped = await this.escaped();
      this.#signalAll(escaped, "SIGKILL");
      for (const { pid, start } of escaped) found.add(`${pid} ${start}`);
      return escaped.length === 0;
    });
    if (!gone) {
      throw new Error(
        "Processes that commands of this home left behind did not end within 10 s of SIGKILL; " +
          `find them with: grep -sl ${this.#markPrefix} /proc/*/limits`,
      );
    }
    for (const pid of this.#leftGroups().keys()) this.#forget(pid);
    return found.size;
  }

  /** Kills a process that has escaped, if it still has. @returns whether it is gone */
  async endStray({ pid, start }: ProcessEntry): Promise<boolean> {
    return await this.#pollFor(GONE_WITHIN_MS, async () => {
      const left = (await this.escaped()).filter((entry) => entry.pid === pid && entry.start === start);
      this.#signalAll(left, "SIGKILL");
      return left.length === 0;
    });
  }

  async #pollFor(timeoutMs: number, done: () => Promise<boolean>): Promise<boolean> {
    const untilMs = performance.now() + timeoutMs;
    return await this.#poll(() => performance.now() >= untilMs, done);
  }

  async #poll(isOver: () => boolean, done: () => Promise<boolean>): Promise<boolean> {
    for (let waitMs = POLL_FIRST_MS; ; waitMs = Math.min(2 * waitMs, POLL_LAST_MS)) {
      // A table that cannot be read (too many open files) may be readable the next time.
      if (await done().catch(() => false)) return true;
      if (isOver()) return false;
      await this.#afterMs(waitMs);
    }
  }

  #afterMs(delayMs: number): Promise<void> {
    return new Promise((resolve) => this.#clock.after(delayMs, resolve));
  }

  /** The tree's members, or none when they cannot be had in time. */
  async #look(tree: ProcessTree): Promise<readonly ProcessEntry[]> {
    return await new Promise((resolve) => {
      const cancel = this.#clock.after(LOOK_MS_MAX, () => resolve([]));
      void this.#members(tree)
        .catch(() => [])
        .then((members) => {
          cancel();
          resolve(members);
        });
    });
  }

  async #members(tree: ProcessTree): Promise<readonly ProcessEntry[]> {
    const processes = await this.#read();
    const leader = processes.find((entry) => entry.pid === tree.pid);
    // Once the id is somebody else's, so are the group and the children of that name.
    const isOurs = leader === undefined || tree.start === null || leader.start === tree.start;
    const known = processes.filter(({ pid, start }) => tree.seen.get(pid) === start).map(({ pid }) => pid);
    const below = descendants(processes, isOurs ? [tree.pid, ...known] : known);
    const members = processes.filter(
      ({ pid, groupId, mark, zombie }) =>
        !zombie && (mark === tree.mark || (isOurs && groupId === tree.pid) || below.has(pid)),
    );
    for (const { pid, start } of members) tree.seen.set(pid, start);
    return members;
  }

  /** What is left of commands that are over. */
  async escaped(): Promise<readonly ProcessEntry[]> {
    const processes = await this.#read();
    const marked = processes.filter(
      ({ mark }) => mark?.startsWith(this.#markPrefix) && !this.#liveMarks.has(mark),
    );
    return [...marked, ...this.#membersOfLeftGroups(processes)];
  }

  /** Reads the process table. Callers that come while one is being read share the next reading. */
  #read(): Promise<readonly ProcessEntry[]> {
    if (this.#reading === null) return this.#startReading();
    this.#nextReading ??= this.#reading.then(
      () => this.#startReading(),
      () => this.#startReading(),
    );
    return this.#nextReading;
  }

  #startReading(): Promise<readonly ProcessEntry[]> {
    this.#nextReading = null;
    const others = (entries: readonly ProcessEntry[]) =>
      entries.filter(({ pid }) => pid !== process.pid && pid !== this.#sparedPid);
    const all = this.#source.read();
    const reading = all.then(others).finally(() => {
      if (this.#reading === reading) this.#reading = null;
    });
    this.#reading = reading;
    return reading;
  }

  /** The recorded groups of earlier runtimes, and the starts of their leaders. */
  #leftGroups(): Map<number, string> {
    const names = readdirSync(this.#folder).filter((name) => /^\d+$/.test(name));
    const left = names.filter((name) => !this.#livePids.has(Number(name)));
    return new Map(left.map((name) => [Number(name), readFileSync(join(this.#folder, name), "utf8")]));
  }

  /** A group whose leader shows another start than the recorded one is somebody else's by now. */
  #membersOfLeftGroups(processes: readonly ProcessEntry[]): readonly ProcessEntry[] {
    return [...this.#leftGroups()].flatMap(([groupId, start]) => {
      const members = processes.filter((entry) => entry.groupId === groupId && !entry.zombie);
      const leader = members.find((entry) => entry.pid === groupId);
      return leader === undefined || isSameStart(leader.start, start) ? members : [];
    });
  }

  #signalAll(entries: readonly ProcessEntry[], signal: NodeJS.Signals): void {
    for (const { pid, start } of entries) {
      if ((this.#source.startOf(pid) ?? start) === start) signalProcess(pid, signal);
    }
  }

  #forget(pid: number): void {
    rmSync(join(this.#folder, String(pid)), { force: true });
  }
}

/** Signals a worker's group. Harmless when nobody is left in it. */
export function signalGroup(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(-pid, signal);
  } catch {
    // ESRCH: nobody is left. EPERM: all that is left runs as somebody else, and cannot be signalled.
  }
}

/** Signals a process. Harmless when it has ended. */
export function signalProcess(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch {
    // ESRCH, or EPERM: it became somebody else's.
  }
}

/** Where /proc shows no starts, a time is recorded, and `ps` shows one in whole seconds. */
function isSameStart(shown: string, recorded: string): boolean {
  return shown === recorded || Math.abs(Date.parse(shown) - Date.parse(recorded)) <= START_TOLERANCE_MS;
}

/** The given processes and everything below them by parentage. */
function descendants(processes: readonly ProcessEntry[], roots: readonly number[]): ReadonlySet<number> {
  const children = Map.groupBy(processes, (entry) => entry.parentPid);
  const below = new Set(roots);
  const open = [...roots];
  for (let parent = open.pop(); parent !== undefined; parent = open.pop()) {
    for (const child of children.get(parent) ?? []) {
      if (below.has(child.pid)) continue;
      below.add(child.pid);
      open.push(child.pid);
    }
  }
  return below;
}

/** A number for this home: of its random file and its place together, so that a copied home has another one. */
function homeNumber(folder: string): string {
  const file = join(folder, "home-id");
  try {
    writeFileSync(file, randomBytes(16).toString("hex"), { flag: "wx" });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
  }
  const secret = readFileSync(file, "utf8");
  const hash = createHash("sha256")
    .update(`${secret} ${realpathSync(folder)}`)
    .digest();
  return String(HOMES_FROM + (hash.readUIntBE(0, 6) % HOMES));
}
