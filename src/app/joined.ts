// The operation by which this program has joined its cluster, as its home has it until it has ended.

import type { ClusterParts } from "../nodes/node-changes.ts";
import { readClusterFile, writeClusterFile } from "../store/cluster-file.ts";

export function joinedOf(home: string): ClusterParts["joined"] {
  const file = readClusterFile(home);
  if (file?.joining == null) return null;
  return {
    ...file.joining,
    // One that stays is found to have ended by the next start.
    done: () => void writeClusterFile(home, { ...file, joining: null }).catch(() => {}),
  };
}
