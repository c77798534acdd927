// Where execution keeps things below SVC_HOME.
//
//   runs/<run>/shared/                                 SVC_RUN_DIR, for all workers of a run
//   runs/<run>/prepared/payload/                       what the run uploads from, when that is not the bundle's own
//   runs/<run>/prepared/resources/<name>               links to what was prepared for its blueprint, if anything was
//   runs/<run>/prepared/models/<model>                 links to the files of models that its package works with
//   runs/<run>/agents/<agent>/                         gone when a command has left nothing in the agent's workspace
//   runs/<run>/agents/<agent>/work/                    the agent's own workspace
//   runs/<run>/agents/<agent>/attempts/<task>-<n>/     one attempt's files, gone when it is over

import { join, relative } from "node:path";
import type { TaskStart } from "../../engine/task-port.ts";
import { OpenFolder } from "../../lib/open-folder.ts";
import { folderName } from "../../lib/paths.ts";

/** The folders of one agent in one run. */
export interface AgentFolders {
  readonly shared: string;
  readonly agent: string;
  readonly work: string;
  readonly attempts: string;
}

export function agentFolders(home: string, runId: string, agentId: string): AgentFolders {
  const run = join(home, "runs", folderName(runId));
  const agent = join(run, "agents", folderName(agentId));
  return { shared: join(run, "shared"), agent, work: join(agent, "work"), attempts: join(agent, "attempts") };
}

/** Where a launch is prepared that needs more than its bundle (src/launch/preparation). */
export interface PreparedFolders {
  readonly root: string;
  readonly payload: string;
  readonly resources: string;
  readonly models: string;
}

export function preparedFolders(home: string, runId: string): PreparedFolders {
  const root = join(home, "runs", folderName(runId), "prepared");
  const inside = (name: string) => join(root, name);
  return { root, payload: inside("payload"), resources: inside("resources"), models: inside("models") };
}

export function attemptFolder(folders: AgentFolders, ref: TaskStart["ref"]): string {
  return join(folders.attempts, `${ref.taskSeq}-${ref.attempt}`);
}

/** The folder that a task uploads from; null when its job has no bundle. It is fetched if only other machines have it. */
export type PayloadOf = (
  task: Pick<TaskStart, "runId" | "bundleFingerprint" | "hasOwnPayload">,
) => Promise<string | null>;

export interface PayloadPlaces {
  /** SVC_HOME. */
  readonly home: string;
  /** The payloads/ folder of a bundle's snapshot. */
  readonly snapshotPayload: (fingerprint: string) => string;
  /** Sees to it that a snapshot is on this machine. */
  readonly ensureSnapshot: (fingerprint: string) => Promise<void>;
  /** Sees to it that what was prepared for a run is on this machine. */
  readonly ensurePrepared: (runId: string) => Promise<void>;
}

export function payloadsIn(places: PayloadPlaces): PayloadOf {
  return async ({ runId, bundleFingerprint, hasOwnPayload }) => {
    if (hasOwnPayload) {
      await places.ensurePrepared(runId);
      return preparedFolders(places.home, runId).payload;
    }
    if (bundleFingerprint === null) return null;
    await places.ensureSnapshot(bundleFingerprint);
    return places.snapshotPayload(bundleFingerprint);
  };
}

/** Opens a folder below SVC_HOME, which itself may be reached through symlinks. @throws SymlinkInPath */
export function openBelow(home: string, path: string): OpenFolder {
  return OpenFolder.below(home, relative(home, path));
}
