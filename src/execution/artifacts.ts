// Artifacts: what a worker left in its output folder, kept as blobs.
//
// F1. Only regular files are kept; links and special files are named in a warning, never followed.
// F2. Bounded in number and bytes; what is beyond is named in a warning.

import type { Stats } from "node:fs";
import { lstat, opendir } from "node:fs/promises";
import { basename, extname, join } from "node:path";
import type { DeclaredOutput } from "../engine/graph.ts";
import { limits } from "../engine/limits.ts";
import type { ArtifactRecord } from "../engine/task-port.ts";
import type { NamedOutput } from "./result.ts";
import { isEmptyFolder } from "./small-folder.ts";

/** Where files become blobs. */
export interface BlobStore {
  put(path: string): Promise<{ readonly sha256: string; readonly size: number }>;
}

export interface Collecting {
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
  if (isEmptyFolder(given.folder)) return [];
  const warn = bounded(given.warn);
  const outputs = new Map(given.outputs.map((output) => [nameOf(output), output]));
  const artifacts: ArtifactRecord[] = [];
  const keep = async (files: readonly FoundFile[]) => {
    const results = await Promise.allSettled(files.map(({ path }) => given.blobs.put(path)));
    for (const [i, result] of results.entries()) {
      if (result.status === "rejected") throw result.reason;
      artifacts.push(recordOf(files[i]?.name ?? "", result.value, outputs, given));
    }
  };
  let batch: FoundFile[] = [];
  let found = 0;
  let bytesLeft = limits.artifactBytesMax;
  for await (const { name, path, stats } of regularFiles(given.folder, warn)) {
    if (found === limits.artifactsPerAttemptMax) {
      warn(
        `More than ${limits.artifactsPerAttemptMax} files are in SVC_OUTPUT_DIR; "${name}" and others are not kept.`,
      );
      break;
    }
    if (stats.size > bytesLeft) {
      warn(
        `"${name}" has ${stats.size} bytes, more than an attempt's artifacts may still have; it is not kept.`,
      );
      continue;
    }
    bytesLeft -= stats.size;
    found++;
    batch.push({ name, path, stats });
    if (batch.length < PUTS_AT_ONCE) continue;
    await keep(batch);
    batch = [];
  }
  await keep(batch);
  return artifacts;
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

interface FoundFile {
  readonly name: string;
  readonly path: string;
  readonly stats: Stats;
}

/** Walks a folder in the order of its names. */
async function* regularFiles(root: string, warn: (message: string) => void): AsyncGenerator<FoundFile> {
  const folders = [""];
  for (let folder = folders.shift(); folder !== undefined; folder = folders.shift()) {
    for (const entry of await namesIn(join(root, folder), warn)) {
      const name = folder === "" ? entry : `${folder}/${entry}`;
      const path = join(root, name);
      const stats = await lstat(path).catch(() => null);
      if (stats === null) warn(`"${name}" in SVC_OUTPUT_DIR cannot be read; is its name valid UTF-8?`);
      else if (stats.isDirectory()) {
        if (folders.length < limits.artifactsPerAttemptMax) folders.push(name);
        else warn(`SVC_OUTPUT_DIR has too many folders; "${name}" is not looked into.`);
      } else if (stats.isFile()) yield { name, path, stats };
      else
        warn(
          `"${name}" in SVC_OUTPUT_DIR is ${stats.isSymbolicLink() ? "a symlink" : "a special file"}; only regular files are kept.`,
        );
    }
  }
}

async function namesIn(folder: string, warn: (message: string) => void): Promise<string[]> {
  const names: string[] = [];
  try {
    // One name more than may be kept: enough to notice, and bounded whatever the folder holds.
    for await (const { name } of await opendir(folder)) {
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

/** An output's path as artifacts are named: below SVC_OUTPUT_DIR, without a leading "./". */
export function nameOf(output: { readonly path: string }): string {
  return output.path.replace(/^(?:\.?\/)+/, "");
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
