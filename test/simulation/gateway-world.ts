// The simulated world of the gateway: real objects over a real database and a real folder, in simulated time. A store
// that is slow and fails, a process that is killed between any two of its steps, and one after it that finds what is
// on disk. Everything that happens comes from one seed.

import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { idSource } from "../../src/engine/ids.ts";
import { JournalUnavailable } from "../../src/engine/journal.ts";
import type { Clock } from "../../src/engine/ports.ts";
import { openSqlite, type SqliteDatabase } from "../../src/store/sqlite/database.ts";
import { GatewayProcess } from "./gateway-process.ts";
import { Counts } from "./kinds.ts";
import type { Random } from "./random.ts";
import { type Living, Timeline } from "./timeline.ts";

export interface GatewayFaults {
  /** Probability that a read or a write of the store fails, and that the process dies right behind a write. */
  readonly storeFails: number;
  readonly crashAfterWrite: number;
  readonly preparationFails: number;
  readonly commandFails: number;
  readonly handlerFails: number;
}

export const noGatewayFaults: GatewayFaults = {
  storeFails: 0,
  crashAfterWrite: 0,
  preparationFails: 0,
  commandFails: 0,
  handlerFails: 0,
};

export class GatewayWorld {
  readonly random: Random;
  readonly counts = new Counts();
  readonly home = mkdtempSync(join(tmpdir(), "troupe-gateway-"));
  readonly database: SqliteDatabase = openSqlite(":memory:");
  readonly newId: () => string;
  faults: GatewayFaults;
  process: GatewayProcess;
  readonly #timeline = new Timeline();
  /** Work on real files, which takes none of the simulated time. */
  #onFiles = 0;
  #lives = 0;
  #broken: unknown = null;

  constructor(random: Random, faults: GatewayFaults) {
    this.random = random;
    this.faults = faults;
    this.newId = idSource(
      () => this.nowMs,
      () => random.fraction(),
    );
    mkdirSync(join(this.home, "runs"));
    this.process = new GatewayProcess(this, `gateway-${++this.#lives}`);
  }

  get nowMs(): number {
    return this.#timeline.nowMs;
  }

  plan(delayMs: number, by: Living | null, run: () => void): () => void {
    return this.#timeline.plan(delayMs, by, run);
  }

  /** Resolves after so long, unless the process that waits has died. */
  pause(by: Living, delayMs: number): Promise<void> {
    return new Promise((resolve) => this.plan(delayMs, by, resolve));
  }

  clockOf(by: Living): Clock {
    return {
      nowMs: () => this.nowMs,
      steadyMs: () => this.nowMs,
      after: (delayMs, run) => this.plan(delayMs, by, run),
      soon: (run) => {
        this.plan(0, by, run);
      },
    };
  }

  /** Time stands still while real files are worked on. */
  async onFiles<T>(work: Promise<T>): Promise<T> {
    this.#onFiles++;
    try {
      return await work;
    } finally {
      this.#onFiles--;
    }
  }

  mayFail(): void {
    if (!this.random.chance(this.faults.storeFails)) return;
    this.counts.add("store that failed the gateway");
    throw new JournalUnavailable("The disk is full.");
  }

  /** Something was written, and nobody learns of it. */
  async mayCrash(by: GatewayProcess): Promise<void> {
    if (by !== this.process || !this.random.chance(this.faults.crashAfterWrite)) return;
    this.counts.add("crash behind a write of the gateway");
    this.crash();
    await new Promise<never>(() => {});
  }

  /** kill -9: whatever was in memory is gone; the next process finds what is on disk. */
  crash(): void {
    this.counts.add("crash of the gateway");
    this.process.isAlive = false;
    this.#timeline.drop(this.process);
    const next = new GatewayProcess(this, `gateway-${++this.#lives}`);
    this.process = next;
    this.plan(0, next, () => {
      next.recover().catch((error: unknown) => {
        // A program that cannot read what is open ends; its supervisor starts it again.
        if (!(error instanceof JournalUnavailable)) this.broken(error);
        this.plan(this.random.between(10, 1_000), next, () => this.crash());
      });
    });
  }

  /** Something wrong was found where nobody waits for it: the next step reports it. */
  broken(error: unknown): void {
    this.#broken ??= error;
  }

  get isOnFiles(): boolean {
    return this.#onFiles > 0;
  }

  async step(): Promise<boolean> {
    const isMore = await this.#timeline.step();
    while (this.isOnFiles) await new Promise((resolve) => setImmediate(resolve));
    if (this.#broken !== null) throw this.#broken;
    return isMore;
  }

  async close(): Promise<void> {
    this.process.isAlive = false;
    await this.database.close();
    rmSync(this.home, { recursive: true, force: true });
  }
}
