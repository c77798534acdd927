// A run as the run store sees it: one reading of its row, its history, and what its small documents are made of.

import type { RunContext } from "../history/run-context.ts";
import type { ReadEvents } from "../run-history.ts";
import type { DocumentName } from "./history-names.ts";

export interface RunSource extends RunContext {
  /** Whether it has ended: its history is complete, and its documents are what they will always be. */
  readonly isEnded: boolean;
  /** Events of its history at this reading. */
  readonly eventCount: number;
  readonly createdAtMs: number;
  readonly read: ReadEvents;
  readonly documents: readonly RunDocument[];
}

export interface RunDocument {
  readonly name: DocumentName;
  /** Whether it stays as it is from the moment on at which it is there, though the run continues. */
  readonly isFixed: boolean;
  /** JSON; null while there is none. Follows from the run's rows: it does not change by time alone. */
  text(): Promise<string | null>;
}
