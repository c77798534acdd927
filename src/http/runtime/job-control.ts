// POST /jobs/:job_id/cancel, /pause, /resume, /messages.

import type { FastifyInstance } from "fastify";
import type { ControlAnswer } from "../../engine/engine.ts";
import { isTerminal } from "../../engine/journal.ts";
import type { JsonObject } from "../../engine/json.ts";
import { limits } from "../../engine/limits.ts";
import { noPaths, type SecretPaths, secretPathsIn } from "../../security/secret-paths.ts";
import type { JsonBody } from "../core/json-body.ts";
import { ApiError, invalidPayload, jobNotFound, problemsText } from "./errors.ts";
import type { RuntimeServices } from "./services.ts";

type JobParams = { Params: { job_id: string } };

export function jobControlRoutes(api: FastifyInstance, services: RuntimeServices): void {
  const { engine } = services;

  const control = (verb: "cancel" | "pause" | "resume", change: (jobId: string) => Promise<ControlAnswer>) =>
    api.post<JobParams>(`/jobs/:job_id/${verb}`, async (request) => {
      const jobId = request.params.job_id;
      const answer = await change(jobId);
      if (answer.kind === "not_open") throw await whyNotOpen(services, jobId, verb);
      return { status: answer.status, job_id: jobId };
    });
  control("cancel", (jobId) => engine.cancel(jobId));
  control("pause", (jobId) => engine.pause(jobId));
  control("resume", (jobId) => engine.resume(jobId));

  const manifestSecrets = new ManifestSecrets();
  api.post<JobParams & { Body?: JsonBody }>("/jobs/:job_id/messages", async (request, reply) => {
    const jobId = request.params.job_id;
    const body = request.body?.object;
    if (body == null) throw invalidPayload();
    const message = readMessage(body);
    const sealed = await services.secrets.sealBody(message.body, {
      paths: await manifestSecrets.of(services, jobId),
    });
    if (sealed.kind === "invalid") throw new ApiError(400, problemsText(sealed.errors));
    const answer = await engine.deliver(jobId, { ...message, body: sealed.value });
    if (answer.kind === "not_open") throw await whyNotOpen(services, jobId, "send a message to");
    if (answer.kind === "unknown_agent") {
      throw new ApiError(404, `Job ${jobId} has no agent ${JSON.stringify(body.agent_id)}`);
    }
    return reply.code(202).send({ message_id: answer.messageId });
  });
}

const PATHS_KEPT = 256;

/** What the manifests of jobs name as secret, remembered: a manifest may be large, and never changes. */
class ManifestSecrets {
  readonly #kept = new Map<string, SecretPaths>();

  async of({ records }: RuntimeServices, jobId: string): Promise<SecretPaths> {
    const known = this.#kept.get(jobId);
    if (known !== undefined) return known;
    const texts = await records.texts(jobId);
    if (texts === null) return noPaths;
    const paths = secretPathsIn(JSON.parse(texts.manifestJson) as JsonObject);
    if (this.#kept.size >= PATHS_KEPT) this.#kept.clear();
    this.#kept.set(jobId, paths);
    return paths;
  }
}

/** The job is not open here: it does not exist, or it has ended. */
async function whyNotOpen(services: RuntimeServices, jobId: string, verb: string): Promise<ApiError> {
  const job = await services.records.find(jobId);
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
