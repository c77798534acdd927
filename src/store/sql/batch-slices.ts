// A large batch in slices: what is written at once is bounded, so that everything else has its turn in between. The
// transaction stays open meanwhile, so no reader sees a part of it.

import type { JobChanges } from "../../engine/journal.ts";

/** Rows that are written before everything else has its turn: a few milliseconds. */
export const ROWS_AT_ONCE = 300;
/** Characters of one event segment; a batch with more is written as several. Twice as many are a string of its own pages (text-stream.ts). */
const SEGMENT_CHARS_MAX = 64 * 1024;

const LISTS = [
  "agents",
  "deadLetters",
  "deadLettersRetried",
  "humanRequests",
  "artifacts",
  "consumed",
  "messages",
  "itemsCleared",
  "items",
  "tasksRemoved",
  "tasks",
] as const satisfies readonly (keyof JobChanges)[];

const NO_ROWS: Pick<JobChanges, (typeof LISTS)[number] | "eventLines"> = {
  eventLines: [],
  agents: [],
  deadLetters: [],
  deadLettersRetried: [],
  humanRequests: [],
  artifacts: [],
  consumed: [],
  messages: [],
  itemsCleared: [],
  items: [],
  tasksRemoved: [],
  tasks: [],
};

/** Event lines that take about as long as a row: they are written as one text. */
const LINES_PER_ROW = 8;

/** About how many rows a job's changes write or remove, messages that were consumed left out. */
export function rowsOf(changes: JobChanges): number {
  // The job's own row, its sources and a segment of events.
  const fewest = 3 + Math.floor(changes.eventLines.length / LINES_PER_ROW);
  return LISTS.reduce((rows, list) => rows + changes[list].length, fewest);
}

/** The changes one after the other, each with a bounded number of rows: written in this order, they are the whole. */
export function* slicesOf(changes: JobChanges): Generator<JobChanges> {
  const { eventLines, firstEventSeq } = changes;
  for (const { from, to } of segmentsOf(eventLines)) {
    const lines = eventLines.slice(from, to);
    yield { ...changes, ...NO_ROWS, firstEventSeq: firstEventSeq + from, eventLines: lines };
  }
  for (const list of LISTS) {
    const rows = changes[list];
    for (let from = 0; from < rows.length; from += ROWS_AT_ONCE) {
      yield { ...changes, ...NO_ROWS, [list]: rows.slice(from, from + ROWS_AT_ONCE) };
    }
  }
}

/** How event lines are cut into segments, and how many characters each has. */
export function* segmentsOf(
  lines: readonly string[],
): Generator<{ readonly from: number; readonly to: number; readonly chars: number }> {
  let from = 0;
  while (from < lines.length) {
    let to = from + 1;
    let chars = lines[from]!.length;
    while (to < lines.length && chars + lines[to]!.length <= SEGMENT_CHARS_MAX) {
      chars += lines[to++]!.length;
    }
    yield { from, to, chars };
    from = to;
  }
}
