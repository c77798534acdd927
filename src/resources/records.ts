// The stored limits: one record for all programs of a database.

import type { ResourceLimits } from "./limits.ts";

export interface StoredLimits {
  readonly limits: ResourceLimits;
  /** From 1, without any limit; each change adds one. */
  readonly revision: number;
}

/** A port, implemented in src/store. */
export interface ResourceRecords {
  limits(): Promise<StoredLimits>;
  /**
   * Changes the limits in a transaction, beside which there is no other.
   *
   * @param change what is to be stored; the same object when nothing changes
   */
  changeLimits(change: (before: StoredLimits) => StoredLimits): Promise<StoredLimits>;
}
