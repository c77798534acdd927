// Which node an attempt is placed on.

import type { PlacementPolicy } from "../../engine/graph.ts";

/** A node that has the pool, with enough slots in all. */
export interface Candidate {
  readonly nodeId: string;
  /** Whether it is the job's own node. */
  readonly isOwn: boolean;
  readonly capacity: number;
  /** Slots that are free as far as is known; less than 0: so many are asked for in advance. */
  readonly free: number;
  /** Whether what is asked for beside slots is free there, as far as is known. */
  readonly hasResources: boolean;
}

/**
 * Chooses a node by the job's policy: `local` is its own node if that has the pool, `spread` the node with the largest
 * share of free slots, `binpack` the fullest node that still has room. The own node is taken among equals.
 *
 * @param candidates at least one
 */
export function choose(
  policy: PlacementPolicy,
  slots: number,
  candidates: readonly [Candidate, ...Candidate[]],
): Candidate {
  if (policy === "local") {
    const own = candidates.find(({ isOwn }) => isOwn);
    if (own !== undefined) return own;
  }
  const share = ({ free, capacity }: Candidate) => free / capacity;
  const hasRoom = ({ free, hasResources }: Candidate) => hasResources && free >= slots;
  const isBetter = (one: Candidate, best: Candidate): boolean => {
    const byRoom = Number(hasRoom(one)) - Number(hasRoom(best));
    if (byRoom !== 0) return byRoom > 0;
    const byShare = share(one) - share(best);
    if (byShare === 0) return one.isOwn;
    return policy === "binpack" && hasRoom(one) ? byShare < 0 : byShare > 0;
  };
  return candidates.reduce((best, one) => (isBetter(one, best) ? one : best));
}
