// POST /jobs, GET /jobs, GET /jobs/:job_id, POST /jobs/cleanup.

import type { FastifyInstance } from "fastify";
import type { Submission } from "../../engine/engine.ts";
import { withInputs } from "../../engine/inputs.ts";
import type { JsonObject } from "../../engine/json.ts";
import { isObject } from "../../engine/json.ts";
import { manifestProblemsText, parseManifest } from "../../engine/manifest.ts";
import { parseTraceparent } from "../../engine/trace.ts";
import { readSummary } from "../../runs/evidence/read-summary.ts";
import type { JobRecord } from "../../runs/job-records.ts";
import type { ConfigurationSecrets } from "../../secrets/configuration.ts";
import type { JsonBody } from "../shared/json-body.ts";
import { joined, textStream } from "../shared/text-stream.ts";
import { ApiError, bundleNotFound, invalidPayload, jobNotFound } from "./errors.ts";
import { listText, ROWS_PER_PAGE } from "./list-text.ts";
import { readBoolean, readWholeNumber } from "./query.ts";
import { type RenderContext, renderDetail, renderSummary } from "./render.ts";
import { requireServices } from "./service-routes.ts";
import type { RuntimeServices } from "./services.ts";

const RECENT_EVENTS = 25;
/** About 500 nodes. */
const SHORT_MANIFEST_CHARS = 64 * 1024;

export function jobRoutes(api: FastifyInstance, services: RuntimeServices): void {
  const { engine, records, cleanup } = services;
  const context: RenderContext = services;

  api.post<{ Body?: JsonBody }>("/jobs", async (request, reply) => {
    const body = request.body?.object;
    if (body == null || Object.keys(body).length === 0) throw invalidPayload();
    const submission =
      body.bundle_id !== undefined && body.manifest_version === undefined
        ? await fromBundle(services, body)
        : fromManifest(body, request.body!.text);
    try {
      requireServices(services.services, submission.graph.requiredServices);
      const { jobId, runId } = await engine.submit({
        ...submission,
        trace: parseTraceparent(request.headers.traceparent),
      });
      reply.header("location", `/api/v1/jobs/${encodeURIComponent(jobId)}`);
      return reply.code(201).send({ id: jobId, status: "pending", run_id: runId });
    } finally {
      if (submission.bundleFingerprint !== null)
        await services.bundles.release({ fingerprint: submission.bundleFingerprint });
    }
  });

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

function fromManifest(manifest: JsonObject, manifestJson: string): Omit<Submission, "trace"> {
  const parsed = parseManifest(manifest);
  if (parsed.kind === "invalid") throw new ApiError(400, manifestProblemsText(parsed.problems));
  return {
    graph: parsed.graph,
    identity: null,
    manifestJson,
    bundleFingerprint: null,
    hasOwnPayload: false,
    configurationJson: null,
  };
}

/** A registered bundle, launched with its own manifest and configuration; its snapshot is held. */
async function fromBundle(services: RuntimeServices, body: JsonObject): Promise<Omit<Submission, "trace">> {
  const { bundle_id: bundleId, inputs, config } = body;
  if (typeof bundleId !== "string") throw new ApiError(400, "bundle_id must be a string");
  if (config !== undefined && !isObject(config)) throw new ApiError(400, "config must be a JSON object");
  const launch = await services.bundles.launch(bundleId, config ?? {});
  if (launch === null) throw bundleNotFound(bundleId);
  const answer = withInputs(launch.graph, inputs);
  if (answer.kind === "invalid") {
    await services.bundles.release(launch);
    throw new ApiError(400, answer.problems.join("; "));
  }
  return {
    graph: answer.graph,
    identity: null,
    manifestJson: launch.manifestJson,
    bundleFingerprint: launch.fingerprint,
    hasOwnPayload: false,
    configurationJson: sealed(services.secrets, launch.configurationJson),
  };
}

/** What the journal keeps has no secret in clear. */
function sealed(secrets: ConfigurationSecrets, configurationJson: string | null): string | null {
  if (configurationJson === null) return null;
  return JSON.stringify(secrets.seal(JSON.parse(configurationJson) as JsonObject));
}
