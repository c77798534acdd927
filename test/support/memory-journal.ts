// A journal in memory: the port's contract without a disk. The simulation runs on it, and so does the contract suite
// that the real journals pass.

import type {
  AgentRecord,
  CollectedItems,
  DeadLetterRecord,
  HumanRequest,
  JobChanges,
  JobImage,
  JobInsert,
  JobProgress,
  Journal,
  TaskRecord,
} from "../../src/engine/journal.ts";
import { isTerminal } from "../../src/engine/journal.ts";
import type { Message } from "../../src/engine/message.ts";

export interface StoredJob {
  readonly insert: JobInsert;
  owner: string;
  epoch: number;
  revision: number;
  progress: JobProgress;
  readonly agents: Map<number, AgentRecord>;
  messages: Message[];
  items: CollectedItems[];
  readonly tasks: Map<number, TaskRecord>;
  readonly events: string[];
  readonly deadLetters: DeadLetterRecord[];
  readonly retriedLetters: Set<string>;
  readonly humanRequests: Map<number, HumanRequest>;
}

export class MemoryJournal implements Journal {
  readonly jobs = new Map<string, StoredJob>();

  async commit(batch: readonly JobChanges[]): Promise<{ readonly lost: readonly string[] }> {
    return { lost: this.apply(batch) };
  }

  /** The synchronous heart of `commit`. */
  apply(batch: readonly JobChanges[]): string[] {
    const lost: string[] = [];
    for (const changes of batch) {
      const claim = this.#claimOf(changes);
      if (claim === "lost") lost.push(changes.jobId);
      else if (claim === "current") this.#write(changes);
    }
    return lost;
  }

  #claimOf(changes: JobChanges): "current" | "applied" | "lost" {
    const job = this.jobs.get(changes.jobId);
    if (job === undefined) return changes.insert === null ? "lost" : "current";
    if (job.owner !== changes.owner || job.epoch !== changes.epoch) return "lost";
    if (job.revision === changes.revision + 1) return "applied";
    return job.revision === changes.revision && changes.insert === null ? "current" : "lost";
  }

  #write(given: JobChanges): void {
    // Through JSON, so that nothing in here is shared with the engine's memory.
    const changes = JSON.parse(JSON.stringify(given)) as JobChanges;
    let job = this.jobs.get(changes.jobId);
    if (job === undefined) {
      job = {
        insert: changes.insert!,
        owner: changes.owner,
        epoch: changes.epoch,
        revision: 0,
        progress: changes.progress,
        agents: new Map(),
        messages: [],
        items: [],
        tasks: new Map(),
        events: [],
        deadLetters: [],
        retriedLetters: new Set(),
        humanRequests: new Map(),
      };
      this.jobs.set(changes.jobId, job);
    }
    job.revision++;
    job.progress = changes.progress;
    for (const agent of changes.agents) job.agents.set(agent.index, agent);
    job.events.push(...changes.eventLines);
    job.deadLetters.push(...changes.deadLetters);
    for (const { deadLetterId } of changes.deadLettersRetried) job.retriedLetters.add(deadLetterId);
    for (const request of changes.humanRequests) {
      for (const [seq, one] of job.humanRequests)
        if (one.requestId === request.requestId) job.humanRequests.delete(seq);
      job.humanRequests.set(request.eventSeq, request);
    }
    for (const { agentIndex, throughSeq } of changes.consumed) {
      job.messages = job.messages.filter((one) => one.to !== agentIndex || one.seq > throughSeq);
    }
    job.messages.push(...changes.messages);
    job.items = job.items.filter((one) => !changes.itemsCleared.includes(one.agentIndex));
    job.items.push(...changes.items);
    for (const task of changes.tasks) job.tasks.set(task.taskSeq, task);
    for (const seq of changes.tasksRemoved) job.tasks.delete(seq);
    if (isTerminal(changes.progress.status)) {
      job.messages = [];
      job.items = [];
      job.tasks.clear();
    }
  }

  async claim(owner: string, limit: number): Promise<readonly string[]> {
    const ids = [...this.jobs]
      .filter(([, job]) => !isTerminal(job.progress.status) && job.owner !== owner)
      .sort(([a, x], [b, y]) => x.insert.submittedAtMs - y.insert.submittedAtMs || (a < b ? -1 : 1))
      .slice(0, limit)
      .map(([id]) => id);
    for (const id of ids) {
      const job = this.jobs.get(id)!;
      job.owner = owner;
      job.epoch++;
    }
    return ids;
  }

  async load(jobId: string): Promise<JobImage | null> {
    const job = this.jobs.get(jobId);
    if (job === undefined) return null;
    const image: JobImage = {
      jobId,
      epoch: job.epoch,
      revision: job.revision,
      insert: job.insert,
      progress: job.progress,
      agents: [...job.agents.values()].sort((a, b) => a.index - b.index),
      messages: [...job.messages].sort((a, b) => a.to - b.to || a.seq - b.seq),
      items: [...job.items].sort((a, b) => a.agentIndex - b.agentIndex || a.firstSeq - b.firstSeq),
      tasks: [...job.tasks.values()].sort((a, b) => a.taskSeq - b.taskSeq),
      humanRequests: [...job.humanRequests.values()].sort((a, b) => a.eventSeq - b.eventSeq),
    };
    return JSON.parse(JSON.stringify(image)) as JobImage;
  }
}
