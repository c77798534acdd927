// The file that makes a home a node of a cluster which it has joined: cluster.json. Variables win over what it says.
//
// - It is there whole or not at all, and from then on the home is a node.
// - The next start puts what else the node needs into its place, and removes the home's own database, which is empty
//   (settleNode). No later start removes one.
// - It holds the operation by which the program has joined until the node has seen that to its end.

import { readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { syncFolder } from "../lib/files.ts";
import type { JoiningOperation } from "../nodes/joining.ts";
import { putSecretKeys } from "../security/secret-key.ts";
import { removeDatabase } from "./home.ts";
import { becomeNode } from "./node-identity.ts";
import { StoreUnusable } from "./sql/database.ts";
import { homeContent } from "./sqlite/home-content.ts";

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
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === "ENOENT" || code === "ENOTDIR") return null;
    throw unusable(path, `cannot be read: ${message}`);
  }
  const file = parsed(text);
  if (!isWhole(file)) throw unusable(path, "is damaged");
  return file;
}

const unusable = (path: string, what: string) =>
  new StoreUnusable(
    `${path} ${what}. Restore it; or, to use this home without it, remove it and set SVC_DATABASE_URL.`,
  );

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

/** Of what is written as a whole, any field that is missing tells that somebody has changed it. */
function isWhole(found: unknown): found is ClusterFile {
  if (!isObject(found)) return false;
  const { database_url: url, name, labels, address, settling, joining } = found;
  return (
    [url, name].every(isText) &&
    isObject(labels) &&
    Object.values(labels).every(isText) &&
    (address === null || isText(address)) &&
    (settling === null || (isObject(settling) && isText(settling.node_id) && isTexts(settling.keys))) &&
    (joining === null || (isObject(joining) && isObject(joining.operation) && isTexts(joining.events)))
  );
}

const isObject = (found: unknown): found is Record<string, unknown> =>
  typeof found === "object" && found !== null && !Array.isArray(found);
const isText = (found: unknown) => typeof found === "string" && found !== "";
const isTexts = (found: unknown) => Array.isArray(found) && found.every(isText);

/** To be called while the home is locked. */
export async function writeClusterFile(home: string, file: ClusterFile): Promise<void> {
  const path = fileOf(home);
  writeFileSync(`${path}.new`, `${JSON.stringify(file)}\n`, { mode: 0o600, flush: true });
  renameSync(`${path}.new`, path);
  await syncFolder(home);
}

/**
 * Of a locked home: its keys, unless it is given none, and its identity; then it has no database of its own.
 *
 * @throws StoreUnusable when the home holds what would be lost
 */
export async function settleNode(home: string): Promise<void> {
  const file = readClusterFile(home);
  if (file?.settling == null) return;
  const content = homeContent(home);
  if (content.length > 0)
    throw new StoreUnusable(
      `SVC_HOME ${home} is to join a cluster (cluster.json), but holds ${content.join(", ")}. To go on with these, remove ` +
        "cluster.json; to join, set SVC_HOME to an empty folder.",
    );
  const { node_id: nodeId, keys } = file.settling;
  if (keys.length > 0) await putSecretKeys(home, keys);
  await becomeNode(home, nodeId);
  removeDatabase(home);
  await writeClusterFile(home, { ...file, settling: null });
}
