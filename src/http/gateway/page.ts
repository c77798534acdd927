// How a route answers with one page of a list.

import type { FastifyReply, FastifyRequest } from "fastify";
import type { Page } from "../../lib/page.ts";
import type { Position } from "../core/page-token.ts";
import { pathOf } from "../core/path-of.ts";
import type { GatewayServices } from "./services.ts";

export interface List<Row> {
  /** Rows behind `after` in the list's order, at most `limit`; a portion where they may be fewer for their size. */
  rows(limit: number, after: Position | null): Promise<readonly Row[] | Page<Row>>;
  /** The whole sort key of a row. */
  positionOf(row: Row): Position;
  /** A row as JSON text. */
  render(row: Row): string;
}

interface ListQuery {
  readonly page_size?: number;
  readonly page_token?: string;
  /** Most items of the whole walk. */
  readonly limit?: number;
}

/** Sends the page that the request's query asks for; every other field of the query is a filter. */
export async function sendPage<Row>(
  { paging }: GatewayServices,
  request: FastifyRequest,
  reply: FastifyReply,
  list: List<Row>,
): Promise<FastifyReply> {
  const { page_size: pageSize, page_token: pageToken, limit, ...filters } = request.query as ListQuery;
  const page = paging.read({
    principal: request.principal,
    list: pathOf(request.url),
    filters,
    limit,
    pageSize,
    pageToken,
  });
  const found = await list.rows(page.fetch, page.after);
  const { rows, isCut } = "rows" in found ? found : { rows: found, isCut: false };
  const { items, next_page_token: next } = paging.answer(page, rows, list.positionOf, isCut);
  const body = `{"items":[${items.map(list.render).join(",")}],"next_page_token":${JSON.stringify(next)}}`;
  return reply.type("application/json; charset=utf-8").send(body);
}
