// A run's evidence as artifacts: what its projection has on disk, and documents that are made when asked for.

import {
  comparePlaces,
  documentFile,
  documentId,
  evidencePlace,
  type SeriesName,
  segmentFile,
  segmentId,
  seriesFile,
  seriesId,
  seriesNames,
  TIMELINE_JSON_FILE,
  TIMELINE_JSON_ID,
} from "./evidence-names.ts";
import { fileBytes, memoryBytes, type OpenBytes, timelineBytes } from "./open-bytes.ts";
import type { Projection } from "./projection.ts";
import type { RunDocument, RunSource } from "./run-source.ts";
import type { StoredArtifact } from "./stored-artifact.ts";
import { encoded } from "./text-chunks.ts";

const JSON_TYPE = "application/json";
const LINES_TYPE = "application/x-ndjson";

interface FileOf {
  readonly artifactId: string;
  readonly name: string;
  readonly contentType: string;
  readonly size: number;
  readonly sha256: string;
  readonly open: OpenBytes;
}

function artifactOf({ createdAtMs }: RunSource, file: FileOf): StoredArtifact {
  return { ...file, kind: "evidence", title: null, primary: false, createdAtMs, agentId: null };
}

/** In the order in which they are listed. */
export async function projectedFiles(
  projection: Projection,
  source: RunSource,
): Promise<readonly StoredArtifact[]> {
  const series = seriesNames.flatMap((name) => [
    newestPart(projection, name),
    ...fullParts(projection, name),
  ]);
  const files = [...series, timelineJson(projection)].map((file) => artifactOf(source, file));
  return [...files, ...(await documentFiles(projection, source))].sort(inListOrder);
}

export function inListOrder(a: StoredArtifact, b: StoredArtifact): number {
  return comparePlaces(evidencePlace(a.artifactId), evidencePlace(b.artifactId));
}

function newestPart(projection: Projection, name: SeriesName): FileOf {
  const parts = projection.partsOf(name);
  const { size, sha256 } = parts.at(-1)!;
  const path = projection.pathOf(name, parts.length);
  const mayGrow = !projection.isSealed;
  return {
    artifactId: seriesId(name),
    name: seriesFile(name),
    contentType: LINES_TYPE,
    size,
    sha256,
    open: fileBytes({ path, size, mayGrow }),
  };
}

function fullParts(projection: Projection, name: SeriesName): readonly FileOf[] {
  return projection
    .partsOf(name)
    .slice(0, -1)
    .map(({ size, sha256 }, i) => ({
      artifactId: segmentId(name, i + 1),
      name: segmentFile(name, i + 1),
      contentType: LINES_TYPE,
      size,
      sha256,
      open: fileBytes({ path: projection.pathOf(name, i + 1), size }),
    }));
}

function timelineJson(projection: Projection): FileOf {
  const { timeline } = projection;
  const size = projection.partsOf("timeline").at(-1)!.size;
  const lines = { path: projection.pathOf("timeline", 1), size, mayGrow: !projection.isSealed };
  return {
    artifactId: TIMELINE_JSON_ID,
    name: TIMELINE_JSON_FILE,
    contentType: JSON_TYPE,
    size: timeline.sizeOf(size),
    sha256: projection.timelineSha256,
    open: timelineBytes(timeline, lines),
  };
}

/** @param projection what is kept of the run; null when nothing is known of it yet */
export async function documentFiles(
  projection: Projection | null,
  source: RunSource,
): Promise<readonly StoredArtifact[]> {
  const files = await Promise.all(source.documents.map((document) => documentFileOf(projection, document)));
  return files.filter((file) => file !== null).map((file) => artifactOf(source, file));
}

async function documentFileOf(projection: Projection | null, document: RunDocument): Promise<FileOf | null> {
  const { name } = document;
  const named = { artifactId: documentId(name), name: documentFile(name), contentType: JSON_TYPE };
  const kept = projection?.documentOf(name) ?? null;
  if (projection !== null && kept !== null) {
    const { size, sha256 } = kept;
    return { ...named, size, sha256, open: fileBytes({ path: projection.documentPath(name), size }) };
  }
  // All that a run which has ended has to say is kept.
  if (projection?.isSealed) return null;
  const text = await document.text();
  if (text === null) return null;
  const { chunks, size, sha256 } = await encoded(text);
  return { ...named, size, sha256, open: memoryBytes(chunks) };
}
