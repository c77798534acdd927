// The draft of a job's next batch: what changed since the last one, and what may happen outside once that is on disk.
//
// - What came and went between two batches is not in the second one: a message that was emitted and consumed
//   meanwhile is never written.
// - The draft is taken in one synchronous act (image.ts), so a batch is a consistent cut of its job.

import type { DeadLetterRecord, DeadLetterRetry, HumanRequest } from "../journal.ts";
import type { Envelope } from "../message.ts";
import type { ServiceNews } from "../service-port.ts";
import type { Priority } from "../share.ts";
import type { ArtifactRecord, TaskRef, TaskStart } from "../task-port.ts";

/** What may happen outside only after the batch is on disk. */
export interface Effects {
  readonly starts: TaskStart[];
  readonly stops: TaskRef[];
  readonly sends: { readonly ref: TaskRef; readonly envelope: Envelope }[];
  /** Answers of people, for commands that run: lines of JSON. */
  readonly responses: { readonly ref: TaskRef; readonly line: string }[];
  readonly services: ServiceNews[];
}

/** Agents are named by their index, tasks by their seq. */
export interface Draft {
  readonly eventLines: string[];
  readonly changedAgents: Set<number>;
  readonly changedTasks: Set<number>;
  readonly removedTasks: number[];
  /** Agents into whose mailbox a message was put. */
  readonly filledMailboxes: Set<number>;
  /** Of each agent that took messages which the journal holds, the seq of the last one. */
  readonly consumed: Map<number, number>;
  /** What each aggregator collected, as JSON texts. */
  readonly collected: Map<number, { firstSeq: number; bodiesJson: string[] }>;
  /** Aggregators that started afresh before that. */
  readonly cleared: Set<number>;
  readonly deadLetters: DeadLetterRecord[];
  readonly deadLettersRetried: DeadLetterRetry[];
  /** Those that changed, by the number of the event that asked. */
  readonly humanRequests: Map<number, HumanRequest>;
  readonly artifacts: ArtifactRecord[];
  readonly effects: Effects;
  /** Its new priority; null: the one that it had. */
  priority: Priority | null;
  /** Whether the job is another's once this is on disk (handover.ts). */
  isLast: boolean;
}

export function newDraft(): Draft {
  return {
    eventLines: [],
    changedAgents: new Set(),
    changedTasks: new Set(),
    removedTasks: [],
    filledMailboxes: new Set(),
    consumed: new Map(),
    collected: new Map(),
    cleared: new Set(),
    deadLetters: [],
    deadLettersRetried: [],
    humanRequests: new Map(),
    artifacts: [],
    effects: { starts: [], stops: [], sends: [], responses: [], services: [] },
    priority: null,
    isLast: false,
  };
}
