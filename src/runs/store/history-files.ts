// A run's history files as artifacts: what its projection has on disk, and documents that are made when asked for.

import { encoded } from "./chunks.ts";
import {
  comparePlaces,
  documentFile,
  documentId,
  historyPlace,
  type SeriesName,
  segmentFile,
  segmentId,
  seriesFile,
  seriesId,
  seriesNames,
  TIMELINE_JSON_FILE,
  TIMELINE_JSON_ID,
} from "./history-names.ts";
import { fileBytes, memoryBytes, type OpenBytes, timelineBytes } from "./open-bytes.ts";
import type { Projection } from "./projection.ts";
import type { RunDocument, RunSource } from "./run-source.ts";
import type { StoredArtifact } from "./stored-artifact.ts";

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
  return comparePlaces(historyPlace(a.artifactId), historyPlace(b.artifactId));
}

function newestPart(projection: Projection, name: SeriesName): FileOf {
  const parts = projection.partsOf(name);
  const { size, sha256 } = parts.at(-1)!;
  const path = projection.pathOf(name, parts.length);
  const mayGrow = !projection.isComplete;
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
  const lines = { path: projection.pathOf("timeline", 1), size, mayGrow: !projection.isComplete };
  return {
    artifactId: TIMELINE_JSON_ID,
    name: TIMELINE_JSON_FILE,
    contentType: JSON_TYPE,
    size: timeline.sizeOf(size),
    sha256: projection.timelineSha256,
    open: timelineBytes(timeline, lines),
  };
}

/** @param projection remembers the size of documents that do not change any more; null: nothing is remembered */
export async function documentFiles(
  projection: Projection | null,
  source: RunSource,
): Promise<readonly StoredArtifact[]> {
  const files = await Promise.all(
    source.documents.map(async (document) => {
      const known = projection?.documents.get(document.name);
      if (known !== undefined) return known && rememberedFile(document, known);
      const file = await documentFileOf(document);
      const isFinal = source.isEnded || (document.isFixed && file !== null);
      if (isFinal) projection?.documents.set(document.name, file && { size: file.size, sha256: file.sha256 });
      return file;
    }),
  );
  return files.filter((file) => file !== null).map((file) => artifactOf(source, file));
}

const namesOf = ({ name }: RunDocument) => ({
  artifactId: documentId(name),
  name: documentFile(name),
  contentType: JSON_TYPE,
});

async function documentFileOf(document: RunDocument): Promise<FileOf | null> {
  const text = await document.text();
  if (text === null) return null;
  const { chunks, size, sha256 } = await encoded(text);
  return { ...namesOf(document), size, sha256, open: memoryBytes(chunks) };
}

/** A document of this size and hash, whose text is read when it is opened. */
function rememberedFile(document: RunDocument, known: Pick<FileOf, "size" | "sha256">): FileOf {
  const open: OpenBytes = async (first, last) => {
    const file = await documentFileOf(document);
    if (file?.sha256 === known.sha256) return file.open(first, last);
    throw Object.assign(new Error("The document was removed."), { code: "ENOENT" });
  };
  return { ...namesOf(document), ...known, open };
}
