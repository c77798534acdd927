// The simulated world: a clock that jumps, a disk that fails, a process that dies, commands that are slow, fail,
// answer twice or too late. Everything that happens comes from one seed.

import { Engine } from "../../src/engine/engine.ts";
import { idSource } from "../../src/engine/ids.ts";
import {
  type Clock,
  type JobChanges,
  type Journal,
  JournalUnavailable,
  noActions,
  type TaskOutcome,
  type TaskRef,
  type TaskRunner,
  type TaskStart,
} from "../../src/engine/ports.ts";
import { PoolSlots } from "../../src/execution/pools.ts";
import { MemoryJournal } from "../support/memory-journal.ts";
import { Checker } from "./checker.ts";
import type { Random } from "./random.ts";

export interface Faults {
  /** Probability that a commit fails once, per commit. */
  readonly commitFails: number;
  /** Probability that a commit's answer is lost though it was written (the process dies right then). */
  readonly crashAfterCommit: number;
  readonly taskFails: number;
  readonly taskAnswersTwice: number;
  readonly taskIsSlow: number;
}

export const noFaults: Faults = {
  commitFails: 0,
  crashAfterCommit: 0,
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
  nowMs = Date.UTC(2026, 0, 1);
  process: Process;
  crashes = 0;
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
      () => this.nowMs,
      () => random.fraction(),
    );
    this.checker = new Checker(this.journal);
    this.process = this.#start();
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
      log: { warn: () => {}, error: () => {} },
    });
    const process: Process = { name, engine, isAlive: true };
    return process;
  }

  #clock(owned: () => Process): Clock {
    return {
      nowMs: () => this.nowMs,
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
    };
  }

  #commit(process: Process, batch: readonly JobChanges[]): { lost: readonly string[] } {
    if (this.random.chance(this.faults.commitFails)) throw new JournalUnavailable("The disk is full.");
    this.checker.beforeCommit(batch);
    const lost = this.journal.apply(batch);
    this.checker.afterCommit(batch, lost);
    // Written, but nobody learns of it: not the engine, not the clients, not the runner.
    if (process === this.process && this.random.chance(this.faults.crashAfterCommit)) this.crash();
    return { lost };
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
    this.process = this.#start();
    const { engine } = this.process;
    this.plan(0, null, () => void engine.recover());
    this.plan(this.random.between(5, 200), null, () => {
      zombie.isAlive = false;
      this.#planned = this.#planned.filter((entry) => entry.process !== zombie);
    });
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

/** Commands of the simulated world. Their result depends on the message alone, never on the attempt. */
class SimRunner implements TaskRunner {
  readonly #world: World;
  readonly #owned: () => Process;
  readonly #stopped = new Set<string>();

  constructor(world: World, owned: () => Process) {
    this.#world = world;
    this.#owned = owned;
  }

  start(task: TaskStart): void {
    const world = this.#world;
    world.checker.taskStarted(task, this.#owned().name);
    const { random, faults } = world;
    const takesMs = random.chance(faults.taskIsSlow) ? random.between(100, 5_000) : random.between(0, 20);
    if (random.chance(0.3)) {
      world.plan(takesMs / 2, this.#owned(), () => {
        this.#owned().engine.taskEvents(task.ref, [{ type: "progress", payload: { half: true } }]);
      });
    }
    world.plan(takesMs, this.#owned(), () => this.#end(task));
  }

  #end(task: TaskStart): void {
    const { random, faults } = this.#world;
    const outcome = this.#stopped.has(key(task.ref)) ? interrupted : this.#outcome(task);
    this.#owned().engine.taskEnded(task.ref, outcome);
    if (random.chance(faults.taskAnswersTwice)) {
      this.#world.plan(random.between(0, 50), this.#owned(), () => {
        this.#owned().engine.taskEnded(task.ref, this.#outcome(task));
      });
    }
  }

  #outcome(task: TaskStart): TaskOutcome {
    const failsForGood = /^fails/.test(task.agentId);
    const lastChance = task.ref.attempt >= 3;
    if (failsForGood || (!lastChance && this.#world.random.chance(this.#world.faults.taskFails))) {
      const command = { exitCode: 1, signal: null, stdout: "", stderr: "no", durationMs: 1 };
      return { kind: "failed", code: "executor.exit_nonzero", message: "exit 1", command, artifacts: [] };
    }
    const command = { exitCode: 0, signal: null, stdout: "ok", stderr: "", durationMs: 1 };
    const emits = [{ type: "work", body: task.envelope.body, to: null }];
    const actions = { ...noActions, emits };
    return { kind: "succeeded", actions, command, artifacts: [], observation: null };
  }

  stop(ref: TaskRef): void {
    this.#stopped.add(key(ref));
  }

  send(): void {}
}

const interrupted: TaskOutcome = { kind: "interrupted", reason: "stopped" };
const key = (ref: TaskRef) => `${ref.jobId}/${ref.taskSeq}/${ref.attempt}`;
