// The journal of the model: it knows the open jobs of each owner, and forgets those that have ended.

import assert from "node:assert/strict";
import { nodeOf } from "../../src/cluster/nodes.ts";
import { type CommitAnswer, isTerminal, type JobChanges } from "../../src/engine/journal.ts";
import { MemoryJournal } from "../support/memory-journal.ts";
import type { SimNodes } from "./sim-nodes.ts";

export class ModelJournal extends MemoryJournal {
  readonly ended = { completed: 0, other: 0 };
  /** The node that took each job over. */
  readonly takenOver = new Map<string, string | null>();
  readonly #table: SimNodes;
  readonly #open = new Map<string, Set<string>>();

  constructor(table: SimNodes) {
    super();
    this.#table = table;
  }

  override apply(batch: readonly JobChanges[]): CommitAnswer {
    const answer = super.apply(batch);
    assert.deepEqual(answer, { lost: [], unwritable: [] });
    for (const { jobId, owner, progress } of batch) {
      if (!isTerminal(progress.status)) {
        this.#openOf(owner).add(jobId);
        continue;
      }
      this.ended[progress.status === "completed" ? "completed" : "other"]++;
      this.#openOf(owner).delete(jobId);
      this.jobs.delete(jobId);
    }
    return answer;
  }

  #openOf(owner: string): Set<string> {
    const known = this.#open.get(owner);
    if (known !== undefined) return known;
    const open = new Set<string>();
    this.#open.set(owner, open);
    return open;
  }

  override async claim(claimant: string, limit: number): Promise<readonly string[]> {
    const taken: string[] = [];
    for (const [owner, open] of this.#open) {
      if (owner === claimant || open.size === 0 || this.#table.isLiving(owner)) continue;
      for (const jobId of open) {
        const job = this.jobs.get(jobId)!;
        if (taken.length === limit) return taken;
        if (!this.#table.mayClaim(job, claimant)) continue;
        open.delete(jobId);
        job.owner = claimant;
        job.epoch++;
        this.#openOf(claimant).add(jobId);
        this.takenOver.set(jobId, nodeOf(claimant));
        taken.push(jobId);
      }
    }
    return taken;
  }
}
