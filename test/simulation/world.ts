// The simulated world: time that leaps from event to event, a wall clock that people set, a disk that fails, a process that dies, commands that are slow, fail,
// answer twice or too late. Everything that happens comes from one seed.

import assert from "node:assert/strict";
import { Engine } from "../../src/engine/engine.ts";
import { idSource } from "../../src/engine/ids.ts";
import {
  type CommitAnswer,
  type JobChanges,
  type Journal,
  JournalUnavailable,
} from "../../src/engine/journal.ts";
import type { Clock } from "../../src/engine/ports.ts";
import { PoolSlots } from "../../src/execution/pools.ts";
import { MemoryJournal } from "../support/memory-journal.ts";
import { Checker } from "./checker.ts";
import type { Random } from "./random.ts";
import { SimRunner } from "./sim-runner.ts";
import { SimServices } from "./sim-services.ts";

export interface Faults {
  /** Probability that a commit fails once, per commit. */
  readonly commitFails: number;
  /** Probability that a commit's answer is lost though it was written (the process dies right then). */
  readonly crashAfterCommit: number;
  /** Probability that nobody can tell whether a commit was written: half of them were. */
  readonly commitUnknown: number;
  /** Probability that a job is chosen whose commits are refused for good from now on, per commit. */
  readonly jobUnwritable: number;
  readonly taskFails: number;
  readonly taskAnswersTwice: number;
  readonly taskIsSlow: number;
}

export const noFaults: Faults = {
  commitFails: 0,
  crashAfterCommit: 0,
  commitUnknown: 0,
  jobUnwritable: 0,
  taskFails: 0,
  taskAnswersTwice: 0,
  taskIsSlow: 0,
};

interface Planned {
  readonly atMs: number;
  readonly order: number;
  /** Which process this belongs to; what a dead process had planned never happens. */
  readonly process: Process | null;
  readonly run: () => void;
}

/** One life of the runtime's process. */
export interface Process {
  readonly name: string;
  readonly engine: Engine;
  isAlive: boolean;
}

export class World {
  readonly random: Random;
  readonly journal = new MemoryJournal();
  readonly checker: Checker;
  faults: Faults;
  /** The time that passes. */
  nowMs = Date.UTC(2026, 0, 1);
  /** How far the wall clock was set ahead of it, or back. */
  #wallAheadMs = 0;
  process: Process;
  /** One that was cut off, and still answers whoever is connected to it; null most of the time. */
  zombie: Process | null = null;
  crashes = 0;
  clockJumps = 0;
  /** Jobs that the journal takes nothing of any more. */
  readonly unwritable = new Set<string>();
  readonly #poolSlots: number;
  #planned: Planned[] = [];
  #order = 0;
  #lives = 0;
  readonly #id: () => string;

  constructor(random: Random, faults: Faults, poolSlots: number) {
    this.random = random;
    this.faults = faults;
    this.#poolSlots = poolSlots;
    this.#id = idSource(
      () => this.#wallMs,
      () => random.fraction(),
    );
    this.checker = new Checker(this.journal, () => this.nowMs);
    this.process = this.#start();
  }

  newId(): string {
    return this.#id();
  }

  #start(): Process {
    const name = `process-${++this.#lives}`;
    // The engine's ports need the process, and the process the engine: the ports ask when they are called.
    const owned = (): Process => process;
    const runner = new SimRunner(this, owned);
    const engine = new Engine({
      owner: name,
      clock: this.#clock(owned),
      randomness: { id: this.#id, fraction: () => this.random.fraction() },
      journal: this.#journalOf(owned),
      runner,
      slots: new PoolSlots({ default: this.#poolSlots }, this.#id),
      feed: {
        published: (jobId, firstSeq, lines) => this.checker.published(jobId, firstSeq, lines),
      },
      services: new SimServices(this, owned),
      log: { warn: () => {}, error: () => {} },
    });
    const process: Process = { name, engine, isAlive: true };
    return process;
  }

  #clock(owned: () => Process): Clock {
    return {
      nowMs: () => this.#wallMs,
      steadyMs: () => this.nowMs,
      after: (delayMs, run) => this.plan(delayMs, owned(), run),
      soon: (run) => {
        this.plan(0, owned(), run);
      },
    };
  }

  /** @returns how to take it back */
  plan(delayMs: number, process: Process | null, run: () => void): () => void {
    const entry: Planned = { atMs: this.nowMs + Math.max(0, delayMs), order: this.#order++, process, run };
    this.#planned.push(entry);
    return () => {
      const at = this.#planned.indexOf(entry);
      if (at >= 0) this.#planned.splice(at, 1);
    };
  }

  /** The journal as one process sees it: slow, failing, and gone when the process is. */
  #journalOf(owned: () => Process): Journal {
    const later = <T>(answer: () => T): Promise<T> =>
      new Promise((resolve, reject) => {
        this.plan(this.random.between(0, 2), owned(), () => {
          try {
            const value = answer();
            if (owned().isAlive) resolve(value);
          } catch (error) {
            reject(error);
          }
        });
      });
    return {
      commit: (batch) => later(() => this.#commit(owned(), batch)),
      claim: (owner, limit) => this.journal.claim(owner, limit),
      load: (jobId) => this.journal.load(jobId),
      failDamaged: (jobId, owner, render) => this.journal.failDamaged(jobId, owner, render),
    };
  }

  #commit(process: Process, batch: readonly JobChanges[]): CommitAnswer {
    const { random, faults } = this;
    if (random.chance(faults.commitFails)) throw new JournalUnavailable("The disk is full.");
    const isUnknown = random.chance(faults.commitUnknown);
    if (isUnknown && random.chance(0.5)) throw new JournalUnavailable("The disk failed.", "unknown");
    if (batch.length > 0 && random.chance(faults.jobUnwritable)) {
      this.unwritable.add(batch[random.below(batch.length)]!.jobId);
    }
    const taken = batch.filter(({ jobId }) => !this.unwritable.has(jobId));
    this.checker.beforeCommit(taken);
    const { lost, unwritable } = this.journal.apply(taken);
    assert.deepEqual(unwritable, [], "no number and no id is used twice");
    this.checker.afterCommit(taken, lost);
    // Written, but nobody learns of it: not the engine, not the clients, not the runner.
    if (process === this.process && random.chance(faults.crashAfterCommit)) this.crash();
    if (isUnknown) throw new JournalUnavailable("The disk failed.", "unknown");
    const refused = batch.filter(({ jobId }) => this.unwritable.has(jobId));
    return { lost, unwritable: refused.map(({ jobId }) => ({ jobId, reason: "a key is taken" })) };
  }

  /** kill -9: memory, timers and commands are gone; another process takes over. */
  crash(): void {
    this.crashes++;
    this.process.isAlive = false;
    const dead = this.process;
    this.#planned = this.#planned.filter((entry) => entry.process !== dead);
    this.process = this.#start();
    const { engine } = this.process;
    this.plan(0, null, () => void engine.recover());
  }

  /** A process that is cut off but does not know it goes on working, while another one takes over its jobs. */
  partition(): void {
    this.crashes++;
    const zombie = this.process;
    this.zombie = zombie;
    this.process = this.#start();
    const { engine } = this.process;
    this.plan(0, null, () => void engine.recover());
    this.plan(this.random.between(5, 200), null, () => {
      zombie.isAlive = false;
      if (this.zombie === zombie) this.zombie = null;
      this.#planned = this.#planned.filter((entry) => entry.process !== zombie);
    });
  }

  get #wallMs(): number {
    return this.nowMs + this.#wallAheadMs;
  }

  /** Somebody sets the machine's clock. */
  setClock(): void {
    this.clockJumps++;
    this.#wallAheadMs += this.random.pick([-25, -2, 2, 25]) * 3_600_000;
  }

  /** Lets the earliest planned thing happen. @returns false when nothing is planned */
  async step(): Promise<boolean> {
    let next: Planned | undefined;
    for (const entry of this.#planned) {
      if (
        next === undefined ||
        entry.atMs < next.atMs ||
        (entry.atMs === next.atMs && this.#before(entry, next))
      ) {
        next = entry;
      }
    }
    if (next === undefined) return false;
    this.#planned.splice(this.#planned.indexOf(next), 1);
    this.nowMs = Math.max(this.nowMs, next.atMs);
    if (next.process === null || next.process.isAlive) next.run();
    // Every promise that can settle now settles before the next thing happens.
    await new Promise((resolve) => setImmediate(resolve));
    return true;
  }

  #before(a: Planned, b: Planned): boolean {
    return a.order < b.order;
  }
}
