// Pages of a run's history, seen through a view that may leave most events out.
//
// H1. A page costs a bounded amount of reading, whatever the view shows: one that finds little ends early, with the
//     place where the next one goes on.
// H2. Pages joined are the whole view, in order, each event once.

import type { EventPage } from "./job-records.ts";

/** Committed events behind `afterSeq`; empty at the end of what is committed. */
export type ReadEvents = (afterSeq: number) => Promise<EventPage>;

export interface HistoryRequest<Item> {
  readonly afterSeq: number;
  /** Most items of the page; at least 1. */
  readonly limit: number;
  /** The event as this view shows it, or null when it leaves it out. */
  readonly view: (seq: number, line: string) => Item | null;
}

export interface HistoryPage<Item> {
  readonly items: readonly Item[];
  /** The event behind which the next page begins; null when nothing is left at this moment. */
  readonly nextAfterSeq: number | null;
}

/** What one page looks at, at most: events, and characters of their lines. */
const SCANNED_EVENTS_MAX = 20_000;
const SCANNED_CHARS_MAX = 8 * 1024 * 1024;

export async function readHistory<Item>(
  read: ReadEvents,
  { afterSeq, limit, view }: HistoryRequest<Item>,
): Promise<HistoryPage<Item>> {
  const items: Item[] = [];
  let seq = afterSeq;
  /** The last event that this page has to do with. */
  let lastShownSeq = afterSeq;
  let scannedChars = 0;
  for (;;) {
    const { lines } = await read(seq);
    if (lines.length === 0) return { items, nextAfterSeq: null };
    for (const line of lines) {
      if (seq - afterSeq >= SCANNED_EVENTS_MAX || scannedChars >= SCANNED_CHARS_MAX) {
        return { items, nextAfterSeq: seq };
      }
      const item = view(seq + 1, line);
      // One more than fits is there: so there is a next page, and it begins behind what was shown.
      if (item !== null && items.length === limit) return { items, nextAfterSeq: lastShownSeq };
      seq++;
      scannedChars += line.length;
      if (item === null) continue;
      items.push(item);
      lastShownSeq = seq;
    }
  }
}
