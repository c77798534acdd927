// What a run's history files are called: stable ids, file names, and the order in which they are listed (spec "Run artifact
// entry", CONTRACTS §3 "Artifacts").

/** Views of the history as lines of JSON, one for each event that the view shows. */
export const seriesNames = ["events", "logs", "errors", "timeline"] as const;
export type SeriesName = (typeof seriesNames)[number];

/** Small documents, made of the run's rows. */
export const documentNames = ["run", "config", "inputs", "result", "observability_summary"] as const;
export type DocumentName = (typeof documentNames)[number];

/** The file that a user came for, under a name of its own. */
export const FINAL_ARTIFACT_ID = "final_artifact";
export const TIMELINE_JSON_ID = "timeline_json";

export const documentId = (name: DocumentName): string =>
  name === "observability_summary" ? "observability_summary_json" : name;
export const seriesId = (name: SeriesName): string => `${name}_jsonl`;
/** @param number from 1, the oldest */
export const segmentId = (name: SeriesName, number: number): string => `${name}_jsonl_${digits(number)}`;

export const documentFile = (name: DocumentName): string => `${name}.json`;
export const seriesFile = (name: SeriesName): string => `${name}.jsonl`;
export const segmentFile = (name: SeriesName, number: number): string => `${name}.${digits(number)}.jsonl`;
export const TIMELINE_JSON_FILE = "timeline.json";

const digits = (number: number) => String(number).padStart(3, "0");

/** Those that a run has, or may come to have, in the order in which they are listed. */
const stableIds: readonly string[] = [
  ...(["run", "config", "inputs", "result"] as const).map(documentId),
  FINAL_ARTIFACT_ID,
  documentId("observability_summary"),
  ...seriesNames.map(seriesId),
  TIMELINE_JSON_ID,
];

const SEGMENT_ID = /^(events|logs|errors)_jsonl_(\d{3,9})$/;

/**
 * The place of an id in the order of a list, as a sort key that stays the same: stable ids, then segments by series,
 * oldest first. Empty for the ids of other artifacts.
 */
export function historyPlace(artifactId: string): readonly number[] {
  const stable = stableIds.indexOf(artifactId);
  if (stable >= 0) return [stable];
  const match = SEGMENT_ID.exec(artifactId);
  if (match === null) return [];
  const series = seriesNames.indexOf(match[1] as SeriesName);
  return [stableIds.length + series, Number(match[2])];
}

/** Below 0 when the first place comes first. */
export function comparePlaces(a: readonly number[], b: readonly number[]): number {
  const [first = -1, segment = 0] = a;
  const [otherFirst = -1, otherSegment = 0] = b;
  return first - otherFirst || segment - otherSegment;
}

export function documentOf(artifactId: string): DocumentName | null {
  return documentNames.find((name) => documentId(name) === artifactId) ?? null;
}

/** Whether this id is, or could be, that of a history file; artifacts of workers have other ones. */
export function isHistoryFileId(artifactId: string): boolean {
  return historyPlace(artifactId).length > 0;
}
