// A list of any length as the text of an answer, `{"data":[…]}`, made as it is sent: never more than a page in memory.

import type { Page } from "../../lib/page.ts";

/** Few enough that reading and rendering a page takes a few milliseconds. */
export const ROWS_PER_PAGE = 100;

export interface ListText<Row> {
  /** Most rows of all; null for every one. */
  readonly limit: number | null;
  /** @param last the last row of the page before; null for the first page */
  page(limit: number, last: Row | null): Promise<Page<Row>>;
  /** A row as JSON. */
  render(row: Row): string;
}

export async function* listText<Row>({ limit, page, render }: ListText<Row>): AsyncGenerator<string> {
  let left = limit ?? Number.POSITIVE_INFINITY;
  let last: Row | null = null;
  yield '{"data":[';
  while (left > 0) {
    const wanted = Math.min(left, ROWS_PER_PAGE);
    const { rows, isCut }: Page<Row> = await page(wanted, last);
    if (rows.length > 0) yield (last === null ? "" : ",") + rows.map(render).join(",");
    left -= rows.length;
    last = rows.at(-1) ?? last;
    if (!isCut && rows.length < wanted) break;
  }
  yield "]}";
}
