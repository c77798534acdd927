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
  fstatSync,
  ftruncateSync,
  lstatSync,
  openSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  writeSync,
} from "node:fs";
import { basename, dirname, join } from "node:path";
import type { Clock, EngineLog } from "../../engine/ports.ts";
import { OpenFolder } from "../../lib/open-folder.ts";
import { type AgentFolders, openBelow } from "./paths.ts";
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

interface Spare {
  readonly agent: string;
  readonly attempt: string;
  readonly keptAtMs: number;
}

export class SpareFolders {
  readonly #home: string;
  readonly #trash: Trash;
  readonly #clock: Clock;
  readonly #log: EngineLog;
  /** By the folder that they are in, then by their agents' folders. */
  readonly #kept = new Map<string, Map<string, Spare>>();
  #count = 0;
  #cancelTimer: (() => void) | null = null;

  constructor(home: string, trash: Trash, clock: Clock, log: EngineLog) {
    this.#home = home;
    this.#trash = trash;
    this.#clock = clock;
    this.#log = log;
  }

  /**
   * Makes a spare folder of the run the agent's own.
   *
   * @param attempt name of the attempt's folder
   * @returns the agent's folder; null when none is spare, or the agent has a folder of its own
   */
  take({ agent }: AgentFolders, attempt: string): OpenFolder | null {
    const spare = this.#spareFor(agent);
    if (spare === null) return null;
    using opened = new DisposableStack();
    try {
      using agents = openBelow(this.#home, dirname(agent));
      const name = basename(agent);
      if (spare.agent !== agent && lstatSync(agents.path(name), { throwIfNoEntry: false }) !== undefined) {
        this.#add(spare);
        return null;
      }
      const own = opened.use(agents.folder(basename(spare.agent)));
      if (spare.agent !== agent) renameSync(agents.path(basename(spare.agent)), agents.path(name));
      using attempts = own.folder("attempts");
      renameSync(attempts.path(spare.attempt), attempts.path(attempt));
      opened.move();
      return own;
    } catch (error) {
      // Somebody has changed it meanwhile. What is left is prepared as a folder that was there.
      this.#log.warn({ folder: spare.agent, error: String(error) }, "A spare folder could not be used.");
      return null;
    }
  }

  /**
   * Keeps the agent's folder. To be called when no process of the attempt is left; the folder is then no longer the
   * agent's.
   *
   * @param attempt name of the attempt's folder
   * @returns false when there is something in it that a new one does not have
   */
  keep({ agent }: AgentFolders, open: OpenFolder, attempt: string): boolean {
    if (this.#count >= KEPT_MAX || !isMadeAsNew(open, attempt)) return false;
    this.#add({ agent, attempt, keptAtMs: this.#clock.steadyMs() });
    return true;
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
    const inside = dirname(spare.agent);
    const kept = this.#kept.get(inside) ?? new Map<string, Spare>();
    this.#kept.set(inside, kept.set(spare.agent, spare));
    this.#count++;
    this.#cancelTimer ??= this.#clock.after(KEPT_MS, () => void this.#discardOld());
  }

  #remove({ agent }: Spare): void {
    const kept = this.#kept.get(dirname(agent));
    if (kept?.delete(agent)) this.#count--;
    if (kept?.size === 0) this.#kept.delete(dirname(agent));
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
    for (const { agent, attempt } of spares) {
      try {
        // Two flat folders are removed with fewer calls than one inside the other.
        await this.#trash.discard(join(agent, "attempts", attempt));
        await this.#trash.discard(agent);
      } catch (error) {
        this.#log.warn({ folder: agent, error: String(error) }, "A spare folder is left.");
      }
    }
  }
}

/** Checks that a folder is as a new one, and empties the files that the attempt was given. */
function isMadeAsNew(agent: OpenFolder, name: string): boolean {
  try {
    if (!holdsJust(agent, AGENT_ENTRIES)) return false;
    using work = OpenFolder.open(agent.path("work"));
    using attempts = OpenFolder.open(agent.path("attempts"));
    if (!holdsJust(work, {}) || !holdsJust(attempts, { [name]: "folder" })) return false;
    using attempt = OpenFolder.open(attempts.path(name));
    rmSync(attempt.path("body.txt"), { force: true });
    if (!holdsJust(attempt, ATTEMPT_ENTRIES)) return false;
    using out = OpenFolder.open(attempt.path("out"));
    if (!holdsJust(out, {}) || lstatSync(attempt.path("events")).nlink > 1) return false;
    if (lstatSync(attempt.path("human-responses.jsonl")).size > 0) return false;
    return INPUTS.every((input) => emptied(attempt.path(input)));
  } catch {
    return false;
  }
}

function holdsJust(folder: OpenFolder, expected: Readonly<Record<string, Kind>>): boolean {
  const { mode, size } = statSync(folder.path("."));
  if ((mode & MODE_BITS) !== 0o700 || size > FOLDER_BYTES_MAX) return false;
  const entries = readdirSync(folder.path("."), { withFileTypes: true });
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
