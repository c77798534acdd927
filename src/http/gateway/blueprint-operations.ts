// POST /blueprints/{blueprint_id}/additions and /removals: requests that begin an operation, which goes on by itself.

import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import type { WriteOperation } from "../../blueprints/blueprints.ts";
import type { Operation } from "../../operations/records.ts";
import { addRoutes, post } from "../core/route.ts";
import { sendStarted } from "./idempotent.ts";
import { renderOperation } from "./operations.ts";
import { idempotencyKeyHeader } from "./schemas/common.ts";
import { AddBlueprintBody, OperationSchema, RemoveBlueprintBody } from "./schemas/operations.ts";
import type { GatewayServices } from "./services.ts";

// In the order of the document, where the key's problem comes before an operation's own.
const problems = ["blueprint_busy", "idempotency_key_reused"] as const;

export function blueprintOperationRoutes(api: FastifyInstance, services: GatewayServices): void {
  const { blueprints } = services;

  addRoutes(api, "blueprints", [
    post("/blueprints/:blueprint_id/additions", {
      operationId: "addBlueprint",
      summary: "Add a blueprint",
      description:
        "Prepares it for runs: its package is copied, its resources are made, its models installed. Follow the operation at Location; it goes on whatever becomes of this request. A blueprint that is added and has not changed is through at once.",
      headers: idempotencyKeyHeader,
      body: AddBlueprintBody,
      answers: { 202: OperationSchema },
      problems: [...problems, "blueprint_broken"],
      handle: (request, reply) => {
        const { force = false } = request.body;
        return sendOperation(services, request, reply, () =>
          blueprints.prepareAddition(request.params.blueprint_id, { force }),
        );
      },
    }),

    post("/blueprints/:blueprint_id/removals", {
      operationId: "removeBlueprint",
      summary: "Remove a blueprint",
      description:
        "Deletes what was prepared for it, which adding it again makes anew; the catalog's folder stays. Look at a dry_run first: it ends with just what the removal would then remove. Its package stays while jobs have it, a model while another blueprint has it.",
      headers: idempotencyKeyHeader,
      body: RemoveBlueprintBody,
      answers: { 202: OperationSchema },
      problems: [...problems, "blueprint_in_use"],
      handle: (request, reply) => {
        const { dry_run = false, keep_resources = false, keep_models = false } = request.body;
        return sendOperation(services, request, reply, () =>
          blueprints.prepareRemoval(request.params.blueprint_id, { dry_run, keep_resources, keep_models }),
        );
      },
    }),
  ]);
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
