// What is counted of schedules and trigger events, for the metrics of a program (src/observability).

import type { DispatchOutcome } from "./records.ts";
import type { Emitted } from "./trigger-events.ts";

export interface ScheduleMeter {
  /** What became of a due time, of waiting events, or of an event that starts a run at once. */
  dispatched(outcome: DispatchOutcome): void;
  /** Due times that nobody came to. */
  missed(count: number): void;
  /** A run was started so long after its due time. */
  startedLate(ms: number): void;
  /** An event is on disk. */
  emitted(emitted: Emitted): void;
}
