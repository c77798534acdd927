// Marks that a process cannot take off: two supplementary groups, one of the home and one of the attempt. A process
// that clears its environment, leaves its session and its parents keeps them.
//
// M1. What has a home's group and a group of one of its attempts was started by that home: the second one holds a part
//     of the home's id as well.

import { createHash } from "node:crypto";
import { canGiveGroups } from "./supplementary-groups.ts";

/** 0x80000000 to 0xbfffffff: homes. 0xc0000000 to 0xdfffffff: attempts, of which 2^14 at a time can be told apart. */
const HOMES = 0x8000_0000;
const HOME_BITS = 30;
const ATTEMPTS = 0xc000_0000;
const HOME_PART_BITS = 15;
const ATTEMPT_BITS = 14;

export class GroupMarks {
  readonly #home: number;
  readonly #firstAttempt: number;
  #seq = 0;
  /** Groups and marks of what is live, both ways. */
  readonly #markOf = new Map<number, string>();
  readonly #groupOf = new Map<string, number>();

  private constructor(homeId: string) {
    const hash = createHash("sha256").update(homeId).digest();
    this.#home = HOMES + (hash.readUInt32BE(0) % 2 ** HOME_BITS);
    this.#firstAttempt = ATTEMPTS + (hash.readUInt32BE(4) % 2 ** HOME_PART_BITS) * 2 ** ATTEMPT_BITS;
  }

  /** @returns null where this process may not give groups to what it starts */
  static of(homeId: string): GroupMarks | null {
    return canGiveGroups() ? new GroupMarks(homeId) : null;
  }

  /** The group that all processes of the home have. */
  get home(): number {
    return this.#home;
  }

  /** Takes a group for what gets this mark in its environment; until `end` nothing else has it. */
  begin(mark: string): void {
    if (this.#markOf.size >= 2 ** ATTEMPT_BITS) return;
    let group: number;
    do {
      this.#seq = (this.#seq + 1) % 2 ** ATTEMPT_BITS;
      group = this.#firstAttempt + this.#seq;
    } while (this.#markOf.has(group));
    this.#markOf.set(group, mark);
    this.#groupOf.set(mark, group);
  }

  end(mark: string): void {
    const group = this.#groupOf.get(mark);
    if (group !== undefined) this.#markOf.delete(group);
    this.#groupOf.delete(mark);
  }

  /** The groups to start a process with; none when too many are live. */
  groupsOf(mark: string): readonly number[] {
    const group = this.#groupOf.get(mark);
    return group === undefined ? [] : [this.#home, group];
  }

  /** What a process with these groups belongs to: a live mark, something that is over, or nothing of this home. */
  ownerOf(groups: readonly number[]): string | "over" | null {
    const afterLast = this.#firstAttempt + 2 ** ATTEMPT_BITS;
    const attempt = groups.find((group) => group >= this.#firstAttempt && group < afterLast);
    if (attempt === undefined || !groups.includes(this.#home)) return null;
    return this.#markOf.get(attempt) ?? "over";
  }
}
