// POST /blueprints/{blueprint_id}/runs and /blueprints/{blueprint_id}/validate.

import type { FastifyInstance } from "fastify";
import type { JsonObject } from "../../engine/json.ts";
import { parseTraceparent } from "../../engine/trace.ts";
import type { LaunchedBlueprint } from "../../launch/blueprint-launches.ts";
import { addRoutes, post } from "../core/route.ts";
import { sendStartedRun } from "./run-waits.ts";
import {
  BlueprintValidationSchema,
  LaunchBlueprintBody,
  LaunchedBlueprintSchema,
  ValidateBlueprintBody,
} from "./schemas/blueprint-launches.ts";
import { RunSchema } from "./schemas/runs.ts";
import { startRunHeaders, startRunProblems } from "./schemas/start-run.ts";
import type { GatewayServices } from "./services.ts";

export function blueprintLaunchRoutes(api: FastifyInstance, services: GatewayServices): void {
  const { launches } = services;

  addRoutes(api, "blueprints", [
    post("/blueprints/:blueprint_id/runs", {
      operationId: "launchBlueprint",
      summary: "Launch a blueprint",
      description:
        "Makes a job of the blueprint and starts a run of it. A blueprint that is not added is added first; the run waits for that. One whose folder has changed since it was added runs as it was added, and warnings says so. With `Prefer: wait=N` the answer is the ended run, with 200.",
      headers: startRunHeaders,
      body: LaunchBlueprintBody,
      answers: { 200: RunSchema, 202: LaunchedBlueprintSchema },
      problems: startRunProblems,
      handle: (request, reply) => {
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
    }),

    post("/blueprints/:blueprint_id/validate", {
      operationId: "validateBlueprint",
      summary: "Say what would stand against a launch",
      description:
        "Makes nothing. Checks what a launch checks before it is accepted, and says everything at once; validators of the package are run.",
      body: ValidateBlueprintBody,
      answers: { 200: BlueprintValidationSchema },
      problems: ["blueprint_busy"],
      handle: async (request) => {
        const { inputs, config } = request.body;
        const { errors, warnings } = await launches.validate(request.params.blueprint_id, {
          inputs: (inputs ?? {}) as JsonObject,
          config: (config ?? {}) as JsonObject,
        });
        return { valid: errors.length === 0, errors, warnings };
      },
    }),
  ]);
}
