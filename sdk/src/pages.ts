// Lists that come in pages.

import { TroupeUnreachable } from "./errors.ts";
import type { AnswerOf, CallOptions, OperationId, RequestOf, Transport } from "./transport.ts";

/** The collection envelope. */
export interface Page<Item> {
  readonly items: readonly Item[];
  /** For the next page; null on the last one. Good for 24 hours. */
  readonly next_page_token: string | null;
}

/**
 * A list: iterate over it for all items of all pages, or take one page. Nothing is asked of the gateway before. An item
 * that exists throughout a walk comes exactly once.
 *
 * @example for await (const run of client.runs.list({ status: "failed" })) console.log(run.run_id);
 * @example const { items, next_page_token } = await client.jobs.list({ page_size: 20 }).page();
 */
export class Pages<Item, OnePage extends Page<Item> = Page<Item>> implements AsyncIterable<Item> {
  readonly #fetch: (pageToken: string | undefined) => Promise<OnePage>;

  constructor(fetch: (pageToken: string | undefined) => Promise<OnePage>) {
    this.#fetch = fetch;
  }

  /** One page: the first, or the one that the query's page_token names. */
  page(): Promise<OnePage> {
    return this.#fetch(undefined);
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Item, undefined> {
    for await (const { items } of this.pages()) yield* items;
  }

  /** All pages, for what they say beside their items. */
  async *pages(): AsyncGenerator<OnePage, undefined> {
    let token: string | undefined;
    do {
      const page: OnePage = await this.#fetch(token);
      yield page;
      // Otherwise a gateway that repeats a page token would be asked forever.
      if (token !== undefined && page.next_page_token === token) {
        throw new TroupeUnreachable("The gateway answers a page with its own token as the next one.");
      }
      token = page.next_page_token ?? undefined;
    } while (token !== undefined);
  }
}

/** An operation whose answer is a page. */
type ListId = {
  [Id in OperationId]: AnswerOf<Id> extends Page<unknown> ? Id : never;
}[OperationId];
type ItemOf<Id extends ListId> = AnswerOf<Id>["items"][number];

/** The list that an operation answers page by page. */
export function pagesOf<Id extends ListId>(
  transport: Transport,
  id: Id,
  request: RequestOf<Id>,
  options: CallOptions,
): Pages<ItemOf<Id>, AnswerOf<Id> & Page<ItemOf<Id>>> {
  return new Pages(async (pageToken) => {
    const next =
      pageToken === undefined ? request : { ...request, query: { ...request.query, page_token: pageToken } };
    const { value } = await transport.json(id, next as RequestOf<Id>, options);
    return value as AnswerOf<Id> & Page<ItemOf<Id>>;
  });
}
