// Lists in pages (CONTRACTS §2 "Pages"), by key and not by number: the next page begins behind the last item shown.
//
// - An item that exists throughout is on exactly one page, whatever is added or removed meanwhile: its sort key never
//   changes.
// - A page's size may change from page to page; filters, limit and principal may not.

import { decodePageToken, encodePageToken, type Position } from "./page-token.ts";

export const PAGE_SIZE_DEFAULT = 50;
export const PAGE_SIZE_MAX = 200;

/** What a client asks of a list. */
export interface ListRequest {
  readonly principal: string;
  /** The list's path, ids filled in. */
  readonly list: string;
  /** Everything that chooses items; what is undefined counts as absent. */
  readonly filters: Readonly<Record<string, string | number | boolean | undefined>>;
  /** Most items of the whole walk; absent: all. */
  readonly limit?: number | undefined;
  /** 1 to PAGE_SIZE_MAX, as the query's schema demands. */
  readonly pageSize?: number | undefined;
  readonly pageToken?: string | undefined;
}

/** A page that is to be read. */
export interface PageToRead {
  readonly principal: string;
  readonly query: string;
  readonly size: number;
  /** Rows to ask the store for: one more than are shown tells whether there is a next page. */
  readonly fetch: number;
  /** Sort key of the last item shown; null for the first page. */
  readonly after: Position | null;
  readonly remaining: number | null;
}

export interface Page<Item> {
  readonly items: readonly Item[];
  /** Null on the last page. */
  readonly next_page_token: string | null;
}

export class Paging {
  readonly #key: Buffer;
  readonly #nowMs: () => number;

  /** @param parts.key 32 random bytes that stay the same over restarts */
  constructor(parts: { readonly key: Buffer; readonly nowMs: () => number }) {
    if (parts.key.length !== 32) throw new Error("the key of page tokens must have 32 bytes");
    this.#key = parts.key;
    this.#nowMs = parts.nowMs;
  }

  /**
   * Reads which page is asked for.
   *
   * @throws Problem `invalid_page_token`
   *
   * @example
   * const page = paging.read({ principal, list: "/runs", filters: { status }, pageSize, pageToken });
   * const rows = await records.runs({ limit: page.fetch, after: page.after?.[0] ?? null });
   * return paging.answer(page, rows, (run) => [run.runId]);
   */
  read(request: ListRequest): PageToRead {
    const { principal, pageToken, pageSize = PAGE_SIZE_DEFAULT } = request;
    const query = canonicalQuery(request);
    const state =
      pageToken === undefined
        ? { position: null, remaining: request.limit ?? null }
        : decodePageToken(this.#key, { principal, query }, pageToken, this.#nowMs());
    const size = Math.min(pageSize, state.remaining ?? pageSize);
    return { principal, query, size, fetch: size + 1, after: state.position, remaining: state.remaining };
  }

  /**
   * The envelope of a page.
   *
   * @param rows at most `page.fetch`, in the list's order, those behind `page.after`
   * @param positionOf the whole sort key of a row: no two rows share one
   * @param isCut whether more rows follow, though these are fewer than `page.fetch`: large ones make a short page
   */
  answer<Row>(
    page: PageToRead,
    rows: readonly Row[],
    positionOf: (row: Row) => Position,
    isCut = false,
  ): Page<Row> {
    const items = rows.slice(0, page.size);
    const last = items.at(-1);
    const hasMore = isCut || rows.length > page.size;
    const isLast = !hasMore || last === undefined || items.length === page.remaining;
    return { items, next_page_token: isLast ? null : this.tokenBehind(page, positionOf(last), items.length) };
  }

  /**
   * The token of the page that begins behind a position, which no item need have.
   *
   * @param shown how many items `page` shows; they count towards the walk's limit
   */
  tokenBehind(page: PageToRead, position: Position, shown: number): string {
    const remaining = page.remaining === null ? null : page.remaining - shown;
    return encodePageToken(this.#key, page, { position, remaining }, this.#nowMs());
  }
}

/** The same text for the same items in the same order, whatever the order of the filters. */
function canonicalQuery({ list, filters, limit }: ListRequest): string {
  const given = Object.entries(filters)
    .filter(([, value]) => value !== undefined)
    .sort(([a], [b]) => (a < b ? -1 : 1));
  return JSON.stringify([list, limit ?? null, given]);
}
