// The simulated world of the gateway: real objects over one real database, and a real folder for each node, in simulated
// time. A store that is slow and fails; nodes whose process is killed between any two of its steps, and stays away for a
// while, or stands still for longer than its lease, or is cut off from the store and from the other. Everything that
// happens comes from one seed.

import assert from "node:assert/strict";
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
  /** Probability that the process stands still for longer than its lease, behind a read or before a write. */
  readonly standsStill: number;
  readonly preparationFails: number;
  readonly commandFails: number;
  readonly handlerFails: number;
}

export const noGatewayFaults: GatewayFaults = {
  storeFails: 0,
  crashAfterWrite: 0,
  standsStill: 0,
  preparationFails: 0,
  commandFails: 0,
  handlerFails: 0,
};

/** How long a name is a living one's after it was last renewed. */
export const LEASE_MS = 6_000;
/** Longer than two looks at the work of others. */
const QUIET_MS = 25_000;

export class GatewayWorld {
  readonly random: Random;
  readonly counts = new Counts();
  readonly home = mkdtempSync(join(tmpdir(), "troupe-gateway-"));
  readonly database: SqliteDatabase = openSqlite(":memory:");
  readonly newId: () => string;
  readonly nodes: readonly string[];
  faults: GatewayFaults;
  readonly #timeline = new Timeline();
  /** The latest process of each node. */
  readonly #processes = new Map<string, GatewayProcess>();
  readonly #leases = new Map<string, { readonly owner: string; readonly untilMs: number }>();
  readonly #cutOff = new Map<Living, number>();
  /** Work on real files, which takes none of the simulated time. */
  #onFiles = 0;
  #lives = 0;
  #busyMs = 0;
  #broken: unknown = null;

  constructor(random: Random, nodes: readonly string[], faults: GatewayFaults) {
    this.random = random;
    this.nodes = nodes;
    this.faults = faults;
    this.newId = idSource(
      () => this.nowMs,
      () => random.fraction(),
    );
    for (const node of nodes) {
      mkdirSync(join(this.homeOf(node), "runs"), { recursive: true });
      this.#start(node);
    }
  }

  get nowMs(): number {
    return this.#timeline.nowMs;
  }

  get processes(): readonly GatewayProcess[] {
    return [...this.#processes.values()];
  }

  /** Whichever a request comes to; it may have been killed. */
  get anyProcess(): GatewayProcess {
    return this.random.pick(this.processes);
  }

  homeOf(node: string): string {
    return join(this.home, node);
  }

  plan(delayMs: number, by: Living | null, run: () => void): () => void {
    return this.#timeline.plan(delayMs, by, run);
  }

  /** Resolves after so long, unless the process that waits has died. */
  pause(by: Living, delayMs: number): Promise<void> {
    return new Promise((resolve) => this.plan(delayMs, by, resolve));
  }

  /** @param isBackground whether what it is told to do later comes again and again */
  clockOf(by: Living, isBackground = false): Clock {
    return {
      nowMs: () => this.nowMs,
      steadyMs: () => this.nowMs,
      after: (delayMs, run) => this.#timeline.plan(delayMs, by, run, isBackground),
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

  mayFail(by: GatewayProcess): void {
    if (this.isCutOff(by)) throw new JournalUnavailable("The server cannot be reached.");
    if (!this.random.chance(this.faults.storeFails)) return;
    this.counts.add("store that failed the gateway");
    throw new JournalUnavailable("The disk is full.");
  }

  /** Something was written, and nobody learns of it. */
  async mayCrash(by: GatewayProcess): Promise<void> {
    if (!by.isAlive || !this.random.chance(this.faults.crashAfterWrite)) return;
    this.counts.add("crash behind a write of the gateway");
    this.crash(by.node);
    await new Promise<never>(() => {});
  }

  // ------------------------------------------------------------------------------------ what befalls a node

  #start(node: string): GatewayProcess {
    const owner = this.newName(node);
    const process = new GatewayProcess(this, node, owner);
    this.#processes.set(node, process);
    this.register(node, owner);
    process.beginToRenew();
    return process;
  }

  /** kill -9: whatever was in memory is gone; the next process finds what is on disk. */
  crash(node = this.random.pick(this.nodes), awayMs = this.random.chance(0.3) ? 2 * LEASE_MS : 0): void {
    this.counts.add("crash of the gateway");
    if (awayMs > LEASE_MS) this.counts.add("gateway that stayed away for longer than its lease");
    const process = this.#processes.get(node)!;
    process.isAlive = false;
    this.#timeline.drop(process);
    this.plan(awayMs, null, () => this.#restart(node, process));
  }

  #restart(node: string, before: GatewayProcess): void {
    if (this.#processes.get(node) !== before) return;
    const next = this.#start(node);
    next.recover().catch((error: unknown) => {
      // A program that cannot read what is open ends; its supervisor starts it again.
      if (!(error instanceof JournalUnavailable)) this.broken(error);
      this.plan(this.random.between(10, 1_000), next, () => this.crash(node, 0));
    });
  }

  /** What it does next is founded on what was so long ago. */
  async mayStandStill(by: GatewayProcess): Promise<void> {
    if (!by.isAlive || !this.random.chance(this.faults.standsStill)) return;
    this.standStill(this.random.between(LEASE_MS, 3 * LEASE_MS), by);
    await this.pause(by, 0);
  }

  /** SIGSTOP, and SIGCONT after so long. */
  standStill(lengthMs: number, process = this.anyProcess): void {
    this.counts.add("gateway that stood still");
    process.stoppedUntilMs = this.nowMs + lengthMs;
  }

  /** A process reaches neither the store nor the other one. */
  cutOff(lengthMs: number): void {
    this.counts.add("gateway that was cut off");
    this.#cutOff.set(this.anyProcess, this.nowMs + lengthMs);
  }

  isCutOff(by: Living): boolean {
    return (this.#cutOff.get(by) ?? 0) > this.nowMs;
  }

  /** Everything starts anew, and nothing happens to it any more. */
  heal(): void {
    this.faults = noGatewayFaults;
    for (const node of this.nodes) this.crash(node, 0);
  }

  // ------------------------------------------------------------------------------------------------ names

  newName(node: string): string {
    return `${node}/${++this.#lives}`;
  }

  /** The node has this name from now on, and no other. */
  register(node: string, owner: string): void {
    this.#leases.set(node, { owner, untilMs: this.nowMs + LEASE_MS });
  }

  /** @returns false when the name is not a living one any more */
  renew(node: string, owner: string): boolean {
    if (!this.living().has(owner)) return false;
    this.register(node, owner);
    return true;
  }

  living(): ReadonlySet<string> {
    const leases = [...this.#leases.values()].filter(({ untilMs }) => untilMs > this.nowMs);
    return new Set(leases.map(({ owner }) => owner));
  }

  /** The process of this name, if a message of another one reaches it. */
  reachable(owner: string): GatewayProcess | null {
    const process = this.processes.find((one) => one.isAlive && one.owner === owner);
    return process === undefined || this.isCutOff(process) ? null : process;
  }

  ownerOf(jobId: string): string | null {
    const row = this.database.connection.prepare("SELECT owner FROM jobs WHERE job_id = ?").get(jobId);
    return (row?.owner as string | undefined) ?? null;
  }

  openJobsOfLost(): readonly string[] {
    const living = this.living();
    const open = this.database.connection.prepare("SELECT job_id, owner FROM jobs WHERE terminal = 0");
    return open.all().flatMap(({ job_id, owner }) => (living.has(String(owner)) ? [] : [String(job_id)]));
  }

  /** What a journal of many nodes does: no job of a living one is taken. */
  claimOfLost(owner: string, limit: number): Promise<readonly string[]> {
    return this.database.transaction(async () => {
      const jobIds = this.openJobsOfLost().slice(0, limit);
      const claim = this.database.connection.prepare(
        "UPDATE jobs SET owner = ?, epoch = epoch + 1 WHERE job_id = ?",
      );
      for (const jobId of jobIds) claim.run(owner, jobId);
      return jobIds;
    });
  }

  // ------------------------------------------------------------------------------------------------- time

  /** Something wrong was found where nobody waits for it: the next step says so. */
  broken(error: unknown): void {
    this.#broken ??= error;
  }

  get isOnFiles(): boolean {
    return this.#onFiles > 0;
  }

  /** Lets things happen until nothing but looks has happened for so long that nothing else will. */
  async untilQuiet(stepsMax: number): Promise<void> {
    this.#busyMs = this.nowMs;
    for (let steps = 0; this.nowMs - this.#busyMs < QUIET_MS; steps++) {
      assert.ok(steps < stepsMax, `the world did not come to rest within ${stepsMax} steps`);
      await this.#timeline.step();
      while (this.isOnFiles) await new Promise((resolve) => setImmediate(resolve));
      if (this.#broken !== null) throw this.#broken;
      if (this.#timeline.isBusy) this.#busyMs = this.nowMs;
    }
  }

  async close(): Promise<void> {
    for (const process of this.processes) process.isAlive = false;
    await this.database.close();
    rmSync(this.home, { recursive: true, force: true });
  }
}
