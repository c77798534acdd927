// A journal in memory: the port's contract without a disk. The simulation runs on it, and so does the contract suite
// that the real journals pass.

import type {
  AgentRecord,
  CollectedItems,
  CommitAnswer,
  DamagedJob,
  DamagedJobEnd,
  DeadLetterRecord,
  HumanRequest,
  JobChanges,
  JobImage,
  JobInsert,
  JobProgress,
  Journal,
  TaskRecord,
} from "../../src/engine/journal.ts";
import { FREE_OWNER, isTerminal } from "../../src/engine/journal.ts";
import type { Message } from "../../src/engine/message.ts";

export interface StoredJob {
  insert: JobInsert;
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
  readonly artifactIds: Set<string>;
  readonly humanRequests: Map<number, HumanRequest>;
}

export class MemoryJournal implements Journal {
  readonly jobs = new Map<string, StoredJob>();
  readonly #runIds = new Set<string>();
  /** Who may take over the open job of another owner: anyone, as long as no owner counts as living. */
  mayClaim: (job: StoredJob, owner: string) => boolean = () => true;

  async commit(batch: readonly JobChanges[]): Promise<CommitAnswer> {
    return this.apply(batch);
  }

  /** The synchronous heart of `commit`. */
  apply(batch: readonly JobChanges[]): CommitAnswer {
    const lost: string[] = [];
    const unwritable: { readonly jobId: string; readonly reason: string }[] = [];
    for (const changes of batch) {
      const { jobId } = changes;
      const claim = this.#claimOf(changes);
      const reason = claim === "current" ? this.#reused(changes) : null;
      if (claim === "lost") lost.push(jobId);
      else if (reason !== null) unwritable.push({ jobId, reason });
      else if (claim === "current") this.#write(changes);
    }
    return { lost, unwritable };
  }

  /** What a database's unique keys refuse: a number or an id that is taken. */
  #reused(changes: JobChanges): string | null {
    const job = this.jobs.get(changes.jobId);
    if (job === undefined) return this.#runIds.has(changes.insert!.runId) ? "the run's id is taken" : null;
    const { consumed, itemsCleared } = changes;
    const isConsumed = ({ to, seq }: Message) =>
      consumed.some(({ agentIndex, throughSeq }) => agentIndex === to && seq <= throughSeq);
    const messages = job.messages.filter((one) => !isConsumed(one)).map(({ to, seq }) => `${to} ${seq}`);
    const items = job.items
      .filter(({ agentIndex }) => !itemsCleared.includes(agentIndex))
      .map(({ agentIndex, firstSeq }) => `${agentIndex} ${firstSeq}`);
    const letters = job.deadLetters.map(({ deadLetterId }) => deadLetterId);
    if (changes.eventLines.length > 0 && changes.firstEventSeq <= job.events.length)
      return "an event's number is taken";
    if (changes.deadLetters.some(({ deadLetterId }) => letters.includes(deadLetterId)))
      return "a dead letter's id is taken";
    if (changes.artifacts.some(({ artifactId }) => job.artifactIds.has(artifactId)))
      return "an artifact's id is taken";
    if (isTerminal(changes.progress.status)) return null;
    if (changes.messages.some(({ to, seq }) => messages.includes(`${to} ${seq}`)))
      return "a message's number is taken";
    const isTaken = ({ agentIndex, firstSeq }: CollectedItems) => items.includes(`${agentIndex} ${firstSeq}`);
    return changes.items.some(isTaken) ? "an item's number is taken" : null;
  }

  #claimOf(changes: JobChanges): "current" | "applied" | "lost" {
    const job = this.jobs.get(changes.jobId);
    if (job === undefined) return changes.insert === null ? "lost" : "current";
    if (job.epoch !== changes.epoch) return "lost";
    const isApplied = job.revision === changes.revision + 1;
    if (isApplied && job.owner === (changes.isHandedOver ? FREE_OWNER : changes.owner)) return "applied";
    if (job.owner !== changes.owner) return "lost";
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
        artifactIds: new Set(),
        humanRequests: new Map(),
      };
      this.jobs.set(changes.jobId, job);
      this.#runIds.add(job.insert.runId);
    }
    job.revision++;
    job.progress = changes.progress;
    for (const agent of changes.agents) job.agents.set(agent.index, agent);
    job.events.push(...changes.eventLines);
    job.deadLetters.push(...changes.deadLetters);
    for (const { artifactId } of changes.artifacts) job.artifactIds.add(artifactId);
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
    if (isTerminal(changes.progress.status)) clearWork(job);
    if (changes.priority !== null) job.insert = { ...job.insert, priority: changes.priority };
    if (changes.isHandedOver) job.owner = FREE_OWNER;
  }

  async failDamaged(
    jobId: string,
    owner: string,
    render: (job: DamagedJob) => DamagedJobEnd,
  ): Promise<number | null> {
    const job = this.jobs.get(jobId);
    if (job === undefined || job.owner !== owner || isTerminal(job.progress.status)) return null;
    const { runId, trace } = job.insert;
    const { eventSeq, tally } = job.progress;
    const end = render({ runId, eventSeq, trace, tally });
    job.epoch++;
    job.revision++;
    job.events.splice(eventSeq, Number.POSITIVE_INFINITY, end.eventLine);
    job.progress = {
      ...job.progress,
      status: "failed",
      updatedAtMs: end.nowMs,
      eventSeq: eventSeq + 1,
      activeExecutors: 0,
      sandboxNames: [],
      lastEventJson: end.lastEventJson,
      failureJson: end.failureJson,
      tally: end.tally,
    };
    clearWork(job);
    return eventSeq + 1;
  }

  async claim(owner: string, limit: number): Promise<readonly string[]> {
    const ids = [...this.jobs]
      .filter(
        ([, job]) => !isTerminal(job.progress.status) && job.owner !== owner && this.mayClaim(job, owner),
      )
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

/** A terminal job has no work left. */
function clearWork(job: StoredJob): void {
  job.messages = [];
  job.items = [];
  job.tasks.clear();
}
