// Where the files of a task's payload are.

import type { TaskStart } from "../../engine/task-port.ts";
import { preparedFolders } from "./paths.ts";

/** The folder that a task uploads from; null when its job has no bundle. */
export type PayloadOf = (
  task: Pick<TaskStart, "runId" | "bundleFingerprint" | "hasOwnPayload">,
) => string | null;

/**
 * @param home SVC_HOME
 * @param snapshotPayload the payloads/ folder of a bundle's snapshot
 */
export function payloadsIn(home: string, snapshotPayload: (fingerprint: string) => string): PayloadOf {
  return ({ runId, bundleFingerprint, hasOwnPayload }) => {
    if (hasOwnPayload) return preparedFolders(home, runId).payload;
    return bundleFingerprint === null ? null : snapshotPayload(bundleFingerprint);
  };
}
