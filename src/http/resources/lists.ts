// Lists as answers: a page at a time in the gateway, whole in the runtime API, whose text is made as it is sent.

import { Readable } from "node:stream";
import type { FastifyReply, FastifyRequest } from "fastify";
import type { JsonObject } from "../../engine/json.ts";
import type { Page } from "../../lib/page.ts";
import { Slices } from "../../lib/slices.ts";
import type { LogPage, LogPosition } from "../../runs/log-page.ts";
import { readHistory } from "../../runs/run-history.ts";
import type { Position } from "../core/page-token.ts";
import type { PageToRead, Paging } from "../core/paging.ts";
import { pathOf } from "../core/path-of.ts";
import { inPieces, listText, PIECE_CHARS, textStream } from "../core/text-stream.ts";
import type { FindRun, FoundRun } from "./find-run.ts";

/** A page, and where its search ended if that is behind its last row: the next page begins there. */
export interface FoundPage<Row, Place = Position> extends Page<Row> {
  readonly behind?: Place;
}

/** @template Place a row's sort key, from which the list goes on */
export interface List<Row, Place = Position> {
  /** Rows behind `after` in the list's order, at most `limit`; a page where they may be fewer for their size. */
  rows(limit: number, after: Place | null): Promise<readonly Row[] | FoundPage<Row, Place>>;
  /** The whole sort key of a row. */
  positionOf(row: Row): Place;
  /** A row as JSON text. */
  render(row: Row): string;
  /** Most rows of the runtime API's answer, unless the request has a limit; all of them when absent. */
  readonly defaultLimit?: number;
  /** What the answer says behind the rows that were read; absent: nothing. */
  remarks?(): JsonObject;
}

export interface PageParts {
  readonly paging: Paging;
}

const asPage = <Row, Place>(rows: readonly Row[] | FoundPage<Row, Place>): FoundPage<Row, Place> =>
  "rows" in rows ? rows : { rows, isCut: false };

export function sendJson(reply: FastifyReply, body: string): FastifyReply {
  return reply.type("application/json; charset=utf-8").send(body);
}

/** JSON that was made in pieces. */
export function sendPieces(reply: FastifyReply, pieces: readonly Buffer[]): FastifyReply {
  const [first] = pieces;
  const isOne = first !== undefined && pieces.length === 1;
  return reply
    .type("application/json; charset=utf-8")
    .header("content-length", bytesIn(pieces))
    .send(isOne ? first : Readable.from(pieces));
}

const bytesIn = (pieces: readonly Buffer[]) => pieces.reduce((bytes, piece) => bytes + piece.length, 0);

// --------------------------------------------------------------------------------------------- gateway

interface ListQuery {
  readonly page_size?: number;
  readonly page_token?: string;
  /** Most items of the whole walk. */
  readonly limit?: number;
}

/** The page that a request's query asks for; every other field of the query is a filter. */
export function readPage({ paging }: PageParts, request: FastifyRequest): PageToRead {
  const { page_size: pageSize, page_token: pageToken, limit, ...filters } = request.query as ListQuery;
  const { principal } = request;
  return paging.read({ principal, list: pathOf(request.url), filters, limit, pageSize, pageToken });
}

export async function sendPage<Row>(
  parts: PageParts,
  request: FastifyRequest,
  reply: FastifyReply,
  list: List<Row>,
): Promise<FastifyReply> {
  const page = readPage(parts, request);
  const { rows, isCut, behind } = asPage(await list.rows(page.fetch, page.after));
  const { items, next_page_token: nextOfRows } = parts.paging.answer(page, rows, list.positionOf, isCut);
  const next = behind === undefined ? nextOfRows : parts.paging.tokenBehind(page, behind, items.length);
  const text = pageText(items, list.render, next, remarksOf(list.remarks?.()));
  return items.length <= FEW_ROWS
    ? sendJson(reply, [...text].join(""))
    : sendPieces(reply, await inPieces(text));
}

/** They are read and rendered in a millisecond or two. */
const FEW_ROWS = 50;

function* pageText<Row>(
  items: readonly Row[],
  render: (row: Row) => string,
  next: string | null,
  remarks: string,
) {
  yield '{"items":';
  yield* listText(items, (rows) => `[${rows.map(render).join(",")}]`);
  yield `,"next_page_token":${JSON.stringify(next)}${remarks}}`;
}

/** As JSON members behind others. */
function remarksOf(remarks: JsonObject = {}): string {
  return Object.entries(remarks)
    .map(([name, value]) => `,${JSON.stringify(name)}:${JSON.stringify(value)}`)
    .join("");
}

function sendItems(reply: FastifyReply, items: readonly string[], next: string | null): FastifyReply {
  return sendJson(reply, `{"items":[${items.join(",")}],"next_page_token":${JSON.stringify(next)}}`);
}

/** One event of a history as a page shows it, as JSON; null leaves it out. */
export type HistoryView = (run: FoundRun, seq: number, line: string) => string | null;

/**
 * Sends a page of the history of a run. Unlike other lists, a page may end early: what it looks at is bounded, and a
 * filter may match rarely.
 *
 * @param source.chosen which run, for the first page; later pages stay with it. Null: there is none, and nothing to show
 */
export async function sendHistoryPage(
  parts: PageParts,
  request: FastifyRequest,
  reply: FastifyReply,
  source: {
    readonly chosen: () => Promise<FoundRun | null>;
    readonly find: FindRun;
    readonly view: HistoryView;
  },
): Promise<FastifyReply> {
  const page = readPage(parts, request);
  const run = page.after === null ? await source.chosen() : await source.find(String(page.after[0]));
  if (run === null) return sendItems(reply, [], null);
  const { items, nextAfterSeq } = await readHistory(run.history.after, {
    afterSeq: Number(page.after?.[1] ?? 0),
    limit: page.size,
    view: (seq, line) => source.view(run, seq, line),
  });
  const next =
    nextAfterSeq === null ? null : parts.paging.tokenBehind(page, [run.runId, nextAfterSeq], items.length);
  return sendItems(reply, items, next);
}

/** A page of a run's log. */
export async function sendLogPage(
  parts: PageParts,
  request: FastifyRequest,
  reply: FastifyReply,
  read: (limit: number, position: LogPosition | null) => Promise<LogPage>,
): Promise<FastifyReply> {
  const page = readPage(parts, request);
  const [seq, seenSeq] = page.after ?? [];
  const position = page.after === null ? null : { seq: Number(seq), seenSeq: Number(seenSeq) };
  const { records, next, seenSeq: lastSeq } = await read(page.size, position);
  const token =
    next === null ? null : parts.paging.tokenBehind(page, [next.seq, next.seenSeq], records.length);
  return sendJson(
    reply,
    `{"items":[${records.join(",")}],"next_page_token":${JSON.stringify(token)},"last_event_id":${lastSeq}}`,
  );
}

// ----------------------------------------------------------------------------------------- runtime API

/** Few enough that reading and rendering a page takes a few milliseconds. */
export const ROWS_PER_PAGE = 100;

/** `{"data":[…]}`, never more than a page in memory. @param limit most rows; null for all */
export async function* wholeList<Row, Place>(
  list: List<Row, Place>,
  limit: number | null = null,
): AsyncGenerator<string, undefined> {
  let left = limit ?? Number.POSITIVE_INFINITY;
  let after: Place | null = null;
  let separator = "";
  let text = '{"data":[';
  while (left > 0) {
    const wanted = Math.min(left, ROWS_PER_PAGE);
    const { rows, isCut }: Page<Row> = asPage<Row, Place>(await list.rows(wanted, after));
    const last = rows.at(-1);
    if (last !== undefined) {
      text += separator + rows.map(list.render).join(",");
      separator = ",";
      after = list.positionOf(last);
    }
    left -= rows.length;
    if (!isCut && rows.length < wanted) break;
    yield text;
    text = "";
  }
  yield `${text}]${remarksOf(list.remarks?.())}}`;
}

/** The first page is read before the answer begins, so that what fails there is answered as an error. */
export async function sendList<Row, Place>(
  reply: FastifyReply,
  list: List<Row, Place>,
  limit: number | null = null,
): Promise<FastifyReply> {
  const text = wholeList(list, limit);
  const first = await text.next();
  return sendText(reply, withFirst(first.value ?? "", text));
}

async function* withFirst(first: string, rest: AsyncIterable<string>): AsyncGenerator<string> {
  yield first;
  yield* rest;
}

/** JSON that is made as it is sent. */
export function sendText(
  reply: FastifyReply,
  chunks: AsyncIterable<string> | Iterable<string>,
): FastifyReply {
  return reply.type("application/json; charset=utf-8").send(textStream(chunks));
}

/** The history of a run up to now, in a view. */
export async function* historyText(
  { history }: FoundRun,
  view: (seq: number, line: string) => string | null,
): AsyncGenerator<string> {
  const slices = new Slices();
  let separator = "";
  let seq = 0;
  yield '{"data":[';
  for (;;) {
    const { lines } = await history.after(seq);
    if (lines.length === 0) break;
    let text = "";
    for (const line of lines) {
      const record = view(++seq, line);
      if (record !== null) {
        text += separator + record;
        separator = ",";
      }
      if (text.length >= PIECE_CHARS) {
        yield text;
        text = "";
      }
      if (slices.isOver) await slices.breathe();
    }
    // A blank, to notice a reader that has left.
    yield text || " ";
  }
  yield "]}";
}

// --------------------------------------------------------------------------------------------- batches

/** Most items of a batch. */
export const BATCH_ITEMS_MAX = 1_000;

/**
 * `{"items":[…]}` in pieces, as fast as the client reads: items may hold whole records.
 *
 * @param render an item as JSON text
 */
export async function* batchText<Item>(
  items: readonly Item[],
  render: (item: Item) => Promise<string>,
): AsyncGenerator<string, undefined> {
  let piece = '{"items":[';
  for (const [at, item] of items.entries()) {
    piece += (at === 0 ? "" : ",") + (await render(item));
    if (piece.length < PIECE_CHARS) continue;
    yield piece;
    piece = "";
  }
  yield `${piece}]}`;
}
