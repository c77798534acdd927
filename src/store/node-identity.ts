// Which node a home is: an id that is made once and kept in it (node.json), with the place where it was last used. A copy of
// a home, or one that was moved, is known by its other place.
//
// - A place is a folder of a running machine: names and paths may be the same on two machines, or in two containers.

import { readFileSync, realpathSync, renameSync, statSync, writeFileSync } from "node:fs";
import { hostname } from "node:os";
import { join } from "node:path";
import { syncFolder } from "../lib/files.ts";
import { StoreUnusable } from "./sql/database.ts";

const FILE = "node.json";

/** Another one at each boot; Linux only. */
const BOOT_ID = "/proc/sys/kernel/random/boot_id";

interface NodeFile {
  readonly node_id: string;
  readonly place: string;
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
  const place = placeOf(home);
  const known = readNodeFile(home);
  const nodeId = known?.node_id ?? `node_${newId()}`;
  const settle = () => writeNodeFile(home, { node_id: nodeId, place });
  if (known === null) await settle();
  const isInPlace = known === null || known.place === place;
  return { nodeId, isInPlace, settle: isInPlace ? async () => {} : settle };
}

/** Makes a locked home the home of this node. It is in no place: no other program loses its lease to the first start. */
export async function becomeNode(home: string, nodeId: string): Promise<void> {
  await writeNodeFile(home, { node_id: nodeId, place: "" });
}

/** The lock of a home keeps other programs out of it, on this machine. */
function placeOf(home: string): string {
  const boot = textOf(BOOT_ID)?.trim();
  if (boot === undefined) return `${hostname()} ${realpathSync(home)}`;
  const { dev, ino } = statSync(home);
  return `${boot} ${dev}:${ino}`;
}

/** Undefined for a file that is not there. */
function textOf(file: string): string | undefined {
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}

function readNodeFile(home: string): NodeFile | null {
  const file = join(home, FILE);
  const text = textOf(file);
  if (text === undefined) return null;
  const found = parsed(text);
  // An owner's name is split at "/", and a key of slots at a space.
  if (/^node_[A-Za-z0-9]{1,64}$/.test(found.node_id ?? "") && found.place !== undefined)
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
