// Artifacts: what a worker left in its output folder, kept as blobs.
//
// - Only regular files below the folder are kept. Symlinks, the folder itself included, and special files are named
//   in a warning, never followed, also when one is put in place while files are taken.
// - Bounded in number and bytes; what is beyond is named in a warning.

import { lstat, opendir } from "node:fs/promises";
import { basename, dirname, extname } from "node:path";
import { type DeclaredOutput, outputName } from "../../engine/graph.ts";
import { limits } from "../../engine/limits.ts";
import type { ArtifactRecord } from "../../engine/task-port.ts";
import { forEachConcurrent } from "../../lib/async.ts";
import { type OpenFolder, SymlinkInPath } from "../../lib/open-folder.ts";
import { openBelow } from "../runner/paths.ts";
import type { NamedOutput } from "./result.ts";

/** Where files become blobs. */
export interface BlobStore {
  put(path: string): Promise<{ readonly sha256: string; readonly size: number }>;
}

export interface Collecting {
  /** SVC_HOME; it may be reached through symlinks. */
  readonly home: string;
  /** The output folder, below it. */
  readonly folder: string;
  readonly agentId: string;
  readonly blobs: BlobStore;
  readonly newId: () => string;
  readonly nowMs: number;
  /** The outputs of the graph, then those that the worker's result names; the later ones win. */
  readonly outputs: readonly (DeclaredOutput | NamedOutput)[];
  readonly warn: (message: string) => void;
}

const WARNINGS_MAX = 20;
/** Each waits for the disk; together they wait less. */
const PUTS_AT_ONCE = 16;

/** Takes all files out of the output folder. @throws the system's error when a blob cannot be written */
export async function collectArtifacts(given: Collecting): Promise<ArtifactRecord[]> {
  const warn = bounded(given.warn);
  using root = openOutput(given, warn);
  if (root === null) return [];
  const outputs = new Map(given.outputs.map((output) => [outputName(output), output]));
  const files = await filesIn(root, warn);
  const blobs = new Map<string, Awaited<ReturnType<BlobStore["put"]>>>();
  await forEachConcurrent(files, PUTS_AT_ONCE, async (name) => {
    // Through a folder that is held open, so that no symlink can take its place.
    using folder = opened(root, dirname(name), warn);
    if (folder !== null) blobs.set(name, await given.blobs.put(folder.path(basename(name))));
  });
  // Ids follow the order of the names, however long each file took.
  return files.flatMap((name) => {
    const blob = blobs.get(name);
    return blob === undefined ? [] : [recordOf(name, blob, outputs, given)];
  });
}

function openOutput({ home, folder }: Collecting, warn: (message: string) => void): OpenFolder | null {
  try {
    return openBelow(home, folder);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    const why = error instanceof SymlinkInPath ? "it is, or is reached through, a symlink" : code;
    warn(`SVC_OUTPUT_DIR cannot be read (${why}); none of its files is kept.`);
    return null;
  }
}

function recordOf(
  name: string,
  blob: { readonly sha256: string; readonly size: number },
  outputs: ReadonlyMap<string, DeclaredOutput | NamedOutput>,
  given: Collecting,
): ArtifactRecord {
  const output = outputs.get(name);
  return {
    artifactId: `art_${given.newId()}`,
    agentId: given.agentId,
    name,
    kind: output !== undefined || basename(name).startsWith("final_artifact.") ? "output" : "artifact",
    title: output?.title ?? null,
    primary: output?.primary ?? false,
    size: blob.size,
    sha256: blob.sha256,
    contentType: contentTypeOf(name),
    createdAtMs: given.nowMs,
  };
}

/** The regular files below a folder that are to be kept, at most so many. */
async function filesIn(root: OpenFolder, warn: (message: string) => void): Promise<readonly string[]> {
  const { artifactsPerAttemptMax: filesMax } = limits;
  const files: string[] = [];
  let bytesLeft: number = limits.artifactBytesMax;
  const ways = ["."];
  for (const way of ways) {
    using folder = opened(root, way, warn);
    if (folder === null) continue;
    for (const entry of await namesIn(folder, warn)) {
      const name = way === "." ? entry : `${way}/${entry}`;
      const stats = await lstat(folder.path(entry)).catch(() => null);
      if (stats === null) warn(`"${name}" in SVC_OUTPUT_DIR cannot be read; is its name valid UTF-8?`);
      else if (stats.isDirectory()) {
        if (ways.length < filesMax) ways.push(name);
        else warn(`SVC_OUTPUT_DIR has too many folders; "${name}" is not looked into.`);
      } else if (!stats.isFile()) {
        const what = stats.isSymbolicLink() ? "a symlink" : "a special file";
        warn(`"${name}" in SVC_OUTPUT_DIR is ${what}; only regular files are kept.`);
      } else if (files.length === filesMax) {
        warn(`More than ${filesMax} files are in SVC_OUTPUT_DIR; "${name}" and others are not kept.`);
        return files;
      } else if (stats.size > bytesLeft) {
        warn(
          `"${name}" has ${stats.size} bytes, more than an attempt's artifacts may still have; it is not kept.`,
        );
      } else {
        bytesLeft -= stats.size;
        files.push(name);
      }
    }
  }
  return files;
}

function opened(root: OpenFolder, way: string, warn: (message: string) => void): OpenFolder | null {
  try {
    return root.folder(way);
  } catch (error) {
    if (error instanceof SymlinkInPath)
      warn(`"${way}" in SVC_OUTPUT_DIR is a symlink; only regular files are kept.`);
    else warn(`A folder in SVC_OUTPUT_DIR cannot be read (${(error as NodeJS.ErrnoException).code}).`);
    return null;
  }
}

async function namesIn(folder: OpenFolder, warn: (message: string) => void): Promise<string[]> {
  const names: string[] = [];
  try {
    // One name more than may be kept: enough to notice, and bounded whatever the folder holds.
    for await (const { name } of await opendir(folder.path("."))) {
      names.push(name);
      if (names.length > limits.artifactsPerAttemptMax) break;
    }
  } catch (error) {
    warn(`A folder in SVC_OUTPUT_DIR cannot be read (${(error as NodeJS.ErrnoException).code}).`);
  }
  return names.sort();
}

function bounded(warn: (message: string) => void): (message: string) => void {
  let left = WARNINGS_MAX;
  return (message) => {
    if (left-- > 0) warn(message);
  };
}

const CONTENT_TYPES: Readonly<Record<string, string>> = {
  ".csv": "text/csv; charset=utf-8",
  ".gif": "image/gif",
  ".gz": "application/gzip",
  ".htm": "text/html; charset=utf-8",
  ".html": "text/html; charset=utf-8",
  ".jpeg": "image/jpeg",
  ".jpg": "image/jpeg",
  ".json": "application/json",
  ".jsonl": "application/x-ndjson",
  ".log": "text/plain; charset=utf-8",
  ".md": "text/markdown; charset=utf-8",
  ".mp3": "audio/mpeg",
  ".mp4": "video/mp4",
  ".pdf": "application/pdf",
  ".png": "image/png",
  ".svg": "image/svg+xml",
  ".tar": "application/x-tar",
  ".txt": "text/plain; charset=utf-8",
  ".wav": "audio/wav",
  ".webp": "image/webp",
  ".xml": "application/xml",
  ".yaml": "application/yaml",
  ".yml": "application/yaml",
  ".zip": "application/zip",
};

/** The content type by a file name's extension. */
export function contentTypeOf(name: string): string {
  return CONTENT_TYPES[extname(name).toLowerCase()] ?? "application/octet-stream";
}
