// Jobs that were submitted to the runtime API: GET /jobs, /jobs/:job_id and /jobs/:job_id/agent-graph, POST /jobs/cleanup,
// and POST /jobs/:job_id/cancel, /pause, /resume, /messages.

import type { FastifyInstance } from "fastify";
import type { JobControl } from "../../engine/job-control.ts";
import { isTerminal } from "../../engine/journal.ts";
import { isObject, type JsonObject, type JsonValue } from "../../engine/json.ts";
import { limits } from "../../engine/limits.ts";
import type { Cleanup } from "../../runs/cleanup.ts";
import { readSummary } from "../../runs/history/summary.ts";
import type { JobRecord } from "../../runs/job-records.ts";
import { storedObject } from "../../runs/stored-json.ts";
import type { ConfigurationSecrets } from "../../security/configuration.ts";
import { noPaths, type SecretPaths, secretPathsIn } from "../../security/secret-detection.ts";
import type { JsonBody } from "../core/json-body.ts";
import { ApiError, jobNotFound, problemsText } from "../core/runtime-errors.ts";
import { type Query, readBody, readQuery } from "../core/runtime-query.ts";
import { inPieces, joined, listText } from "../core/text-stream.ts";
import { Type } from "../core/type.ts";
import type { RuntimeRunParts } from "./find-run.ts";
import { ROWS_PER_PAGE, sendJson, sendPieces, sendText, wholeList } from "./lists.ts";
import {
  type CommandPeaks,
  lastNodeViews,
  type RenderContext,
  renderDetail,
  renderSummary,
} from "./submitted-job-view.ts";

export interface Parts extends RuntimeRunParts, RenderContext, CommandPeaks {
  readonly control: JobControl;
  readonly cleanup: Cleanup;
  readonly secrets: ConfigurationSecrets;
  readonly nowMs: () => number;
}

const RECENT_EVENTS = 25;
/** Their detail has some 200 KB. */
const FEW_NODES = 500;

const JobsQuery = Type.Input({
  limit: Type.Integer(),
  include_terminal: Type.Boolean(),
});

const CleanupQuery = Type.Input({ all: Type.Boolean() });

interface JobRequest {
  Params: { job_id: string };
}

export function runtimeRoutes(api: FastifyInstance, parts: Parts): void {
  const { journal, cleanup, control } = parts;

  api.get<{ Querystring: Query }>("/jobs", async ({ query }, reply) => {
    const { limit = null, include_terminal: includeTerminal = true } = readQuery(JobsQuery, query);
    const text = wholeList<JobRecord, JobRecord>(
      {
        rows: (most, after) => journal.page({ includeTerminal, limit: most, after }),
        positionOf: (job) => job,
        render: (job) => renderSummary(job, parts),
      },
      limit,
    );
    return limit !== null && limit <= ROWS_PER_PAGE
      ? sendJson(reply, await joined(text))
      : sendText(reply, text);
  });

  api.get<JobRequest>("/jobs/:job_id", async ({ params }, reply) => {
    const detail = await journal.detail(params.job_id, RECENT_EVENTS);
    const nodes = await lastNodeViews.of(journal, params.job_id);
    if (detail === null || nodes === null) throw jobNotFound(params.job_id);
    const summary = await readSummary(journal, detail.job, parts.nowMs());
    const text = renderDetail(journal, detail, nodes, summary, parts);
    return nodes.length <= FEW_NODES ? sendJson(reply, await joined(text)) : sendText(reply, text);
  });

  api.get<JobRequest>("/jobs/:job_id/agent-graph", async ({ params }, reply) => {
    const manifestJson = await journal.manifest(params.job_id);
    if (manifestJson === null) throw jobNotFound(params.job_id);
    return sendPieces(reply, await inPieces(agentGraph(await storedObject(manifestJson))));
  });

  api.post<{ Querystring: Query }>("/jobs/cleanup", async ({ query }) => {
    const { all = false } = readQuery(CleanupQuery, query);
    const deleted = await cleanup.run({ all });
    return { deleted_count: deleted.length, deleted_jobs: deleted };
  });

  for (const verb of ["cancel", "pause", "resume"] as const) {
    api.post<JobRequest>(`/jobs/:job_id/${verb}`, async ({ params }) => {
      const jobId = params.job_id;
      const answer = await control[verb](jobId);
      if (answer.kind === "not_open") throw await whyNotOpen(parts, jobId, verb);
      return { status: answer.status, job_id: jobId };
    });
  }

  const manifestSecrets = new ManifestSecrets();
  api.post<JobRequest & { Body?: JsonBody }>("/jobs/:job_id/messages", async ({ params, body }, reply) => {
    const jobId = params.job_id;
    const message = readMessage(readBody(body));
    const encrypted = await parts.secrets.encryptBody(message.body, {
      paths: await manifestSecrets.of(parts, jobId),
    });
    if (encrypted.kind === "invalid") throw new ApiError(400, problemsText(encrypted.errors));
    const answer = await control.deliver(jobId, { ...message, body: encrypted.value });
    if (answer.kind === "not_open") throw await whyNotOpen(parts, jobId, "send a message to");
    if (answer.kind === "unknown_agent") {
      throw new ApiError(404, `Job ${jobId} has no agent ${JSON.stringify(message.agentId)}`);
    }
    return reply.code(202).send({ message_id: answer.messageId });
  });
}

const PATHS_KEPT = 256;

/** What the manifests of jobs name as secret, remembered: a manifest may be large, and never changes. */
class ManifestSecrets {
  readonly #kept = new Map<string, SecretPaths>();

  async of({ journal }: RuntimeRunParts, jobId: string): Promise<SecretPaths> {
    const known = this.#kept.get(jobId);
    if (known !== undefined) return known;
    const manifestJson = await journal.manifest(jobId);
    if (manifestJson === null) return noPaths;
    const paths = secretPathsIn(await storedObject(manifestJson));
    if (this.#kept.size >= PATHS_KEPT) this.#kept.clear();
    this.#kept.set(jobId, paths);
    return paths;
  }
}

/** Why nobody has such an open job: it does not exist, or it has ended. */
async function whyNotOpen({ journal }: RuntimeRunParts, jobId: string, verb: string): Promise<ApiError> {
  const job = await journal.find(jobId);
  if (job === null) return jobNotFound(jobId);
  if (!isTerminal(job.status)) {
    return new ApiError(503, `Job ${jobId} is not carried on here yet; try again in a moment`);
  }
  return new ApiError(400, `Cannot ${verb} job ${jobId}: it is already ${job.status}`);
}

function readMessage(body: JsonObject) {
  const { agent_id: agentId, type, body: messageBody, correlation_id: correlationId, ttl_ms: ttlMs } = body;
  if (typeof agentId !== "string" || agentId === "")
    throw new ApiError(400, "agent_id must name an agent of the job");
  if (type !== undefined && !isName(type)) {
    throw new ApiError(400, `type must be a string of 1 to ${limits.nameCharsMax} characters`);
  }
  if (correlationId !== undefined && !isName(correlationId)) {
    throw new ApiError(400, `correlation_id must be a string of 1 to ${limits.nameCharsMax} characters`);
  }
  if (ttlMs !== undefined && !(typeof ttlMs === "number" && ttlMs > 0)) {
    throw new ApiError(400, "ttl_ms must be a number above 0");
  }
  if (messageBody === undefined)
    throw new ApiError(400, "body is missing: the message's content, any JSON value");
  return {
    agentId,
    type: type ?? "message",
    body: messageBody,
    correlationId: correlationId ?? null,
    ttlMs: ttlMs ?? null,
  };
}

function isName(value: unknown): value is string {
  return typeof value === "string" && value.length > 0 && value.length <= limits.nameCharsMax;
}

/** The nodes and edges of a manifest, for drawing; a few at a time, as there may be many. */
function* agentGraph(manifest: JsonObject): Generator<string> {
  yield '{"nodes":';
  yield* listText(objects(manifest.nodes), (nodes) =>
    JSON.stringify(
      nodes.map(({ node_id, agent_type, type, role }) => ({
        node_id,
        agent_type,
        type: type ?? "generic",
        ...(role != null && { role }),
      })),
    ),
  );
  yield ',"edges":';
  yield* listText(objects(manifest.edges), (edges) =>
    JSON.stringify(
      edges.map(({ edge_id, from_node, to_node, message_type }) => ({
        ...(edge_id != null && { edge_id }),
        from_node,
        to_node,
        ...(message_type != null && { message_type }),
      })),
    ),
  );
  yield "}";
}

function objects(value: JsonValue | undefined): readonly JsonObject[] {
  return Array.isArray(value) ? value.filter(isObject) : [];
}
