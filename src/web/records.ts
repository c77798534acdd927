// Which run has which port of this node. Ports, implemented in src/store.
//
// - A port is in use as long as the run that was given it has not ended; the end of the run releases it.
// - Giving one away is a write like any other, so no two open runs ever have the same.

export interface EndedPort {
  readonly port: number;
  readonly runId: string;
}

export interface PortRecords {
  /** The ports of runs that have not ended: of those that were given one here, and of those whose jobs are here now. */
  portsInUse(): Promise<ReadonlySet<number>>;
  /** The ports of runs that have not ended, of all nodes. */
  portsInUseAnywhere(): Promise<ReadonlySet<number>>;
  /** Those that no open run has, of runs that ended at `sinceMs` or later: their dashboards may still be there. */
  portsFreedSince(sinceMs: number): Promise<ReadonlySet<number>>;
  /** Those that no open run was given here since, of runs that ended before. */
  portsOfEnded(beforeMs: number): Promise<readonly EndedPort[]>;
  /** The ports that a run was given here, by label. */
  portsOf(runId: string): Promise<ReadonlyMap<string, number>>;
}

/** The part of a gateway transaction that gives ports away. */
export interface PortWrites {
  /**
   * Gives the run the first of these ports that no open run has.
   * @returns null when all of them are in use
   */
  reserve(runId: string, label: string, candidates: readonly number[]): Promise<number | null>;
}
