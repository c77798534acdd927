// What is removed of jobs and runs that have ended, and what tells whether a file is still needed: a port, implemented
// in src/store.
//
// - A removal takes the rows away that everybody looks for first, in one transaction: from then on the run is gone
//   for every reader. What else there is of it (history, agents, artifacts, …) is noted as garbage, and removed in pieces.
// - Only what has ended is ever removed.
// - A file is deleted after every row that names it; a crash leaves a note, and the next start continues from it.

/** A position in the order of ends: by time, then by id. */
export interface EndPosition {
  readonly endedAtMs: number;
  /** Of the runtime's job; of the run where there is none. */
  readonly id: string;
}

export interface EndedRun extends EndPosition {
  /** Characters of its history, and bytes of its artifacts. */
  readonly storedBytes: number;
}

export interface RemovedRuns {
  readonly count: number;
  /** As `EndedRun.storedBytes`. */
  readonly bytes: number;
}

/** What no reader sees any more: rows of a removed job, a blob by its SHA-256, the folders of a run by its id. */
export interface Garbage {
  readonly kind: "job" | "blob" | "run";
  readonly name: string;
}

/** Garbage that is files. */
export type FileGarbage = Garbage & { readonly kind: "blob" | "run" };

export interface RetentionRecords {
  /** What the runtime has of ended jobs, the newest end first, those behind `after`. */
  endedPage(limit: number, after: EndPosition | null): Promise<readonly EndedRun[]>;
  /** Runs of the gateway that ended, before `beforeMs`, without having come to the runtime; the oldest end first. */
  unlaunchedPage(beforeMs: number, limit: number, after: EndPosition | null): Promise<readonly EndPosition[]>;

  /**
   * Removes the oldest jobs that ended at `through` or before, with their runs; one small transaction. A job of the
   * gateway whose latest run goes has the latest of the others then, or none.
   * @returns how many; 0 when none is left
   */
  removeEnded(through: EndPosition, limit: number): Promise<RemovedRuns>;
  /** Removes the oldest runs that `unlaunchedPage` shows; one small transaction. */
  removeUnlaunched(beforeMs: number, limit: number): Promise<RemovedRuns>;
  /**
   * Removes up to `limit` ended jobs of the runtime's own API, oldest first; one small transaction.
   * @returns their ids
   */
  removeOwn(limit: number): Promise<readonly string[]>;
  /**
   * Removes rows of removed jobs, in small statements until `isOver`; one transaction.
   * @returns whether there may be more
   */
  removeParts(isOver: () => boolean): Promise<boolean>;

  /** Files that are garbage, behind `after`, at most `limit`. Blobs that an artifact names again are not among them. */
  fileGarbage(limit: number, after: FileGarbage | null): Promise<readonly FileGarbage[]>;
  /** The files are gone, so their notes may go; one transaction. */
  forgetGarbage(garbage: readonly FileGarbage[]): Promise<void>;

  /** Whether an artifact has this content. @param without passes over jobs that ended then or before; null: over none */
  isBlobNamed(sha256: string, without: EndPosition | null): Promise<boolean>;
  /** Whether a bundle, a durable job or a runtime job has this snapshot. @param without as for `isBlobNamed` */
  isSnapshotNamed(fingerprint: string, without: EndPosition | null): Promise<boolean>;
  /** Whether there is a run of this id, in the runtime or in the gateway. */
  isRunThere(runId: string): Promise<boolean>;
  /** Whether there is nothing yet that files could belong to. */
  isUnused(): Promise<boolean>;
}
