// Where in a payload relative paths of the configuration begin. Nodes upload parts of it, and read them by paths that
// are relative to their own workspace.

import { join } from "node:path";
import type { LocalFolder } from "../../blueprints/package-description.ts";
import type { Graph } from "../../engine/graph.ts";

/**
 * The folder of the payload from which runtime_path leads to payload_path: "worker" for "worker/inputs/docs" and
 * "inputs/docs"; null when the one does not end in the other.
 */
function uploadRootOf({
  payloadPath,
  runtimePath,
}: Pick<LocalFolder, "payloadPath" | "runtimePath">): string | null {
  if (payloadPath === runtimePath) return ".";
  return payloadPath.endsWith(`/${runtimePath}`) ? payloadPath.slice(0, -runtimePath.length - 1) : null;
}

/** Folders in which a relative path may be looked for: the payload itself, where its folders begin, and its uploads. */
export function payloadRoots(
  payload: string,
  folders: readonly LocalFolder[],
  graph: Graph,
): readonly string[] {
  const ofFolders = folders.map(uploadRootOf).filter((root) => root !== null);
  const ofNodes = graph.nodes.flatMap(({ config }) =>
    config.kind === "executor" ? config.uploadPaths.map(({ path }) => path) : [],
  );
  return [...new Set([".", ...ofFolders, ...ofNodes])].map((root) => join(payload, root));
}

/** Where a validator runs: where the folders' runtime paths begin, if they all begin in one place. */
export function workingFolder(payload: string, folders: readonly LocalFolder[]): string {
  const roots = new Set(folders.map(uploadRootOf));
  const [root] = roots;
  return roots.size === 1 && root != null ? join(payload, root) : payload;
}
