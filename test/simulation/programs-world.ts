// What simulated worlds of several programs over one database have in common: time, chance, programs that are killed and start
// again, a store that fails, a duty that one of them has, and people who ask any of them.

import { idSource } from "../../src/engine/ids.ts";
import { JournalUnavailable } from "../../src/engine/journal.ts";
import type { Clock } from "../../src/engine/ports.ts";
import type { GatewayRecords } from "../../src/launch/records.ts";
import { DomainError } from "../../src/lib/domain-error.ts";
import { sqlGatewayRecords } from "../../src/store/sql/gateway.ts";
import { openSqlite, type SqliteDatabase } from "../../src/store/sqlite/database.ts";
import { Counts } from "./kinds.ts";
import { Random } from "./random.ts";
import { type Living, Timeline } from "./timeline.ts";

export interface WorldProgram extends Living {
  readonly name: string;
  isAlive: boolean;
  start(): void;
}

export interface Faults {
  /** What of the program is simulated, in the names of what is counted. */
  readonly who: "scheduler" | "controller";
  /** How likely a write fails, and a program is killed behind one. */
  readonly fails: number;
  readonly crashes: number;
  readonly awayMs: readonly number[];
  /** Errors that the world explains. */
  readonly explained: RegExp;
}

export abstract class ProgramsWorld<Program extends WorldProgram> {
  readonly random: Random;
  readonly counts = new Counts();
  readonly database: SqliteDatabase = openSqlite(":memory:");
  /** What only looks; it never fails. */
  readonly records: GatewayRecords;
  readonly newId: () => string;
  isFaulty = true;
  hasWritten = false;
  protected readonly timeline = new Timeline();
  protected readonly programs = new Map<string, Program>();
  /** Errors that nothing in this world explains. */
  protected readonly errors: string[] = [];
  protected duty: { readonly name: string; readonly untilMs: number } | null = null;
  protected jumpedMs = 0;
  readonly #faults: Faults;

  constructor(seed: number, faults: Faults) {
    this.#faults = faults;
    this.random = new Random(seed);
    this.newId = idSource(
      () => this.nowMs,
      () => this.random.fraction(),
    );
    this.records = sqlGatewayRecords(this.database, (done) => setImmediate(done));
  }

  protected abstract make(name: string): Program;

  get nowMs(): number {
    return this.timeline.nowMs + this.jumpedMs;
  }

  clockOf(by: Living): Clock {
    return {
      nowMs: () => this.nowMs,
      steadyMs: () => this.timeline.nowMs,
      after: (delayMs, done) => this.timeline.plan(delayMs, by, done, true),
      soon: (done) => void this.timeline.plan(0, by, done),
    };
  }

  pause(by: Living, delayMs: number): Promise<void> {
    return new Promise((resolve) => this.timeline.plan(delayMs, by, resolve));
  }

  takeDuty(name: string, forMs: number): boolean {
    const isFree = this.duty === null || this.duty.name === name || this.duty.untilMs <= this.timeline.nowMs;
    if (isFree) this.duty = { name, untilMs: this.timeline.nowMs + forMs };
    return isFree;
  }

  unexpected(error: string): void {
    if (!this.#faults.explained.test(error)) this.errors.push(error);
  }

  mayFail(): void {
    if (!this.isFaulty || !this.random.chance(this.#faults.fails)) return;
    this.counts.add(`store that failed a ${this.#faults.who}`);
    throw new JournalUnavailable("The disk is full.");
  }

  /** Something was written, and nobody learns of it. */
  async mayCrash(by: Program): Promise<void> {
    if (!this.isFaulty || !by.isAlive || !this.random.chance(this.#faults.crashes)) return;
    this.counts.add(`crash behind a write of a ${this.#faults.who}`);
    this.crash(by.name);
    await new Promise<never>(() => {});
  }

  protected crash(name: string, awayMs = this.random.pick(this.#faults.awayMs)): void {
    const program = this.programs.get(name);
    if (program === undefined) return;
    program.isAlive = false;
    this.timeline.drop(program);
    this.programs.delete(name);
    this.timeline.plan(awayMs, null, () => this.start(name));
  }

  protected start(name: string): void {
    if (this.programs.has(name)) return;
    const program = this.make(name);
    this.programs.set(name, program);
    program.start();
  }

  /** A person asks any program that is alive; a refusal, and what nobody learns of, is no fault of the program. */
  async ask(what: (program: Program) => Promise<void>): Promise<void> {
    const [program] = this.random.chance(0.5)
      ? this.programs.values()
      : [...this.programs.values()].reverse();
    if (program === undefined) return;
    await what(program).catch((error: unknown) => {
      if (!(error instanceof DomainError || error instanceof JournalUnavailable)) throw error;
    });
  }
}
