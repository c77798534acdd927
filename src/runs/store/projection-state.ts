// state.json: how far a run's history files go, and what it consists of. It is written after the files that it
// speaks of, in one step; what lies beyond it on disk is not there.

import { readFile, rename, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { isObject, type JsonObject } from "../../engine/json.ts";
import { type SeriesName, seriesNames } from "./history-names.ts";
import type { FilePart } from "./series-file.ts";

/** To be raised with every change of what the files look like: those of another version are made again. */
const VERSION = 2;
const FILE = "state.json";

export interface ProjectionState {
  /** The last event that the files know of. */
  readonly throughSeq: number;
  /** Whether the run has ended and all is there: nothing changes any more. */
  readonly isComplete: boolean;
  /** Parts of each series, oldest first. */
  readonly series: Readonly<Record<SeriesName, readonly FilePart[]>>;
  /** Hex, of timeline.json. */
  readonly timelineSha256: string;
}

/** @returns null when there is none, or this version cannot read it */
export async function readState(folder: string, runId: string): Promise<ProjectionState | null> {
  try {
    const found: unknown = JSON.parse(await readFile(join(folder, FILE), "utf8"));
    if (!isObject(found as JsonObject)) return null;
    const { version, run_id: ofRun, ...state } = found as JsonObject;
    if (version !== VERSION || ofRun !== runId) return null;
    return isState(state) ? (state as unknown as ProjectionState) : null;
  } catch (error) {
    // Missing, or half of it after a power cut. Anything else, such as a lost right to read it, is for the operator.
    if (error instanceof SyntaxError || isMissing(error)) return null;
    throw error;
  }
}

/** Whether what was read has the form that is written; its numbers and hashes are checked against the files. */
function isState({ throughSeq, isComplete, series, timelineSha256 }: JsonObject): boolean {
  return (
    Number.isSafeInteger(throughSeq) &&
    typeof isComplete === "boolean" &&
    typeof timelineSha256 === "string" &&
    isObject(series) &&
    seriesNames.every((name) => isParts(series[name]))
  );
}

function isParts(parts: unknown): boolean {
  return Array.isArray(parts) && parts.every((part) => isObject(part) && Number.isSafeInteger(part.size));
}

export async function writeState(folder: string, runId: string, state: ProjectionState): Promise<void> {
  const path = join(folder, FILE);
  const text = JSON.stringify({ version: VERSION, run_id: runId, ...state });
  await writeFile(`${path}.new`, text, { mode: 0o600 });
  await rename(`${path}.new`, path);
}

/** Whether a file is as it was written, as far as that can be told without reading it. */
export async function isIntact(path: string, { size, mtimeMs }: FilePart): Promise<boolean> {
  if (size === 0) return true;
  try {
    const found = await stat(path);
    return mtimeMs === null ? found.size >= size : found.size === size && found.mtimeMs === mtimeMs;
  } catch (error) {
    if (isMissing(error)) return false;
    throw error;
  }
}

export function isMissing(error: unknown): boolean {
  const { code } = error as NodeJS.ErrnoException;
  return code === "ENOENT" || code === "ENOTDIR";
}
