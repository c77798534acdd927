// The journal as one process sees it: slow, failing, losing its answers, refusing or misreading some jobs for good; and
// gone when the process is.

import assert from "node:assert/strict";
import {
  type CommitAnswer,
  type JobChanges,
  type JobImage,
  type Journal,
  JournalUnavailable,
} from "../../src/engine/journal.ts";
import type { Process, World } from "./world.ts";

export function simJournal(world: World, owned: () => Process): Journal {
  const later = <T>(delayMs: number, answer: () => T | Promise<T>): Promise<T> =>
    new Promise((resolve, reject) => {
      world.plan(delayMs, owned(), async () => {
        try {
          const value = await answer();
          if (owned().isAlive) resolve(value);
        } catch (error) {
          // What a checker has found is no fault of the disk, and the engine must not treat it as one.
          if (error instanceof assert.AssertionError) world.broken(error);
          else reject(error);
        }
      });
    });
  const soonMs = () => world.random.between(0, 2);
  const slowlyMs = (kind: "slow claim" | "slow load") => {
    if (!world.random.chance(world.faults.recoveryIsSlow)) return soonMs();
    world.counts.add(kind);
    return world.random.between(50, 1_500);
  };
  return {
    commit: (batch) => later(soonMs(), () => commit(world, owned(), batch)),
    claim: (owner, limit) =>
      later(slowlyMs("slow claim"), () => {
        mayFail(world, "failing claim");
        // Which of two living processes may claim is decided outside: the home of a program is locked.
        if (owned() !== world.process) throw new JournalUnavailable("The home is another process's.");
        return world.journal.claim(owner, limit);
      }),
    load: (jobId) => later(slowlyMs("slow load"), () => load(world, jobId)),
    failDamaged: (jobId, owner, render) =>
      later(soonMs(), () => {
        if (world.random.chance(world.faults.commitFails)) throw new JournalUnavailable("The disk is full.");
        return world.journal.failDamaged(jobId, owner, render);
      }),
  };
}

function commit(world: World, process: Process, batch: readonly JobChanges[]): CommitAnswer {
  const { random, faults, counts } = world;
  if (random.chance(faults.commitFails)) {
    counts.add("failing commit");
    throw new JournalUnavailable("The disk is full.");
  }
  const isUnknown = random.chance(faults.commitUnknown);
  if (isUnknown) counts.add("commit of unknown outcome");
  if (isUnknown && random.chance(0.5)) throw new JournalUnavailable("The disk failed.", "unknown");
  if (batch.length > 0 && random.chance(faults.jobUnwritable)) {
    counts.add("job that cannot be written");
    world.unwritable.add(batch[random.below(batch.length)]!.jobId);
  }
  const taken = batch.filter(({ jobId }) => !world.unwritable.has(jobId));
  world.checker.beforeCommit(taken);
  const { lost, unwritable } = world.journal.apply(taken);
  assert.deepEqual(unwritable, [], "no number and no id is used twice");
  world.checker.afterCommit(taken, lost);
  // Written, but nobody learns of it: not the engine, not the clients, not the runner.
  if (process === world.process && random.chance(faults.crashAfterCommit)) {
    counts.add("crash behind a commit");
    world.crash();
  }
  if (isUnknown) throw new JournalUnavailable("The disk failed.", "unknown");
  const refused = batch.filter(({ jobId }) => world.unwritable.has(jobId));
  return { lost, unwritable: refused.map(({ jobId }) => ({ jobId, reason: "a key is taken" })) };
}

function load(world: World, jobId: string): Promise<JobImage | null> {
  const { random, faults, counts, unreadable } = world;
  mayFail(world, "failing load");
  if (random.chance(faults.jobUnreadable)) unreadable.add(jobId);
  if (!unreadable.has(jobId)) return world.journal.load(jobId);
  counts.add("job that cannot be read");
  throw new SyntaxError("a row is no JSON");
}

function mayFail({ random, faults, counts }: World, kind: "failing claim" | "failing load"): void {
  if (!random.chance(faults.recoveryFails)) return;
  counts.add(kind);
  throw new JournalUnavailable("The disk does not answer.");
}
