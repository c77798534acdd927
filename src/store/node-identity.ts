// Which node a home is: an id that is made once and kept in it (node.json), with the place where it was last used. A copy of
// a home, or one that was moved, is known by its other place.

import { readFileSync, realpathSync, renameSync, writeFileSync } from "node:fs";
import { hostname } from "node:os";
import { join } from "node:path";
import { syncFolder } from "../lib/files.ts";
import { StoreUnusable } from "./sql/database.ts";

const FILE = "node.json";

interface NodeFile {
  readonly node_id: string;
  readonly host: string;
  readonly path: string;
}

export interface NodeIdentity {
  readonly nodeId: string;
  /** Whether the home was last used where it is now, so that no other program can be this node. */
  readonly isInPlace: boolean;
  /** Notes where the home is now. */
  settle(): Promise<void>;
}

/**
 * Reads the identity of a locked home, or makes it.
 *
 * @throws StoreUnusable when node.json cannot be read
 */
export async function openNodeIdentity(home: string, newId: () => string): Promise<NodeIdentity> {
  const place = { host: hostname(), path: realpathSync(home) };
  const known = readNodeFile(home);
  const nodeId = known?.node_id ?? `node_${newId()}`;
  const settle = () => writeNodeFile(home, { node_id: nodeId, ...place });
  if (known === null) await settle();
  const isInPlace = known === null || (known.host === place.host && known.path === place.path);
  return { nodeId, isInPlace, settle: isInPlace ? async () => {} : settle };
}

function readNodeFile(home: string): NodeFile | null {
  const file = join(home, FILE);
  let text: string;
  try {
    text = readFileSync(file, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
    throw error;
  }
  const found = parsed(text);
  // An owner's name is split at "/", and a key of slots at a space.
  if (
    /^node_[A-Za-z0-9]{1,64}$/.test(found.node_id ?? "") &&
    found.host !== undefined &&
    found.path !== undefined
  )
    return found as NodeFile;
  throw new StoreUnusable(
    `${file} is damaged. Remove it: this home becomes a new node then, and other nodes take over the jobs of the old one.`,
  );
}

function parsed(text: string): Partial<NodeFile> {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? value : {};
  } catch {
    return {};
  }
}

async function writeNodeFile(home: string, file: NodeFile): Promise<void> {
  const path = join(home, FILE);
  writeFileSync(`${path}.new`, `${JSON.stringify(file)}\n`, { mode: 0o600, flush: true });
  renameSync(`${path}.new`, path);
  await syncFolder(home);
}
