// Where a sandboxed worker finds its things: the same places in every sandbox, whatever they are called on the machine.
//
//   /sandbox/job               the workspace, or at the node's sandbox_upload_path; it may write here
//   /sandbox/attempt           the attempt's files, and the pipe for its events
//   /sandbox/attempt/out       SVC_OUTPUT_DIR; it may write here
//   /sandbox/run               SVC_RUN_DIR; it may write here
//   /sandbox/volumes/<name>    its volumes; it may write to those that are not read-only
//   /sandbox/resources/<name>  SVC_RESOURCES_DIR
//   /sandbox/models/<model>    SVC_MODELS_DIR
//   /sandbox/node              the Node that the runtime runs on
//   /sandbox/module.mjs        what calls a module
//   /sandbox/network           what leads to the hosts that its policy allows, if any

import { join, relative } from "node:path";
import type { ExecutorConfig } from "../../engine/graph.ts";
import { SANDBOX_WORKSPACE } from "../../engine/sandbox.ts";
import type { TaskStart } from "../../engine/task-port.ts";
import { attemptFiles, type WorkerPlaces } from "../runner/worker-contract.ts";

export const inside = {
  attempt: "/sandbox/attempt",
  output: "/sandbox/attempt/out",
  runFolder: "/sandbox/run",
  volumes: "/sandbox/volumes",
  resources: "/sandbox/resources",
  models: "/sandbox/models",
  node: "/sandbox/node",
  moduleHost: "/sandbox/module.mjs",
  relay: "/sandbox/network/relay.mjs",
  socket: "/sandbox/network/proxy",
} as const;

export const volumeInside = (name: string) => join(inside.volumes, name);

/** @param outside the places as they are on the machine */
export function placesInside(outside: WorkerPlaces, task: TaskStart, config: ExecutorConfig): WorkerPlaces {
  const workspace = config.sandboxUploadPath ?? SANDBOX_WORKSPACE;
  const { brought } = outside;
  return {
    files: attemptFiles(task, inside.attempt),
    workspace,
    workdir: join(workspace, relative(outside.workspace, outside.workdir)),
    runFolder: inside.runFolder,
    brought: {
      resources: brought.resources === null ? null : inside.resources,
      models: brought.models === null ? null : inside.models,
    },
    volumes: outside.volumes.map((volume) => ({ ...volume, path: volumeInside(volume.need.name) })),
    node: inside.node,
  };
}
