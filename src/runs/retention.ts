// Retention: removes ended runs that are old, or too many for the disk, with everything that is theirs; and whatever in
// the home belongs to nothing. In the background, and on request.
//
// - What has not ended is never touched, whatever its age and size.
// - Of several programs that share the records, one at a time removes old runs by itself; what they leave in a home, and
//   what belongs to nothing there, is removed by that home's own program. So what is told of files is of one home.
// - A preview removes nothing, and says what the same request would remove at that moment.
// - Sweeps and requests take turns: each sees what those before it have left.
// - It takes a share of the thread, in steps of a few milliseconds (Pace), and memory for a page of ids.
// - It may be killed at any point: what is half removed is invisible, and the next start continues (cleanup.ts).
// - A file that cannot be removed does not stop the others: it is logged, and tried again by a later sweep.
// - What nothing names is left alone while it would be most of the home: the database is then likely not the one that
//   belongs to it. A request has to confirm.

import type { Clock, EngineLog } from "../engine/ports.ts";
import { type BlobRemoval, type Cleanup, type Counted, isSystemError } from "./cleanup.ts";
import { Pace } from "./pace.ts";
import { type CutRequest, countThrough, findCut } from "./retention-cut.ts";
import type { EndPosition, RemovedRuns, RetentionRecords } from "./retention-records.ts";

/** What ended runs are kept by; 0: without that bound. */
export interface RetentionLimits {
  readonly olderThanDays: number;
  /** Of histories and artifacts. */
  readonly bytesMax: number;
}

/** What was removed, by kind. */
interface Removed {
  /** Runs, and what they have in histories and artifacts; contents that several have count for each. */
  readonly runs: Counted;
  /** Contents of artifacts that nothing names. */
  readonly blobs: Counted;
  /** Snapshots of bundles that nothing uses. */
  readonly bundles: Counted;
  /** Folders and files in the home that belong to nothing. */
  readonly leftovers: Counted;
}

export interface RetentionReport extends Removed {
  readonly limits: RetentionLimits;
  readonly isPreview: boolean;
  /** Whether what nothing names was left alone, because it is most of the home; in a preview: would be. */
  readonly needsConfirmation: boolean;
}

/** What was removed since the start, previews left out; for metrics. */
export interface RetentionTotals extends Removed {
  readonly sweeps: number;
  readonly failures: number;
}

/** Something in the home that belongs to nothing. */
interface Leftover {
  readonly path: string;
  readonly bytes: number;
  /** Whether it never belonged to a run. */
  readonly isTemporary: boolean;
}

export interface RetentionPorts {
  readonly records: RetentionRecords;
  readonly cleanup: Cleanup;
  readonly limits: RetentionLimits;
  /** Whether files are in a store that other programs use too, or may use. */
  readonly filesAreShared: boolean;
  /** The hashes of all blobs on disk, a page at a time. */
  readonly blobPages: () => AsyncIterable<readonly string[]>;
  readonly leftovers: {
    find(beforeMs: number): AsyncIterable<Leftover>;
    remove(leftover: Leftover): Promise<void>;
    /** How many runs' folders and snapshots of bundles there are, whether or not they belong to anything. */
    count(): Promise<number>;
  };
  /** Removes snapshots that are not named and that were not touched since `beforeMs`; a preview only counts them. */
  readonly removeSnapshots: (request: {
    readonly isNamed: (fingerprint: string) => Promise<boolean>;
    readonly beforeMs: number;
    readonly isPreview: boolean;
  }) => Promise<Counted>;
  /** Whether this program is to remove old runs by itself, for so long from now on. */
  readonly takeDuty: (forMs: number) => Promise<boolean>;
  /** Gives a little of the database's free space back to the disk. @returns whether there is more to give */
  readonly shrinkDatabase: () => Promise<boolean>;
  readonly clock: Clock;
  readonly log: EngineLog;
}

const HOUR_MS = 60 * 60 * 1_000;
const DAY_MS = 24 * HOUR_MS;
/** A start has more urgent things to do. */
const FIRST_SWEEP_AFTER_MS = 60_000;
const SWEEP_EVERY_MS = HOUR_MS;
/** Over before the next sweep of its holder. */
const ON_DUTY_MS = SWEEP_EVERY_MS - 5 * 60 * 1_000;
/** The home's folders are walked by each so-many-th sweep; by none right after a start. */
const SWEEPS_PER_WALK = 24;
const LEFTOVER_AGE_MS = HOUR_MS;
const SNAPSHOT_AGE_MS = DAY_MS;
/** Fewer need no confirmation. */
const UNNAMED_ASKED_MIN = 3;
const ASKS_FOR_CONFIRMATION =
  "most of what is in SVC_HOME is named by nothing in its database, and was not removed: is it the right database? See it with `troupe gc --dry-run`, remove it with `troupe gc --confirm`";
const RUNS_PER_TRANSACTION = 25;
const NO_LIMITS: RetentionLimits = { olderThanDays: 0, bytesMax: 0 };
const NONE: Counted = { count: 0, bytes: 0 };
const NOTHING: Removed = { runs: NONE, blobs: NONE, bundles: NONE, leftovers: NONE };
/** Before every end. */
const NO_END: EndPosition = { endedAtMs: -1, id: "" };

export class Retention {
  readonly #ports: RetentionPorts;
  readonly #pace: Pace;
  #turn: Promise<unknown> = Promise.resolve();
  #cancelTimer: (() => void) | null = null;
  #isStopped = false;
  #totals: RetentionTotals = { sweeps: 0, failures: 0, ...NOTHING };

  constructor(ports: RetentionPorts) {
    this.#ports = ports;
    this.#pace = new Pace(ports.clock);
  }

  get totals(): RetentionTotals {
    return this.#totals;
  }

  /** The program's own limits. */
  get limits(): RetentionLimits {
    return this.#ports.limits;
  }

  /** The first sweep comes a while after the start, the next one an hour after the end of each. */
  start(): void {
    this.#sweepAfter(FIRST_SWEEP_AFTER_MS);
  }

  #sweepAfter(delayMs: number): void {
    if (this.#isStopped) return;
    this.#cancelTimer = this.#ports.clock.after(delayMs, () => {
      this.#inTurn(() => this.#sweep())
        .catch((error: unknown) => {
          this.#totals = { ...this.#totals, failures: this.#totals.failures + 1 };
          this.#ports.log.warn(
            { error: String(error) },
            "what is old could not all be removed; the next sweep tries again",
          );
        })
        .finally(() => this.#sweepAfter(SWEEP_EVERY_MS));
    });
  }

  async #sweep(): Promise<void> {
    const sweeps = this.#totals.sweeps + 1;
    this.#totals = { ...this.#totals, sweeps };
    const isWalk = sweeps % SWEEPS_PER_WALK === 2;
    const limits = (await this.#ports.takeDuty(ON_DUTY_MS)) ? this.#ports.limits : NO_LIMITS;
    await this.#collect({ limits, isPreview: false, isWalk, isConfirmed: false });
  }

  /**
   * Removes what the limits do not keep, and everything that belongs to nothing; waits for its turn first.
   *
   * @param request.isPreview removes nothing, and tells what would go
   * @param request.isConfirmed removes what nothing names even if it is most of the home
   */
  collect(request: {
    readonly limits: RetentionLimits;
    readonly isPreview: boolean;
    readonly isConfirmed?: boolean;
  }): Promise<RetentionReport> {
    return this.#inTurn(() => this.#collect({ isConfirmed: false, ...request, isWalk: true }));
  }

  #inTurn<Result>(work: () => Promise<Result>): Promise<Result> {
    const result = this.#turn.then(work);
    this.#turn = result.catch(() => {});
    return result;
  }

  async #collect(request: {
    readonly limits: RetentionLimits;
    readonly isPreview: boolean;
    readonly isWalk: boolean;
    readonly isConfirmed: boolean;
  }): Promise<RetentionReport> {
    const { limits, isPreview, isConfirmed } = request;
    const cutRequest = this.#cutRequest(limits);
    const mayWalk = request.isWalk && (isConfirmed || !(await this.#mayJoin()));
    let suspicious = mayWalk && !isConfirmed ? await this.#mostUnnamed() : null;
    let noted = NONE;
    if (suspicious !== null && !isPreview) {
      // Other nodes may have noted it for this one: then it is not because of a wrong database.
      noted = await this.#collectNoted();
      suspicious = await this.#mostUnnamed();
      if (suspicious !== null) this.#ports.log.warn({ ...suspicious }, ASKS_FOR_CONFIRMATION);
    }
    const needsConfirmation = suspicious !== null;
    const isWalk = mayWalk && (isPreview || !needsConfirmation);
    // Before the runs: what they leave is noted, and no leftover.
    const leftovers = isWalk ? await this.#removeLeftovers(isPreview) : NONE;
    const cut = await findCut(this.#ports.records, cutRequest, this.#step);
    const runs = isPreview ? await this.#countRuns(cut, cutRequest) : await this.#removeRuns(cut, cutRequest);
    if (!isPreview) noted = sum(noted, await this.#collectNoted());
    // What a preview leaves is named by rows that are still there, also by those of jobs that are gone.
    const without = isPreview ? (cut ?? NO_END) : null;
    const unnamed = isWalk ? await this.#removeBlobs(without, isPreview) : NONE;
    const bundles = isWalk ? await this.#removeSnapshots(without, isPreview) : NONE;
    if (!isPreview) await this.#repeat(() => this.#ports.shrinkDatabase());
    const found = { runs, blobs: sum(noted, unnamed), bundles, leftovers };
    if (!isPreview) this.#count(found);
    return { limits, isPreview, ...found, needsConfirmation };
  }

  /** The files of a program that is still to join a cluster are the cluster's, and its database names none of them. */
  async #mayJoin(): Promise<boolean> {
    const { filesAreShared, records } = this.#ports;
    return filesAreShared && (await records.isUnused());
  }

  /** What a walk would remove, if that is most of the home, for no other reason than that nothing names it. */
  async #mostUnnamed(): Promise<{ readonly unnamed: number; readonly present: number } | null> {
    const { leftovers, clock } = this.#ports;
    let folders = 0;
    for await (const { isTemporary } of leftovers.find(clock.nowMs() - LEFTOVER_AGE_MS)) {
      if (!isTemporary) folders++;
    }
    let blobCount = 0;
    for await (const page of this.#ports.blobPages()) blobCount += page.length;
    const blobs = await this.#removeBlobs(null, true);
    const bundles = await this.#removeSnapshots(null, true);
    const unnamed = folders + blobs.count + bundles.count;
    const present = blobCount + (await leftovers.count());
    return unnamed < UNNAMED_ASKED_MIN || unnamed * 2 <= present ? null : { unnamed, present };
  }

  #cutRequest({ olderThanDays, bytesMax }: RetentionLimits): CutRequest {
    const nowMs = this.#ports.clock.nowMs();
    return {
      beforeMs: olderThanDays === 0 ? null : Math.floor(nowMs - olderThanDays * DAY_MS),
      bytesMax: bytesMax === 0 ? null : bytesMax,
    };
  }

  async #removeRuns(cut: EndPosition | null, { beforeMs }: CutRequest): Promise<Counted> {
    const { records } = this.#ports;
    let removed = NONE;
    const removeAll = (some: () => Promise<RemovedRuns>) =>
      this.#repeat(async () => {
        const { count, bytes } = await some();
        removed = sum(removed, { count, bytes });
        return count > 0;
      });
    if (cut !== null) await removeAll(() => records.removeEnded(cut, RUNS_PER_TRANSACTION));
    if (beforeMs !== null) await removeAll(() => records.removeUnlaunched(beforeMs, RUNS_PER_TRANSACTION));
    return removed;
  }

  async #countRuns(cut: EndPosition | null, { beforeMs }: CutRequest): Promise<Counted> {
    const { records } = this.#ports;
    const ended = cut === null ? NONE : await countThrough(records, cut, this.#step);
    if (beforeMs === null) return ended;
    let count = 0;
    let after: EndPosition | null = null;
    await this.#repeat(async () => {
      const page: readonly EndPosition[] = await records.unlaunchedPage(
        beforeMs,
        RUNS_PER_TRANSACTION,
        after,
      );
      count += page.length;
      after = page.at(-1) ?? null;
      return after !== null;
    });
    return sum(ended, { count, bytes: 0 });
  }

  async #collectNoted(): Promise<Counted> {
    const { count, bytes, refusal } = await this.#ports.cleanup.collectGarbage();
    if (refusal !== null) this.#tell(refusal);
    return { count, bytes };
  }

  async #removeBlobs(without: EndPosition | null, isPreview: boolean): Promise<Counted> {
    let removed = NONE;
    for await (const page of this.#ports.blobPages()) {
      if (this.#isStopped) break;
      const ofPage = await this.#pace.step(() => this.#removeBlobsOf(page, without, isPreview));
      removed = sum(removed, ofPage);
    }
    return removed;
  }

  async #removeBlobsOf(
    page: readonly string[],
    without: EndPosition | null,
    isPreview: boolean,
  ): Promise<Counted> {
    const { records, cleanup } = this.#ports;
    let removed = NONE;
    for (const sha256 of page) {
      if (await records.isBlobNamed(sha256, without)) continue;
      const removal = await this.#orTell<BlobRemoval>({ kind: "kept" }, () =>
        cleanup.removeUnnamedBlob(sha256, { isPreview }),
      );
      if (removal.kind === "removed") removed = sum(removed, { count: 1, bytes: removal.size });
    }
    return removed;
  }

  #removeSnapshots(without: EndPosition | null, isPreview: boolean): Promise<Counted> {
    const { records, removeSnapshots, clock } = this.#ports;
    return this.#orTell(NONE, () =>
      removeSnapshots({
        isNamed: (fingerprint) => records.isSnapshotNamed(fingerprint, without),
        beforeMs: clock.nowMs() - SNAPSHOT_AGE_MS,
        isPreview,
      }),
    );
  }

  async #removeLeftovers(isPreview: boolean): Promise<Counted> {
    const { leftovers, clock } = this.#ports;
    let removed = NONE;
    for await (const leftover of leftovers.find(clock.nowMs() - LEFTOVER_AGE_MS)) {
      if (this.#isStopped) break;
      const isGone =
        isPreview || (await this.#orTell(false, () => leftovers.remove(leftover).then(() => true)));
      if (isGone) removed = sum(removed, { count: 1, bytes: leftover.bytes });
    }
    return removed;
  }

  /** Does what the system may refuse; `refused` is what comes of it then. */
  async #orTell<Result>(refused: Result, work: () => Promise<Result>): Promise<Result> {
    try {
      return await work();
    } catch (error) {
      if (!isSystemError(error)) throw error;
      this.#tell(error);
      return refused;
    }
  }

  #tell(refusal: Error): void {
    this.#totals = { ...this.#totals, failures: this.#totals.failures + 1 };
    this.#ports.log.warn(
      { error: String(refusal) },
      "something that belongs to nothing could not be removed; remove it manually, or let a later sweep try again",
    );
  }

  readonly #step = <Result>(work: () => Promise<Result>) => this.#pace.step(work);

  /** Again and again, until there is no more to do. */
  async #repeat(work: () => Promise<boolean>): Promise<void> {
    while (!this.#isStopped && (await this.#pace.step(work)));
  }

  #count(found: Removed): void {
    const { runs, blobs, bundles, leftovers } = this.#totals;
    this.#totals = {
      ...this.#totals,
      runs: sum(runs, found.runs),
      blobs: sum(blobs, found.blobs),
      bundles: sum(bundles, found.bundles),
      leftovers: sum(leftovers, found.leftovers),
    };
  }

  /** Ends what is under way at its next step; resolves when nothing is. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#cancelTimer?.();
    this.#pace.stop();
    await this.#turn;
  }
}

function sum(a: Counted, b: Counted): Counted {
  return { count: a.count + b.count, bytes: a.bytes + b.bytes };
}
