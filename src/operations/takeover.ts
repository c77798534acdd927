// Takes over the work that a lost program has left: runs that were not launched, and operations that had not ended.
//
// - The names in the records are read before the names of the living: a program is alive before its name is in any
//   record, so a name that is read and then not among the living is of a lost one, and stays so.
// - What is taken over is this program's with one statement, so of several that look at once one has it.
// - `lost` says that a program was lost. Nothing depends on it: everything is looked at again after a while.
// - Work may be given to a program by another one: what is its own and not begun is begun at the next look.
// - A program that is drained takes nothing over, and leaves the runs that it has not launched to others.

import type { Clock, EngineLog } from "../engine/ports.ts";
import type { Ownership } from "./ownership.ts";

const LOOK_EVERY_MS = 10_000;
/** So often the work that is this program's already is looked at as well. */
const LOOKS_PER_SETTLING = 6;

/** Who has taken on what is not done yet. A port, implemented in src/store. */
export interface WorkOwners {
  /** Each of them once; null where nobody has. */
  owners(): Promise<readonly (string | null)[]>;
  /** Gives the work of `lost` to `owner`. */
  takeOver(lost: readonly (string | null)[], owner: string): Promise<void>;
  /** Leaves the runs of `owner` that are not launched to others, who take them over. */
  leaveRuns(owner: string): Promise<void>;
}

export interface TakeoverParts {
  readonly ownership: Ownership;
  readonly records: WorkOwners;
  /** Why this program takes nothing on; null while it does. */
  readonly closed: () => string | null;
  /** Begins what is this program's in the records. */
  readonly settle: () => Promise<void>;
  readonly clock: Clock;
  readonly log: EngineLog;
}

export class Takeover {
  readonly #parts: TakeoverParts;
  #looks = 0;
  #underWay: Promise<void> = Promise.resolve();
  #cancelTimer: (() => void) | null = null;
  #isStopped = false;

  constructor(parts: TakeoverParts) {
    this.#parts = parts;
  }

  /** The first look, which the start waits for; the others follow by themselves. @throws JournalUnavailable */
  async start(): Promise<void> {
    if (this.#parts.ownership.owner() === null) return;
    await this.#take();
    this.#lookLater();
  }

  /** A program was lost, or this one has another name: looks now. */
  lost(): void {
    this.#cancelTimer?.();
    this.#look({ isSettling: true });
  }

  /** Resolves when nothing is under way. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#cancelTimer?.();
    await this.#underWay;
  }

  #lookLater(): void {
    this.#cancelTimer?.();
    if (this.#isStopped) return;
    const isSettling = ++this.#looks % LOOKS_PER_SETTLING === 0;
    this.#cancelTimer = this.#parts.clock.after(LOOK_EVERY_MS, () => this.#look({ isSettling }));
  }

  #look({ isSettling }: { readonly isSettling: boolean }): void {
    if (this.#isStopped) return;
    this.#underWay = this.#underWay
      .then(async () => {
        const hasWork = await this.#take();
        if (hasWork || isSettling) await this.#parts.settle();
      })
      .catch((error: unknown) => {
        const fields = { error: String(error) };
        this.#parts.log.warn(fields, "the work of lost programs could not be taken over yet");
      })
      .then(() => this.#lookLater());
  }

  /** @returns whether there is work of this program's own now */
  async #take(): Promise<boolean> {
    const { ownership, records, closed } = this.#parts;
    const owners = await records.owners();
    const owner = ownership.owner();
    if (owner === null) return false;
    const isOwn = owners.includes(owner);
    if (closed() !== null) {
      if (isOwn) await records.leaveRuns(owner);
      return false;
    }
    const strangers = owners.filter((one) => one !== owner);
    const living = strangers.length === 0 ? new Set() : await ownership.living();
    const lost = strangers.filter((one) => one === null || !living.has(one));
    if (lost.length > 0) await records.takeOver(lost, owner);
    return isOwn || lost.length > 0;
  }
}
