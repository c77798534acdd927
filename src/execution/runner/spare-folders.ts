// Folders of agents whose command left nothing, kept for the next command of the same run: to make and remove a dozen
// files and folders can cost more than all else that a short command needs.
//
// - A folder is kept only when no process of the command is left, and only when all in it is as the runtime made it.
// - What the command was given is overwritten before its folder is kept.
// - It is used for the same run only, whose workers share a folder anyway, and under a name that was not used before.
// - One that nobody has taken for a while is removed.

import {
  closeSync,
  constants,
  existsSync,
  fstatSync,
  ftruncateSync,
  lstatSync,
  openSync,
  readdirSync,
  realpathSync,
  renameSync,
  type Stats,
  statSync,
  unlinkSync,
  writeSync,
} from "node:fs";
import { basename, dirname, join, relative } from "node:path";
import type { Clock, EngineLog } from "../../engine/ports.ts";
import type { OpenFolder } from "../../lib/open-folder.ts";
import type { WorkerPipes } from "../process/worker-pipes.ts";
import type { AgentFolders } from "./paths.ts";
import type { Trash } from "./trash.ts";

/** Long enough for a run whose commands follow one another. */
const KEPT_MS = 1_000;
const KEPT_MAX = 256;
/** A folder of this size has few entries, and can be read at once. */
const FOLDER_BYTES_MAX = 4_096;
/** A file that held more is not overwritten but removed. */
const FILE_BYTES_MAX = 64 * 1024;
const MODE_BITS = 0o7777;
const { O_NOFOLLOW, O_NONBLOCK, O_RDWR } = constants;

type Kind = "file" | "folder" | "pipe";

/** Names in an agent's folder and in an attempt's (paths.ts, workspace.ts, worker-contract.ts). */
const AGENT_ENTRIES = { attempts: "folder", staged: "file", work: "folder" } as const;
const INPUTS = ["context.json", "input.json", "message.json"] as const;
const ATTEMPT_ENTRIES = {
  "context.json": "file",
  "input.json": "file",
  "message.json": "file",
  "human-responses.jsonl": "file",
  events: "pipe",
  out: "folder",
} as const;

/** The folders of an agent and of its attempt, and the pipes for a worker in them; all open. */
export interface HeldFolders {
  readonly agent: OpenFolder;
  readonly attempt: OpenFolder;
  readonly pipes: WorkerPipes;
}

interface Spare {
  /** Path of the agent's folder. */
  readonly path: string;
  /** Name of the attempt's folder. */
  readonly name: string;
  readonly held: HeldFolders;
  readonly keptAtMs: number;
}

export class SpareFolders {
  readonly #home: string;
  readonly #realHome: string;
  readonly #trash: Trash;
  readonly #clock: Clock;
  readonly #log: EngineLog;
  /** By the folder that they are in, then by their agents' folders. */
  readonly #kept = new Map<string, Map<string, Spare>>();
  #count = 0;
  #cancelTimer: (() => void) | null = null;

  constructor(home: string, trash: Trash, clock: Clock, log: EngineLog) {
    this.#home = home;
    this.#realHome = realpathSync(home);
    this.#trash = trash;
    this.#clock = clock;
    this.#log = log;
  }

  /** @param agent path of an agent's folder */
  has(agent: string): boolean {
    return this.#kept.get(dirname(agent))?.has(agent) === true;
  }

  /**
   * Makes a spare folder of the run the agent's own.
   *
   * @param name of the attempt's folder
   * @returns the folders, which are the caller's to close; null when none is spare, or the agent has a folder of its own
   */
  take({ agent }: AgentFolders, name: string): HeldFolders | null {
    const spare = this.#spareFor(agent);
    if (spare === null) return null;
    const { held } = spare;
    try {
      this.#assertInPlace(spare);
      // From the attempt's folder upwards no symlink can be on the way.
      const agents = held.attempt.pathAbove(3);
      const own = `${agents}/${basename(agent)}`;
      if (spare.path !== agent && lstatSync(own, { throwIfNoEntry: false }) !== undefined) {
        this.#add(spare);
        return null;
      }
      if (spare.path !== agent) renameSync(`${agents}/${basename(spare.path)}`, own);
      const attempts = held.attempt.pathAbove(1);
      renameSync(`${attempts}/${spare.name}`, `${attempts}/${name}`);
      return held;
    } catch (error) {
      // Somebody has changed it meanwhile. What is left is prepared as a folder that was there.
      this.#log.warn({ folder: spare.path, error: String(error) }, "A spare folder could not be used.");
      closeHeld(held);
      return null;
    }
  }

  /**
   * Keeps the agent's folder. To be called when no process of the attempt is left, and its workspace is empty; the
   * folders are then no longer the caller's.
   *
   * @param name of the attempt's folder
   * @returns false when there is something in them that new ones do not have
   */
  keep({ agent: path }: AgentFolders, { agent, attempt, pipes }: HeldFolders, name: string): boolean {
    const held = { agent, attempt, pipes };
    if (this.#count >= KEPT_MAX || !isMadeAsNew(held, name)) return false;
    this.#add({ path, name, held, keptAtMs: this.#clock.steadyMs() });
    return true;
  }

  /** @throws when its folders are elsewhere by now */
  #assertInPlace({ path, name, held }: Spare): void {
    const place = join(this.#realHome, relative(this.#home, path));
    if (held.agent.realPath() === place && held.attempt.realPath() === join(place, "attempts", name)) return;
    throw new Error("It was moved.");
  }

  /** Removes what is kept. Nothing may be kept afterwards. */
  async close(): Promise<void> {
    this.#cancelTimer?.();
    await this.#discardAll([...this.#kept.values()].flatMap((kept) => [...kept.values()]));
  }

  #spareFor(agent: string): Spare | null {
    const kept = this.#kept.get(dirname(agent));
    const spare = kept?.get(agent) ?? kept?.values().next().value;
    if (spare === undefined) return null;
    this.#remove(spare);
    return spare;
  }

  #add(spare: Spare): void {
    const inside = dirname(spare.path);
    const kept = this.#kept.get(inside) ?? new Map<string, Spare>();
    this.#kept.set(inside, kept.set(spare.path, spare));
    this.#count++;
    this.#cancelTimer ??= this.#clock.after(KEPT_MS, () => void this.#discardOld());
  }

  #remove({ path }: Spare): void {
    const kept = this.#kept.get(dirname(path));
    if (kept?.delete(path)) this.#count--;
    if (kept?.size === 0) this.#kept.delete(dirname(path));
  }

  async #discardOld(): Promise<void> {
    this.#cancelTimer = null;
    const all = [...this.#kept.values()].flatMap((kept) => [...kept.values()]);
    const old = all.filter(({ keptAtMs }) => this.#clock.steadyMs() - keptAtMs >= KEPT_MS);
    if (old.length < all.length) {
      this.#cancelTimer = this.#clock.after(KEPT_MS, () => void this.#discardOld());
    }
    await this.#discardAll(old);
  }

  async #discardAll(spares: readonly Spare[]): Promise<void> {
    for (const spare of spares) this.#remove(spare);
    for (const { path, name, held } of spares) {
      // Read to their ends, so that they are others' once nobody has them.
      await held.pipes.finish(async () => {});
      closeHeld(held);
      try {
        // Two flat folders are removed with fewer calls than one inside the other.
        await this.#trash.discard(join(path, "attempts", name));
        await this.#trash.discard(path);
      } catch (error) {
        this.#log.warn({ folder: path, error: String(error) }, "A spare folder is left.");
      }
    }
  }
}

export function closeHeld({ agent, attempt, pipes }: HeldFolders): void {
  pipes.close();
  attempt[Symbol.dispose]();
  agent[Symbol.dispose]();
}

/** Checks that folders, in which the workspace is empty, are as new ones, and empties the files of the attempt. */
function isMadeAsNew({ agent, attempt, pipes }: HeldFolders, name: string): boolean {
  try {
    const attempts = agent.path("attempts");
    if (![attempts, agent.path("work"), attempt.path("out")].every((path) => isOwn(lstatSync(path))))
      return false;
    if (![agent, attempt].every((folder) => isOwn(statSync(folder.path("."))))) return false;
    if (!holdsJust(agent.path("."), AGENT_ENTRIES) || !holdsJust(attempts, { [name]: "folder" }))
      return false;
    const body = attempt.path("body.txt");
    if (existsSync(body)) unlinkSync(body);
    if (!holdsJust(attempt.path("."), ATTEMPT_ENTRIES) || !holdsJust(attempt.path("out"), {})) return false;
    if (!pipes.isUsable(attempt.path("events"))) return false;
    if (lstatSync(attempt.path("human-responses.jsonl")).size > 0) return false;
    return INPUTS.every((input) => emptied(attempt.path(input)));
  } catch {
    return false;
  }
}

function isOwn(folder: Stats): boolean {
  return folder.isDirectory() && (folder.mode & MODE_BITS) === 0o700 && folder.size <= FOLDER_BYTES_MAX;
}

function holdsJust(path: string, expected: Readonly<Record<string, Kind>>): boolean {
  const entries = readdirSync(path, { withFileTypes: true });
  const isExpected = (name: string, kind: Kind | null) =>
    Object.hasOwn(expected, name) && expected[name] === kind;
  const kindOf = (entry: (typeof entries)[number]) =>
    entry.isFile() ? "file" : entry.isDirectory() ? "folder" : entry.isFIFO() ? "pipe" : null;
  return (
    entries.length === Object.keys(expected).length &&
    entries.every((entry) => isExpected(entry.name, kindOf(entry)))
  );
}

/** Leaves one byte: ext4 writes a file to disk at once that was emptied and is written again. */
function emptied(path: string): boolean {
  const file = openSync(path, O_RDWR | O_NOFOLLOW | O_NONBLOCK);
  try {
    const { mode, nlink, size } = fstatSync(file);
    if ((mode & MODE_BITS) !== 0o600 || nlink > 1 || size > FILE_BYTES_MAX) return false;
    writeSync(file, "\n", 0);
    ftruncateSync(file, 1);
    return true;
  } finally {
    closeSync(file);
  }
}
