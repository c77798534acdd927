// Pages of a run's log, for both APIs: filtered, in either order, and found by time without reading what is before it.

import { type LogFilter, logView } from "./history/log-filter.ts";
import type { RunContext } from "./history/run-context.ts";
import type { PlaceOfTime } from "./job-records.ts";
import { type ReadEvents, type ReadEventsBefore, readHistory, readNewest } from "./run-history.ts";

/** A run's history, and whose it is. */
export interface LogSource {
  readonly run: RunContext;
  readonly after: ReadEvents;
  readonly before: ReadEventsBefore;
  readonly placeOfTime: (timeMs: number) => Promise<PlaceOfTime>;
}

export const logOrders = ["asc", "desc"] as const;
/** asc: oldest first. desc: newest first. */
export type LogOrder = (typeof logOrders)[number];

/** Where a walk through a log continues. */
export interface LogPosition {
  /** The event behind which, or before which, the next page begins. */
  readonly seq: number;
  /** `seenSeq` of the page before. */
  readonly seenSeq: number;
}

/** Which part of a log is asked for. */
export interface LogRange {
  readonly filter: LogFilter;
  /** The first event that belongs to it; absent: the run's first. */
  readonly sinceSeq?: number | undefined;
  /** The first event that does not belong to it any more; absent: none. */
  readonly untilSeq?: number | undefined;
}

export interface LogPageRequest extends LogRange {
  readonly order: LogOrder;
  /** Most records of the page; at least 1. */
  readonly limit: number;
  /** Null: the first page. */
  readonly position: LogPosition | null;
}

export interface LogPage {
  /** Each as JSON. */
  readonly records: readonly string[];
  /** Null when nothing is left at this moment. A page may be short, even empty, and have one. */
  readonly next: LogPosition | null;
  /**
   * The event up to which the log was seen when the walk is over: a stream that continues behind it misses nothing and
   * repeats nothing.
   */
  readonly seenSeq: number;
}

/** Reads a page of a log; a bounded amount of work, whatever the filter (src/runs/run-history.ts). */
export async function readLogs(source: LogSource, request: LogPageRequest): Promise<LogPage> {
  const { fromSeq, endSeq } = await placeOf(source, request);
  const { position, limit } = request;
  const shown = logView(source.run, request.filter);
  const view = (seq: number, line: string) => {
    const record = shown(seq, line);
    return record === null ? null : JSON.stringify(record);
  };
  if (request.order === "asc") {
    const afterSeq = Math.max(position?.seq ?? 0, fromSeq - 1);
    const page = await readHistory(source.after, { afterSeq, endSeq, limit, view });
    const { items, nextAfterSeq, seenSeq } = page;
    const next = nextAfterSeq === null ? null : { seq: nextAfterSeq, seenSeq };
    return { records: items, next, seenSeq };
  }
  const beforeSeq = position?.seq ?? endSeq;
  const page = await readNewest(source.before, { beforeSeq, fromSeq, limit, view });
  const seenSeq = position?.seenSeq ?? page.newestSeq;
  const next = page.nextBeforeSeq === null ? null : { seq: page.nextBeforeSeq, seenSeq };
  return { records: page.items, next, seenSeq };
}

/** The event behind which a live log with this filter begins. */
export async function startOfLogs(source: LogSource, { sinceMs }: LogFilter): Promise<number> {
  return sinceMs === null ? 0 : (await source.placeOfTime(sinceMs)).fromSeq - 1;
}

/** The part of the history in which what is asked for lies, and little more. */
export async function placeOf(
  source: LogSource,
  { filter, sinceSeq = 1, untilSeq = Number.MAX_SAFE_INTEGER }: LogRange,
) {
  const { sinceMs, untilMs } = filter;
  const since = sinceMs === null ? null : await source.placeOfTime(sinceMs);
  const until = untilMs === null ? null : await source.placeOfTime(untilMs);
  return {
    fromSeq: Math.max(sinceSeq, since?.fromSeq ?? 1),
    endSeq: Math.min(untilSeq, until?.toSeq ?? Number.MAX_SAFE_INTEGER),
  };
}
