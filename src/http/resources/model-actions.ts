// What is done with a model: POST /models/{model_id}/install, …/update, …/remove, which are operations, and …/validate.

import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import type { Models, WriteModelOperation } from "../../models/models.ts";
import type { Operation } from "../../operations/records.ts";
import { addRoutes, post } from "../core/route.ts";
import { Type } from "../core/type.ts";
import { type IdempotencyParts, sendStarted } from "./idempotent.ts";
import { sendJson } from "./lists.ts";
import { OperationSchema, renderOperation } from "./operations.ts";
import { idempotencyKeyHeader } from "./schemas.ts";

const InstallBody = Type.Input(
  { force: Type.Boolean("Fetches it also when it is there, and in place of that.", { default: false }) },
  { examples: [{}] },
);
const RemoveBody = Type.Input(
  {
    dry_run: Type.Boolean("Only tells what would go, and what needs it.", { default: false }),
    force: Type.Boolean("Removes it also when something needs it.", { default: false }),
  },
  { examples: [{ dry_run: true }] },
);
const ValidateBody = Type.Input(
  {
    context: Type.Integer("Tokens that are to be kept. Default: the model's own, at most 8,192.", {
      minimum: 1,
      maximum: 999_999_999,
    }),
  },
  { examples: [{ context: 8192 }] },
);

const ModelValidationSchema = Type.Object(
  {
    valid: Type.Boolean("Whether it can be used on this machine."),
    verdict: Type.String("In words: what it is, what it needs, and whether that is here."),
    format: Type.Nullable(Type.String()),
    architecture: Type.Nullable(Type.String()),
    parameters: Type.Nullable(Type.Integer()),
    quantisation: Type.Nullable(Type.String()),
    context: Type.Nullable(Type.Integer("Tokens that it was made for.")),
    tokenizer: Type.Nullable(Type.String()),
    chat_template: Type.Nullable(Type.Boolean()),
    memory: Type.Nullable(
      Type.Object({
        context: Type.Nullable(Type.Integer("Tokens that are kept.")),
        weight_bytes: Type.Integer(),
        cache_bytes: Type.Integer(),
        working_bytes: Type.Integer(),
        bytes: Type.Integer("All together, an estimate."),
        total_bytes: Type.Integer("Of this machine."),
        free_bytes: Type.Integer("Of this machine, now."),
      }),
    ),
    fit: Type.Nullable(Type.OneOf(["fits", "fits_when_free", "too_large"], "Null of what a server has.")),
    warnings: Type.Array(Type.String()),
  },
  "What a look at a model has found.",
);

/** By the names that clients see. */
export const schemas = {
  InstallModel: InstallBody,
  RemoveModel: RemoveBody,
  ValidateModel: ValidateBody,
  ModelValidation: ModelValidationSchema,
};

export interface Parts extends IdempotencyParts {
  readonly models: Models;
}

const problems = ["model_busy", "idempotency_key_reused"] as const;

export function gatewayRoutes(api: FastifyInstance, parts: Parts): void {
  const { models } = parts;

  const sendOperation = (
    request: FastifyRequest,
    reply: FastifyReply,
    prepare: () => Promise<WriteModelOperation>,
  ) =>
    sendStarted<Operation>(parts, request, reply, {
      prepare,
      answer: (operation) => ({
        location: `/api/v1/operations/${operation.operationId}`,
        body: renderOperation(operation),
      }),
      started: (operation) => models.begin(operation),
    });

  addRoutes(api, "models", [
    post("/models/:model_id/install", {
      operationId: "installModel",
      summary: "Install a model on this node",
      description:
        "Brings its content into SVC_HOME, or has the Ollama-compatible server pull it. Follow the operation at Location; it goes on over restarts, and a download goes on where it was cut. Of a model that is installed, and of content that another model or another node has, nothing is fetched again. Room on the disk is looked for first.",
      headers: idempotencyKeyHeader,
      body: InstallBody,
      answers: { 202: OperationSchema },
      problems: ["invalid_transition", "conflict", ...problems],
      handle: (request, reply) => {
        const { force = false } = request.body ?? {};
        return sendOperation(request, reply, () =>
          models.prepareInstallation(request.params.model_id, "model_installation", { force }),
        );
      },
    }),

    post("/models/:model_id/update", {
      operationId: "refreshModel",
      summary: "Update a model to what its source has now",
      description:
        "What is installed stays until the new content is whole, and the old content until no run uses it.",
      headers: idempotencyKeyHeader,
      body: InstallBody,
      answers: { 202: OperationSchema },
      problems: ["invalid_transition", "conflict", ...problems],
      handle: (request, reply) => {
        const { force = false } = request.body ?? {};
        return sendOperation(request, reply, () =>
          models.prepareInstallation(request.params.model_id, "model_update", { force }),
        );
      },
    }),

    post("/models/:model_id/remove", {
      operationId: "uninstallModel",
      summary: "Remove a model from this node",
      description:
        "Its content goes, its registration stays. Refused while a run or a blueprint needs it, unless force. Look at a dry_run first: it ends with just what the removal would then remove. Content that a blueprint has brought along stays with it.",
      headers: idempotencyKeyHeader,
      body: RemoveBody,
      answers: { 202: OperationSchema },
      problems: ["conflict", ...problems],
      handle: (request, reply) => {
        const { dry_run = false, force = false } = request.body ?? {};
        return sendOperation(request, reply, () =>
          models.prepareRemoval(request.params.model_id, { dry_run, force }),
        );
      },
    }),

    post("/models/:model_id/validate", {
      operationId: "validateModel",
      summary: "Look at a model",
      description:
        "Changes nothing. Reads the header of what is installed here, else of the file or folder that it comes from, and says what the model needs against what this machine has; asks the server of one that is elsewhere whether it is there.",
      body: ValidateBody,
      answers: { 200: ModelValidationSchema },
      problems: ["conflict"],
      async handle(request, reply) {
        const { context = null } = request.body ?? {};
        const found = await models.validate(request.params.model_id, context);
        return sendJson(reply, JSON.stringify(found));
      },
    }),
  ]);
}
