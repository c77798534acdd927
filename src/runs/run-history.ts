// Pages of a run's history, seen through a view that may leave most events out; forwards, or from the newest back.
//
// - A page costs a bounded amount of reading, whatever the view shows: one that finds little ends early, with the
//   place where the next one continues.
// - Pages joined are the whole view, in order, each event once.
// - Reading holds the thread for a slice at a time.

import { Slices } from "../lib/slices.ts";
import type { EventPage } from "./job-records.ts";

/** Committed events behind `afterSeq`; empty at the end of what is committed. */
export type ReadEvents = (afterSeq: number) => Promise<EventPage>;

/** Committed events right before `beforeSeq`, in order; empty before the first one. */
export type ReadEventsBefore = (beforeSeq: number) => Promise<EventPage>;

/** The event as a view shows it, or null when it leaves it out. */
export type EventView<Item> = (seq: number, line: string) => Item | null;

export interface HistoryRequest<Item> {
  readonly afterSeq: number;
  /** Where the history is taken to end: the first event that does not belong to it. Absent: where it ends. */
  readonly endSeq?: number | undefined;
  /** Most items of the page; at least 1. */
  readonly limit: number;
  readonly view: EventView<Item>;
}

export interface HistoryPage<Item> {
  readonly items: readonly Item[];
  /** The event behind which the next page begins; null when nothing is left at this moment. */
  readonly nextAfterSeq: number | null;
  /** The event up to which this page and those before it have looked at everything. */
  readonly seenSeq: number;
}

/** What one page looks at, at most: events, and characters of their lines. */
const SCANNED_EVENTS_MAX = 20_000;
const SCANNED_CHARS_MAX = 8 * 1024 * 1024;

export async function readHistory<Item>(
  read: ReadEvents,
  { afterSeq, endSeq = Number.MAX_SAFE_INTEGER, limit, view }: HistoryRequest<Item>,
): Promise<HistoryPage<Item>> {
  const scan = { from: afterSeq, stop: endSeq, step: 1, limit, view } as const;
  const { items, next, reached } = await scanned(read, scan);
  return { items, nextAfterSeq: next, seenSeq: next ?? reached };
}

export interface NewestRequest<Item> {
  /** The event before which to begin; null: at the newest one. */
  readonly beforeSeq: number | null;
  /** Where the history is taken to begin: the first event that belongs to it. */
  readonly fromSeq?: number | undefined;
  /** Most items of the page; at least 1. */
  readonly limit: number;
  readonly view: EventView<Item>;
}

export interface NewestPage<Item> {
  /** Newest first. */
  readonly items: readonly Item[];
  /** The event before which the next page, of older ones, begins; null when nothing is left. */
  readonly nextBeforeSeq: number | null;
  /** The newest event that was looked at; 0 without any. */
  readonly newestSeq: number;
}

/** The same from the newest event back. */
export async function readNewest<Item>(
  readBefore: ReadEventsBefore,
  { beforeSeq, fromSeq = 1, limit, view }: NewestRequest<Item>,
): Promise<NewestPage<Item>> {
  let newestSeq = 0;
  const read = async (seq: number) => {
    const page = await readBefore(seq);
    if (newestSeq === 0 && page.lines.length > 0) newestSeq = page.firstSeq + page.lines.length - 1;
    return page;
  };
  const from = beforeSeq ?? Number.MAX_SAFE_INTEGER;
  const scan = { from, stop: fromSeq - 1, step: -1, limit, view } as const;
  const { items, next } = await scanned(read, scan);
  return { items, nextBeforeSeq: next, newestSeq };
}

interface Scan<Item> {
  /** The event behind which it begins, seen in its direction. */
  readonly from: number;
  /** 1: forwards; -1: backwards. */
  readonly step: 1 | -1;
  /** The first event, in its direction, that does not belong to the history any more. */
  readonly stop: number;
  readonly limit: number;
  readonly view: EventView<Item>;
}

/**
 * @param read the events behind one, in the direction of the scan; each page in the order of the history
 * @returns the page's items; the event behind which the next page begins, or null; the last event that was looked at
 */
async function scanned<Item>(
  read: (seq: number) => Promise<EventPage>,
  { from, stop, step, limit, view }: Scan<Item>,
) {
  const slices = new Slices();
  const items: Item[] = [];
  let seq = from;
  let lastShownSeq = from;
  let events = 0;
  let chars = 0;
  const endAt = (next: number | null) => ({ items, next, reached: seq });
  for (;;) {
    const { firstSeq, lines } = await read(seq);
    if (lines.length === 0) return endAt(null);
    const first = step === 1 ? 0 : lines.length - 1;
    for (let i = first; i >= 0 && i < lines.length; i += step) {
      const line = lines[i]!;
      const at = firstSeq + i;
      if ((at - stop) * step >= 0) return endAt(null);
      if (events >= SCANNED_EVENTS_MAX || chars >= SCANNED_CHARS_MAX) return endAt(seq);
      if (slices.isOver) await slices.breathe();
      const item = view(at, line);
      // One more than fits is there: so there is a next page, and it begins behind what was shown.
      if (item !== null && items.length === limit) return endAt(lastShownSeq);
      seq = at;
      events++;
      chars += line.length;
      if (item === null) continue;
      items.push(item);
      lastShownSeq = seq;
    }
  }
}
