// A page of a run's history as an answer. Unlike other lists, a page may end early: what it looks at is bounded, and
// a filter may match rarely.

import type { FastifyReply, FastifyRequest } from "fastify";
import type { RunRecord } from "../../launch/records.ts";
import { readHistory } from "../../runs/run-history.ts";
import { pathOf } from "../core/path-of.ts";
import { findRun, historyOf, sendJson } from "./run-source.ts";
import type { GatewayServices } from "./services.ts";

/** One event as this page shows it, as JSON; null leaves it out. */
export type HistoryView = (run: RunRecord, seq: number, line: string) => string | null;

type Query = Readonly<Record<string, string | number | boolean | undefined>>;

/**
 * Sends a page of the history of a run.
 *
 * @param chosen which run, for the first page; later pages stay with it. Null: there is none, and nothing to show
 */
export async function sendHistory(
  services: GatewayServices,
  request: FastifyRequest,
  reply: FastifyReply,
  { chosen, view }: { readonly chosen: () => Promise<RunRecord | null>; readonly view: HistoryView },
): Promise<FastifyReply> {
  const { page_size: pageSize, page_token: pageToken, ...filters } = request.query as Query;
  const { paging } = services;
  const page = paging.read({
    principal: request.principal,
    list: pathOf(request.url),
    filters,
    pageSize,
    pageToken: pageToken === undefined ? undefined : String(pageToken),
  });
  const run = page.after === null ? await chosen() : await findRun(services, String(page.after[0]));
  if (run === null) return sendJson(reply, '{"items":[],"next_page_token":null}');
  const { items, nextAfterSeq } = await readHistory(historyOf(services, run), {
    afterSeq: Number(page.after?.[1] ?? 0),
    limit: page.size,
    view: (seq, line) => view(run, seq, line),
  });
  const next =
    nextAfterSeq === null ? null : paging.tokenBehind(page, [run.runId, nextAfterSeq], items.length);
  return sendJson(reply, `{"items":[${items.join(",")}],"next_page_token":${JSON.stringify(next)}}`);
}
