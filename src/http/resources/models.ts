// Models: POST and GET /models; GET, PATCH and DELETE /models/{model_id}; and its installations.

import type { FastifyInstance, FastifyRequest } from "fastify";
import { DomainError } from "../../lib/domain-error.ts";
import type { Models } from "../../models/models.ts";
import type { ModelInstallation, ModelRecords, ModelView } from "../../models/records.ts";
import type { ConfigurationSecrets } from "../../security/configuration.ts";
import { etagOf, knowsCurrent, notModified, stale, type Versioned } from "../core/etag.ts";
import { addRoutes, get, patch, post, remove } from "../core/route.ts";
import { Type } from "../core/type.ts";
import { type IdempotencyParts, sendIdempotent } from "./idempotent.ts";
import { type PageParts, sendJson, sendPage } from "./lists.ts";
import {
  InstallationSchema,
  installationJson,
  ModelSchema,
  modelPatch,
  newModel,
  RegisterModelBody,
  renderModel,
  UpdateModelBody,
} from "./model-view.ts";
import { idempotencyKeyHeader, ifMatchHeader, ifNoneMatchHeader, pageOf, pageQuery } from "./schemas.ts";

const ModelPageSchema = pageOf(ModelSchema, "models, by their ids");
const InstallationPageSchema = pageOf(InstallationSchema, "installations of a model, one per node");
const UpdateInstallationBody = Type.Input(
  { pinned: Type.Boolean("Whether it stays as it is.") },
  { required: ["pinned"], examples: [{ pinned: true }] },
);

/** By the names that clients see. */
export const schemas = {
  Model: ModelSchema,
  ModelPage: ModelPageSchema,
  RegisterModel: RegisterModelBody,
  UpdateModel: UpdateModelBody,
  ModelInstallation: InstallationSchema,
  ModelInstallationPage: InstallationPageSchema,
  UpdateModelInstallation: UpdateInstallationBody,
};

export interface Parts extends PageParts, IdempotencyParts {
  readonly models: Models;
  readonly modelRecords: ModelRecords;
  readonly secrets: ConfigurationSecrets;
}

export function gatewayRoutes(api: FastifyInstance, parts: Parts): void {
  const { models, modelRecords, secrets } = parts;

  addRoutes(api, "models", [
    post("/models", {
      operationId: "registerModel",
      summary: "Register a model",
      description: "Says where it comes from; nothing is fetched before it is installed.",
      headers: idempotencyKeyHeader,
      body: RegisterModelBody,
      answers: { 201: ModelSchema },
      problems: ["conflict", "idempotency_key_reused"],
      handle: (request, reply) =>
        sendIdempotent(parts, request, reply, async () => {
          const register = await models.prepareRegistration(newModel(request.body));
          return async (writes) => {
            const model = await register(writes);
            const body = renderModel(model, secrets);
            const location = `/api/v1/models/${encodeURIComponent(model.modelId)}`;
            return { status: 201, headers: { location, etag: etagOf(versioned(model), body) }, body };
          };
        }),
    }),

    get("/models", {
      operationId: "listModels",
      summary: "List models",
      query: Type.Input(pageQuery),
      answers: { 200: ModelPageSchema },
      handle: (request, reply) =>
        sendPage<ModelView>(parts, request, reply, {
          rows: (limit, after) =>
            modelRecords.models({ limit, after: after === null ? null : String(after[0]) }),
          positionOf: ({ modelId }) => [modelId],
          render: (model) => renderModel(model, secrets),
        }),
    }),

    get("/models/:model_id", {
      operationId: "getModel",
      summary: "Get a model",
      description:
        "The ETag changes with the model and its installations; If-Match looks at what its owner has changed alone.",
      headers: ifNoneMatchHeader,
      answers: { 200: ModelSchema, 304: Type.Null("The client has this answer already.") },
      async handle(request, reply) {
        const model = await models.find(request.params.model_id);
        const body = renderModel(model, secrets);
        const etag = etagOf(versioned(model), body);
        reply.header("etag", etag);
        return notModified(request, etag) ? reply.code(304).send() : sendJson(reply, body);
      },
    }),

    patch("/models/:model_id", {
      operationId: "updateModel",
      summary: "Change a model's registration",
      description:
        "What is installed stays as it is; an update of the model looks at the changed source. A masked secret in the source keeps the one that is stored.",
      headers: ifMatchHeader,
      body: UpdateModelBody,
      answers: { 200: ModelSchema },
      problems: ["model_busy"],
      async handle(request, reply) {
        const before = await current(request, request.params.model_id);
        const changed = await models
          .update(before, modelPatch(request.body, before))
          .catch((error) => asStale(before, error));
        const body = renderModel(changed, secrets);
        return sendJson(reply.header("etag", etagOf(versioned(changed), body)), body);
      },
    }),

    remove("/models/:model_id", {
      operationId: "deleteModel",
      summary: "Delete a model's registration",
      description: "Refused while it is installed, or a blueprint has brought it along.",
      headers: ifMatchHeader,
      answers: { 204: Type.Null("It is gone.") },
      problems: ["model_busy", "model_in_use"],
      async handle(request, reply) {
        const before = await current(request, request.params.model_id);
        await models.remove(before).catch((error) => asStale(before, error));
        return reply.code(204).send();
      },
    }),

    get("/models/:model_id/installations", {
      operationId: "listModelInstallations",
      summary: "List a model's installations",
      query: Type.Input(pageQuery),
      answers: { 200: InstallationPageSchema },
      async handle(request, reply) {
        const { installations } = await models.find(request.params.model_id);
        return sendPage<ModelInstallation>(parts, request, reply, {
          async rows(limit, after) {
            const from = after === null ? "" : String(after[0]);
            return installations.filter(({ installationId }) => installationId > from).slice(0, limit);
          },
          positionOf: ({ installationId }) => [installationId],
          render: (one) => JSON.stringify(installationJson(one)),
        });
      },
    }),

    get("/models/:model_id/installations/:installation_id", {
      operationId: "getModelInstallation",
      summary: "Get an installation of a model",
      headers: ifNoneMatchHeader,
      answers: { 200: InstallationSchema, 304: Type.Null("The client has this answer already.") },
      async handle(request, reply) {
        const { model_id, installation_id } = request.params;
        const one = await models.findInstallation(model_id, installation_id);
        const body = JSON.stringify(installationJson(one));
        const etag = etagOf(placed(one), body);
        reply.header("etag", etag);
        return notModified(request, etag) ? reply.code(304).send() : sendJson(reply, body);
      },
    }),

    patch("/models/:model_id/installations/:installation_id", {
      operationId: "updateModelInstallation",
      summary: "Pin an installation, or take the pin off",
      headers: ifMatchHeader,
      body: UpdateInstallationBody,
      answers: { 200: InstallationSchema },
      async handle(request, reply) {
        const before = await currentInstallation(request, request.params);
        const changed = await models
          .pin(before, request.body.pinned)
          .catch((error) => asStaleInstallation(before, error));
        const body = JSON.stringify(installationJson(changed));
        return sendJson(reply.header("etag", etagOf(placed(changed), body)), body);
      },
    }),

    remove("/models/:model_id/installations/:installation_id", {
      operationId: "deleteModelInstallation",
      summary: "Remove an installation that nothing needs",
      description:
        "At once, and on the node that is asked alone. To see first what needs it, or to remove it all the same, there is POST /models/{model_id}/remove.",
      headers: ifMatchHeader,
      answers: { 204: Type.Null("It is gone.") },
      problems: ["conflict", "model_busy", "model_in_use"],
      async handle(request, reply) {
        const before = await currentInstallation(request, request.params);
        await models.removeInstallation(before).catch((error) => asStaleInstallation(before, error));
        return reply.code(204).send();
      },
    }),
  ]);

  /** The model, if If-Match has its current revision. @throws Problem */
  async function current(request: FastifyRequest, modelId: string): Promise<ModelView> {
    const model = await models.find(modelId);
    if (!knowsCurrent(request, versioned(model))) throw staleNow(model);
    return model;
  }

  async function currentInstallation(
    request: FastifyRequest,
    { model_id, installation_id }: { readonly model_id: string; readonly installation_id: string },
  ): Promise<ModelInstallation> {
    const one = await models.findInstallation(model_id, installation_id);
    if (!knowsCurrent(request, placed(one))) throw staleInstallation(one);
    return one;
  }

  /** A change that lost a race is answered with the current ETag. */
  async function asStale({ modelId }: ModelView, error: unknown): Promise<never> {
    throw isLost(error) ? staleNow(await models.find(modelId)) : error;
  }

  async function asStaleInstallation(before: ModelInstallation, error: unknown): Promise<never> {
    if (!isLost(error)) throw error;
    throw staleInstallation(await models.findInstallation(before.modelId, before.installationId));
  }

  const staleNow = (model: ModelView) => stale(etagOf(versioned(model), renderModel(model, secrets)));
  const staleInstallation = (one: ModelInstallation) =>
    stale(etagOf(placed(one), JSON.stringify(installationJson(one))));
}

const isLost = (error: unknown) => error instanceof DomainError && error.code === "precondition_failed";
const versioned = ({ modelId, revision }: ModelView): Versioned => ({ id: modelId, revision });
const placed = ({ installationId, revision }: ModelInstallation): Versioned => ({
  id: installationId,
  revision,
});
