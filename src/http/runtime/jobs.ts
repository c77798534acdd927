// GET /jobs, GET /jobs/:job_id, POST /jobs/cleanup.

import type { FastifyInstance } from "fastify";
import { readSummary } from "../../runs/history/read-summary.ts";
import type { JobRecord } from "../../runs/job-records.ts";
import { joined, textStream } from "../core/text-stream.ts";
import { jobNotFound } from "./errors.ts";
import { listText, ROWS_PER_PAGE } from "./list-text.ts";
import { readBoolean, readWholeNumber } from "./query.ts";
import { type RenderContext, renderDetail, renderSummary } from "./render.ts";
import type { RuntimeServices } from "./services.ts";

const RECENT_EVENTS = 25;
/** About 500 nodes. */
const SHORT_MANIFEST_CHARS = 64 * 1024;

export function jobRoutes(api: FastifyInstance, services: RuntimeServices): void {
  const { records, cleanup } = services;
  const context: RenderContext = services;

  api.get<{ Querystring: Record<string, unknown> }>("/jobs", async (request, reply) => {
    const limit = readWholeNumber(request.query, "limit");
    const includeTerminal = readBoolean(request.query, "include_terminal", true);
    reply.type("application/json; charset=utf-8");
    const page = (most: number, last: JobRecord | null) =>
      records.page({ includeTerminal, limit: most, after: last });
    const render = (job: JobRecord) => renderSummary(job, context);
    const text = listText({ limit, page, render });
    return limit !== null && limit <= ROWS_PER_PAGE ? joined(text) : textStream(text);
  });

  api.get<{ Params: { job_id: string } }>("/jobs/:job_id", async (request, reply) => {
    const detail = await records.detail(request.params.job_id, RECENT_EVENTS);
    if (detail === null) throw jobNotFound(request.params.job_id);
    const summary = await readSummary(records, detail.job, services.nowMs());
    reply.type("application/json; charset=utf-8");
    const text = renderDetail(records, detail, summary, context);
    return detail.manifestJson.length <= SHORT_MANIFEST_CHARS ? joined(text) : textStream(text);
  });

  api.post<{ Querystring: Record<string, unknown> }>("/jobs/cleanup", async (request) => {
    const deleted = await cleanup.run({ all: readBoolean(request.query, "all", false) });
    return { deleted_count: deleted.length, deleted_jobs: deleted };
  });
}
