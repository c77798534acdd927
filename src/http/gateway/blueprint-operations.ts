// POST /blueprints/{blueprint_id}/additions and /removals: requests that begin an operation, which goes on by itself.

import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import type { WriteOperation } from "../../blueprints/blueprints.ts";
import type { Operation } from "../../operations/records.ts";
import type { Static } from "../core/type.ts";
import { sendStarted } from "./idempotent.ts";
import { renderOperation } from "./operations.ts";
import { BlueprintIdParams } from "./schemas/blueprints.ts";
import { idempotencyKeyHeader, responses } from "./schemas/common.ts";
import { AddBlueprintBody, OperationSchema, RemoveBlueprintBody } from "./schemas/operations.ts";
import type { GatewayServices } from "./services.ts";

type BlueprintParams = { Params: Static<typeof BlueprintIdParams> };

const problems = [
  "malformed_json",
  "blueprint_not_found",
  "blueprint_busy",
  "idempotency_key_reused",
  "payload_too_large",
  "unsupported_media_type",
  "validation_failed",
] as const;

export function blueprintOperationRoutes(api: FastifyInstance, services: GatewayServices): void {
  const { blueprints } = services;

  api.post<BlueprintParams & { Body: Static<typeof AddBlueprintBody> }>(
    "/blueprints/:blueprint_id/additions",
    {
      schema: {
        operationId: "addBlueprint",
        tags: ["blueprints"],
        summary: "Add a blueprint",
        description:
          "Prepares it for runs: its package is copied, its resources are made, its models installed. Follow the operation at Location; it goes on whatever becomes of this request. A blueprint that is added and has not changed is through at once.",
        params: BlueprintIdParams,
        headers: idempotencyKeyHeader,
        body: AddBlueprintBody,
        response: responses({ 202: OperationSchema }, [...problems, "blueprint_broken"]),
      },
    },
    (request, reply) => {
      const { force = false } = request.body;
      return sendOperation(services, request, reply, () =>
        blueprints.prepareAddition(request.params.blueprint_id, { force }),
      );
    },
  );

  api.post<BlueprintParams & { Body: Static<typeof RemoveBlueprintBody> }>(
    "/blueprints/:blueprint_id/removals",
    {
      schema: {
        operationId: "removeBlueprint",
        tags: ["blueprints"],
        summary: "Remove a blueprint",
        description:
          "Deletes what was prepared for it, which adding it again makes anew; the catalog's folder stays. Look at a dry_run first: it ends with just what the removal would then remove. Its package stays while jobs have it, a model while another blueprint has it.",
        params: BlueprintIdParams,
        headers: idempotencyKeyHeader,
        body: RemoveBlueprintBody,
        response: responses({ 202: OperationSchema }, [...problems, "blueprint_in_use"]),
      },
    },
    (request, reply) => {
      const { dry_run = false, keep_resources = false, keep_models = false } = request.body;
      return sendOperation(services, request, reply, () =>
        blueprints.prepareRemoval(request.params.blueprint_id, { dry_run, keep_resources, keep_models }),
      );
    },
  );
}

function sendOperation(
  services: GatewayServices,
  request: FastifyRequest,
  reply: FastifyReply,
  prepare: () => Promise<WriteOperation>,
): Promise<FastifyReply> {
  return sendStarted<Operation>(services, request, reply, {
    prepare,
    answer: (operation) => ({
      location: `/api/v1/operations/${operation.operationId}`,
      body: renderOperation(operation),
    }),
    started: (operation) => services.blueprints.begin(operation),
  });
}
