// The simulated world: time that leaps from event to event, a wall clock that people set, a disk that fails
// (sim-journal.ts), a process that dies, commands that are slow, fail, answer twice or too late (sim-runner.ts).
// Everything that happens comes from one seed.

import { Engine } from "../../src/engine/engine.ts";
import { idSource } from "../../src/engine/ids.ts";
import { JournalUnavailable } from "../../src/engine/journal.ts";
import type { Clock } from "../../src/engine/ports.ts";
import type { PoolSlots } from "../../src/execution/pools.ts";
import { MemoryJournal } from "../support/memory-journal.ts";
import { Checker } from "./checker.ts";
import { Cluster, type ClusterOptions } from "./cluster.ts";
import { Disk } from "./disk.ts";
import { Counts } from "./kinds.ts";
import type { Random } from "./random.ts";
import { simJournal } from "./sim-journal.ts";
import { judgeAllReleased, simSlots } from "./sim-machine.ts";
import { SimRunner } from "./sim-runner.ts";
import { SimServices } from "./sim-services.ts";
import { Timeline } from "./timeline.ts";

export interface Faults {
  /** Probability that a commit fails once, per commit. */
  readonly commitFails: number;
  /** Probability that a commit's answer is lost though it was written (the process dies right then). */
  readonly crashAfterCommit: number;
  /** Probability that nobody can tell whether a commit was written: half of them were. */
  readonly commitUnknown: number;
  /** Probability that a job is chosen whose commits are refused for good from now on, per commit. */
  readonly jobUnwritable: number;
  /** Probability that the power is cut while a commit is written, per commit; only a world with a disk has power. */
  readonly powerFails: number;
  /** Probability that a job's records turn out to be damaged, per load. */
  readonly jobUnreadable: number;
  /** Probability that a claim or a load fails, and that it takes long. */
  readonly recoveryFails: number;
  readonly recoveryIsSlow: number;
  readonly taskFails: number;
  readonly taskAnswersTwice: number;
  readonly taskIsSlow: number;
}

export const noFaults: Faults = {
  commitFails: 0,
  crashAfterCommit: 0,
  commitUnknown: 0,
  jobUnwritable: 0,
  powerFails: 0,
  jobUnreadable: 0,
  recoveryFails: 0,
  recoveryIsSlow: 0,
  taskFails: 0,
  taskAnswersTwice: 0,
  taskIsSlow: 0,
};

/** One life of the runtime's process. */
export interface Process {
  readonly name: string;
  readonly engine: Engine;
  readonly runner: SimRunner;
  readonly slots: PoolSlots;
  isAlive: boolean;
  /** By a signal. */
  stoppedUntilMs: number;
}

export interface WorldOptions {
  readonly poolSlots: number;
  /** Whether everything is written to the real store too, on a disk whose power is cut. */
  readonly hasDisk: boolean;
  /** Many nodes on one database; null for one program with a database of its own. */
  readonly cluster: ClusterOptions | null;
}

export class World {
  readonly random: Random;
  readonly journal = new MemoryJournal();
  readonly checker: Checker;
  readonly counts = new Counts();
  /** The real store, which is told everything that the journal in memory is told; null in most worlds. */
  readonly disk: Disk | null;
  faults: Faults;
  readonly #timeline = new Timeline();
  /** How far the wall clock was set ahead of it, or back. */
  #wallAheadMs = 0;
  /** Null in most worlds. */
  readonly cluster: Cluster | null;
  /** The one program of a world without a cluster. */
  process!: Process;
  /** One that was cut off, and still answers its clients; null most of the time. */
  zombie: Process | null = null;
  /** When somebody set the wall clock, in the time that passes. */
  readonly clockSetAtMs: number[] = [];
  /** Jobs that the journal takes nothing of any more, and those that it cannot read. */
  readonly unwritable = new Set<string>();
  readonly unreadable = new Set<string>();
  /** When the files appear that sensors watch, by job and agent. */
  readonly filesAtMs = new Map<string, number>();
  readonly #poolSlots: number;
  #lives = 0;
  #broken: unknown = null;
  readonly #id: () => string;

  constructor(random: Random, faults: Faults, { poolSlots, hasDisk, cluster }: WorldOptions) {
    this.random = random;
    this.disk = hasDisk
      ? new Disk(random, this.counts, (delayMs, run) => void this.plan(delayMs, null, run))
      : null;
    this.faults = faults;
    this.#poolSlots = poolSlots;
    this.#id = idSource(
      () => this.#wallMs,
      () => random.fraction(),
    );
    this.checker = new Checker(this.journal, () => this.nowMs, cluster !== null);
    this.cluster = null;
    if (cluster === null) this.process = this.#start();
    else {
      this.cluster = new Cluster(this, cluster);
      const { table } = this.cluster;
      this.journal.mayClaim = (job, owner) => table.mayClaim(job, owner);
    }
  }

  newId(): string {
    return this.#id();
  }

  #start(): Process {
    // What a process's steady clock says means nothing to the next one. It is within hours of the wall clock, so that
    // code that confuses them waits too long or not at all.
    const aheadMs = this.random.between(-10_000_000, 10_000_000);
    const process = this.startProcess(`process-${++this.#lives}`, {
      nowMs: () => this.#wallMs,
      steadyMs: () => this.nowMs + aheadMs,
      after: (delayMs, run) => this.plan(delayMs, process, run),
      soon: (run) => void this.plan(0, process, run),
    });
    return process;
  }

  startProcess(owner: string, clock: Clock): Process {
    // The engine's ports need the process, and the process the engine: the ports ask when they are called.
    const owned = (): Process => process;
    const runner = new SimRunner(this, owned);
    const slots = simSlots(this.#poolSlots, this.#id, { steadyMs: clock.steadyMs, counts: this.counts });
    const engine = new Engine({
      owner,
      clock,
      randomness: { id: this.#id, fraction: () => this.random.fraction() },
      journal: simJournal(this, owned),
      runner,
      slots,
      feed: {
        published: (jobId, firstSeq, lines) => this.checker.published(jobId, firstSeq, lines),
      },
      schemaProblem: () => null,
      services: new SimServices(this, owned),
      log: { warn: () => {}, error: () => {} },
    });
    const process: Process = { name: owner, engine, runner, slots, isAlive: true, stoppedUntilMs: 0 };
    return process;
  }

  /** The time that passes. */
  get nowMs(): number {
    return this.#timeline.nowMs;
  }

  /** @returns how to take it back */
  plan(delayMs: number, process: Process | null, run: () => void, isBackground = false): () => void {
    return this.#timeline.plan(delayMs, process, run, isBackground);
  }

  /** Whom a client asks about a job, or about a new one. */
  engineOf(jobId: string | null): Engine {
    return this.cluster?.engineOf(jobId) ?? this.process.engine;
  }

  /** Whom a person is connected to: sometimes a process that was cut off. */
  anyEngineOf(jobId: string): Engine {
    if (this.cluster === null) {
      const { process, zombie } = this;
      return (zombie !== null && this.random.chance(0.5) ? zombie : process).engine;
    }
    return this.random.chance(0.2) ? this.cluster.anyEngine() : this.cluster.engineOf(jobId);
  }

  /** Time stands still until `work` has ended. */
  async stopFor<T>(work: Promise<T>): Promise<T> {
    // What it fails with is the caller's.
    this.#timeline.stopFor(work.catch(() => {}));
    return work;
  }

  /** kill -9: memory, timers and commands are gone; another process takes over. */
  crash(): void {
    this.counts.add("crash");
    this.disk?.kill();
    this.end(this.process);
    const next = this.#start();
    this.process = next;
    this.plan(0, null, () => this.#recover(next));
  }

  /** A process that is cut off but does not know it goes on working, while another one takes over its jobs. */
  partition(): void {
    this.counts.add("partition");
    const zombie = this.process;
    this.zombie = zombie;
    const next = this.#start();
    this.process = next;
    this.plan(0, null, () => this.#recover(next));
    this.plan(this.random.between(5, 200), null, () => {
      if (this.zombie === zombie) this.endZombie();
      else this.end(zombie);
    });
  }

  /** When nothing happens any more (I24). */
  judgeMachines(): void {
    for (const { slots } of this.cluster?.processes ?? [this.process]) judgeAllReleased(slots);
  }

  endZombie(): void {
    if (this.zombie !== null) this.end(this.zombie);
    this.zombie = null;
  }

  /** Kills the process that has just done something. */
  kill(process: Process): void {
    if (this.cluster !== null) this.cluster.kill(process);
    else if (process === this.process) this.crash();
  }

  /** Everything held up goes on, and what runs is started once more. */
  makePeace(): void {
    if (this.cluster === null) this.crash();
    else this.cluster.makePeace();
  }

  /** What it had planned never happens. */
  end(process: Process): void {
    process.isAlive = false;
    process.runner.killed();
    this.#timeline.drop(process);
  }

  /** A program that cannot read what is open ends; its supervisor starts it again. */
  #recover(process: Process): void {
    process.engine.recover().catch((error: unknown) => {
      if (!(error instanceof JournalUnavailable)) this.broken(error);
      this.plan(this.random.between(10, 1_000), process, () => {
        if (process === this.process) this.crash();
      });
    });
  }

  /** Something wrong was found where nobody waits for it: the next step reports it. */
  broken(error: unknown): void {
    this.#broken ??= error;
  }

  isDamaged(jobId: string): boolean {
    return this.unwritable.has(jobId) || this.unreadable.has(jobId);
  }

  get #wallMs(): number {
    return this.nowMs + this.#wallAheadMs;
  }

  /** Somebody sets the machine's clock. */
  setClock(): void {
    this.counts.add("jump of the clock");
    this.clockSetAtMs.push(this.nowMs);
    this.#wallAheadMs += this.random.pick([-25, -2, 2, 25]) * 3_600_000;
  }

  /** Lets the earliest planned thing happen. @returns false when nothing is planned */
  async step(): Promise<boolean> {
    if (this.#broken !== null) throw this.#broken;
    if (this.cluster?.isSettled && !this.#timeline.isBusy) return false;
    return this.#timeline.step();
  }
}
