// How a route answers with one page of a list.

import type { FastifyReply, FastifyRequest } from "fastify";
import type { Position } from "../shared/page-token.ts";
import type { GatewayServices } from "./services.ts";

export interface List<Row> {
  /** Rows behind `after` in the list's order, at most `limit`. */
  rows(limit: number, after: Position | null): Promise<readonly Row[]>;
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
  const { url } = request;
  const queryAt = url.indexOf("?");
  const page = paging.read({
    principal: request.principal,
    list: queryAt < 0 ? url : url.slice(0, queryAt),
    filters,
    limit,
    pageSize,
    pageToken,
  });
  const rows = await list.rows(page.fetch, page.after);
  const { items, next_page_token: next } = paging.answer(page, rows, list.positionOf);
  const body = `{"items":[${items.map(list.render).join(",")}],"next_page_token":${JSON.stringify(next)}}`;
  return reply.type("application/json; charset=utf-8").send(body);
}
