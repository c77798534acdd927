// The draft of a job's next batch: what changed since the last one.
//
// B1. What came and went between two batches is not in the second one: a message that was emitted and consumed
//     meanwhile is never written.
// B2. Taking the draft is one synchronous act, so a batch is a consistent cut of its job.

import type { Fifo } from "./fifo.ts";
import type { CollectedItems, DeadLetterRecord, DeadLetterRetry, HumanRequest } from "./journal.ts";
import type { Envelope, Message } from "./message.ts";
import type { ServiceNews } from "./service-port.ts";
import type { ArtifactRecord, TaskRef, TaskStart } from "./task-port.ts";

/** What may happen outside only after the batch is on disk. */
export interface Effects {
  readonly starts: TaskStart[];
  readonly stops: TaskRef[];
  readonly sends: { readonly ref: TaskRef; readonly envelope: Envelope }[];
  /** Answers of people, for commands that run: lines of JSON. */
  readonly responses: { readonly ref: TaskRef; readonly line: string }[];
  readonly services: ServiceNews[];
}

export class Draft {
  eventLines: string[] = [];
  deadLetters: DeadLetterRecord[] = [];
  deadLettersRetried: DeadLetterRetry[] = [];
  /** Those that changed, by the number of the event that asked. */
  readonly humanRequests = new Map<number, HumanRequest>();
  artifacts: ArtifactRecord[] = [];
  effects: Effects = { starts: [], stops: [], sends: [], responses: [], services: [] };
  readonly dirtyAgents = new Set<number>();
  readonly dirtyTasks = new Set<number>();
  tasksRemoved: number[] = [];
  readonly #filled = new Set<number>();
  readonly #consumed = new Map<number, number>();
  readonly #items = new Map<number, { firstSeq: number; bodiesJson: string[] }>();
  readonly #cleared = new Set<number>();

  /** A message was put into the mailbox of this agent. */
  mailboxFilled(agentIndex: number): void {
    this.#filled.add(agentIndex);
  }

  /** A message that the journal holds was taken out. */
  storedMessageConsumed(agentIndex: number, seq: number): void {
    this.#consumed.set(agentIndex, seq);
  }

  collected(agentIndex: number, seq: number, bodyJson: string): void {
    const run = this.#items.get(agentIndex);
    if (run === undefined) this.#items.set(agentIndex, { firstSeq: seq, bodiesJson: [bodyJson] });
    else run.bodiesJson.push(bodyJson);
  }

  cleared(agentIndex: number): void {
    this.#items.delete(agentIndex);
    this.#cleared.add(agentIndex);
  }

  /** Messages that wait and are not stored yet; `storedSeq[i]` is moved behind them. */
  takeMessages(mailboxes: readonly { readonly mailbox: Fifo<Message>; storedSeq: number }[]): Message[] {
    const messages: Message[] = [];
    for (const index of this.#filled) {
      const agent = mailboxes[index]!;
      for (const message of agent.mailbox.tailWhile((one) => one.seq > agent.storedSeq)) {
        messages.push(message);
        agent.storedSeq = message.seq;
      }
    }
    this.#filled.clear();
    return messages;
  }

  takeConsumed(): { agentIndex: number; throughSeq: number }[] {
    const consumed = [...this.#consumed].map(([agentIndex, throughSeq]) => ({ agentIndex, throughSeq }));
    this.#consumed.clear();
    return consumed;
  }

  takeItems(): { items: CollectedItems[]; itemsCleared: number[] } {
    const items = [...this.#items].map(([agentIndex, run]) => ({ agentIndex, ...run }));
    const itemsCleared = [...this.#cleared];
    this.#items.clear();
    this.#cleared.clear();
    return { items, itemsCleared };
  }

  takeEvents(): string[] {
    const lines = this.eventLines;
    this.eventLines = [];
    return lines;
  }

  takeDeadLetters(): DeadLetterRecord[] {
    const letters = this.deadLetters;
    this.deadLetters = [];
    return letters;
  }

  takeDeadLettersRetried(): DeadLetterRetry[] {
    const retried = this.deadLettersRetried;
    this.deadLettersRetried = [];
    return retried;
  }

  takeHumanRequests(): HumanRequest[] {
    const requests = [...this.humanRequests.values()];
    this.humanRequests.clear();
    return requests;
  }

  takeArtifacts(): ArtifactRecord[] {
    const artifacts = this.artifacts;
    this.artifacts = [];
    return artifacts;
  }

  takeTasksRemoved(): number[] {
    const removed = this.tasksRemoved;
    this.tasksRemoved = [];
    return removed;
  }

  /** @returns whether the start was still in the draft, and is now gone */
  withdrawStart(ref: TaskRef): boolean {
    const at = this.effects.starts.findIndex(
      (start) => start.ref.taskSeq === ref.taskSeq && start.ref.attempt === ref.attempt,
    );
    if (at >= 0) this.effects.starts.splice(at, 1);
    return at >= 0;
  }

  takeEffects(): Effects {
    const effects = this.effects;
    this.effects = { starts: [], stops: [], sends: [], responses: [], services: [] };
    return effects;
  }
}
