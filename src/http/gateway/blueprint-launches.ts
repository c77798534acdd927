// POST /blueprints/{blueprint_id}/runs and /blueprints/{blueprint_id}/validate.

import type { FastifyInstance } from "fastify";
import type { JsonObject } from "../../engine/json.ts";
import { parseTraceparent } from "../../engine/trace.ts";
import type { LaunchedBlueprint } from "../../launch/blueprint-launches.ts";
import type { Static } from "../core/type.ts";
import { sendStartedRun } from "./run-waits.ts";
import {
  BlueprintIdParams,
  BlueprintValidationSchema,
  LaunchBlueprintBody,
  LaunchedBlueprintSchema,
  ValidateBlueprintBody,
} from "./schemas/blueprint-launches.ts";
import { responses } from "./schemas/common.ts";
import { RunSchema } from "./schemas/runs.ts";
import { startRunHeaders, startRunProblems } from "./schemas/start-run.ts";
import type { GatewayServices } from "./services.ts";

type BlueprintParams = { Params: Static<typeof BlueprintIdParams> };

export function blueprintLaunchRoutes(api: FastifyInstance, services: GatewayServices): void {
  const { launches } = services;

  api.post<BlueprintParams & { Body: Static<typeof LaunchBlueprintBody> }>(
    "/blueprints/:blueprint_id/runs",
    {
      schema: {
        operationId: "launchBlueprint",
        tags: ["blueprints"],
        summary: "Launch a blueprint",
        description:
          "Makes a job of the blueprint and starts a run of it. A blueprint that is not added is added first; the run waits for that. One whose folder has changed since it was added runs as it was added, and warnings says so. With `Prefer: wait=N` the answer is the ended run, with 200.",
        params: BlueprintIdParams,
        headers: startRunHeaders,
        body: LaunchBlueprintBody,
        response: responses({ 200: RunSchema, 202: LaunchedBlueprintSchema }, startRunProblems),
      },
    },
    (request, reply) => {
      const { inputs, config_overrides: overrides, name } = request.body;
      return sendStartedRun<LaunchedBlueprint>(services, request, reply, {
        prepare: () =>
          launches.prepare(request.params.blueprint_id, {
            inputs: (inputs ?? {}) as JsonObject,
            configOverrides: (overrides as JsonObject | undefined) ?? null,
            name: name ?? null,
            trace: parseTraceparent(request.headers.traceparent),
          }),
        answer: ({ run: { runId, jobId }, warnings }) => ({
          location: `/api/v1/runs/${runId}`,
          body: JSON.stringify({ run_id: runId, job_id: jobId, status: "pending", warnings }),
        }),
        started: (launched) => launches.launched(launched),
        runOf: ({ run }) => run,
      });
    },
  );

  api.post<BlueprintParams & { Body: Static<typeof ValidateBlueprintBody> }>(
    "/blueprints/:blueprint_id/validate",
    {
      schema: {
        operationId: "validateBlueprint",
        tags: ["blueprints"],
        summary: "Say what would stand against a launch",
        description:
          "Makes nothing. Checks what a launch checks before it is accepted, and says everything at once; validators of the package are run.",
        params: BlueprintIdParams,
        body: ValidateBlueprintBody,
        response: responses({ 200: BlueprintValidationSchema }, [
          "malformed_json",
          "blueprint_not_found",
          "blueprint_busy",
          "payload_too_large",
          "unsupported_media_type",
          "validation_failed",
        ]),
      },
    },
    async (request) => {
      const { inputs, config } = request.body;
      const { errors, warnings } = await launches.validate(request.params.blueprint_id, {
        inputs: (inputs ?? {}) as JsonObject,
        config: (config ?? {}) as JsonObject,
      });
      return { valid: errors.length === 0, errors, warnings };
    },
  );
}
