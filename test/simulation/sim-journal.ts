// The journal as one process sees it: slow, failing, losing its answers, refusing or misreading some jobs for good; and
// gone when the process is.

import assert from "node:assert/strict";
import {
  type CommitAnswer,
  isTerminal,
  type JobChanges,
  type JobImage,
  type Journal,
  JournalUnavailable,
  type WriteOutcome,
} from "../../src/engine/journal.ts";
import type { Disk } from "./disk.ts";
import type { Process, World } from "./world.ts";

export function simJournal(world: World, owned: () => Process): Journal {
  const later = <T>(delayMs: number, answer: () => T | Promise<T>, isBackground = false): Promise<T> =>
    new Promise((resolve, reject) => {
      const process = owned();
      const isFar = world.cluster !== null;
      // A database elsewhere does what it was asked for, whatever becomes of the process; that learns of it later.
      const told = (settle: () => void) =>
        isFar ? world.plan(soonMs(), process, settle, isBackground) : settle();
      const run = async () => {
        try {
          const value = await answer();
          if (process.isAlive) told(() => resolve(value));
        } catch (error) {
          // What a checker has found is no fault of the disk, and the engine must not treat it as one.
          if (error instanceof assert.AssertionError) world.broken(error);
          else told(() => reject(error));
        }
      };
      world.plan(delayMs, isFar ? null : process, run, isBackground);
    });
  /** What a claim took whose answer was lost. */
  const unsure: string[] = [];
  const claim = async (owner: string, limit: number) => {
    mayFail(world, "failing claim");
    if (world.cluster === null) {
      // Which of two living processes may claim is decided outside: the home of a program is locked.
      if (owned() !== world.process) throw new JournalUnavailable("The home is another process's.");
      return both(world, (journal) => journal.claim(owner, limit));
    }
    const reach = world.cluster.reach(owned());
    if (reach === "not reached") throw unreachable();
    const isAnswered = reach === "answered" && !world.random.chance(world.faults.commitUnknown);
    const isMine = (jobId: string) => world.journal.jobs.get(jobId)!.owner === owner;
    const taken = [...unsure.splice(0).filter(isMine), ...(await world.journal.claim(owner, limit))];
    if (isAnswered) {
      if (taken.length > 0) world.counts.add("takeover");
      return taken;
    }
    if (taken.length > 0) world.counts.add("takeover whose answer was lost");
    unsure.push(...taken);
    throw unreachable("unknown");
  };
  const soonMs = () => world.random.between(0, 2);
  const slowlyMs = (kind: "slow claim" | "slow load") => {
    if (!world.random.chance(world.faults.recoveryIsSlow)) return soonMs();
    world.counts.add(kind);
    return world.random.between(50, 1_500);
  };
  return {
    commit: (batch) => later(soonMs(), () => commit(world, owned(), batch)),
    claim: (owner, limit) => later(slowlyMs("slow claim"), () => claim(owner, limit), world.cluster !== null),
    load: (jobId) =>
      later(slowlyMs("slow load"), () => {
        mustReach(world, owned());
        return load(world, jobId);
      }),
    failDamaged: (jobId, owner, render) =>
      later(soonMs(), () => {
        mustReach(world, owned());
        if (world.random.chance(world.faults.commitFails)) throw new JournalUnavailable("The disk is full.");
        return both(world, (journal) => journal.failDamaged(jobId, owner, render));
      }),
  };
}

const unreachable = (outcome: WriteOutcome = "not_written") =>
  new JournalUnavailable("The database does not answer.", outcome);

function mustReach({ cluster }: World, process: Process): void {
  if (cluster !== null && cluster.reach(process) !== "answered") throw unreachable();
}

/** Asks the journal in memory, and the one on disk if there is one: they agree. */
async function both<T>({ journal, disk }: World, ask: (journal: Journal) => Promise<T>): Promise<T> {
  const answer = await ask(journal);
  if (disk !== null) assert.deepEqual(await ask(disk.journal), answer, "the store answers as its model");
  return answer;
}

async function commit(world: World, process: Process, batch: readonly JobChanges[]): Promise<CommitAnswer> {
  const { random, faults, counts } = world;
  if (random.chance(faults.commitFails)) {
    counts.add("failing commit");
    throw new JournalUnavailable("The disk is full.");
  }
  const reach = world.cluster?.reach(process) ?? "answered";
  if (reach === "not reached") throw unreachable();
  const isUnknown = reach === "answer lost" || random.chance(faults.commitUnknown);
  if (isUnknown) counts.add("commit of unknown outcome");
  if (isUnknown && reach === "answered" && random.chance(0.5))
    throw new JournalUnavailable("The disk failed.", "unknown");
  if (batch.length > 0 && random.chance(faults.jobUnwritable)) {
    const { jobId } = batch[random.below(batch.length)]!;
    const stored = world.journal.jobs.get(jobId);
    // Its end may be written already, by a commit whose answer was lost.
    if (stored === undefined || !isTerminal(stored.progress.status)) {
      counts.add("job that cannot be written");
      world.unwritable.add(jobId);
    }
  }
  const taken = batch.filter(({ jobId }) => !world.unwritable.has(jobId));
  const { disk } = world;
  if (disk?.isIdle && process === world.process && random.chance(faults.powerFails)) {
    await world.stopFor(cutPower(world, disk, taken));
    // Nobody learns what became of the batch: no process outlives it.
    return await new Promise<never>(() => {});
  }
  const { lost } = write(world, taken);
  const stored = await disk?.commit(taken);
  if (stored !== undefined) assert.deepEqual(stored.lost, lost, "the store answers as its model");
  // Written, but nobody learns of it: not the engine, not the clients, not the runner.
  const mayCrash = world.cluster !== null || process === world.process;
  if (mayCrash && random.chance(faults.crashAfterCommit)) {
    counts.add("crash behind a commit");
    world.kill(process);
  }
  if (world.cluster !== null && random.chance(faults.crashAfterCommit))
    world.cluster.stopBehindCommit(process);
  if (isUnknown) throw new JournalUnavailable("The disk failed.", "unknown");
  const refused = batch.filter(({ jobId }) => world.unwritable.has(jobId));
  return { lost, unwritable: refused.map(({ jobId }) => ({ jobId, reason: "a key is taken" })) };
}

/** @returns the jobs of which nothing was written, since they are another's */
function write(world: World, taken: readonly JobChanges[]): CommitAnswer {
  world.checker.beforeCommit(taken);
  const answer = world.journal.apply(taken);
  assert.deepEqual(answer.unwritable, [], "no number and no id is used twice");
  world.checker.afterCommit(taken, answer.lost);
  return answer;
}

async function cutPower(world: World, disk: Disk, taken: readonly JobChanges[]): Promise<void> {
  world.counts.add("power cut");
  if (await disk.cut(taken, world.journal)) write(world, taken);
  await disk.compare(world.journal);
  world.endZombie();
  world.crash();
}

function load(world: World, jobId: string): Promise<JobImage | null> {
  const { random, faults, counts, unreadable } = world;
  mayFail(world, "failing load");
  if (random.chance(faults.jobUnreadable)) unreadable.add(jobId);
  if (!unreadable.has(jobId)) return both(world, (journal) => journal.load(jobId));
  counts.add("job that cannot be read");
  throw new SyntaxError("a row is no JSON");
}

function mayFail({ random, faults, counts }: World, kind: "failing claim" | "failing load"): void {
  if (!random.chance(faults.recoveryFails)) return;
  counts.add(kind);
  throw new JournalUnavailable("The disk does not answer.");
}
