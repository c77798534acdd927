// Models that are served: POST /models/{model_id}/serve, an operation, and …/stop; GET …/serving.

import type { FastifyInstance } from "fastify";
import { isoTime } from "../../engine/event.ts";
import { DomainError } from "../../lib/domain-error.ts";
import { defaultSettings } from "../../models/serving/model-backend.ts";
import type { ModelServers } from "../../models/serving/model-servers.ts";
import type { ServedModel } from "../../models/serving/records.ts";
import type { Servings } from "../../models/serving/servings.ts";
import type { Operation } from "../../operations/records.ts";
import { addRoutes, get, post } from "../core/route.ts";
import { Type } from "../core/type.ts";
import { type IdempotencyParts, sendIdempotent, sendStarted } from "./idempotent.ts";
import { sendJson } from "./lists.ts";
import { OperationSchema, renderOperation } from "./operations.ts";
import { idempotencyKeyHeader } from "./schemas.ts";

const ServeBody = Type.Input(
  {
    context: Type.Integer("Tokens of a request and its answer. Default: the model's own, at most 8,192.", {
      minimum: 1,
      maximum: 999_999_999,
    }),
    concurrency: Type.Integer(
      "Requests that are answered at the same time. Default: 1 of a model's own process, 8 of a server elsewhere.",
      { minimum: 1, maximum: 1_024 },
    ),
    queue: Type.Integer(
      `Further requests that wait; more are answered with 429. Default: ${defaultSettings.queue}.`,
      { minimum: 0, maximum: 10_000 },
    ),
    idle_unload_seconds: Type.Integer(
      `After so long without a request the model's process ends; the next request starts it again. 0: never. Default: ${defaultSettings.idleUnloadSeconds}.`,
      { minimum: 0, maximum: 31_536_000 },
    ),
    embeddings: Type.Boolean("Whether a GGUF model makes embeddings, and nothing else. Default: false."),
  },
  { examples: [{}] },
);

const ServingSchema = Type.Object(
  {
    model_id: Type.String(),
    served: Type.Boolean("Whether requests for it are answered."),
    base_url: Type.Nullable(Type.String("What clients of the OpenAI protocol are given as their base URL.")),
    state: Type.Nullable(
      Type.OneOf(
        ["unloaded", "loading", "ready"],
        "Of the model's process on this node; null when it has none, as a model of a server elsewhere.",
      ),
    ),
    context: Type.Nullable(Type.Integer("As it was set; null: chosen by the model.")),
    concurrency: Type.Nullable(Type.Integer("As it was set; null: chosen by the model.")),
    queue: Type.Integer(),
    idle_unload_seconds: Type.Integer(),
    embeddings: Type.Boolean(),
    running: Type.Integer("Requests that are being answered by this node."),
    waiting: Type.Integer("Requests that wait for their turn at this node."),
    created_at: Type.Nullable(Type.Time("Since when it is served.")),
  },
  "How a model is served.",
);

/** By the names that clients see. */
export const schemas = { ServeModel: ServeBody, ModelServing: ServingSchema };

export interface Parts extends IdempotencyParts {
  readonly servings: Servings;
  readonly modelServers: ModelServers;
  readonly llmBaseUrl: () => string | null;
}

export function gatewayRoutes(api: FastifyInstance, parts: Parts): void {
  const { servings, modelServers, llmBaseUrl } = parts;

  addRoutes(api, "models", [
    post("/models/:model_id/serve", {
      operationId: "serveModel",
      summary: "Serve a model in the OpenAI protocol",
      description:
        "Loads it, or finds the server that has it, and from then on answers requests for it at /api/v1/llm/v1: also after a restart, until it is stopped. What is served already goes on with the new settings. The operation's result has base_url.",
      headers: idempotencyKeyHeader,
      body: ServeBody,
      answers: { 202: OperationSchema },
      problems: ["model_busy"],
      handle(request, reply) {
        const { model_id: modelId } = request.params;
        const { idle_unload_seconds: idleUnloadSeconds, ...given } = request.body ?? {};
        const settings = { ...given, ...(idleUnloadSeconds !== undefined && { idleUnloadSeconds }) };
        return sendStarted<Operation>(parts, request, reply, {
          prepare: () => servings.prepareServe(modelId, settings),
          answer: (operation) => ({
            location: `/api/v1/operations/${operation.operationId}`,
            body: renderOperation(operation),
          }),
          started: (operation) => servings.begin(operation),
        });
      },
    }),

    post("/models/:model_id/stop", {
      operationId: "stopModel",
      summary: "Stop serving a model",
      description: "Its process ends, and requests under way fail. What is installed stays.",
      headers: idempotencyKeyHeader,
      answers: { 200: ServingSchema },
      problems: ["invalid_transition"],
      async handle(request, reply) {
        const { model_id: modelId } = request.params;
        const done: { afterwards?: () => void } = {};
        const sent = await sendIdempotent(parts, request, reply, async () => async (writes) => {
          done.afterwards = await servings.stopServing(writes, modelId);
          return { status: 200, headers: {}, body: JSON.stringify(view(modelId, null)) };
        });
        done.afterwards?.();
        return sent;
      },
    }),

    get("/models/:model_id/serving", {
      operationId: "getModelServing",
      summary: "See how a model is served",
      answers: { 200: ServingSchema },
      async handle(request, reply) {
        const { model_id: modelId } = request.params;
        const served = await servings.served(modelId);
        if (served === null && !(await servings.isHere(modelId)))
          throw new DomainError(
            "model_not_found",
            `There is no model "${modelId}" on this machine; GET /models lists those there are.`,
          );
        return sendJson(reply, JSON.stringify(view(modelId, served)));
      },
    }),
  ]);

  function view(modelId: string, served: ServedModel | null) {
    const held = served === null ? null : modelServers.heldOf(modelId);
    const { idleUnloadSeconds, ...settings } = served?.settings ?? defaultSettings;
    return {
      model_id: modelId,
      served: served !== null,
      base_url: served === null ? null : llmBaseUrl(),
      state: held?.state ?? null,
      ...settings,
      idle_unload_seconds: idleUnloadSeconds,
      running: held?.queue.running ?? 0,
      waiting: held?.queue.waiting ?? 0,
      created_at: served === null ? null : isoTime(served.createdAtMs),
    };
  }
}
