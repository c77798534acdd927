// The file that makes a home a node of a cluster which it has joined: cluster.json. Variables win over what it says.
//
// - It is there whole or not at all, and from then on the home is a node.
// - The next start puts what else the node needs into its place (settleNode).
// - It holds the operation by which the program has joined until the node has seen that to its end.

import { readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { syncFolder } from "../lib/files.ts";
import type { JoiningOperation } from "../nodes/joining.ts";
import { putSecretKeys } from "../security/secret-key.ts";
import { becomeNode } from "./node-identity.ts";
import { StoreUnusable } from "./sql/database.ts";

export interface ClusterFile {
  readonly database_url: string;
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  /** host:port at which other nodes reach it; null: as the variables say. */
  readonly address: string | null;
  /** What is not in its place yet. */
  readonly settling: { readonly node_id: string; readonly keys: readonly string[] } | null;
  readonly joining: JoiningOperation | null;
}

const fileOf = (home: string) => join(home, "cluster.json");

/**
 * @returns null for a home that has not joined a cluster
 * @throws StoreUnusable when the file cannot be read
 */
export function readClusterFile(home: string): ClusterFile | null {
  const path = fileOf(home);
  try {
    return JSON.parse(readFileSync(path, "utf8")) as ClusterFile;
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === "ENOENT" || code === "ENOTDIR") return null;
    const why = code === undefined ? "it is damaged" : message;
    throw new StoreUnusable(
      `${path} cannot be read: ${why}. Restore it; or, to use this home without it, remove it and set SVC_DATABASE_URL.`,
    );
  }
}

/** To be called while the home is locked. */
export async function writeClusterFile(home: string, file: ClusterFile): Promise<void> {
  const path = fileOf(home);
  writeFileSync(`${path}.new`, `${JSON.stringify(file)}\n`, { mode: 0o600, flush: true });
  renameSync(`${path}.new`, path);
  await syncFolder(home);
}

/** Of a locked home: its keys, unless it is given none, and its identity. */
export async function settleNode(home: string): Promise<void> {
  const file = readClusterFile(home);
  if (file?.settling == null) return;
  const { node_id: nodeId, keys } = file.settling;
  if (keys.length > 0) await putSecretKeys(home, keys);
  await becomeNode(home, nodeId);
  await writeClusterFile(home, { ...file, settling: null });
}
