// The OpenAI protocol for the models that are served: POST /llm/v1/chat/completions, …/completions, …/embeddings and GET …/models.
//
// - Errors are those of the protocol (openai-answers.ts), also in the middle of a stream.
// - A client that leaves cancels its request, at whatever point it is.

import { once } from "node:events";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import type { JsonObject } from "../../engine/json.ts";
import { LlmError } from "../../models/serving/llm-error.ts";
import type { ServedModel, ServedModelRecords } from "../../models/serving/records.ts";
import {
  type LlmAnswer,
  type LlmCaller,
  llmPaths,
  type ModelServing,
  notServed,
} from "../../models/serving/serving.ts";
import { endWithClient } from "../core/half-closed.ts";
import { addRoutes, get, post } from "../core/route.ts";
import { Type } from "../core/type.ts";
import { hijack } from "./run-streams.ts";
import { LlmErrorSchema } from "./schemas.ts";

const LlmModelSchema = Type.Object({
  id: Type.String("The model_id."),
  object: Type.Literal("model"),
  created: Type.Integer("When it was served first, in seconds since 1970."),
  owned_by: Type.Literal("troupe"),
});

const LlmRequestSchema = Type.JsonObject("As the OpenAI protocol has it.", {
  model: "qwen3-4b",
  messages: [{ role: "user", content: "Hello" }],
});
const LlmAnswerSchema = Type.JsonObject("As the OpenAI protocol has it.", { object: "chat.completion" });

const LlmModelListSchema = Type.Object({
  object: Type.Literal("list"),
  data: Type.Array(LlmModelSchema),
});

/** By the names that clients see. */
export const schemas = {
  LlmRequest: LlmRequestSchema,
  LlmAnswer: LlmAnswerSchema,
  LlmError: LlmErrorSchema,
  LlmModel: LlmModelSchema,
  LlmModelList: LlmModelListSchema,
};

export interface Parts {
  readonly records: { readonly servedModels: ServedModelRecords };
  readonly modelServing: ModelServing;
  /** Who asks, of a request with a run's key; null for everybody else. */
  readonly llmCaller: (request: FastifyRequest) => LlmCaller | null;
}

const summaries = {
  "chat/completions": "Ask a served model, in the OpenAI protocol",
  completions: "Let a served model go on with a text, in the OpenAI protocol",
  embeddings: "Make embeddings with a served model, in the OpenAI protocol",
} as const;

const DESCRIPTION =
  "For clients of the OpenAI protocol, with {gateway}/api/v1/llm/v1 as their base URL. The request's model is the model_id of one that is served; everything else is passed on to it, and its answer passed back as it is. Errors have the protocol's shape.";

export function gatewayRoutes(api: FastifyInstance, parts: Parts): void {
  const { modelServing, records } = parts;

  addRoutes(api, "llm", [
    ...llmPaths.map((path) =>
      post(`/llm/v1/${path}`, {
        operationId: `llm${path.replace(/(^|\/)(.)/g, (_all, _slash, letter: string) => letter.toUpperCase())}`,
        summary: summaries[path],
        description: DESCRIPTION,
        speaksOpenAi: true,
        body: LlmRequestSchema,
        answers: {
          200: {
            description: "As the model's server has sent it; a stream when the request has stream: true.",
            content: {
              "application/json": { schema: LlmAnswerSchema },
              ...(path !== "embeddings" && {
                "text/event-stream": { schema: Type.String({ examples: ["data: [DONE]\n\n"] }) },
              }),
            },
          },
        },
        problems: ["not_found"],
        handle: (request, reply) =>
          sendingErrors(reply, async () => {
            const left = new AbortController();
            const { raw } = reply;
            // Before its answer begins, its going tells itself on the connection alone.
            endWithClient(raw);
            raw.once("close", () => left.abort(new Error("The client has left.")));
            const asked = { path, body: request.body as JsonObject, signal: left.signal };
            const answer = await modelServing.answer(asked, parts.llmCaller(request));
            return send(request, reply, answer);
          }),
      }),
    ),

    get("/llm/v1/models", {
      operationId: "llmListModels",
      summary: "List the models that are served, in the OpenAI protocol",
      speaksOpenAi: true,
      answers: { 200: LlmModelListSchema },
      async handle() {
        const data = (await records.servedModels.allServed()).map(rendered);
        return { object: "list", data };
      },
    }),

    get("/llm/v1/models/*", {
      operationId: "llmGetModel",
      summary: "Get a model that is served, in the OpenAI protocol",
      speaksOpenAi: true,
      hide: true,
      answers: { 200: LlmModelSchema },
      handle: (request, reply) =>
        sendingErrors(reply, async () => {
          const modelId = (request.params as { readonly "*": string })["*"];
          const served = await records.servedModels.served(modelId);
          if (served === null) throw notServed(modelId);
          return reply.send(rendered(served));
        }),
    }),
  ]);
}

const rendered = ({ modelId, createdAtMs }: ServedModel) => ({
  id: modelId,
  object: "model",
  created: Math.floor(createdAtMs / 1_000),
  owned_by: "troupe",
});

async function sendingErrors(reply: FastifyReply, work: () => Promise<FastifyReply>): Promise<FastifyReply> {
  try {
    return await work();
  } catch (error) {
    // Nobody reads an answer any more.
    if (reply.raw.destroyed) return reply.hijack();
    if (!(error instanceof LlmError)) throw error;
    if (error.status === 401) reply.header("www-authenticate", "Bearer");
    if (error.retryAfterSeconds !== null) reply.header("retry-after", String(error.retryAfterSeconds));
    // A budget does not come back by waiting; clients of the protocol look at this.
    else if (error.status === 429) reply.header("x-should-retry", "false");
    return reply.code(error.status).type("application/json").send(Buffer.from(error.json));
  }
}

async function send(request: FastifyRequest, reply: FastifyReply, answer: LlmAnswer): Promise<FastifyReply> {
  if (answer.kind === "whole") return reply.type(answer.type).send(answer.body);
  hijack(request, reply);
  const { raw } = reply;
  raw.writeHead(200, { "content-type": "text/event-stream; charset=utf-8", "cache-control": "no-cache" });
  for await (const chunk of answer.chunks) {
    if (raw.destroyed) break;
    if (!raw.write(chunk)) await Promise.race([once(raw, "drain"), once(raw, "close")]);
  }
  raw.end();
  return reply;
}
