// For tests only: bundle folders, zips with whatever is wrong with them, and a Bundles on a real database.

import { chmod, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { crc32, deflateRawSync } from "node:zlib";
import { Bundles } from "../../src/bundles/bundles.ts";
import { BundleProblem } from "../../src/bundles/problem.ts";
import type { BundleRecords } from "../../src/bundles/records.ts";
import type { SharedFolders } from "../../src/bundles/shared-folders.ts";
import type { Graph } from "../../src/engine/graph.ts";
import { parseManifest } from "../../src/engine/manifest.ts";
import { sqlBundleRecords } from "../../src/store/sql/bundles.ts";
import { openSqlite } from "../../src/store/sqlite/database.ts";

export const manifestJson = JSON.stringify({
  manifest_version: "1.0",
  graph_id: "digest",
  entrypoints: ["in"],
  nodes: [{ node_id: "in", agent_type: "router" }],
});

export const manifestGraph = graphOf(manifestJson);

function graphOf(json: string): Graph {
  const parsed = parseManifest(JSON.parse(json));
  if (parsed.kind === "invalid") throw new Error("The manifest for tests is invalid.");
  return parsed.graph;
}

export type Files = Readonly<Record<string, string>>;

/** A valid bundle, with further files or other content. */
export function bundleFiles(more: Files = {}): Files {
  return { "manifest.json": manifestJson, "payloads/worker/run.py": "print(1)\n", ...more };
}

export interface Place extends AsyncDisposable {
  /** An empty folder, removed at the end. */
  readonly folder: string;
  readonly home: string;
  readonly bundles: Bundles;
  readonly records: BundleRecords & { readonly delete: (bundleId: string) => Promise<void> };
  /** Opens the same home again, as a program that starts afresh does. */
  reopen(): Promise<Bundles>;
}

export const BUNDLE_BYTES_MAX = 64 * 1024;

export async function makePlace({
  bundleBytesMax = BUNDLE_BYTES_MAX,
  bundlesBytesMax = 0,
  shared = null,
}: {
  bundleBytesMax?: number;
  bundlesBytesMax?: number;
  /** Of a folder for SVC_HOME. */
  shared?: ((home: string) => SharedFolders) | null;
} = {}): Promise<Place> {
  const folder = await mkdtemp(join(tmpdir(), "bundles-"));
  const home = join(folder, "home");
  await mkdir(home);
  const database = openSqlite(":memory:");
  const records = Object.assign(sqlBundleRecords(database), {
    delete: async (bundleId: string) => {
      await database.kysely.deleteFrom("bundles").where("bundle_id", "=", bundleId).execute();
    },
  });
  let nowMs = 1_000;
  const options = { home, records, bundleBytesMax, bundlesBytesMax, shared: shared?.(home) ?? null };
  const reopen = () => Bundles.open({ ...options, nowMs: () => nowMs++ });
  return {
    folder,
    home,
    records,
    bundles: await reopen(),
    reopen,
    async [Symbol.asyncDispose]() {
      await database.close();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

export async function writeFiles(folder: string, files: Files, mode = 0o644): Promise<string> {
  for (const [path, content] of Object.entries(files)) {
    const file = join(folder, path);
    await mkdir(dirname(file), { recursive: true });
    await writeFile(file, content);
    await chmod(file, mode);
  }
  return folder;
}

/** The problems with which `work` is refused, as path and code. */
export async function refusals(work: Promise<unknown>): Promise<readonly string[]> {
  try {
    await work;
    return ["not refused"];
  } catch (error) {
    if (!(error instanceof BundleProblem)) throw error;
    return error.problems.map(({ path, code }) => `${path} ${code}`);
  }
}

/** Bytes that hardly compress, the same each time. */
export function noise(sizeBytes: number): Buffer {
  const bytes = Buffer.alloc(sizeBytes);
  let state = 1;
  for (let at = 0; at < sizeBytes; at++) {
    state = (state * 48_271) % 0x7fffffff;
    bytes[at] = state >> 8;
  }
  return bytes;
}

export interface ZipEntry {
  readonly name: string | Uint8Array;
  readonly content?: string | Uint8Array;
  readonly isStored?: boolean;
  /** Unix mode with file type; 0 as a zip from Windows has it. */
  readonly mode?: number;
  readonly flags?: number;
  readonly method?: number;
  /** What the directory claims in place of the truth. */
  readonly claimedSizeBytes?: number;
  readonly claimedCrc32?: number;
  /** The place of another entry, which the directory gives for this one too. */
  readonly samePlaceAs?: number;
  /** What the entry's own header says in place of what the directory says. */
  readonly own?: {
    readonly name?: string;
    readonly method?: number;
    readonly crc32?: number;
    readonly packedBytes?: number;
    readonly sizeBytes?: number;
    readonly extra?: Buffer;
  };
}

const UTF8_NAMES = 0x800;

/** Makes a zip by hand, so that it may be as wrong as it likes. */
export function makeZip(entries: readonly ZipEntry[]): Buffer {
  const bodies: Buffer[] = [];
  const directory: Buffer[] = [];
  const offsets: number[] = [];
  let offset = 0;
  for (const entry of entries) {
    const name = Buffer.from(entry.name as string);
    const content = Buffer.from((entry.content ?? "") as string);
    const body = entry.isStored ? content : deflateRawSync(content);
    const fixed = Buffer.alloc(26);
    fixed.writeUInt16LE(20, 0);
    fixed.writeUInt16LE(UTF8_NAMES | (entry.flags ?? 0), 2);
    fixed.writeUInt16LE(entry.method ?? (entry.isStored ? 0 : 8), 4);
    fixed.writeUInt32LE(entry.claimedCrc32 ?? crc32(content), 10);
    fixed.writeUInt32LE(body.length, 14);
    fixed.writeUInt32LE(entry.claimedSizeBytes ?? content.length, 18);
    fixed.writeUInt16LE(name.length, 22);
    const central = Buffer.alloc(14);
    central.writeUInt32LE(((entry.mode ?? 0) << 16) >>> 0, 6);
    central.writeUInt32LE(offsets[entry.samePlaceAs ?? -1] ?? offset, 10);
    const local = Buffer.concat([Buffer.from("PK\x03\x04"), ...ownHeader(fixed, name, entry.own), body]);
    directory.push(Buffer.from("PK\x01\x02\x14\x03"), fixed, central, name);
    bodies.push(local);
    offsets.push(offset);
    offset += local.length;
  }
  const central = Buffer.concat(directory);
  const end = Buffer.alloc(18);
  end.writeUInt16LE(entries.length, 4);
  end.writeUInt16LE(entries.length, 6);
  end.writeUInt32LE(central.length, 8);
  end.writeUInt32LE(offset, 12);
  return Buffer.concat([...bodies, central, Buffer.from("PK\x05\x06"), end]);
}

function ownHeader(fixed: Buffer, name: Buffer, own: ZipEntry["own"] = {}): Buffer[] {
  const header = Buffer.from(fixed);
  const ownName = own.name === undefined ? name : Buffer.from(own.name);
  const extra = own.extra ?? Buffer.alloc(0);
  if (own.method !== undefined) header.writeUInt16LE(own.method, 4);
  if (own.crc32 !== undefined) header.writeUInt32LE(own.crc32, 10);
  if (own.packedBytes !== undefined) header.writeUInt32LE(own.packedBytes, 14);
  if (own.sizeBytes !== undefined) header.writeUInt32LE(own.sizeBytes, 18);
  header.writeUInt16LE(ownName.length, 22);
  header.writeUInt16LE(extra.length, 24);
  return [header, ownName, extra];
}

export function zipOf(files: Files, more: readonly ZipEntry[] = []): Buffer {
  const entries = Object.entries(files).map(([name, content]) => ({ name, content, mode: 0o100644 }));
  return makeZip([...entries, ...more]);
}
